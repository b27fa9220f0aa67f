"""The figure of the study `mixing-and-learning`: how tight the bound is, and learning beside mixing."""

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import LogLocator, NullFormatter
from pandas import DataFrame

from trialogue.ledger import Figure
from trialogue.studies.mixing_and_learning_rows import bounds, cost_of_likelihood, couplings, laws

_ERROR = "#cf222e"


def _draw(rows: DataFrame) -> Drawing:
    drawing = Drawing(figsize=(10.6, 4.3), layout="constrained")
    left, right = drawing.subplots(1, 2)
    names = laws(rows)
    places = np.arange(len(names), dtype=float)
    scales = couplings(rows)
    shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.85, len(scales)))
    for place, (coupling, shade) in enumerate(zip(scales, shades, strict=True)):
        chosen = bounds(rows)
        own = chosen[chosen.coupling == coupling].groupby("law")
        shift = 0.16 * (place - (len(scales) - 1) / 2)
        for column, marker in (("tightness", "o"), ("trace_share", "x")):
            mean = own[column].mean().loc[names]
            ends = (
                mean - own[f"{column}_least"].min().loc[names],
                own[f"{column}_most"].max().loc[names] - mean,
            )
            left.errorbar(places + shift, mean, np.maximum(ends, 0), fmt=marker, ms=5, lw=1, color=shade)
        each = chosen[chosen.coupling == coupling].set_index("seed")
        least = cost_of_likelihood(rows, coupling)
        for law in names:
            one = each[each.law == law]
            marker = "s" if law == names[-2] else "^" if law == names[-1] else "o"
            cost = np.exp(one.log_trace - least.reindex(one.index))
            right.plot(np.exp(one.log_constant), cost, marker, ms=4, color=shade, alpha=0.7)
        left.plot([], [], "-", lw=3, color=shade, label=f"J ~ {coupling:g}")
    left.axhline(1, color=_ERROR, lw=1, ls="--", label="the bound")
    for marker, label in (("o", "over directions: best constant / C"), ("x", "Tr Γ / (C Tr I⁻¹)")):
        left.plot([], [], marker, ms=5, color="#444444", label=label)
    shown = [name.removeprefix("k = ").replace(" ", "\n") for name in names]
    left.set_xticks(places, shown, fontsize=8)
    left.set(ylim=(0, 1.08), xlabel="masked sites k, or mask law")
    left.set_title("Share of the bound C I⁻¹ that Γ takes up", fontsize=10, loc="left")
    drawing.legend(fontsize=8, loc="outside lower center", ncols=len(scales) + 3)
    longest = float(np.exp(bounds(rows).log_constant.max()))
    right.plot([1, longest], [1, longest], "--", lw=1, color=_ERROR)
    right.set(xscale="log", yscale="log", xlabel="Poincaré constant C of the chain", ylabel="Tr Γ / Tr I⁻¹")
    for axis in (right.xaxis, right.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    right.set_title("Cost of learning beside maximum likelihood, at most C", fontsize=10, loc="left")
    for marker, label in (("o", "k random sites"), ("s", names[-2]), ("^", names[-1])):
        right.plot([], [], marker, ms=4, color="#444444", label=label)
    right.legend(fontsize=8, loc="upper left")
    for axes in (left, right):
        axes.grid(color="#dddddd", lw=0.6)
    return drawing


FIGURES = (
    Figure(
        name="bound",
        caption="Theorems 4.1.2 and 4.1.3 over random Ising models. Left: how much of the bound is used, means with "
        "bars from the least to the most over all models; colours are the deviation of the couplings. Over directions "
        "the bound is nearly tight, exactly so for k >= N - 2, while the trace stays well below it. Right: the trace "
        "of Γ in units of that of maximum likelihood beside C, one point per set of models and mask law (geometric "
        "means), and the bound dashed. At one strength of couplings the slower chain is costlier to learn from; "
        "stronger couplings raise C, and hardly that cost.",
        draw=_draw,
    ),
)
