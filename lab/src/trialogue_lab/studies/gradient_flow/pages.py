"""The figure and the table of the study."""

import numpy as np
from matplotlib.figure import Figure as Drawing

from trialogue.display.figures import BAD, GOOD, OURS, PUBLISHED, QUIET, panels
from trialogue_lab.ledger import Cells, ResultTable, Rows, figure, finish
from trialogue_lab.studies.gradient_flow.statistics import example, growth, kept


@figure(
    "first-layer",
    "Norm of the first of two layers. Left: on Gaussian tokens, it vanishes with weight decay and need not vanish "
    "without. Middle and right: on tokens with three-body interactions, it grows if the greatest rate of the corrected "
    "stability matrix is positive, and vanishes if that rate is negative. The fitted rates agree with the corrected "
    "matrix, and differ from the published one.",
)
def _first_layer_figure(rows: Rows) -> Drawing:
    drawing, (gaussian, growing, rates) = panels(3, width=3.9, height=3.5)
    for (decay, _), curve in rows["curve"].groupby(["decay", "seed"]):
        color = GOOD if decay else BAD
        gaussian.plot(curve.time, np.maximum(curve["size"], 1e-9), color=color, lw=0.7, alpha=0.7)
    for decay, color in ((rows["curve"].decay.max(), GOOD), (0.0, BAD)):
        gaussian.plot([], [], color=color, label=f"weight decay {decay:g}")
    gaussian.set(yscale="log", xlabel="time", ylabel="norm of the first layer", ylim=(1e-5, None))
    finish(gaussian, "Gaussian tokens", legend=True)
    for _, curve in rows["growing"].groupby("seed"):
        growing.plot(curve.time, curve.log_size, color=OURS, lw=0.7, alpha=0.7)
    last = float(rows["growing"].time.max())
    growing.plot([0, last], [0, last], "--", color=GOOD, label="corrected rate, if positive")
    growing.plot([0, last], [0, -last], ":", color=GOOD, label="corrected rate, if negative")
    growing.set(xlabel="time × |greatest rate|", ylabel="log of the norm / initial norm")
    finish(growing, "Three-body interactions, from almost zero", legend=True)
    table = rows["growth"]
    rates.axline((0, 0), slope=1, color=QUIET, lw=1)
    rates.plot(table.rate, table.fitted, "o", color=GOOD, label="corrected: 2 max eigenvalue of $a_k M$")
    rates.plot(table.printed_rate, table.fitted, "x", color=PUBLISHED, label="published: max eigenvalue of G")
    rates.set(xlabel="rate from the stability matrix", ylabel="fitted rate")
    finish(rates, "Growth rates, one point per distribution", legend=True)
    return drawing


_CELLS: Cells = {
    "Gaussian, with weight decay": {"remaining norm": kept(decays=True)},
    "Gaussian, no weight decay": {"remaining norm": kept()},
    "three-body interactions": {
        "rate": growth("fitted"),
        "published rate": growth("printed_rate"),
        "diagonal / published": growth("diagonal"),
        "off the diagonal": growth("off_diagonal"),
    },
    **{
        f"example, {skew} skew, last layer of {signs}": {
            "rate": example(positive, both),
            "published rate": example(positive, both, "printed_rate"),
        }
        for positive, skew in ((True, "positive"), (False, "negative"))
        for both, signs in ((False, "one sign"), (True, "both signs"))
    },
}

TABLES = (
    ResultTable(
        title="Behavior of the flows",
        source="Equations 8 to 13, appendix B",
        cells=_CELLS,
        rows_are="tokens",
        note="Means over distributions, ± one standard deviation. Remaining norm: final norm of the first layer over "
        "its initial norm. Rate: growth rate of the first layer from almost zero, fitted for three-body interactions. "
        "Published rate: greatest eigenvalue of the symmetric part of G. Diagonal / published: derivative of the "
        "diagonal over equation 13. Off the diagonal: share of the derivative there, which is zero in equation 13.",
    ),
)
FIGURES = (_first_layer_figure,)
