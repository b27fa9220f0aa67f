"""The figure of the study."""

import numpy as np
from matplotlib.figure import Figure as Drawing

from trialogue.display.figures import BAD, GOOD, OURS, PUBLISHED, QUIET, panels
from trialogue_lab.ledger import Rows, figure, finish


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


FIGURES = (_first_layer_figure,)
