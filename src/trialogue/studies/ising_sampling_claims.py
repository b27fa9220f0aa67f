"""Claims of the study `ising-sampling`.

Claims and thresholds were fixed before the reported run; the pilot is a run of the preset `default` on other seeds.
"""

from functools import partial

from pandas import DataFrame, Series

from trialogue.ledger.replication import Replication, exact_claim
from trialogue.studies.ising_sampling_rows import (
    PARALLEL,
    assumption_margin,
    beside_exact,
    block_label,
    blocks,
    by_seed,
    chance_of_parallel,
    entries,
    exact,
    increase_with_blocks,
    increase_with_coupling,
    log_ratio,
    log_ratio_of_couplings,
    simulated,
    smaller_blocks,
)

REPLICATIONS = 30
PILOT_SEEDS = (100, 101, 102, 103, 104, 105, 106, 107, 108, 109)
PILOT: dict[str, tuple[float, ...]] = {
    "blocks-of-4-beat-1": (2.9766, 2.9678, 3.0029, 2.9633, 2.7811, 2.8705, 2.9423, 2.7504, 2.6444, 2.7567),
    "blocks-of-6-beat-4": (1.3062, 1.2258, 1.3695, 1.273, 1.4722, 1.4957, 1.3852, 1.6185, 1.5662, 1.506),
    "blocks-of-8-beat-6": (0.8888, 0.9434, 0.7398, 0.9183, 0.8074, 0.7571, 0.8261, 0.6653, 0.7963, 0.8365),
    "blocks-of-10-beat-8": (0.7331, 0.7585, 0.7553, 0.7141, 0.8258, 0.8257, 0.7702, 0.8593, 0.8031, 0.8134),
    "stronger-coupling-is-slower": (
        2.6095,
        2.5941,
        2.7368,
        2.7109,
        2.6789,
        2.7025,
        2.4869,
        2.5466,
        2.7654,
        2.8089,
    ),
    "independent-parallel-never-arrives": (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    "independent-parallel-never-arrives-strong": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    "independent-parallel-is-fast-when-weak": (
        -2.5611,
        -2.7422,
        -2.6849,
        -2.5106,
        -2.4808,
        -2.8458,
        -2.7759,
        -2.5472,
        -2.3519,
        -2.5725,
    ),
    "steps-as-computed": (0.9598, 1.0292, 0.9697, 0.9636, 0.9959, 1.0208, 1.0093, 1.0103, 1.0356, 1.0371),
    "arrivals-as-computed": (
        0.0012,
        0.0012,
        -0.0027,
        -0.0001,
        0.0051,
        0.0012,
        -0.0027,
        -0.0066,
        -0.0079,
        -0.0014,
    ),
}
"""Estimates of every claim from the pilot, one per seed of `PILOT_SEEDS`."""

STRONG, WEAK = 5.0, 2.0
_FIGURE = "Thesis section 4.2.1.2, Figure 4.3"
_CONTROL = f"{_FIGURE} (control not in the thesis)"
_claim = Replication(unit="draw", count=REPLICATIONS, pilot_seeds=PILOT_SEEDS, pilot=PILOT).claim
_NEVER = "never within the budget, for any J tried"


def _parallel_arrives(rows: DataFrame, least: float) -> "Series[float]":
    """Share of the independent parallel chains that reach the mode, the largest over couplings J >= `least`."""
    return simulated(rows, "reached", [PARALLEL], least=least)[PARALLEL].groupby("seed").max()


def _steps_over_exact(rows: DataFrame, chains: list[str]) -> "Series[float]":
    ours, truth = beside_exact(rows, "mean", chains)
    return by_seed((ours / truth).mean(axis=1))


def _arrivals_over_exact(rows: DataFrame, chains: list[str]) -> "Series[float]":
    ours, truth = beside_exact(rows, "reached", chains)
    return by_seed((ours - truth).mean(axis=1))


CLAIMS = (
    *(
        _claim(
            f"blocks-of-{more}-beat-{fewer}",
            f"k-Gibbs takes fewer steps with k = {more} than with k = {fewer}, at most 1000 counted (log ratio, mean "
            "over couplings).",
            _FIGURE,
            "larger k is faster",
            partial(log_ratio, first=block_label(fewer), second=block_label(more)),
            0.0,
            "above",
        )
        for fewer, more in ((1, 4), (4, 6), (6, 8), (8, 10))
    ),
    _claim(
        "stronger-coupling-is-slower",
        "k-Gibbs takes more steps at J = 8 than at J = 2, at most 1000 counted (log ratio, mean over k < N - 1).",
        _FIGURE,
        "larger J is slower",
        lambda rows: log_ratio_of_couplings(rows, 8.0, 2.0, smaller_blocks(rows)),
        0.0,
        "above",
    ),
    _claim(
        "independent-parallel-never-arrives",
        "Independent parallel never reaches R_1 within 1000 steps, for any J (share of its chains below 0.01, the "
        "largest over J).",
        _FIGURE,
        _NEVER,
        lambda rows: _parallel_arrives(rows, 0.0),
        0.01,
        "below",
    ),
    _claim(
        "independent-parallel-never-arrives-strong",
        "For J >= 5 independent parallel never reaches R_1 within 1000 steps (share of its chains below 0.01, the "
        "largest over J).",
        _FIGURE,
        _NEVER,
        lambda rows: _parallel_arrives(rows, STRONG),
        0.01,
        "below",
    ),
    _claim(
        "independent-parallel-is-fast-when-weak",
        "For J <= 2 independent parallel takes fewer steps than 1-Gibbs (log ratio, mean over J).",
        _CONTROL,
        _NEVER,
        lambda rows: log_ratio(rows, PARALLEL, block_label(1), most=WEAK),
        0.0,
        "below",
    ),
    _claim(
        "steps-as-computed",
        "For k >= 4 the mean numbers of steps are the exact ones within 5 % (ratio, mean over k and J).",
        _CONTROL,
        "not printed",
        lambda rows: _steps_over_exact(rows, blocks(rows, 4)),
        1.0,
        "equal",
        margin=0.05,
    ),
    _claim(
        "arrivals-as-computed",
        "The shares of chains that reach R_1 within the budget are the exact ones within 0.01 (mean over all cells).",
        _CONTROL,
        "not printed",
        lambda rows: _arrivals_over_exact(rows, [*blocks(rows), PARALLEL]),
        0.0,
        "equal",
        margin=0.01,
    ),
    exact_claim(
        "larger-blocks-are-faster-exact",
        "At every J the expected number of steps falls with every k (largest increase of its logarithm).",
        _FIGURE,
        "larger k is faster",
        lambda rows: float(increase_with_blocks(rows).max()),
        0.0,
        "below",
    ),
    exact_claim(
        "stronger-coupling-is-slower-exact",
        "At every k the expected number of steps grows with J (smallest increase of its logarithm).",
        _FIGURE,
        "larger J is slower",
        lambda rows: float(increase_with_coupling(rows, blocks(rows)).min()),
        0.0,
        "above",
    ),
    exact_claim(
        "stronger-coupling-is-slower-small-blocks",
        "At every k < N - 1 the expected number of steps grows with J (smallest increase of its logarithm).",
        _FIGURE,
        "larger J is slower",
        lambda rows: float(increase_with_coupling(rows, smaller_blocks(rows)).min()),
        0.0,
        "above",
    ),
    exact_claim(
        "blocks-of-the-clique-arrive",
        "With k at least the size of the clique k-Gibbs reaches R_1 within 1000 steps with probability above 0.95, at "
        "every J.",
        _FIGURE,
        "can often reach R_1",
        lambda rows: float(entries(exact(rows, "reached")[blocks(rows, 4)]).min()),
        0.95,
        "above",
    ),
    exact_claim(
        "independent-parallel-never-arrives-exact",
        "At every J independent parallel reaches R_1 within 1000 steps with probability below 0.01.",
        _FIGURE,
        _NEVER,
        lambda rows: chance_of_parallel(rows, 0.0),
        0.01,
        "below",
    ),
    exact_claim(
        "independent-parallel-never-arrives-strong-exact",
        "At every J >= 5 independent parallel reaches R_1 within 1000 steps with probability below 1e-4.",
        _FIGURE,
        _NEVER,
        lambda rows: chance_of_parallel(rows, STRONG),
        1e-4,
        "below",
    ),
    exact_claim(
        "figure-within-assumptions",
        "At some J the setting of the figure meets Assumption 4.1.5 of Propositions 4.1.4 and 4.1.5 (the smaller of "
        "h_G - sum of |h| outside the clique and J - |h|_1 is positive).",
        f"{_FIGURE} and Assumption 4.1.5",
        "the results verify the theory",
        assumption_margin,
        0.0,
        "above",
    ),
)
