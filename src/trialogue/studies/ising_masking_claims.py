"""Claims of the study `ising-masking`.

Claims and thresholds were fixed before the reported run; the pilot is a run of the preset `default` on other seeds.
"""

from collections.abc import Callable

import pandas as pd
from pandas import DataFrame, Series

from trialogue.ledger import Claim
from trialogue.ledger.replication import Replication, exact_claim
from trialogue.studies.ising_masking_rows import LARGE, by_seed, couplings, exact, fits, scaled_error

REPLICATIONS = 12
PILOT_SEEDS = (100, 101, 102, 103, 104, 105, 106, 107)
PILOT: dict[str, tuple[float, ...]] = {
    "masking-2-beats-1-j005": (10.8885, 14.0266, 14.206, 7.5389, 9.8033, 13.3324, 13.7547, 10.6213),
    "masking-3-beats-2-j005": (4.3626, 4.6135, 5.3903, 3.9032, 2.6968, 4.704, 4.4856, 3.648),
    "masking-4-beats-3-j005": (0.9067, 0.9842, 1.1637, 1.4897, 2.6537, 1.3853, 0.9381, 1.0741),
    "at-every-size-j005": (13.7902, 14.8474, 17.9659, 9.4359, 12.6844, 15.8653, 13.7294, 10.1764),
    "as-predicted-1-j005": (0.9421, 1.0152, 1.0652, 0.8055, 0.8988, 1.0477, 1.0635, 0.9429),
    "as-predicted-2-j005": (1.0261, 0.9561, 1.0366, 0.9929, 1.0171, 1.0613, 1.0629, 1.045),
    "as-predicted-3-j005": (0.9936, 0.8779, 0.9179, 0.9892, 1.1271, 1.0109, 1.0322, 1.0814),
    "as-predicted-4-j005": (1.0351, 0.8965, 0.924, 0.9725, 1.0135, 1.0074, 1.0757, 1.1179),
    "all-masks-no-gap-j005": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    "error-within-trace-j005": (0.5, 0.5833, 0.5833, 0.625, 0.5583, 0.45, 0.45, 0.525),
    "masking-2-beats-1-j03": (21.8327, 21.0141, 20.8834, 23.9395, 25.9611, 20.9084, 20.6717, 23.6003),
    "masking-3-beats-2-j03": (4.8281, 4.0577, 6.7421, 3.9874, 3.8982, 6.4362, 8.5775, 3.391),
    "masking-4-beats-3-j03": (1.1542, 3.2915, 0.9795, 1.8489, 1.4021, 1.8437, 1.2504, 0.7247),
    "at-every-size-j03": (19.5531, 19.2504, 25.1428, 21.0324, 24.2935, 23.3749, 24.0441, 25.388),
    "as-predicted-1-j03": (0.983, 0.9488, 1.0158, 1.077, 1.0759, 1.0714, 1.0858, 1.044),
    "as-predicted-2-j03": (0.9017, 0.8728, 1.0034, 0.9871, 0.8989, 1.1059, 1.1429, 0.9401),
    "as-predicted-3-j03": (0.9162, 0.9214, 0.9427, 1.0758, 0.9647, 1.0948, 1.0234, 1.0474),
    "as-predicted-4-j03": (0.9293, 0.8041, 0.9689, 1.061, 0.967, 1.0821, 1.0404, 1.0988),
    "all-masks-no-gap-j03": (-0.0032, -0.0007, -0.0004, -0.007, 0.0009, -0.0015, 0.0047, 0.0013),
    "error-within-trace-j03": (0.6083, 0.6583, 0.625, 0.575, 0.5667, 0.4667, 0.5, 0.5333),
}
"""Estimates of every claim from the pilot, one per seed of `PILOT_SEEDS`."""

FIGURES = {0.05: "Figure 4.1", 0.3: "Figure 4.2"}
_LIMIT = "Theorem 4.1.1"
_claim = Replication(unit="draw", count=REPLICATIONS, pilot_seeds=PILOT_SEEDS, pilot=PILOT).claim


def _of_figure(coupling: float, figure: str) -> tuple[Claim, ...]:
    """The claims about one figure."""
    ending = f"j{coupling:g}".replace(".", "")

    def gain(fewer: int, least: int = LARGE) -> Callable[[DataFrame], "Series[float]"]:
        """Mean over sizes of n times the error, masking `fewer` sites minus masking one more."""
        return lambda rows: by_seed(
            scaled_error(rows, coupling, fewer, least=least)
            - scaled_error(rows, coupling, fewer + 1, least=least)
        )

    def smallest_gain(rows: DataFrame) -> "Series[float]":
        # The mean of minima is at most the minimum of the means, so that it holds at every size if it holds.
        first, last = (scaled_error(rows, coupling, size, least=0) for size in (1, 4))
        return (first - last).groupby("seed").min()

    def ratio(size: int) -> Callable[[DataFrame], "Series[float]"]:
        return lambda rows: by_seed(
            scaled_error(rows, coupling, size) / exact(rows, coupling).trace.get(size, float("nan"))
        )

    def control(rows: DataFrame) -> "Series[float]":
        first, last = (scaled_error(rows, coupling, size, "all") for size in (1, 4))
        return by_seed(first - last) / exact(rows, coupling).trace.get(4, float("nan"))

    def within(rows: DataFrame) -> "Series[float]":
        shares = [fits(rows, coupling, size, least=LARGE) for size in (1, 2, 3, 4)]
        means = [share.groupby("seed").within_trace.mean() for share in shares]
        return pd.concat(means).groupby(level="seed").mean()

    direction = "larger k, lower error"
    return (
        *(
            _claim(
                f"masking-{fewer + 1}-beats-{fewer}-{ending}",
                f"At J = {coupling:g} masking {fewer + 1} sites errs less than masking {fewer} (n times the squared "
                f"error, mean over n >= {LARGE}).",
                figure,
                direction,
                gain(fewer),
                0.0,
                "above",
            )
            for fewer in (1, 2, 3)
        ),
        _claim(
            f"at-every-size-{ending}",
            f"At J = {coupling:g} masking 4 sites errs less than masking 1 at every size of the training set "
            "(smallest difference of n times the squared error).",
            figure,
            direction,
            smallest_gain,
            0.0,
            "above",
        ),
        *(
            _claim(
                f"as-predicted-{size}-{ending}",
                f"At J = {coupling:g} the squared error of masking {size} is Tr Gamma / n within 25 % (mean over "
                f"n >= {LARGE}).",
                "Lemma 4.1.1",
                "asymptotically 1",
                ratio(size),
                1.0,
                "equal",
                margin=0.25,
            )
            for size in (1, 2, 3, 4)
        ),
        _claim(
            f"all-masks-no-gap-{ending}",
            f"At J = {coupling:g}, with all masks of every sample scored, masking 1 site errs as much as masking 4 "
            "(difference within a tenth of Tr Gamma).",
            f"{figure} (control not in the thesis)",
            "not printed",
            control,
            0.0,
            "equal",
            margin=0.1,
        ),
        _claim(
            f"error-within-trace-{ending}",
            f"At J = {coupling:g} the squared error is at most Tr Gamma / n with probability at least 0.99 (share of "
            "the training sets, mean over k).",
            "Remark on Lemma 4.1.1",
            "at least 0.99, by Markov's inequality, which gives 100 Tr Gamma / n",
            within,
            0.99,
            "above",
        ),
    )


def _smallest_eigenvalue(rows: DataFrame) -> float:
    return float(rows[rows.kind == "theorem"].smallest_eigenvalue.min())


def _last_gain_of_couplings(rows: DataFrame) -> float:
    """What masking the last site gains for the couplings, the largest over models."""
    traces = [exact(rows, coupling).trace_couplings for coupling in couplings(rows)]
    return max(float(trace.iloc[-2] - trace.iloc[-1]) for trace in traces)


def _gap_of_all_masks(rows: DataFrame) -> float:
    """Largest relative gap between masking one site and all, over models, with all masks of a sample scored."""
    traces = [exact(rows, coupling, "all").trace for coupling in couplings(rows)]
    return max(float(trace.iloc[0] / trace.iloc[-1] - 1) for trace in traces)


def _bound_slack(rows: DataFrame) -> float:
    """Smallest C Tr I^-1 - Tr Gamma, relative to the bound."""
    slack = []
    for coupling in couplings(rows):
        one = exact(rows, coupling)
        bound = one.poincare * one.trace.iloc[-1]
        slack.append(float(((bound - one.trace) / bound).min()))
    return min(slack)


CLAIMS = (
    *(claim for coupling, figure in FIGURES.items() for claim in _of_figure(coupling, figure)),
    exact_claim(
        "masking-more-is-no-worse",
        "The asymptotic covariance of masking k sites minus that of masking k + 1 has no eigenvalue below -1e-10.",
        _LIMIT,
        "not below 0",
        _smallest_eigenvalue,
        -1e-10,
        "above",
    ),
    exact_claim(
        "strictly-better",
        "Masking more strictly improves: masking 4 instead of 3 of the 4 sites lowers the asymptotic variance of the "
        "couplings (Tr, more than 1e-9).",
        f"Text before {_LIMIT}",
        "strictly improves",
        _last_gain_of_couplings,
        1e-9,
        "above",
    ),
    exact_claim(
        "all-masks-gap-exact",
        "With all masks of every sample scored, masking 1 site instead of 4 raises Tr Gamma by more than a tenth.",
        "Figures 4.1 and 4.2, read so",
        "larger k, lower error",
        _gap_of_all_masks,
        0.1,
        "above",
    ),
    exact_claim(
        "poincare-bounds-the-trace",
        "Tr Gamma of masking k sites is at most C Tr of the inverse Fisher information, C the Poincaré constant of "
        "k-Gibbs (smallest slack, share of the bound).",
        "Theorem 4.1.2",
        "not below 0",
        _bound_slack,
        -1e-10,
        "above",
    ),
)
