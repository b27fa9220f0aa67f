"""Table and figure of the study."""

import math

import numpy as np
from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import COLORS, QUIET, Cells, Rows, figure, panels, result_table
from trialogue_lab.studies.ising_sampling import statistics as stats


@result_table(
    "Probability of reaching R_1 within the budget",
    "Figure 4.3",
    row_heading="coupling",
    note="± one standard deviation over repetitions of the figure",
)
def _arrivals_table(rows: Rows) -> Cells:
    return {
        f"J = {j:g}, {label}": {chain: quantity(j, chain, "reached") for chain in stats.list_chains(rows)}
        for j in rows.distinct("setting", "coupling")
        for label, quantity in (("exact", stats.exact_number), ("simulated", stats.steps))
    }


TABLES = (_arrivals_table,)


@figure(
    "hitting-times",
    "Figure 4.3, with the independent parallel sampler, which the thesis leaves out. Left: simulated means of min(T, "
    "1000), with bars of half a standard deviation over ten chains. Lines and dashes are exact. Right: exact expected "
    "steps without a budget. For J <= 2, independent parallel takes fewer steps than 1-Gibbs, because each step "
    "resamples all spins. For J >= 5, neither reaches R_1. With k >= 4, k-Gibbs nearly always does.",
)
def _hitting_times_figure(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, width=5.2, height=4.2)
    names = stats.list_chains(rows)
    places = np.arange(len(names), dtype=float)
    places[-1] += 0.6  # A gap separates the other sampler.
    cut, logs = (
        stats.select_exact_column(rows, "mean"),
        stats.select_exact_column(rows, "log_expected") / math.log(10),
    )
    couplings = rows.distinct("setting", "coupling")
    for place, (coupling, color) in enumerate(zip(couplings, COLORS, strict=False)):
        shift = 0.1 * (place - (len(cut) - 1) / 2)
        means, bars = (
            np.array([stats.steps(coupling, chain, column)(rows).mean() for chain in names])
            for column in ("mean", "deviation")
        )
        below = np.minimum(bars / 2, means * 0.9)  # A bar down to zero does not end on a logarithmic axis.
        left.errorbar(places + shift, means, (below, bars / 2), fmt="o", ms=4, lw=1, color=color)
        line = ("-", "--", "-.", ":")[place % 4]
        for axes, heights in ((left, cut.loc[coupling]), (right, logs.loc[coupling])):
            # Different line styles show curves that coincide.
            axes.plot(places[:-1], heights[:-1], line, lw=1.5, color=color, label=f"J = {coupling:g}")
            axes.plot(places[-1:], heights[-1:], "_", ms=14, color=color)
        right.plot(places, logs.loc[coupling], ".", color=color)
    budget = float(rows["setting"].budget.max())
    left.axhline(budget, color=QUIET, lw=1, ls=":")
    right.axhline(math.log10(budget), color=QUIET, lw=1, ls=":", label="budget")
    left.set(
        yscale="log",
        ylim=(0.7, budget * 1.8),
        title="Steps to R_1, at most 1000, as published",
        ylabel="steps",
    )
    right.set(title="Expected steps to R_1, exact", ylabel="steps")
    right.yaxis.set_major_formatter(lambda value, _: f"$10^{{{value:g}}}$")
    for axes in (left, right):
        axes.set_xticks(places, [*(name.removeprefix("k = ") for name in names[:-1]), "indep.\nparallel"])
        axes.set_xlabel("block size k of k-Gibbs")
    drawing.legend(*right.get_legend_handles_labels(), loc="outside upper center", ncols=6)
    return drawing


FIGURES = (_hitting_times_figure,)
