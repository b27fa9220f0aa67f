"""Tables and the figure of the study: how tight the bound is, learning beside mixing, and what one site more gains."""

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import LogLocator, NullFormatter
from pandas import DataFrame

from trialogue_lab.ledger import COLORS, QUIET, Cells, Rows, figure, panels, result_table
from trialogue_lab.studies.mixing_and_learning import statistics
from trialogue_lab.studies.mixing_and_learning.config import ADAPTIVE, WEIGHTED
from trialogue_lab.studies.mixing_and_learning.statistics import MASKED


@result_table(
    "Gamma beside C I^-1",
    "Theorems 4.1.2 and 4.1.3, which print no numbers",
    rows_are="couplings and mask law",
    note="J ~ 0.3: normal couplings of this deviation; means over models, of C and Tr Γ geometric, ± one standard "
    "deviation over sets of models; least and most are over all models; the last two columns are not negative "
    "where the theorems hold, up to rounding; without couplings C = N / k, and the bound is an equality",
)
def _bound_table(rows: Rows) -> Cells:
    return {
        f"J ~ {coupling:g}, {law}": {
            "C": statistics.typical("log_constant", law, coupling),
            "Tr Γ": statistics.typical("log_trace", law, coupling),
            "best constant / C": statistics.typical("tightness", law, coupling),
            "least": statistics.least("tightness_least", law, coupling),
            "Tr Γ / (C Tr I⁻¹)": statistics.typical("trace_share", law, coupling),
            "most": statistics.most("trace_share_most", law, coupling),
            "min eig (I_PL - I / C)": statistics.least("information_slack", law, coupling),
            "min eig (C I⁻¹ - Γ), relative": statistics.least("slack", law, coupling),
        }
        for coupling in rows.distinct("bound", "coupling")
        for law in statistics.laws(rows)
    }


@result_table(
    "Masking one site more",
    "Theorem 4.1.1",
    rows_are="family and step",
    note="directions gained: rank of Γ^k - Γ^(k+1), the most over models; where it is below the number of "
    "parameters, some direction gains nothing",
)
def _steps_table(rows: Rows) -> DataFrame:
    columns = {
        "min eig (Γ^k - Γ^(k+1)) / Tr Γ^k, least": ("smallest", "min"),
        "largest over models": ("smallest_most", "max"),
        "relative drop of Tr Γ, least": ("trace_drop", "min"),
        "directions gained, most": ("rank_most", "max"),
        "of parameters": ("parameters", "max"),
        "error of I^(k+1) = I^k + C": ("identity", "max"),
    }
    by_step = rows["more"].groupby(["family", "masked"])
    table = DataFrame({head: by_step[column].agg(how) for head, (column, how) in columns.items()})
    table.index = table.index.map(lambda step: f"{step[0]}, k = {step[1]} to {step[1] + 1}")
    return table.astype({"directions gained, most": int})


TABLES = (_bound_table, _steps_table)


@figure(
    "bound",
    "Theorems 4.1.2 and 4.1.3 over random Ising models. Left: how much of the bound is used, means with "
    "bars from the least to the most over all models; colours are the deviation of the couplings. Over directions "
    "the bound is nearly tight, exactly so for k >= N - 2, while the trace stays well below it. Right: the trace "
    "of Γ in units of that of maximum likelihood beside C, one point per set of models and mask law (geometric "
    "means), and the bound dashed. At one strength of couplings the slower chain is costlier to learn from; "
    "stronger couplings raise C, and hardly that cost.",
)
def _bound_figure(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, width=5.2, height=4.2)
    names, scales = statistics.laws(rows), statistics.couplings(rows)
    likelihood = statistics.laws(rows, MASKED)[-1]  # masking all sites
    markers = {WEIGHTED: "s", ADAPTIVE: "^"}
    places = np.arange(len(names), dtype=float)
    statistics_of_bars = ((statistics.typical, ""), (statistics.least, "_least"), (statistics.most, "_most"))
    for place, (coupling, color) in enumerate(zip(scales, COLORS, strict=False)):
        shift = 0.16 * (place - (len(scales) - 1) / 2)
        for column, marker in (("tightness", "o"), ("trace_share", "x")):
            means, lows, highs = (
                np.array([statistic(column + ending, law, coupling)(rows).mean() for law in names])
                for statistic, ending in statistics_of_bars
            )
            ends = np.maximum((means - lows, highs - means), 0)
            left.errorbar(places + shift, means, ends, fmt=marker, lw=1, capsize=0, color=color)
        for law in names:
            constants, traces, smallest = (
                statistics.typical(column, of, coupling)(rows)
                for column, of in (("log_constant", law), ("log_trace", law), ("log_trace", likelihood))
            )
            right.plot(constants, traces / smallest, markers.get(law, "o"), ms=4, color=color, alpha=0.7)
        left.plot([], [], "-", lw=3, color=color, label=f"J ~ {coupling:g}")
    left.axhline(1, color=QUIET, lw=1, ls="--", label="the bound")
    grey = "#444444"
    for marker, label in (("o", "over directions: best constant / C"), ("x", "Tr Γ / (C Tr I⁻¹)")):
        left.plot([], [], marker, color=grey, label=label)
    left.set_xticks(places, [name.removeprefix("k = ").replace(" ", "\n") for name in names])
    left.set(ylim=(0, 1.08), xlabel="masked sites k, or mask law")
    left.set_title("Share of the bound C I⁻¹ that Γ takes up")
    drawing.legend(loc="outside lower center", ncols=len(scales) + 3)
    longest = float(np.exp(statistics.bounds(rows).log_constant.max()))
    right.plot([1, longest], [1, longest], "--", lw=1, color=QUIET)
    right.set(xscale="log", yscale="log", xlabel="Poincaré constant C of the chain", ylabel="Tr Γ / Tr I⁻¹")
    for axis in (right.xaxis, right.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    right.set_title("Cost of learning beside maximum likelihood, at most C")
    for marker, label in (("o", "k random sites"), ("s", WEIGHTED), ("^", ADAPTIVE)):
        right.plot([], [], marker, ms=4, color=grey, label=label)
    right.legend(loc="upper left")
    return drawing


FIGURES = (_bound_figure,)
