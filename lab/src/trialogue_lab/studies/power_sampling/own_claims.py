"""Claims of this project in the study about sampling from a power of the model's distribution."""

from trialogue_lab.ledger import ours
from trialogue_lab.studies.power_sampling.config import CORRECTED, EARLY_ENDS, PARTICLES, RELEASED, WEIGHTED
from trialogue_lab.studies.power_sampling.statistics import (
    best_factor,
    chain,
    ended,
    growth,
    local,
    lookahead,
    markov,
    variance_ratio,
)

KARAN = "arXiv 2510.14901"
POWER_SMC = "arXiv 2602.10273, abstract"
SUFFIXES = "arXiv 2605.04542, abstract"
SCALED = "arXiv 2601.21590, abstract"

OURS = (
    ours(
        "another-temperature-minimises-the-variance-of-whole-weights",
        "The temperature whose weights of complete texts have the smallest variance is above 1 / alpha (factor, alpha "
        "4).",
        best_factor().as_ratio() > 1,
        POWER_SMC,
    ),
    ours(
        "one-over-alpha-wastes-variance",
        "At the best temperature, the variance of the weights of complete texts is below 0.9 of that at temperature "
        "1 / alpha (ratio, alpha 4).",
        variance_ratio().as_ratio() < 0.9,
        POWER_SMC,
    ),
    ours(
        "temperatures-by-position-do-not-reach-the-power",
        "With one temperature per position, the smallest total variation from p^4 that was found is above 0.05.",
        local("best_by_position") > 0.05,
        SUFFIXES,
    ),
    ours(
        "power-sums-of-siblings-differ",
        "The power sums of the children of a prefix differ by a factor above 2 (mean range of logarithms above 0.693, "
        "alpha 4).",
        local("sibling_range") > 0.693,
        SCALED,
    ),
    ours(
        "one-rollout-is-worse-than-temperature",
        "With one completion per candidate, lookahead is farther from p^4 than per-token temperature.",
        lookahead(1) - local("temperature") > 0,
        SCALED,
    ),
    ours(
        "sixteen-rollouts-are-close",
        "With 16 completions per candidate, lookahead has a total variation below 0.05 from p^4.",
        lookahead(16) < 0.05,
        SCALED,
    ),
    *(
        ours(
            f"corrected-chain-converges-with-{blocks}-block{'s' * (blocks > 1)}",
            f"Where texts end at different lengths, the corrected chain with {blocks} block{'s' * (blocks > 1)} has a "
            "total variation below 0.01 from p^2 after 100 steps (exact).",
            chain(CORRECTED, EARLY_ENDS, blocks) < 0.01,
            f"{KARAN}, section 4.2",
        )
        for blocks in (1, 2)
    ),
    ours(
        "corrected-chain-converges-with-16-blocks",
        "On Markov models whose texts end at different lengths, the corrected chain with 16 blocks is no farther from "
        "p^2 in the lengths of the texts than as many exact draws, by 0.1, after 10 steps per block.",
        ended(CORRECTED, None, "variation", True) < 0.1,
        f"{KARAN}, section 4.2",
    ),
    ours(
        "a-hundred-corrected-steps-are-too-few-at-four",
        "At alpha 4, the corrected chain with one block still has a total variation above 0.1 from p^4 after 100 "
        "steps, where texts end at different lengths (exact).",
        chain(CORRECTED, EARLY_ENDS, 1, 100, "variation", 4.0) > 0.1,
        f"{KARAN}, section 4.2",
    ),
    ours(
        "released-chain-gets-worse-with-steps",
        "Where texts end at different lengths, the released chain is farther from p^2 after 100 steps than after 10 "
        "(one block, exact).",
        chain(RELEASED, EARLY_ENDS, 1) - chain(RELEASED, EARLY_ENDS, 1, 10) > 0,
        f"{KARAN}, released code",
    ),
    ours(
        "weighted-draws-get-worse-with-length",
        "From the shortest to the longest texts of Markov models, 8 to 256 tokens, the distance of 16 weighted draws "
        "from p^4, beyond sampling error, grows by more than 0.03.",
        growth(WEIGHTED) > 0.03,
        POWER_SMC,
    ),
    ours(
        "particles-are-closer-than-weighted-draws",
        "At 256 tokens and equal numbers of model calls, sequential Monte Carlo with 16 particles is closer to p^4 "
        "than 16 weighted draws.",
        markov(PARTICLES) - markov(WEIGHTED) < 0,
        POWER_SMC,
    ),
    ours(
        "particles-are-close-at-256",
        "At 256 tokens, sequential Monte Carlo with 16 particles is no farther from p^4 than as many exact draws, by "
        "0.05.",
        markov(PARTICLES, None, "variation", True) < 0.05,
        POWER_SMC,
    ),
)
