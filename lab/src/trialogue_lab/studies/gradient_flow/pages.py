"""The figure and the tables of the study."""

import numpy as np
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.display.figures import BAD, GOOD, OURS, PUBLISHED, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, figure, finish, result_table
from trialogue_lab.studies.gradient_flow.statistics import example, growth, kept

_DOCUMENT = "Equations 8 to 13, appendix B"


@figure(
    "first-layer",
    "The first layer of two: on Gaussian tokens it dies with a decay of weights, and need not without; on "
    "tokens of three bodies it grows out of the plateau where the greatest rate of the corrected stability matrix "
    "is above zero, and dies where that is below zero, in either case at this rate; the matrix as printed gives "
    "others.",
)
def _first_layer_figure(rows: Rows) -> Drawing:
    drawing, (dying, growing, rates) = panels(3, width=3.9, height=3.5)
    curves = rows["curve"]
    for decays, color in ((True, GOOD), (False, BAD)):
        for _, curve in curves[curves.decays == decays].groupby("seed"):
            dying.plot(curve.time, np.maximum(curve["size"], 1e-9), color=color, lw=0.7, alpha=0.7)
        label = f"decay {curves[curves.decays].decay.iloc[0]:g}" if decays else "no decay"
        dying.plot([], [], color=color, label=label)
    dying.set(yscale="log", xlabel="time", ylabel="norm of the first layer", ylim=(1e-5, None))
    finish(dying, "Two bodies only: with a decay the\nfirst layer dies, without one it need not", legend=True)
    for _, curve in rows["growing"].groupby("seed"):
        growing.plot(curve.time, curve.log_size, color=OURS, lw=0.7, alpha=0.7)
    last = float(rows["growing"].time.max())
    growing.plot([0, last], [0, last], "--", color=GOOD, label="at the corrected rate")
    if (rows["growth"].rate < 0).any():
        growing.plot([0, last], [0, -last], ":", color=GOOD, label="the same, where it is below zero")
    growing.set(xlabel="time × |greatest rate|", ylabel="log of its norm over the start's")
    finish(growing, "Three bodies: out of the plateau or\nback to it, from almost zero", legend=True)
    table = rows["growth"]
    ends = [float(table.rate.min()), float(table.rate.max())]
    rates.plot(ends, ends, color=QUIET, lw=1)
    rates.plot(table.rate, table.fitted, "o", color=GOOD, label="corrected: 2 max eigenvalue of $a_k M$")
    rates.plot(table.printed_rate, table.fitted, "x", color=PUBLISHED, label="printed: max eigenvalue of G")
    rates.set(xlabel="rate by the stability matrix", ylabel="rate fitted")
    finish(rates, "Rates of growth, one point a law", legend=True)
    return drawing


@result_table(
    "Closed forms beside the flow",
    _DOCUMENT,
    rows_are="what is compared",
    note="worst case over all laws of the run",
)
def _worst_table(rows: Rows) -> DataFrame:
    numbers = {
        "equations 8 and 9 against automatic differentiation": rows["gradient"].sample_error.max(),
        "equations 10 and 11 against quadrature": rows["gradient"].gaussian_error.max(),
        "equations 10 and 11 against draws, in standard errors": rows["gradient"].z.max(),
        "first layer that began at zero": rows["two-body"].first_most.max(),
        "closed form of equation 12 against the flow": rows["two-body"].closed_error.max(),
        "its fixed point against the conditional mean": rows["two-body"].mean_error.max(),
        "lower bound with A1 C A1^T, relative": rows["bound"].error.max(),
        "lower bound with A1 C A1, relative": rows["bound"].printed_error.max(),
        "rate of growth, corrected, relative": rows["growth"].error.max(),
    }
    return DataFrame({"largest error": numbers})


@result_table(
    "What the flows do",
    _DOCUMENT,
    rows_are="tokens",
    note="means over laws, ± one standard deviation; first layer left: its norm at the end over that at the start; "
    "rate: at which the first layer grows from almost zero, of three bodies as fitted; printed rate: the greatest "
    "eigenvalue of the symmetric part of G; diagonal over printed: the derivative of the diagonal "
    "over that of equation 13; off the diagonal: the share of the derivative there, zero as printed",
)
def _flows_table(rows: Rows) -> Cells:
    del rows
    return {
        "two bodies, with a decay": {"first layer left": kept(decays=True)},
        "two bodies, no decay": {"first layer left": kept()},
        "three bodies": {
            "rate": growth("fitted"),
            "printed rate": growth("printed_rate"),
            "diagonal over printed": growth("diagonal"),
            "off the diagonal": growth("off_diagonal"),
        },
        **{
            f"example, {skew} skew, last layer of {signs}": {
                "rate": example(positive, both),
                "printed rate": example(positive, both, "printed_rate"),
            }
            for positive, skew in ((True, "positive"), (False, "negative"))
            for both, signs in ((False, "one sign"), (True, "both signs"))
        },
    }


TABLES = (_worst_table, _flows_table)

FIGURES = (_first_layer_figure,)
