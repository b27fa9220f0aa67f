"""Tables and the figure of the study."""

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import COLORS, Cells, Rows, curves, figure, finish, panels, result_table
from trialogue_lab.studies.solution_first.statistics import select_variations


@result_table(
    "Look-ups for 4 x 4 Sudoku without memory",
    'Section "Where this comes up"',
    row_heading="puzzles",
    note="Means over sampled puzzles. A look-up reads one cell of one of the 288 grids.",
)
def _sudoku_table(rows: Rows) -> DataFrame:
    heads = {"looks": "look-ups per token", "dearest": "most expensive token", "error": "error of log p"}
    table = rows["sudoku"]
    table.index = table.clues.map("{} clues, ".format) + table.order
    return table[list(heads)].rename(columns=heads)


@result_table(
    "Cost of the digits of the first number, by trial",
    'Section "Factoring"',
    row_heading="primes and order",
    note="Most expensive digit. Means over tuples, ± one standard deviation over seeds. With the product first, pairs "
    "of primes are sampled until a product begins with the digits that are already written.",
)
def _first_number_table(rows: Rows) -> Cells:
    heads = {"products": "products", "tests": "primality tests", "factoring_steps": "factoring steps"}
    return {
        f"n = {digits}, {order}": {
            head: costs.groupby("seed")[column].max() for column, head in heads.items()
        }
        for (digits, order), costs in rows["first number"].groupby(["digits", "order"])
    }


TABLES = (_sudoku_table, _first_number_table)


@figure(
    "tasks",
    "Left: look-ups for one answer after i answers, averaged over games, with an index of the objects that fit and by "
    "scanning all objects. Middle: total variation distance between primes by density and random primes. It increases "
    "with n for a fixed number of exact last digits. Right: primality tests for each digit of the first number of a "
    "tuple, for the largest primes. Bars show one standard deviation.",
)
def _tasks_figure(rows: Rows) -> Drawing:
    drawing, (left, middle, right) = panels(3, width=4.1, height=3.9)
    table = rows["question"]
    curves(left, table, "asked", "indexed", "objects", label="{} objects, index")
    curves(left, table, "asked", "rescanned", "objects", label="{} objects, scan", fmt="x--")
    # The empty space below the curves is for the legend.
    left.set(yscale="log", ylim=(1e-3, None), xlabel="previous answers i", ylabel="look-ups per answer")
    left.set_title("Twenty questions without memory")
    left.legend(loc="lower left")
    table = select_variations(rows)
    for counted, color in zip((1, 2, 3, 4), COLORS, strict=False):
        middle.plot(table.index, table[counted], "o-", color=color, label=f"{counted} exact digits")
    middle.set(yscale="log", ylim=(None, 8), xticks=list(table.index))
    finish(middle, "Primes by density", xlabel="digits n of the prime", ylabel="total variation distance")
    middle.legend(loc="upper left", ncols=2)
    table = rows.where("first number", digits=rows["first number"].digits.max())
    curves(right, table, "position", "tests", "order")
    right.set(yscale="log", xlabel="position in the first number", ylabel="primality tests per digit")
    finish(right, "The first number, by trial", legend=True)
    return drawing


FIGURES = (_tasks_figure,)
