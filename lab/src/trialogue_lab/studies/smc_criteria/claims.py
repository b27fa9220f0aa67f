"""Claims of the study, and the numbers that documentation pages quote."""

from functools import partial

from trialogue_lab.ledger import Claim, cited, largest, ours, smallest
from trialogue_lab.studies.smc_criteria import statistics as stats
from trialogue_lab.studies.smc_criteria.branches import BY_LENGTH, CONSTANT, NONE
from trialogue_lab.studies.smc_criteria.curves import ANY, CONCAVE
from trialogue_lab.studies.smc_criteria.draws import EVERY_STEP, HALF
from trialogue_lab.studies.smc_criteria.products import POSITIVE, ZERO_ONE

_REPEAT, _BELLMAN, _ROC = "arXiv 2603.07887", "arXiv 2602.01381", "arXiv 2507.12399"
_CONSTRUCTION = (
    "Targets are products over positions with two tokens. The source's construction could not be read."
)
_CRITERIA = (
    "Sequences of three tokens, two particles, and definitions of both criteria by this project. The abstract says "
    "'simple criteria', and secondary summaries name them."
)
_BRANCHES = "The first token decides the outcome, and all Bellman errors have the same size."
_ROUNDING = 1e-12

PUBLISHED = (
    Claim(
        "particles-grow-as-the-square-root",
        "With perfect values and resampling after every token, the number of particles for a total variation of at "
        "most 0.1 grows as the square root of the length, within 0.05 (slope of logarithms, random product targets of "
        "64 to 4,096 tokens).",
        stats.exponent().near(0.5, margin=0.05),
        grade=True,
        **cited(
            f"{_REPEAT}, as summarised at papers.lunadong.com/paper/9841",
            "roughly square-root-of-horizon particles even if the process reward model is perfect",
            "reject-resample-repeat:perfect-values",
            setting=_CONSTRUCTION,
        ),
    ),
    *(
        Claim(
            f"{name}-governs-the-error",
            statement,
            stats.criterion_correlation(column) > 0,
            **cited(
                f"{_REPEAT}, abstract",
                "the criteria govern the sampling error of SMC",
                "reject-resample-repeat:criteria",
                setting=_CRITERIA,
            ),
        )
        for name, column, statement in (
            (
                "coverage",
                "coverage",
                "With perfect values, SMC is further from the target on trees with a larger action-level coverage "
                "(rank correlation over small random trees, exact distances).",
            ),
            (
                "chi-square",
                "chi_square",
                "Errors of the values move SMC further from the target if the chi-square divergence of approximate "
                "from exact values is larger (rank correlation over small random trees, exact distances).",
            ),
        )
    ),
    Claim(
        "errors-of-order-one-over-length-are-polynomial",
        "With Bellman errors of 1 / H of both signs, the number of particles for a total variation of at most 0.1 "
        "grows more slowly than the square of the length H (slope of logarithms, 8 to 64 tokens).",
        stats.error_exponent() < 2,
        grade=True,
        **cited(
            f"{_BELLMAN}, abstract",
            "polynomial cost if the Bellman error is O(1/T)",
            "approximate-reward-models:polynomial",
            setting=_BRANCHES,
        ),
    ),
    Claim(
        "rejection-beats-best-of-n-on-concave-curves",
        "On random concave ROC curves, rejection by a threshold is at least as accurate as best-of-n with as many "
        "outputs on average (smallest difference, 2 to 16 outputs).",
        smallest("curves", "least_gain", where=f"curve == {CONCAVE!r} and budget < 1000") > -_ROUNDING,
        **cited(
            f"{_ROC}, abstract",
            "rejection sampling outperforms best-of-N for fixed compute",
            "roc-n-reroll:fixed-compute",
            setting="ROC curves are concave here. The abstract does not say which curves it means.",
        ),
    ),
    Claim(
        "rejection-and-best-of-n-meet",
        "With 10,000 outputs, rejection by a threshold and best-of-n differ by less than 0.01 in accuracy (mean "
        "absolute difference over random ROC curves).",
        stats.distance_in_the_limit() < 0.01,
        grade=True,
        **cited(
            f"{_ROC}, abstract",
            "both methods converge to the same accuracy in the infinite-compute limit",
            "roc-n-reroll:limit",
        ),
    ),
)

_perfect = partial(ours, source=f"{_REPEAT} (control by this project)")
_errors = partial(ours, source=f"{_BELLMAN} (converse, not in the abstract)")

OURS = (
    _perfect(
        "closed-forms-are-the-library",
        "Closed forms of this study agree with enumerations of the library's samplers on short sequences (largest "
        "difference of SMC, first leaf and best-of-n).",
        largest("library", "products", "branches", "first_leaf", "best_of_n") < 1e-9,
    ),
    _perfect(
        "zero-one-values-need-few-particles",
        "With perfect values 0 and 1, the exponent of the number of particles is below 0.25 (64 to 4,096 tokens).",
        stats.exponent(ZERO_ONE) < 0.25,
    ),
    _perfect(
        "library-as-computed",
        "Outputs of the library's SMC with 8 particles, resampled after each of 32 tokens, have the computed share of "
        "token 0, within 0.004.",
        (stats.shortfall(EVERY_STEP) - stats.computed_shortfall()).near(0, margin=0.004),
    ),
    _perfect(
        "rare-resampling-is-further",
        "With perfect values, resampling only if the effective sample size falls below half of the particles leaves a "
        "larger shortfall of token 0 than resampling after every token.",
        stats.shortfall(HALF) - stats.shortfall(EVERY_STEP) > 0,
    ),
    _perfect(
        "stopping-rejection-needs-more-calls",
        "With values 0 and 1, rejection that stops at the first impossible token needs more model calls per output "
        "than SMC with a total variation of 0.1, at 64 tokens (common logarithms).",
        stats.log_calls("stopping") - stats.log_calls() > 0,
        source="Control by this project: the cheapest form of plain rejection",
    ),
    _errors(
        "errors-of-order-one-over-length-cost-a-factor-of-length",
        "With Bellman errors of 1 / H of both signs, the number of particles grows in proportion to the length H "
        "(slope of logarithms within 0.15 of 1).",
        stats.error_exponent().near(1, margin=0.15),
    ),
    _errors(
        "constant-errors-are-not-polynomial",
        "With constant Bellman errors of 0.1 of both signs, the exponent of the number of particles rises with the "
        "length, from 8 to 12 tokens to 12 to 18 tokens.",
        stats.rise_of_exponent() > 0,
    ),
    _errors(
        "particles-beat-the-first-leaf",
        "With Bellman errors of 1 / H of both signs, SMC with as many model calls is closer to the target than the "
        "first leaf of the value-guided walk, at 64 tokens.",
        stats.branch("particles") - stats.branch("first_leaf") < 0,
        source="Thesis Algorithm 2, and arXiv 2602.01381",
    ),
    ours(
        "best-of-n-often-wins-on-other-curves",
        "On random ROC curves that need not be concave, rejection by a threshold is less accurate than best-of-n with "
        "as many outputs in more than a quarter of the cases (2 to 16 outputs).",
        stats.worse_curves() > 0.25,
        source=f"{_ROC}, abstract, without a condition on the curve",
    ),
)

CLAIMS = (*PUBLISHED, *OURS)

NUMBERS = {
    "exponent, perfect values": stats.exponent(),
    "exponent, values 0 and 1": stats.exponent(ZERO_ONE),
    "exponent, errors of 1 / H": stats.error_exponent(),
    **{
        f"particles at {length} tokens, {values} values": stats.particles(length, values)
        for values in (POSITIVE, ZERO_ONE)
        for length in (64, 4096)
    },
    **{
        f"particles needed, errors: {error}": stats.branch(error=error)
        for error in (NONE, BY_LENGTH, CONSTANT)
    },
    "first leaf, errors of 1 / H": stats.branch("first_leaf"),
    "SMC at equal calls, errors of 1 / H": stats.branch("particles"),
    "log10 calls, SMC": stats.log_calls(),
    "log10 calls, stopping rejection": stats.log_calls("stopping"),
    "log10 calls, rejection": stats.log_calls("rejection"),
    "shortfall, every token": stats.shortfall(EVERY_STEP),
    "shortfall, half": stats.shortfall(HALF),
    "share of curves on which rejection is worse": stats.worse_curves(ANY),
}
