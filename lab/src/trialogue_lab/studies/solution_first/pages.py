"""Tables and the figure of the study."""

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.display.figures import BAD, COLORS, GOOD, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, figure, finish, largest, result_table
from trialogue_lab.studies.solution_first.config import ORDERS
from trialogue_lab.studies.solution_first.statistics import dearest, sudoku, variations

_PLAYERS = {"fitting": "N / 2^i", "indexed": "by an index", "rescanned": "rescanning"}
_OPERATIONS = {"products": "products", "tests": "primality tests", "factoring_steps": "steps of factoring"}


@result_table(
    "Laws token by token",
    'Sections "Randomized Tasks", "Where this comes up", "Ways to get around this"',
    rows_are="task",
    note="Exact.",
)
def _tasks_table(_: Rows) -> Cells:
    exact = {
        "a number, then [STOP]": ("stop", "variation"),
        "[pq, p, q], random activations": ("activations", "variation"),
        "twenty questions by an index": ("question", "variation"),
    }
    return {label: {"largest TV": largest(kind, column)} for label, (kind, column) in exact.items()}


@result_table(
    "Sudoku of 4 x 4 cells without memory: cells of grids looked at",
    'Section "Where this comes up"',
    rows_are="puzzles",
    note="means over drawn puzzles; a look is at one cell of one of the 288 grids",
)
def _sudoku_table(rows: Rows) -> Cells:
    heads = {"looks": "looks per token", "dearest": "looks, dearest token", "error": "error of log p"}
    return {
        f"{row['clues']} clues, {row['order']}": {
            head: sudoku(column, row["clues"], row["order"]) for column, head in heads.items()
        }
        for row in rows["sudoku"].to_dict("records")
    }


@result_table(
    "Twenty questions about bits of hashes: looks for one answer after i answers",
    'Section "Where this comes up"',
    rows_are="objects, answers so far",
    note="exact means over games; who fixed an object looks up one answer",
)
def _questions_table(rows: Rows) -> DataFrame:
    table = rows["question"].sort_values(["objects", "asked"])
    table.index = [f"N = {n}, i = {i}" for n, i in zip(table.objects, table.asked, strict=True)]
    return table[list(_PLAYERS)].rename(columns=_PLAYERS)


@result_table(
    "Primes by density: total variation, by how many of the last digits are counted",
    'Appendix, "Generating primes deterministically"',
    rows_are="digits",
    note="exact; with c of n digits counted the error is that of the first n - c digits",
)
def _density_table(rows: Rows) -> DataFrame:
    table = variations(rows)
    table.index = [f"n = {digits}" for digits in table.index]
    return table.set_axis([f"{counted} counted" for counted in table.columns], axis=1)


@result_table(
    "Digits of the tuple's first number, by trial",
    'Section "Factoring"',
    rows_are="primes and order",
    note="means over tuples; ± is the deviation over seeds; product first, pairs of primes are drawn until a "
    "product begins with what is written",
)
def _first_number_table(rows: Rows) -> Cells:
    return {
        f"n = {digits}, {order}": {
            f"{head}, dearest digit": dearest(column, order, digits) for column, head in _OPERATIONS.items()
        }
        for digits in sorted(rows["first number"].digits.unique().tolist())
        for order in ORDERS
    }


TABLES = (_tasks_table, _sudoku_table, _questions_table, _density_table, _first_number_table)


@figure(
    "tasks",
    "Left: looks for one answer after i answers, mean over games, by an index of what fits and by going "
    "through all objects. Middle: total variation of primes by density from random ones; it falls with n for the "
    "leading digits, and rises with n where a fixed number of last digits is counted. Right: primality tests for "
    "each digit of the tuple's first number, primes of one to three digits (paler: fewer).",
)
def _tasks_figure(rows: Rows) -> Drawing:
    drawing, (left, middle, right) = panels(3, width=4.1, height=3.9)
    for color, (objects, table) in zip(COLORS, rows["question"].groupby("objects"), strict=False):
        left.plot(table.asked, table.indexed, "o-", color=color, label=f"{objects} objects, index")
        left.plot(table.asked, table.rescanned, "x--", color=color)
        left.plot(table.asked, table.fitting, ":", color=QUIET)
    left.plot([], [], "x--", color=QUIET, label="rescanning all")
    left.plot([], [], ":", color=QUIET, label=r"$N / 2^i$")
    # Below what is shown there is room for the legend.
    left.set(yscale="log", ylim=(1e-3, None), xlabel="answers so far, i", ylabel="looks for one answer")
    left.set_title("Twenty questions without memory")
    left.legend(loc="lower left", fontsize=7)
    table = variations(rows)
    for counted, color in zip((1, 2, 3, 4), COLORS, strict=False):
        middle.plot(table.index, table[counted], "o-", color=color, label=f"{counted} counted")
    middle.set(yscale="log", ylim=(None, 8), xticks=list(table.index))
    finish(middle, "Primes without coins", xlabel="digits n of the prime", ylabel="total variation")
    middle.legend(loc="upper left", ncols=2)
    for order, color in zip(ORDERS, (BAD, GOOD), strict=True):
        costs = rows.where("first number", order=order)
        for digits, of_size in costs.groupby("digits"):
            means = of_size.groupby("position").tests.mean()
            label = order.replace("-", " ") if digits == costs.digits.max() else None
            shade = 0.4 + 0.2 * int(of_size.digits.iloc[0])
            right.plot(means.index, means, "o-", color=color, label=label, alpha=shade)
    right.set(yscale="log", xlabel="position in the first number", ylabel="primality tests for one digit")
    finish(right, "The first number, by trial", legend=True)
    return drawing


FIGURES = (_tasks_figure,)
