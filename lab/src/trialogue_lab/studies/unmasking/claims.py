"""Claims of the study, and the numbers that documentation pages quote."""

from functools import partial

from trialogue_lab.ledger import RESOLVED, Claim, cited, largest
from trialogue_lab.studies.unmasking.config import LARGE_NOISE, NOISE
from trialogue_lab.studies.unmasking.own_claims import OURS
from trialogue_lab.studies.unmasking.statistics import (
    adaptive_loss,
    best_passes,
    coin_growth,
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

_DUEL, _FANG = "DUEL (arXiv 2603.01367), abstract", "arXiv 2604.00375, abstract"
_THEOREM, _REMDM = "Fast-dLLM (arXiv 2505.22618), Theorem 1", "ReMDM (arXiv 2503.00307), abstract"
_CHEN = "Chen, Cong and Li (arXiv 2511.04647)"
_NOISY = "Exact distributions, noise of 0.3 in the logits of their conditionals. The source scores texts with networks."
_TRUE = "Exact distributions and their true conditionals. The source samples from language models."
_REMASKED = (
    "Exact distributions of four or five positions, with noise of 0.3 in the logits. The source compares texts of a "
    "network by other measures."
)
_theorem = partial(cited, _THEOREM)

PUBLISHED = (
    Claim(
        "best-orders-beat-left-to-right",
        "The best order of each text, with scores that are divided by their sum over all texts, has a smaller loss "
        "than the order from left to right (nats per token, noise of 0.3).",
        score("best_normalised - left_to_right") < 0,
        **cited(
            _DUEL,
            "oracle search over position orderings reveals MDMs can far surpass autoregressive models, 36.47 vs. "
            "52.11 perplexity",
            "duel:M-abstract.oracle",
            setting=f"{_NOISY} It does not divide by the sum, and compares with an autoregressive network.",
        ),
    ),
    Claim(
        "confident-order-beats-the-bound",
        "The order by confidence has a smaller loss than the evidence lower bound, which averages over all orders "
        "(nats per token, noise of 0.3).",
        adaptive_loss() < 0,
        **cited(
            _DUEL,
            "MDMs are substantially better than previously thought: the perplexity gap shrinks by up to 32%",
            "duel:M-abstract.likelihood",
            setting=_NOISY,
        ),
    ),
    Claim(
        "divergence-per-order-is-a-riemann-error",
        "With several positions per pass in random order, the divergence of each order, averaged over all orders, is "
        "the error of the left Riemann sum of the information curve (largest difference).",
        largest("orders", "mean_of_orders - riemann", "riemann - mean_of_orders") < 1e-9,
        **cited(
            _CHEN,
            "exact characterization of the expected divergence, for any distribution and any unmasking schedule",
            "optimal-schedules:M-identity",
        ),
    ),
    Claim(
        "passes-grow-with-the-logarithm",
        "On sequences of tosses of one of two random coins, the smallest number of passes for a divergence of 0.05 "
        "nats grows from 256 to 1,024 tokens by a factor below 5/4, the ratio of the logarithms.",
        coin_growth().as_ratio() < 1.25,
        **cited(
            f"{_CHEN}, abstract",
            "in some natural settings, one can sample in O(log n) steps without any visible loss",
            "optimal-schedules:M-abstract.steps",
            grade=True,
            setting="The setting of the source is not named in its abstract. Two coins are our choice, and lengths and "
            "grade were changed after the pilot, before the run.",
        ),
    ),
    Claim(
        "product-and-joint-have-the-same-mode",
        "Where the most probable tokens of n positions have probabilities above 1 - e with (n + 1) e below 1, they "
        "are also the most probable tokens jointly (largest share of exceptions).",
        largest("theorem", "different / cases") < RESOLVED,
        **_theorem(
            "greedy parallel decoding is equivalent to greedy sequential decoding", "fast-dllm:T1.mode"
        ),
    ),
    Claim(
        "total-variation-is-below-the-bound",
        "There, the total variation between product and joint distribution is below (3 n - 1) e / 2 (largest ratio).",
        largest("theorem", "variation_ratio") < 1,
        **_theorem("below (3n - 1) e / 2", "fast-dllm:T1.variation"),
    ),
    Claim(
        "divergence-is-below-the-bound",
        "There, the divergence of the joint distribution from the product is below (n - 1) (H(e) + e ln(V - 1)) "
        "(largest ratio).",
        largest("theorem", "divergence_ratio") < 1,
        **_theorem("below (n - 1) (H(e) + e ln(V - 1))", "fast-dllm:T1.divergence"),
    ),
    Claim(
        "threshold-agrees-with-one-token-per-pass",
        "At temperature 0, a confidence threshold of 0.9 gives the same text as one token per pass for more than 99% "
        "of the prompts (true conditionals).",
        greedy("threshold") > 0.99,
        **cited(
            "Fast-dLLM (arXiv 2505.22618), abstract",
            "mitigating dependency violations and maintaining generation quality",
            "fast-dllm:M-abstract.threshold",
            grade=True,
            setting="Exact distributions. Prompts are texts in which 1 to L random tokens are masked.",
        ),
    ),
    Claim(
        "draw-then-select-lowers-entropy",
        "Low-confidence remasking, with one token per pass, has a smaller entropy than the distribution (nats).",
        sampled("draw then select", 1, "entropy - true_entropy") < 0,
        **cited(
            _FANG,
            "provably constraining the entropy of the induced sequence distribution",
            "quality-exploration:M-abstract.entropy",
            setting=_TRUE,
        ),
    ),
    Claim(
        "draw-then-select-lowers-coverage",
        "The different texts among 64 samples of low-confidence remasking, with one token per pass, have a smaller "
        "true probability than those among 64 exact samples.",
        sampled("draw then select", 1, "coverage - true_coverage") < 0,
        **cited(
            _FANG,
            "suppresses exploration and limits multi-sample gains",
            "quality-exploration:M-abstract.coverage",
            setting=_TRUE,
        ),
    ),
    Claim(
        "draw-then-select-raises-quality",
        "Texts of low-confidence remasking, with one token per pass, have a larger true log-probability than exact "
        "samples (mean difference in nats).",
        sampled("draw then select", 1, "quality") > 0,
        **cited(
            _FANG,
            "improves single-sample quality by prioritizing confident tokens",
            "quality-exploration:M-abstract.quality",
            setting=_TRUE,
        ),
    ),
    Claim(
        "more-passes-with-remasking-are-better",
        "With remasking and noise of 0.3, the divergence is smaller at 16 passes per token than at one (ratio).",
        more_passes(1.0, 16.0, NOISE).as_ratio() < 1,
        **cited(
            _REMDM,
            "By increasing the number of sampling steps, outputs approach the quality of autoregressive models",
            "remdm:M-abstract.steps",
            setting=_REMASKED,
        ),
    ),
    Claim(
        "remasking-helps-with-few-passes",
        "At one pass per token and noise of 0.3, the divergence is smaller with remasking than without (ratio).",
        remasking(1.0, NOISE).as_ratio() < 1,
        **cited(
            _REMDM,
            "when the computation budget is limited, ReMDM better maintains quality",
            "remdm:M-abstract.few",
            setting=f"{_REMASKED} With two passes or fewer, nothing is masked again.",
        ),
    ),
)

CLAIMS = (*PUBLISHED, *OURS)

NUMBERS = {
    **{
        f"loss, {name}": score(column)
        for name, column in (
            ("entropy", "entropy"),
            ("bound", "mean_order"),
            ("left to right", "left_to_right"),
            ("mixture", "mixture"),
            ("best order", "best"),
            ("best order, normalised", "best_normalised"),
        )
    },
    "sum of best scores": score("best_total").as_ratio(),
    "looseness": looseness().as_ratio(),
    "mixture share": mixture_share(2).as_ratio(),
    "random sizes": random_sizes().as_ratio(),
    "growth of passes": coin_growth().as_ratio(),
    "threshold agreement": greedy("threshold"),
    "threshold agreement, noise": greedy("threshold", NOISE),
    "finds the mode": finds_mode(),
    "threshold, passes saved": sampled("threshold", 0, "1 - passes / sites"),
    "threshold, variation": sampled("threshold", 0, "variation"),
    **{
        f"{measure}, {name}, {size}": sampled(name, size, f"{column} / true_{column}")
        for measure, column in (("entropy", "entropy"), ("coverage", "coverage"))
        for name in ("draw then select", "confidence", "random")
        for size in (1, 2)
    },
    **{
        f"divergence, {name}, {size}, noise {noise:g}": sampled(name, size, "divergence", noise)
        for name in ("random", "left to right", "confidence", "entropy", "margin", "draw then select")
        for size, noise in ((1, NOISE), (2, 0.0), (2, NOISE))
    },
    "two confident tokens": farther("confidence", "random", 2).as_ratio(),
    **{
        f"remasking, {multiple:g} passes, noise {noise:g}": remasking(multiple, noise).as_ratio()
        for multiple in (1.0, 4.0, 16.0)
        for noise in (0.0, NOISE, LARGE_NOISE)
    },
    **{f"best passes, noise {noise:g}": best_passes(noise).as_ratio() for noise in (0.0, NOISE, LARGE_NOISE)},
    **{f"sweep after {size}": sweep(size, NOISE).as_ratio() for size in (1, 2)},
}
