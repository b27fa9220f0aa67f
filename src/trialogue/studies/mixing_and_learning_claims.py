"""Claims of the study `mixing-and-learning`.

Claims and thresholds were fixed before the reported run; the pilot is a run of the preset `default` on other seeds.
A theorem says something of every model, so that its claim has one number: the worst case over all models of the run.
"""

from collections.abc import Callable, Sequence

from pandas import DataFrame, Series

from trialogue.ledger.replication import NOT_PRINTED, Replication, exact_claim
from trialogue.studies.mixing_and_learning_rows import (
    ADAPTIVE,
    WEIGHTED,
    bounds,
    couplings,
    size_label,
    sizes,
    steps,
)

REPLICATIONS = 12
PILOT_SEEDS = (100, 101, 102, 103, 104)
PILOT: dict[str, tuple[float, ...]] = {
    "tight-over-directions-few-masks": (0.9979, 0.9966, 0.996, 0.9954, 0.9966),
    "tight-over-directions-weighted": (0.9994, 0.9999, 0.9994, 0.9995, 0.9996),
    "tight-over-directions-adaptive": (0.9062, 0.9222, 0.9179, 0.907, 0.9192),
    "tight-in-the-trace": (0.2865, 0.2725, 0.2314, 0.2588, 0.2608),
    "stronger-dependence-mixes-slower": (1.688, 1.933, 2.255, 2.001, 1.933),
    "stronger-dependence-is-harder-to-learn": (1.152, 1.386, 1.615, 1.47, 1.464),
}
"""Estimates of every claim with replications from the pilot, one per seed of `PILOT_SEEDS`."""

ROUNDING = -1e-10
"""Smallest eigenvalues above this count as not negative: matrices are of order one."""

_BOUND = "Theorem 4.1.2"
_ADAPTIVE = "Theorem 4.1.3"
_MORE = "Theorem 4.1.1"
_claim = Replication(unit="prompt set", count=REPLICATIONS, pilot_seeds=PILOT_SEEDS, pilot=PILOT).claim


def _least(column: str, *laws: str) -> Callable[[DataFrame], float]:
    """The smallest value over models with couplings, under some mask laws; without laws, under k-masking."""
    return lambda rows: float(bounds(rows, laws or sizes(rows))[column].min())


def _mean(column: str, *laws: str) -> Callable[[DataFrame], "Series[float]"]:
    """Mean over models with couplings, by set of models."""
    return lambda rows: _by_seed(rows, column, laws)


def _by_seed(rows: DataFrame, column: str, laws: Sequence[str]) -> "Series[float]":
    return bounds(rows, laws).groupby("seed")[column].mean()


def _few_masked(rows: DataFrame) -> list[str]:
    """k-masking with k < N - 2."""
    return sizes(rows)[:-3]


def _attained(rows: DataFrame) -> float:
    """Smallest share of C that is needed with k at least N - 2."""
    return float(bounds(rows, sizes(rows)[-3:]).tightness_least.min())


def _independent(rows: DataFrame) -> float:
    """Largest error of C = N / k, and of the bound being attained, without couplings."""
    chosen = bounds(rows, sizes(rows), coupled=False)
    return max(float(chosen.constant_error_most.max()), float(1 - chosen.tightness_least.min()))


def _grows(column: str) -> Callable[[DataFrame], "Series[float]"]:
    """Log ratio between the strongest and the weakest couplings, mean over models, 1 masked site."""

    def estimate(rows: DataFrame) -> "Series[float]":
        found = bounds(rows, [size_label(1)]).pivot(index="seed", columns="coupling", values=column)
        scales = couplings(rows)
        if len(scales) < 2:
            return Series(dtype=float)
        return found[scales[-1]] - found[scales[0]]

    return estimate


CLAIMS = (
    exact_claim(
        "chain-bounds-learning",
        "Masking k random sites, Gamma ⪯ C I^-1 with C the Poincaré constant of k-Gibbs, in every random Ising model "
        "(smallest eigenvalue of C I^-1 - Gamma, in units of the largest of C I^-1).",
        _BOUND,
        "not below 0",
        _least("slack"),
        ROUNDING,
        "above",
    ),
    exact_claim(
        "chain-bounds-learning-weighted",
        "Masking random weighted blocks, Gamma ⪯ C I^-1 with C that of the weighted block dynamics, in every model "
        "(smallest eigenvalue, in units of the largest of C I^-1).",
        _BOUND,
        "not below 0",
        _least("slack", WEIGHTED),
        ROUNDING,
        "above",
    ),
    exact_claim(
        "chain-bounds-learning-adaptive",
        "With masks that depend on the state, Gamma ⪯ C I^-1 with C that of the chain's marginal on X, in every model "
        "(smallest eigenvalue, in units of the largest of C I^-1).",
        _ADAPTIVE,
        "not below 0",
        _least("slack", ADAPTIVE),
        ROUNDING,
        "above",
    ),
    exact_claim(
        "information-bounded",
        "I_PL ⪰ I / C under every mask law, in every model (smallest eigenvalue of I_PL - I / C).",
        f"{_BOUND} and 4.1.3, equivalent",
        "not below 0",
        lambda rows: float(bounds(rows).information_slack.min()),
        ROUNDING,
        "above",
    ),
    exact_claim(
        "chain-on-pairs-has-a-constant",
        "The chain of eq. (4.26) on (X, K), of which the proof of Theorem 4.1.3 speaks, falls into one class, so that "
        "it has a Poincaré constant (most classes over models).",
        f"Proof of {_ADAPTIVE}, eq. (4.26)",
        "a constant C is assumed",
        lambda rows: float(bounds(rows, [ADAPTIVE]).classes_most.max()),
        1.5,
        "below",
    ),
    exact_claim(
        "likelihood-is-best",
        "No mask law does better than maximum likelihood: Gamma ⪰ I^-1 in every model (smallest eigenvalue, in units "
        "of the largest of Gamma).",
        "Text after Definition 4.1.1 (Hajek, Le Cam)",
        "asymptotically optimal",
        lambda rows: float(bounds(rows).efficiency.min()),
        ROUNDING,
        "above",
    ),
    exact_claim(
        "attained-by-product-laws",
        "Without couplings C = N / k and the bound is an equality (largest relative error).",
        f"{_BOUND} (control not in the thesis)",
        NOT_PRINTED,
        _independent,
        1e-9,
        "below",
    ),
    exact_claim(
        "attained-with-many-masks",
        "With k at least N - 2 the bound is attained in some direction, in every Ising model with all pairs free "
        "(smallest best constant over C).",
        f"{_BOUND} (not in the thesis)",
        NOT_PRINTED,
        _attained,
        1 - 1e-9,
        "above",
    ),
    exact_claim(
        "dependence-matters",
        "With couplings some Gamma exceeds (N / k) I^-1, what the share of masked sites alone would give (largest best "
        "constant times k / N).",
        f"{_BOUND} (control not in the thesis)",
        NOT_PRINTED,
        lambda rows: float(bounds(rows, sizes(rows)).of_independent_most.max()),
        1.0,
        "above",
    ),
    exact_claim(
        "larger-blocks-mix-faster",
        "C_k <= C_1 / k for k-Gibbs with k above 1, in every model (largest k C_k / C_1 at most 1 + 1e-9).",
        "Text after Definition 4.1.10 (Lee 2023)",
        "at most 1",
        lambda rows: float(bounds(rows, sizes(rows)[1:]).gain_most.max()),
        1 + 1e-9,
        "below",
    ),
    exact_claim(
        "masking-more-is-no-worse",
        "Gamma^(k+1) ⪯ Gamma^k for every k, in every random Ising model and exponential family (smallest eigenvalue of "
        "the difference, in units of Tr Gamma^k).",
        _MORE,
        "not below 0",
        lambda rows: float(steps(rows).smallest.min()),
        ROUNDING,
        "above",
    ),
    exact_claim(
        "identity-of-the-proof",
        "I^(k+1) = I^k + C with the C of the proof, in every model (largest entry of the difference).",
        f"Proof of {_MORE}",
        "0",
        lambda rows: float(steps(rows).identity.max()),
        1e-10,
        "below",
    ),
    exact_claim(
        "masking-more-is-strictly-better",
        "Masking more strictly improves: Gamma^k - Gamma^(k+1) is positive definite for every k, in at least one Ising "
        "model (largest over models of the smallest eigenvalue, in units of Tr Gamma^k, at the worst k).",
        f"Text before {_MORE}",
        "strictly improves",
        lambda rows: float(_ising(rows).groupby("masked").smallest_most.max().min()),
        1e-9,
        "above",
    ),
    exact_claim(
        "masking-more-improves-the-trace",
        "Masking one site more lowers Tr Gamma by more than 1e-6 of it, for every k and in every random model.",
        f"{_MORE} (weaker than the text before it)",
        "strictly improves",
        lambda rows: float(steps(rows).trace_drop.min()),
        1e-6,
        "above",
    ),
    exact_claim(
        "last-site-gains-few-directions",
        "Masking all sites instead of all but one gains in at most N of the parameters' directions, in every Ising "
        "model (most directions over N).",
        f"{_MORE} (not in the thesis)",
        NOT_PRINTED,
        lambda rows: float(_ising(rows).pipe(_last).rank_most.max() / len(sizes(rows))),
        1 + 1e-9,
        "below",
    ),
    _claim(
        "tight-over-directions-few-masks",
        "Masking k < N - 2 sites the best constant is at least 0.9 C (mean over models).",
        f"{_BOUND} (not in the thesis)",
        NOT_PRINTED,
        lambda rows: _by_seed(rows, "tightness", _few_masked(rows)),
        0.9,
        "above",
    ),
    _claim(
        "tight-over-directions-weighted",
        "With random weighted blocks the best constant is at least 0.9 C (mean over models).",
        f"{_BOUND} (not in the thesis)",
        NOT_PRINTED,
        _mean("tightness", WEIGHTED),
        0.9,
        "above",
    ),
    _claim(
        "tight-over-directions-adaptive",
        "With masks that depend on the state the best constant is at least 0.9 C (mean over models).",
        f"{_ADAPTIVE} (not in the thesis)",
        NOT_PRINTED,
        _mean("tightness", ADAPTIVE),
        0.9,
        "above",
    ),
    _claim(
        "tight-in-the-trace",
        "Masking 1 site the squared error is at least half of its bound: Tr Gamma / (C Tr I^-1) above 0.5 (mean over "
        "models).",
        f"{_BOUND} (not in the thesis)",
        NOT_PRINTED,
        _mean("trace_share", size_label(1)),
        0.5,
        "above",
    ),
    _claim(
        "stronger-dependence-mixes-slower",
        "C of 1-Gibbs grows from the weakest to the strongest couplings (log ratio, mean over models).",
        "Thesis section 4.1, introduction",
        "stronger dependence is worse",
        _grows("log_constant"),
        0.0,
        "above",
    ),
    _claim(
        "stronger-dependence-is-harder-to-learn",
        "Tr Gamma with 1 masked site grows from the weakest to the strongest couplings (log ratio, mean over models).",
        "Thesis section 4.1, introduction",
        "stronger dependence is worse",
        _grows("log_trace"),
        0.0,
        "above",
    ),
)


def _ising(rows: DataFrame) -> DataFrame:
    chosen = steps(rows)
    return chosen[chosen.family == "Ising"]


def _last(rows: DataFrame) -> DataFrame:
    return rows[rows.masked == rows.masked.max()]
