"""Claims of this project in the study about unmasking samplers."""

from trialogue_lab.ledger import largest, ours
from trialogue_lab.studies.unmasking.config import LARGE_NOISE, NOISE
from trialogue_lab.studies.unmasking.statistics import (
    best_passes,
    farther,
    finds_mode,
    greedy,
    looseness,
    mixture_share,
    more_passes,
    random_sizes,
    remasking,
    sampled,
    score,
    sweep,
)

_DUEL, _CHEN, _ZHAO = "arXiv 2603.01367", "arXiv 2511.04647", "arXiv 2602.20126, our interpretation"
_FAST, _FANG, _REMDM = "arXiv 2505.22618", "arXiv 2604.00375", "arXiv 2503.00307"
_KIM = "arXiv 2502.06768"

OURS = (
    ours(
        "best-scores-sum-to-more-than-one",
        "The probabilities of all texts under their best orders sum to more than 2 (noise of 0.3).",
        score("best_total").as_ratio() > 2,
        _DUEL,
    ),
    ours(
        "best-loss-is-below-the-entropy",
        "The loss of the best order of each text is below the entropy of the distribution, the smallest possible "
        "loss, by more than 0.05 nats per token (noise of 0.3).",
        score("best - entropy") < -0.05,
        _DUEL,
    ),
    ours(
        "the-bound-is-loose",
        "The excess loss of a sampler with random order is less than a tenth of that of the evidence lower bound "
        "(noise of 0.3).",
        looseness().as_ratio() < 0.1,
        _DUEL,
    ),
    ours(
        "the-mixture-is-nearer-than-its-orders",
        "With two positions per pass in random order, the divergence of the mixture is less than half of the mean "
        "divergence of its orders (true conditionals).",
        mixture_share(2).as_ratio() < 0.5,
        _CHEN,
    ),
    ours(
        "random-sizes-keep-the-total-correlation",
        "If each position is revealed in one of K random passes, the divergence per order is below TC ln n / K, "
        "where TC is the total correlation of n positions (largest ratio).",
        largest("sizes", "random * passes / (total * log(sites))") < 1,
        _ZHAO,
    ),
    ours(
        "random-sizes-keep-the-dual-correlation",
        "The same divergence is below DTC ln n / K, where DTC is the dual total correlation (largest ratio).",
        largest("sizes", "random * passes / (dual * log(sites))") < 1,
        _ZHAO,
    ),
    ours(
        "equal-sizes-are-better-than-random-sizes",
        "With as many passes, the divergence per order is larger for random than for equal sizes (ratio).",
        random_sizes().as_ratio() > 1,
        _ZHAO,
    ),
    ours(
        "threshold-is-nearly-exact-at-temperature-one",
        "At temperature 1, a confidence threshold of 0.9 has a total variation below 0.05 (true conditionals).",
        sampled("threshold", 0, "variation") < 0.05,
        _FAST,
    ),
    ours(
        "noise-breaks-the-agreement-of-thresholds",
        "With noise of 1 in the logits, a confidence threshold of 0.9 and one token per pass give different texts at "
        "temperature 0 for more than 5% of the prompts.",
        greedy("threshold", LARGE_NOISE) < 0.95,
        _FAST,
    ),
    ours(
        "greedy-decoding-finds-the-mode",
        "Decoding at temperature 0, one token per pass, finds the most probable text of more than three quarters of "
        "the distributions (true conditionals).",
        finds_mode() > 0.75,
        _FAST,
    ),
    ours(
        "draw-then-select-halves-the-entropy",
        "With true conditionals and one token per pass, low-confidence remasking has less than half of the entropy.",
        sampled("draw then select", 1, "entropy / true_entropy") < 0.5,
        _FANG,
    ),
    ours(
        "the-rule-lowers-the-entropy",
        "At two tokens per pass and with the same true conditionals, drawing before selecting has a smaller entropy "
        "than selecting before drawing, by more than 0.2 of the entropy of the distribution.",
        sampled("draw then select", 2, "entropy / true_entropy")
        - sampled("confidence", 2, "entropy / true_entropy")
        < -0.2,
        _FANG,
    ),
    ours(
        "select-then-draw-raises-the-entropy",
        "Two tokens per pass, selected by confidence before they are drawn, have a larger entropy than the "
        "distribution (ratio).",
        sampled("confidence", 2, "entropy / true_entropy") > 1,
        _FANG,
    ),
    ours(
        "two-confident-tokens-are-worse-than-two-random-ones",
        "With true conditionals and two tokens per pass, the order by confidence has more than twice the divergence "
        "of the random order.",
        farther("confidence", "random", 2).as_ratio() > 2,
        _FAST,
    ),
    ours(
        "two-confident-tokens-are-worse-with-noise",
        "With noise of 0.3 and two tokens per pass, the order by confidence has a larger divergence than the random "
        "order (ratio).",
        farther("confidence", "random", 2, NOISE).as_ratio() > 1,
        _FAST,
    ),
    ours(
        "random-order-averages-noise",
        "With noise of 0.3 and one token per pass, the random order has less than a tenth of the divergence of the "
        "order by confidence.",
        farther("random", "confidence", 1, NOISE).as_ratio() < 0.1,
        _KIM,
    ),
    ours(
        "confident-order-follows-noise",
        "With noise of 0.3 and one token per pass, the order by confidence has a larger divergence than the order "
        "from left to right (ratio).",
        farther("confidence", "left to right", 1, NOISE).as_ratio() > 1,
        _KIM,
    ),
    ours(
        "margin-and-confidence-are-alike",
        "With noise of 0.3, one token per pass and more than two tokens, the orders by margin and by confidence have "
        "the same divergence, within a fifth (ratio).",
        farther("margin", "confidence", 1, NOISE, True).as_ratio().near(1, margin=0.2),
        _KIM,
    ),
    ours(
        "remasking-hurts-with-true-conditionals",
        "With true conditionals and 16 passes per token, remasking more than doubles the divergence.",
        remasking(16.0, 0.0).as_ratio() > 2,
        _REMDM,
    ),
    ours(
        "remasking-helps-with-large-noise",
        "With noise of 1 and one pass per token, the divergence is smaller with remasking than without (ratio).",
        remasking(1.0, LARGE_NOISE).as_ratio() < 1,
        _REMDM,
    ),
    ours(
        "many-passes-with-remasking-hurt",
        "With remasking and noise of 1, the divergence is larger at 16 passes per token than at four (ratio).",
        more_passes(4.0, 16.0, LARGE_NOISE).as_ratio() > 1,
        _REMDM,
    ),
    ours(
        "noise-lowers-the-best-number-of-passes",
        "With remasking, the number of passes with the smallest divergence is less than half as large with noise of "
        "1 as with true conditionals (ratio, among 1, 2, 4 and 16 passes per token).",
        (best_passes(LARGE_NOISE) / best_passes(0.0)) < 0.5,
        _REMDM,
    ),
    ours(
        "a-sweep-after-single-tokens-hurts",
        "With noise of 0.3, one sweep of Gibbs corrections after one token per pass in random order "
        "raises the divergence by more than half.",
        sweep(1, NOISE).as_ratio() > 1.5,
        _REMDM,
    ),
    ours(
        "a-sweep-after-two-tokens-helps",
        "With noise of 0.3, one sweep of Gibbs corrections after two tokens per pass in random order lowers the "
        "divergence (ratio).",
        sweep(2, NOISE).as_ratio() < 1,
        _REMDM,
    ),
)
