"""Tables and the figure of the study."""

import numpy as np
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import COLORS, QUIET, Cells, Rows, figure, panels, result_table
from trialogue_lab.studies.mixing_and_learning import statistics
from trialogue_lab.studies.mixing_and_learning.config import ADAPTIVE, WEIGHTED
from trialogue_lab.studies.mixing_and_learning.statistics import MASKED


@result_table(
    "Asymptotic covariance compared with its bound",
    "Theorems 4.1.2 and 4.1.3, which have no numbers",
    row_heading="couplings and masks",
    note="J ~ 0.3: normal couplings with this standard deviation. Means over models, geometric for C and Tr Γ, ± one "
    "standard deviation over sets of models. Minima and maxima are over all models. If the theorems hold, the last two "
    "columns are nonnegative up to rounding. Without couplings, C = N / k, and the bound is an equality.",
)
def _bound_table(rows: Rows) -> Cells:
    return {
        f"J ~ {coupling:g}, {name}": {
            "C": statistics.typical("log_constant", name, coupling),
            "Tr Γ": statistics.typical("log_trace", name, coupling),
            "best constant / C": statistics.typical("tightness", name, coupling),
            "minimum": statistics.least("tightness_least", name, coupling),
            "Tr Γ / (C Tr I⁻¹)": statistics.typical("trace_share", name, coupling),
            "maximum": statistics.most("trace_share_most", name, coupling),
            "min eig (I_PL - I / C)": statistics.least("information_slack", name, coupling),
            "min eig (C I⁻¹ - Γ), relative": statistics.least("slack", name, coupling),
        }
        for coupling in rows.distinct("bound", "coupling")
        for name in statistics.list_mask_distributions(rows)
    }


@result_table(
    "Effect of one more masked site",
    "Theorem 4.1.1",
    row_heading="family and step",
    note="Improved directions: largest rank of Γ^k - Γ^(k+1) over models. If it is smaller than the number of "
    "parameters, the covariance is unchanged in some direction.",
)
def _steps_table(rows: Rows) -> DataFrame:
    columns = {
        "min eig (Γ^k - Γ^(k+1)) / Tr Γ^k": ("smallest", "min"),
        "maximum over models": ("smallest_most", "max"),
        "smallest relative decrease of Tr Γ": ("trace_drop", "min"),
        "improved directions": ("rank_most", "max"),
        "parameters": ("parameters", "max"),
        "error of I^(k+1) = I^k + C": ("identity", "max"),
    }
    table = rows["more"].groupby(["family", "masked"]).agg(**columns)
    table.index = table.index.map(lambda step: f"{step[0]}, k = {step[1]} to {step[1] + 1}")
    return table.astype({"improved directions": int})


TABLES = (_bound_table, _steps_table)


@figure(
    "bound",
    "Tr Γ in units of maximum likelihood, as a function of the Poincaré constant C. Each marker is one set of random "
    "Ising models with one mask distribution (geometric means). The dashed line is the bound of Theorems 4.1.2 and "
    "4.1.3. For couplings of the same strength, slower chains make learning more expensive. Stronger couplings "
    "increase C, but hardly increase the cost of learning.",
)
def _bound_figure(rows: Rows) -> Drawing:
    drawing, [axes] = panels(width=5.2, height=4.2)
    likelihood = statistics.list_mask_distributions(rows, MASKED)[-1]  # masking all sites
    markers = {WEIGHTED: "s", ADAPTIVE: "^"}
    couplings = sorted(statistics.select_bounds(rows).coupling.unique())
    for coupling, color in zip(couplings, COLORS, strict=False):
        best = statistics.typical("log_trace", likelihood, coupling)(rows)
        for name in statistics.list_mask_distributions(rows):
            constants = statistics.typical("log_constant", name, coupling)(rows)
            traces = statistics.typical("log_trace", name, coupling)(rows)
            axes.plot(constants, traces / best, markers.get(name, "o"), ms=4, color=color, alpha=0.7)
        axes.plot([], [], "-", lw=3, color=color, label=f"J ~ {coupling:g}")
    largest = float(np.exp(statistics.select_bounds(rows).log_constant.max()))
    axes.plot([1, largest], [1, largest], "--", lw=1, color=QUIET, label="bound")
    for marker, label in (("o", "k random sites"), ("s", WEIGHTED), ("^", ADAPTIVE)):
        axes.plot([], [], marker, ms=4, color=QUIET, label=label)
    axes.set(xscale="log", yscale="log", xlabel="Poincaré constant C of the chain", ylabel="Tr Γ / Tr I⁻¹")
    axes.legend(loc="upper left")
    return drawing


FIGURES = (_bound_figure,)
