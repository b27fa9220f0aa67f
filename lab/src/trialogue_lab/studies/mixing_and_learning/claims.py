"""Claims of the study, and the numbers that documentation pages quote."""

from trialogue_lab.ledger import Claim, cited, largest, ours, smallest
from trialogue_lab.studies.mixing_and_learning import statistics
from trialogue_lab.studies.mixing_and_learning.config import ADAPTIVE, WEIGHTED, make_size_label
from trialogue_lab.studies.mixing_and_learning.statistics import EVERY, FEW, MANY, MASKED

ROUNDING = -1e-10
"""Eigenvalues above this number count as nonnegative. The matrices are of order one."""

_BOUND, _ADAPTIVE, _MORE = "Theorem 4.1.2", "Theorem 4.1.3", "Theorem 4.1.1"
_INTRODUCTION = "Thesis section 4.1, introduction"
_NOT_NEGATIVE = "not below 0"
_GEOMETRIC = "a ratio is averaged by its logarithm since, so that the estimate is a geometric mean"
_WITH_COUPLINGS = "coupling != 0"
_WEIGHTED, _DEPENDENT = "Masking random weighted blocks", "With masks that depend on the state"

CLAIMS = (
    *(
        Claim(
            f"chain-bounds-learning{ending}",
            f"{masking}, Gamma ⪯ C I^-1 with C {constant}, in every random Ising model (smallest eigenvalue of "
            "C I^-1 - Gamma, in units of the largest of C I^-1).",
            statistics.least("slack", law) > ROUNDING,
            **cited(theorem, _NOT_NEGATIVE, f"thesis:{statement_id}"),
        )
        for ending, law, theorem, statement_id, masking, constant in (
            ("", MASKED, _BOUND, "M-T412", "Masking k random sites", "the Poincaré constant of k-Gibbs"),
            ("-weighted", WEIGHTED, _BOUND, "M-T412", _WEIGHTED, "that of the weighted block dynamics"),
            ("-adaptive", ADAPTIVE, _ADAPTIVE, "M-T413", _DEPENDENT, "that of the chain's marginal on X"),
        )
    ),
    Claim(
        "chain-on-pairs-has-a-constant",
        "The chain of eq. (4.26) on (X, K), of which the proof of Theorem 4.1.3 speaks, falls into one class, so that "
        "it has a Poincaré constant (most classes over models).",
        statistics.most("classes_most", ADAPTIVE) < 1.5,
        **cited(f"Proof of {_ADAPTIVE}, eq. (4.26)", "a constant C is assumed", "thesis:M-T413.proof"),
    ),
    Claim(
        "likelihood-is-best",
        "No mask law does better than maximum likelihood: Gamma ⪰ I^-1 in every model (smallest eigenvalue, in units "
        "of the largest of Gamma).",
        statistics.least("efficiency", EVERY) > ROUNDING,
        **cited("Text after Definition 4.1.1 (Hajek, Le Cam)", "asymptotically optimal", "thesis:M-D411"),
    ),
    Claim(
        "larger-blocks-mix-faster",
        "C_k <= C_1 / k for k-Gibbs with k above 1, in every model with couplings (largest k C_k / C_1 at most "
        "1 + 1e-9).",
        statistics.most("gain_most", "k > 1") < 1 + 1e-9,
        **cited("Text after Definition 4.1.10 (Lee 2023)", "at most 1", "thesis:M-GIBBS"),
    ),
    Claim(
        "masking-more-is-no-worse",
        "Gamma^(k+1) ⪯ Gamma^k for every k, in every random Ising model and exponential family (smallest eigenvalue of "
        "the difference, in units of Tr Gamma^k).",
        smallest("more", "smallest", where=_WITH_COUPLINGS) > ROUNDING,
        **cited(_MORE, _NOT_NEGATIVE, "thesis:M-T411"),
    ),
    Claim(
        "identity-of-the-proof",
        "I^(k+1) = I^k + C with the C of the proof, in every model (largest entry of the difference).",
        largest("more", "identity", where=_WITH_COUPLINGS) < 1e-10,
        **cited(f"Proof of {_MORE}", "0", "thesis:M-T411.proof"),
    ),
    Claim(
        "masking-more-is-strictly-better",
        "Masking more strictly improves: Gamma^k - Gamma^(k+1) is positive definite for every k, in at least one Ising "
        "model (largest over models of the smallest eigenvalue, in units of Tr Gamma^k, at the worst k).",
        statistics.best_gain() > 1e-9,
        **cited(f"Text before {_MORE}", "strictly improves", "thesis:M-T411.text"),
    ),
    ours(
        "attained-with-many-masks",
        "With k at least N - 2 the bound is attained in some direction, in every Ising model with all pairs free "
        "(smallest best constant over C).",
        statistics.least("tightness_least", MANY) > 1 - 1e-9,
        f"{_BOUND} (not in the thesis)",
    ),
    *(
        ours(
            f"tight-over-directions-{name}",
            f"{masking} the best constant is at least 0.9 C (ratio, mean over models).",
            statistics.typical("tightness", law).as_ratio().corrected(_GEOMETRIC) > 0.9,
            f"{theorem} (not in the thesis)",
        )
        for name, masking, law, theorem in (
            ("few-masks", "Masking k < N - 2 sites", FEW, _BOUND),
            ("weighted", "With random weighted blocks", WEIGHTED, _BOUND),
            ("adaptive", _DEPENDENT, ADAPTIVE, _ADAPTIVE),
        )
    ),
    ours(
        "tight-in-the-trace",
        "Masking 1 site the squared error is at least half of its bound: Tr Gamma / (C Tr I^-1) above 0.5 (ratio, mean "
        "over models).",
        statistics.typical("trace_share", make_size_label(1)).as_ratio().corrected(_GEOMETRIC) > 0.5,
        f"{_BOUND} (not in the thesis)",
    ),
    *(
        Claim(
            f"stronger-dependence-{ending}",
            f"{quantity} grows from the weakest to the strongest couplings (log ratio, mean over models).",
            statistics.growth(column) > 0,
            **cited(_INTRODUCTION, "stronger dependence is worse", "thesis:M-Q.dependence"),
        )
        for ending, quantity, column in (
            ("mixes-slower", "C of 1-Gibbs", "log_constant"),
            ("is-harder-to-learn", "Tr Gamma with 1 masked site", "log_trace"),
        )
    ),
)

NUMBERS = {
    **{
        f"best constant over C, {law}": statistics.typical("tightness", law)
        for law in (FEW, MANY, WEIGHTED, ADAPTIVE)
    },
    "least best constant over C": smallest("bound", "tightness_least"),
    "trace over its bound, k = 1": statistics.typical("trace_share", make_size_label(1)),
    "least trace over its bound, k = 1": statistics.least("trace_share_least", make_size_label(1)),
    "most trace over its bound, k = 1": statistics.most("trace_share_most", make_size_label(1)),
}
