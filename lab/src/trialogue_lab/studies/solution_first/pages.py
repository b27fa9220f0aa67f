"""Tables and the figure of the study."""

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.display.figures import BAD, COLORS, GOOD, QUIET, panels
from trialogue_lab.ledger import Cells, Figure, ResultTable, Rows
from trialogue_lab.ledger.claims.extremes import largest
from trialogue_lab.studies.solution_first.config import ORDERS
from trialogue_lab.studies.solution_first.statistics import dearest, sudoku, variations

_PLAYERS = {"fitting": "N / 2^i", "indexed": "by an index", "rescanned": "rescanning"}
_OPERATIONS = {"products": "products", "tests": "primality tests", "factoring_steps": "steps of factoring"}


def _tasks(_: Rows) -> Cells:
    exact = {
        "a number, then [STOP]": ("stop", "variation"),
        "[pq, p, q], random activations": ("activations", "variation"),
        "twenty questions by an index": ("question", "variation"),
    }
    return {label: {"largest TV": largest(kind, column)} for label, (kind, column) in exact.items()}


def _sudoku(rows: Rows) -> Cells:
    heads = {"looks": "looks per token", "dearest": "looks, dearest token", "error": "error of log p"}
    return {
        f"{row['clues']} clues, {row['order']}": {
            head: sudoku(column, row["clues"], row["order"]) for column, head in heads.items()
        }
        for row in rows["sudoku"].to_dict("records")
    }


def _questions(rows: Rows) -> DataFrame:
    table = rows["question"].sort_values(["objects", "asked"])
    table.index = [f"N = {n}, i = {i}" for n, i in zip(table.objects, table.asked, strict=True)]
    return table[list(_PLAYERS)].rename(columns=_PLAYERS)


def _density(rows: Rows) -> DataFrame:
    table = variations(rows)
    table.index = [f"n = {digits}" for digits in table.index]
    return table.set_axis([f"{counted} counted" for counted in table.columns], axis=1)


def _first_number(rows: Rows) -> Cells:
    return {
        f"n = {digits}, {order}": {
            f"{head}, dearest digit": dearest(column, order, digits) for column, head in _OPERATIONS.items()
        }
        for digits in sorted(rows["first number"].digits.unique().tolist())
        for order in ORDERS
    }


TABLES = (
    ResultTable(
        title="Laws token by token",
        source='Sections "Randomized Tasks", "Where this comes up", "Ways to get around this"',
        cells=_tasks,
        rows_are="task",
        note="Exact.",
    ),
    ResultTable(
        title="Sudoku of 4 x 4 cells without memory: cells of grids looked at",
        source='Section "Where this comes up"',
        cells=_sudoku,
        rows_are="puzzles",
        note="means over drawn puzzles; a look is at one cell of one of the 288 grids",
    ),
    ResultTable(
        title="Twenty questions about bits of hashes: looks for one answer after i answers",
        source='Section "Where this comes up"',
        cells=_questions,
        rows_are="objects, answers so far",
        note="exact means over games; who fixed an object looks up one answer",
    ),
    ResultTable(
        title="Primes by density: total variation, by how many of the last digits are counted",
        source='Appendix, "Generating primes deterministically"',
        cells=_density,
        rows_are="digits",
        note="exact; with c of n digits counted the error is that of the first n - c digits",
    ),
    ResultTable(
        title="Digits of the tuple's first number, by trial",
        source='Section "Factoring"',
        cells=_first_number,
        rows_are="primes and order",
        note="means over tuples; ± is the deviation over seeds; product first, pairs of primes are drawn until a "
        "product begins with what is written",
    ),
)


def _draw(rows: Rows) -> Drawing:
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
    middle.set(
        yscale="log",
        ylim=(None, 8),
        xlabel="digits n of the prime",
        ylabel="total variation",
        xticks=list(table.index),
    )
    middle.set_title("Primes without coins")
    middle.legend(loc="upper left", ncols=2)
    for order, color in zip(ORDERS, (BAD, GOOD), strict=True):
        costs = rows.where("first number", order=order)
        for digits, of_size in costs.groupby("digits"):
            means = of_size.groupby("position").tests.mean()
            label = order.replace("-", " ") if digits == costs.digits.max() else None
            right.plot(
                means.index,
                means,
                "o-",
                color=color,
                label=label,
                alpha=0.4 + 0.2 * int(of_size.digits.iloc[0]),
            )
    right.set(yscale="log", xlabel="position in the first number", ylabel="primality tests for one digit")
    right.set_title("The first number, by trial")
    right.legend()
    return drawing


FIGURES = (
    Figure(
        name="tasks",
        caption="Left: looks for one answer after i answers, mean over games, by an index of what fits and by going "
        "through all objects. Middle: total variation of primes by density from random ones; it falls with n for the "
        "leading digits, and rises with n where a fixed number of last digits is counted. Right: primality tests for "
        "each digit of the tuple's first number, primes of one to three digits (paler: fewer).",
        draw=_draw,
    ),
)
