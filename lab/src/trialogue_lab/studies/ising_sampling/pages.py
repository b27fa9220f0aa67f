"""Tables and the figure of the study: Figure 4.3, and what lies above its budget; the thesis prints no numbers."""

import math

import numpy as np
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import COLORS, QUIET, Cells, Rows, figure, panels, result_table
from trialogue_lab.studies.ising_sampling import statistics


@result_table(
    "Steps from R_-1 to R_1",
    "Figure 4.3, which prints no numbers",
    rows_are="coupling",
    note="cut: at most the budget is counted, as in the figure; ± one standard deviation over repetitions of the "
    "figure, each the mean of its chains",
)
def _steps_table(rows: Rows) -> Cells:
    """Expected steps, the same cut at the budget, and the simulated mean of the latter."""
    return {
        f"J = {coupling:g}, {label}": {chain: quantity(coupling, chain) for chain in statistics.chains(rows)}
        for coupling in rows.distinct("setting", "coupling")
        for label, quantity in (
            ("exact", statistics.expected_steps),
            ("exact, cut", statistics.exact_number),
            ("simulated", statistics.steps),
        )
    }


@result_table(
    "Probability of reaching R_1 within the budget",
    "Figure 4.3",
    rows_are="coupling",
    note="± one standard deviation over repetitions of the figure",
)
def _arrivals_table(rows: Rows) -> Cells:
    return {
        f"J = {coupling:g}, {label}": {
            chain: quantity(coupling, chain, "reached") for chain in statistics.chains(rows)
        }
        for coupling in rows.distinct("setting", "coupling")
        for label, quantity in (("exact", statistics.exact_number), ("simulated", statistics.steps))
    }


@result_table(
    "Steps from R_-1 to R_1 by how the pairs are read, exact",
    "Figure 4.3, eq. (4.6), whose sum over i != j may take every pair once or twice",
    rows_are="coupling and reading",
    note="at most the budget is counted; ordered pairs double J",
)
def _readings_table(rows: Rows) -> Cells:
    """Figure 4.3 at one printed J, by how its pairs are read."""
    readings = [(coupling, 1, "unordered") for coupling in rows.distinct("setting", "coupling")]
    readings += [(coupling, 2, "ordered") for coupling in statistics.in_both_readings(rows)]
    return {
        f"J = {coupling:g}, {label}": {
            chain: statistics.exact_number(times * coupling, chain) for chain in statistics.chains(rows)
        }
        for coupling, times, label in sorted(readings)
    }


@result_table(
    "How far the setting of Figure 4.3 is from Assumption 4.1.5",
    "Assumption 4.1.5, which asks that both be positive",
    rows_are="coupling",
)
def _margins_table(rows: Rows) -> DataFrame:
    heads = {"field_margin": "fields inside less |h| outside", "coupling_margin": "J less all |h|"}
    table = rows["setting"].set_index("coupling").sort_index()[list(heads)].rename(columns=heads)
    return table.rename(index="J = {:g}".format)


TABLES = (_steps_table, _arrivals_table, _readings_table, _margins_table)


@figure(
    "hitting-times",
    "Figure 4.3, with the independent parallel sampler, which the thesis leaves out. Left: simulated means "
    "with bars of half a standard deviation over ten chains; lines and dashes are exact. Right: the exact "
    "expectations that the budget hides. At J <= 2 independent parallel takes fewer steps than 1-Gibbs (each "
    "redraws all spins), at J >= 5 neither arrives, and blocks that can hold the clique (k >= 4) nearly always do.",
)
def _hitting_times_figure(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, width=5.2, height=4.2)
    names = statistics.chains(rows)
    places = np.arange(len(names), dtype=float)
    places[-1] += 0.6  # apart: it is another sampler
    cut, logs = statistics.expected(rows, "mean"), statistics.expected(rows, "log_expected") / math.log(10)
    couplings = rows.distinct("setting", "coupling")
    for place, (coupling, color) in enumerate(zip(couplings, COLORS, strict=False)):
        shift = 0.07 * (place - (len(cut) - 1) / 2)
        means, bars = (
            np.array([statistics.steps(coupling, chain, column)(rows).mean() for chain in names])
            for column in ("mean", "deviation")
        )
        below = np.minimum(bars / 2, means * 0.9)  # a bar down to zero has no end on this axis
        left.errorbar(places + shift, means, (below, bars / 2), fmt="o", ms=4, lw=1, color=color)
        for axes, heights in ((left, cut.loc[coupling]), (right, logs.loc[coupling])):
            axes.plot(places[:-1], heights[:-1], "-", lw=1, color=color, label=f"J = {coupling:g}")
            axes.plot(places[-1:], heights[-1:], "_", ms=14, color=color)
        right.plot(places, logs.loc[coupling], ".", color=color)
    budget = float(rows["setting"].budget.max())
    left.axhline(budget, color=QUIET, lw=1, ls=":")
    right.axhline(math.log10(budget), color=QUIET, lw=1, ls=":", label="budget")
    left.set(yscale="log", ylim=(0.7, budget * 1.8), title="Steps to reach R_1, at most 1000, as published")
    right.set(title="Expected steps without a budget, exact (log10)")
    for axes in (left, right):
        axes.set_xticks(places, [*(name.removeprefix("k = ") for name in names[:-1]), "indep.\nparallel"])
        axes.set_xlabel("block size k of k-Gibbs")
    right.legend(loc="upper center")
    return drawing


FIGURES = (_hitting_times_figure,)
