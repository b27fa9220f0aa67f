"""Tables and figures of the study: printed and corrected constants, costs, and knapsacks."""

from typing import Any

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, figure, finish, result_table, spread
from trialogue_lab.studies.query_complexity.config import PRESETS
from trialogue_lab.studies.query_complexity.exact import DYCK
from trialogue_lab.studies.query_complexity.measure import REJECTION, TOKENWISE
from trialogue_lab.studies.query_complexity.statistics import searched, solved, walked

_BEST = "optimal, infers the last"


@result_table(
    "Queries to find the hidden string",
    "Theorem 3.1.1",
    row_heading="length",
    published={
        f"D = {length}": {_BEST: 2.0 ** (length - 1)} for length in PRESETS["default"].optimum_lengths
    },
    note="Optimal: exact, by dynamic programming. Simulated: random order, mean ± one standard deviation over seeds.",
    digits=5,
)
def _optimum_table(rows: Rows) -> Cells:
    worst = rows.where("order", inferred=False).set_index("length").most
    return {
        f"D = {one['length']}": {
            _BEST: one["inferred"],
            "simulated": searched(one["length"], True),
            "optimal, must query": one["queried"],
            "simulated, must query": searched(one["length"], False),
            "fixed order, worst case": worst.get(one["length"]),
        }
        for one in rows["optimum"].to_dict("records")
    }


@result_table(
    "The hidden string with a perfect verifier",
    "Theorem 3.1.1, section 3.1.3",
    row_heading="length",
    note="Exact. With a cap, tokenwise rejection returns FAIL after this number of rejections at one position. The "
    "calls per output include the restarts after FAIL. Without a cap, the expected number of calls is infinite.",
)
def _hidden_table(rows: Rows) -> DataFrame:
    columns = {"optimum": "optimal searcher", "rejection": "rejection", "success": "tokenwise halts, no cap"}
    table = rows["hidden"].set_index("length")[list(columns)].rename(columns=columns)
    for cap, capped in rows["capped"].set_index("length").groupby("cap"):
        table[f"calls, cap {cap}"] = capped.queries
        table[f"calls per output, cap {cap}"] = capped.per_output
    return table.rename(index="D = {}".format)


TABLES = (_optimum_table, _hidden_table)


@figure(
    "costs",
    "Expected calls of the oracle. Left: the hidden string of Theorem 3.1.1. The optimal searcher needs fewer "
    "queries than the printed lower bound. Tokenwise rejection with a perfect verifier fails after one rejection and "
    "starts again. Middle: Proposition 3.1.1. Right: Dyck strings with two types of brackets. Crosses: means of "
    "simulations, with error bars of one standard deviation over seeds.",
)
def _costs_figure(rows: Rows) -> Drawing:
    drawing, (left, middle, right) = panels(3, width=4.1, height=3.9)
    optimum = rows["optimum"]
    hidden = rows["hidden"].query("length <= @optimum.length.max()")
    capped = rows["capped"].query("length <= @optimum.length.max() and cap == cap.min()")
    left.plot(hidden.length, hidden.rejection, "s-", color=BAD, label="rejection")
    label = "tokenwise with a perfect verifier, per output"
    left.plot(capped.length, capped.per_output, "x--", color=COLORS[4], label=label)
    left.plot(optimum.length, optimum.printed, "-", color="black", label="printed bound $2^{D-1}$")
    found = optimum[optimum.length > 1]
    left.plot(found.length, found.inferred, "o-", color=GOOD, label="optimal searcher")
    simulated: dict[str, Any] = {"fmt": "+", "color": OURS, "ms": 9}
    lengths = rows.distinct("search", "length")
    spread(
        left, lengths, [searched(length, True) for length in lengths], rows, label="simulated", **simulated
    )
    costs = {"yscale": "log", "xlabel": "length D", "ylabel": "expected queries"}
    left.set(**costs, title="Hidden string: a verifier does not help")
    left.legend(loc="upper left")
    for axes, kind, title in (
        (middle, "zeros", "One string of D bits: a verifier helps"),
        (right, "dyck", "Dyck strings, uniform brackets"),
    ):
        table = rows[kind]
        axes.plot(table.length, table.rejection, "s-", color=BAD, label="rejection")
        axes.plot(table.length, table.tokenwise, "o-", color=GOOD, label="tokenwise rejection")
        axes.set(**costs, title=title)
    lengths = rows.distinct("walk", "length")
    for sampler, name in ((REJECTION, "simulated"), (TOKENWISE, None)):
        spread(
            middle, lengths, [walked(sampler, length) for length in lengths], rows, label=name, **simulated
        )
    middle.legend(loc="upper left")
    calls = rows.where("verifier", task=DYCK)
    right.plot(calls.length, calls.calls, "^:", color=QUIET, label=r"calls of the verifier, $|\Sigma| D$")
    right.legend(loc="upper left")
    return drawing


@figure(
    "laws-and-lattices",
    "Left: total variation between the output of tokenwise rejection and the restricted distribution, if all strings "
    "except the string of ones are allowed (Proposition 3.1.2). It is zero at D = 1. Right: share of solvable "
    "knapsacks that a lattice, reduced by the algorithm of Lenstra, Lenstra and Lovasz, solves, by density. Error bars "
    "are one standard deviation over seeds.",
)
def _distances_figure(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, width=4.6, height=3.6)
    table = rows["law"].query("variation > 0")
    strings = 2.0**table.length
    left.plot(table.length, table.variation, "o", color=OURS, label="exact")
    closed_form = (strings - 2) / (strings * (strings - 1))
    left.plot(table.length, closed_form, "-", color=QUIET, label=r"$(2^D - 2) / (2^D (2^D - 1))$")
    left.set(yscale="log", xlabel="length D", ylabel="total variation")
    finish(left, "Tokenwise rejection and the restricted distribution", legend=True)
    densities = rows["lattice"].groupby("digits").density.mean()
    spread(right, densities.tolist(), map(solved, densities.index.tolist()), rows, color=OURS)
    right.axvline(0.9408, color=QUIET, ls="--", label="0.94: below it, a shortest\nvector solves almost all")
    right.set(xlabel="density", ylabel="share solved", ylim=(-0.05, 1.1))
    finish(right, "Knapsacks solved by lattice reduction", legend="lower right")
    return drawing


FIGURES = (_costs_figure, _distances_figure)
