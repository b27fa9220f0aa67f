"""Tables and figures of the study: corrected constants beside printed ones, costs, and knapsacks."""

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, figure, finish, result_table, spread
from trialogue_lab.studies.query_complexity.config import PRESETS
from trialogue_lab.studies.query_complexity.exact import DYCK, HIDDEN
from trialogue_lab.studies.query_complexity.measure import REJECTION, TOKENWISE
from trialogue_lab.studies.query_complexity.statistics import searched, solved, walked

_BEST = "best, infers the last"
_DEFAULT = PRESETS["default"]
_length_table = partial(result_table, rows_are="length")


def _by_length(rows: Rows, kind: str, columns: dict[str, str], **values: object) -> DataFrame:
    table = rows.where(kind, **values).sort_values("length").set_index("length")[list(columns)]
    table.index = [f"D = {length}" for length in table.index]
    return table.rename(columns=columns)


def _lengths(rows: Rows, kind: str) -> list[int]:
    return sorted(rows[kind].length.unique().tolist())


@_length_table(
    "Queries to find the hidden string",
    "Theorem 3.1.1",
    published={f"D = {length}": {_BEST: 2.0 ** (length - 1)} for length in _DEFAULT.optimum_lengths},
    note="Expected, by dynamic programming; as it runs: in random order, ± one deviation over seeds.",
    digits=5,
)
def _optimum_table(rows: Rows) -> Cells:
    worst = rows.where("order", inferred=False).set_index("length").most
    return {
        f"D = {one['length']}": {
            _BEST: one["inferred"],
            "as it runs": searched(one["length"], True),
            "best, must ask": one["queried"],
            "as it runs, must ask": searched(one["length"], False),
            "fixed order, at worst": worst.get(one["length"]),
        }
        for one in rows["optimum"].to_dict("records")
    }


@_length_table(
    "The hidden string with a perfect verifier",
    "Theorem 3.1.1, section 3.1.3",
    note="Exact. Capped: FAIL after so many rejections at one position; per output: begun again after FAIL.",
)
def _hidden_table(rows: Rows) -> DataFrame:
    columns = {"optimum": "best searcher", "rejection": "rejection", "success": "tokenwise halts, uncapped"}
    table = _by_length(rows, "hidden", columns)
    table["calls, uncapped"] = np.inf
    for cap in sorted(rows["capped"].cap.unique().tolist()):
        heads = {"queries": f"calls, cap {cap}", "per_output": f"per output, cap {cap}"}
        table = table.join(_by_length(rows, "capped", heads, cap=cap))
    return table


@_length_table(
    "One string, of zeros",
    "Proposition 3.1.1",
    published={
        f"D = {length}": {REJECTION: length * 2.0**length, TOKENWISE: 2.0 * length}
        for length in _DEFAULT.zero_lengths
    },
    note="Exact; as it runs: ± one deviation over seeds.",
)
def _zeros_table(rows: Rows) -> Cells:
    return {
        f"D = {one['length']}": {
            REJECTION: one["rejection"],
            f"{REJECTION}, as it runs": walked(REJECTION, one["length"]),
            TOKENWISE: one["tokenwise"],
            f"{TOKENWISE}, as it runs": walked(TOKENWISE, one["length"]),
        }
        for one in rows["zeros"].to_dict("records")
    }


@_length_table(
    "Dyck strings by a uniform oracle",
    "Section 3.1.3",
    note="Expected calls of the oracle, exact; two types of brackets.",
    digits=4,
)
def _dyck_table(rows: Rows) -> DataFrame:
    table = _by_length(rows, "dyck", {"rejection": REJECTION, "tokenwise": TOKENWISE})
    calls = rows.where("verifier", task=DYCK).sort_values("length")
    table["calls of the verifier"] = calls.calls.to_numpy()
    table["|Sigma| D"] = calls.bound.to_numpy()
    return table


@_length_table(
    "A verifier alone, on hidden strings",
    'Section 3.1.3, "|Sigma| D calls"',
    note="The first token that is accepted is taken; solved: share of oracles that can give the output.",
)
def _verifier_table(rows: Rows) -> DataFrame:
    columns = {"calls": "calls of the verifier", "bound": "|Sigma| D", "solved": "hidden strings solved"}
    return _by_length(rows, "verifier", columns, task=HIDDEN)


@result_table(
    "All strings but one", "Proposition 3.1.2", rows_are="length", note="Exact, masses in units of 2^-D."
)
def _law_table(rows: Rows) -> DataFrame:
    columns = {
        "variation": "total variation",
        "last": "mass of 1..10",
        "most": "greatest other",
        "least_of_a": "least other of A",
        "least": "least of all",
    }
    return _by_length(rows, "law", columns)


@result_table(
    "Knapsacks",
    "Theorem 3.1.2, section 3.5.1",
    rows_are="knapsacks",
    note="Held against brute force; of superincreasing ones every total is tried.",
)
def _knapsacks_table(rows: Rows) -> Cells:
    lines: dict[str, dict[str, float]] = {}
    for feasible, group in rows["knapsack"].groupby("feasible"):
        lines[f"random, {'with' if feasible else 'without'} a solution"] = {
            "knapsacks": len(group),
            "wrong by generating": int(group.generated_wrong.sum()),
            "wrong by the table": int(group.table_wrong.sum()),
            "verifier calls over 2 D, at most": float((group.calls / group.bound).max()),
        }
    for one in rows["greedy"].to_dict("records"):
        lines[f"superincreasing, sums {'different' if one['unique'] else 'not all different'}"] = {
            "knapsacks": one["knapsacks"],
            "totals": one["totals"],
            "wrong by the greedy pass": one["wrong"],
        }
    return lines


def _densities(rows: Rows) -> dict[int, float]:
    """Return the mean density of the knapsacks by the binary digits of their weights."""
    means = rows["lattice"].groupby("digits").density.mean()
    return dict(zip(means.index.tolist(), means.tolist(), strict=True))


@result_table(
    "Knapsacks by a reduced lattice",
    "Section 3.5.1",
    rows_are="weights of",
    note="Knapsacks with a solution; ± one deviation over seeds.",
)
def _lattices_table(rows: Rows) -> Cells:
    return {
        f"{digits} binary digits": {"density": density, "solved": solved(digits)}
        for digits, density in _densities(rows).items()
    }


TABLES = (
    _optimum_table,
    _hidden_table,
    _zeros_table,
    _dyck_table,
    _verifier_table,
    _law_table,
    _knapsacks_table,
    _lattices_table,
)


@figure(
    "costs",
    "Expected calls of the oracle. Left: the hidden string of Theorem 3.1.1; the best searcher, and the "
    "bound in print, which no searcher needs to reach; tokenwise rejection with a perfect verifier fails after one "
    "rejection and begins again. Middle: Proposition 3.1.1. Right: Dyck strings of two types of brackets. Crosses: "
    "means as searchers and walks run, bars of one deviation over seeds.",
)
def _costs_figure(rows: Rows) -> Drawing:
    drawing, (left, middle, right) = panels(3, width=4.1, height=3.9)
    optimum = rows["optimum"]
    hidden, capped = (
        table[table.length <= optimum.length.max()]
        for table in (rows["hidden"], rows.where("capped", cap=rows["capped"].cap.min()))
    )
    left.plot(hidden.length, hidden.rejection, "s-", color=BAD, label="rejection")
    label = "tokenwise with a perfect verifier, per output"
    left.plot(capped.length, capped.per_output, "x--", color=COLORS[4], label=label)
    left.plot(optimum.length, optimum.printed, "-", color="black", label="printed bound $2^{D-1}$")
    found = optimum[optimum.length > 1]
    left.plot(found.length, found.inferred, "o-", color=GOOD, label="best searcher")
    simulated: dict[str, Any] = {"fmt": "+", "color": OURS, "ms": 9}
    ran = _lengths(rows, "search")
    spread(left, ran, [searched(length, True) for length in ran], rows, label="as it runs", **simulated)
    costs = {"yscale": "log", "xlabel": "length D", "ylabel": "expected queries"}
    left.set(**costs, title="Hidden string: no verifier helps")
    left.legend(loc="upper left", fontsize=7)
    for axes, kind, title in (
        (middle, "zeros", "One string of D bits: a verifier helps"),
        (right, "dyck", "Dyck strings, uniform brackets"),
    ):
        table = rows[kind]
        axes.plot(table.length, table.rejection, "s-", color=BAD, label="rejection")
        axes.plot(table.length, table.tokenwise, "o-", color=GOOD, label="tokenwise rejection")
        axes.set(**costs, title=title)
    ran = _lengths(rows, "walk")
    for walk, shown in ((REJECTION, "as they run"), (TOKENWISE, None)):
        spread(middle, ran, [walked(walk, length) for length in ran], rows, label=shown, **simulated)
    middle.legend(loc="upper left")
    calls = rows.where("verifier", task=DYCK)
    right.plot(calls.length, calls.calls, "^:", color=QUIET, label=r"calls of the verifier, $|\Sigma| D$")
    right.legend(loc="upper left")
    return drawing


@figure(
    "laws-and-lattices",
    "Left: total variation between what tokenwise rejection samples and the restricted law, all strings "
    "but that of ones allowed (Proposition 3.1.2); at D = 1 it is zero. Right: share of knapsacks with a solution "
    "that a lattice, reduced by the algorithm of Lenstra, Lenstra and Lovasz, solves, against their density; bars "
    "of one deviation over seeds.",
)
def _laws_figure(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, width=4.6, height=3.6)
    law = rows["law"].query("variation > 0")
    strings = 2.0**law.length
    left.plot(law.length, law.variation, "o", color=OURS, label="exact")
    left.plot(
        law.length,
        (strings - 2) / (strings * (strings - 1)),
        "-",
        color=QUIET,
        label=r"$(2^D - 2) / (2^D (2^D - 1))$",
    )
    left.set(yscale="log", xlabel="length D", ylabel="total variation")
    finish(left, "Tokenwise rejection from the restricted law", legend=True)
    densities = _densities(rows)
    spread(right, list(densities.values()), map(solved, densities), rows, color=OURS)
    right.axvline(0.9408, color=QUIET, ls="--", label="0.94: almost all below,\ngiven a shortest vector")
    right.set(xlabel="density", ylabel="share solved", ylim=(-0.05, 1.1))
    finish(right, "Knapsacks by a reduced lattice", legend="lower right")
    return drawing


FIGURES = (_costs_figure, _laws_figure)
