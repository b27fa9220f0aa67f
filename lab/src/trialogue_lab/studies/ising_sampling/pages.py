"""Tables and the figure of the study: Figure 4.3, and what lies above its budget; the thesis prints no numbers."""

import math

import numpy as np
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.display.figures import COLORS, QUIET, panels
from trialogue_lab.ledger import Cells, Figure, ResultTable, Rows
from trialogue_lab.studies.ising_sampling.statistics import (
    chains,
    exact_number,
    expected,
    expected_steps,
    in_both_readings,
    steps,
)


def _couplings(rows: Rows) -> list[float]:
    return sorted(rows["setting"].coupling.tolist())


def _steps(rows: Rows) -> Cells:
    """Expected steps, the same cut at the budget, and the simulated mean of the latter."""
    return {
        f"J = {coupling:g}, {label}": {chain: quantity(coupling, chain) for chain in chains(rows)}
        for coupling in _couplings(rows)
        for label, quantity in (("exact", expected_steps), ("exact, cut", exact_number), ("simulated", steps))
    }


def _arrivals(rows: Rows) -> Cells:
    return {
        f"J = {coupling:g}, {label}": {chain: quantity(coupling, chain, "reached") for chain in chains(rows)}
        for coupling in _couplings(rows)
        for label, quantity in (("exact", exact_number), ("simulated", steps))
    }


def _readings(rows: Rows) -> Cells:
    """Figure 4.3 at one printed J, by how its pairs are read."""
    readings = [(coupling, 1, "unordered") for coupling in _couplings(rows)]
    readings += [(coupling, 2, "ordered") for coupling in in_both_readings(rows)]
    return {
        f"J = {coupling:g}, {label}": {chain: exact_number(times * coupling, chain) for chain in chains(rows)}
        for coupling, times, label in sorted(readings)
    }


def _margins(rows: Rows) -> DataFrame:
    heads = {"field_margin": "fields inside less |h| outside", "coupling_margin": "J less all |h|"}
    table = rows["setting"].set_index("coupling").sort_index()[list(heads)].rename(columns=heads)
    return table.rename(index="J = {:g}".format)


TABLES = (
    ResultTable(
        title="Steps from R_-1 to R_1",
        source="Figure 4.3, which prints no numbers",
        cells=_steps,
        rows_are="coupling",
        note="cut: at most the budget is counted, as in the figure; ± one standard deviation over repetitions of the "
        "figure, each the mean of its chains",
    ),
    ResultTable(
        title="Probability of reaching R_1 within the budget",
        source="Figure 4.3",
        cells=_arrivals,
        rows_are="coupling",
        note="± one standard deviation over repetitions of the figure",
    ),
    ResultTable(
        title="Steps from R_-1 to R_1 by how the pairs are read, exact",
        source="Figure 4.3, eq. (4.6), whose sum over i != j may take every pair once or twice",
        cells=_readings,
        rows_are="coupling and reading",
        note="at most the budget is counted; ordered pairs double J",
    ),
    ResultTable(
        title="How far the setting of Figure 4.3 is from Assumption 4.1.5",
        source="Assumption 4.1.5, which asks that both be positive",
        cells=_margins,
        rows_are="coupling",
    ),
)


def _draw(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, width=5.2, height=4.2)
    names = chains(rows)
    places = np.arange(len(names), dtype=float)
    places[-1] += 0.6  # apart: it is another sampler
    cut, logs = expected(rows, "mean"), expected(rows, "log_expected") / math.log(10)
    for place, (coupling, color) in enumerate(zip(_couplings(rows), COLORS, strict=False)):
        shift = 0.07 * (place - (len(cut) - 1) / 2)
        means, bars = (
            np.array([steps(coupling, chain, column)(rows).mean() for chain in names])
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


FIGURES = (
    Figure(
        name="hitting-times",
        caption="Figure 4.3, with the independent parallel sampler, which the thesis leaves out. Left: simulated means "
        "with bars of half a standard deviation over ten chains; lines and dashes are exact. Right: the exact "
        "expectations that the budget hides. At J <= 2 independent parallel takes fewer steps than 1-Gibbs (each "
        "redraws all spins), at J >= 5 neither arrives, and blocks that can hold the clique (k >= 4) nearly always do.",
        draw=_draw,
    ),
)
