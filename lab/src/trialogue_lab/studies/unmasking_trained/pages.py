"""Tables and the figure of the study."""

from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import (
    BAD,
    COLORS,
    GOOD,
    OURS,
    QUIET,
    Cells,
    Rows,
    figure,
    finish,
    panels,
    result_table,
    spread,
)
from trialogue_lab.studies.unmasking_trained.config import ADDITION, SUDOKU, Task
from trialogue_lab.studies.unmasking_trained.measure import ORDERS
from trialogue_lab.studies.unmasking_trained.statistics import solved

_COLORS = dict(zip(ORDERS, (GOOD, QUIET, OURS, COLORS[3], BAD), strict=True))
_TITLES = {SUDOKU: "Sudoku, 4 x 4 cells", ADDITION: "Addition"}


def _cells(rows: Rows, task: Task) -> Cells:
    cells: dict[str, dict[str, object]] = {}
    for order in ORDERS:
        cells[order] = {"early": solved(task, order, "early")}
        for size in rows.config["sizes"]:
            cells[order]["late" if size == 1 else f"late, {size} per pass"] = solved(task, order, size=size)
        cells[order]["late, temperature 1"] = solved(task, order, temperature=1.0)
        cells[order]["late, training puzzles"] = solved(task, order, puzzles="seen")
    return cells  # type: ignore[return-value]


_NOTE = (
    "± one standard deviation over trainings. Held-out puzzles, one token per pass and temperature 0 if not stated "
    "otherwise. Early and late are the first and the last tested training step."
)


@result_table("Share of solved Sudoku puzzles by order", "arXiv 2502.06768", row_heading="order", note=_NOTE)
def _sudoku_table(rows: Rows) -> Cells:
    return _cells(rows, SUDOKU)


@result_table("Share of right sums by order", "not in the source", row_heading="order", note=_NOTE)
def _addition_table(rows: Rows) -> Cells:
    return _cells(rows, ADDITION)


TABLES = (_sudoku_table, _addition_table)


@figure(
    "orders",
    "Share of held-out puzzles that are solved, by training step, with one token per pass at temperature 0. Means over "
    "trainings ± one standard deviation.",
)
def _orders_figure(rows: Rows) -> Drawing:
    drawing, panes = panels(2, width=5.0, height=3.9)
    for axes, (task, title) in zip(panes, _TITLES.items(), strict=True):
        table = rows.require("solved", task=task, size=1, temperature=0.0, puzzles="held out")
        steps = sorted(table.step.unique())
        for order, color in _COLORS.items():
            found = table[table.order == order].set_index(["step", "seed"])
            shares = found.solved / found.tests
            spread(axes, steps, [shares.xs(step) for step in steps], rows, color=color, label=order)
        finish(
            axes,
            title,
            legend=task == SUDOKU,
            xlabel="training step",
            ylabel="share solved",
            ylim=(-0.02, 1.02),
        )
    return drawing


FIGURES = (_orders_figure,)
