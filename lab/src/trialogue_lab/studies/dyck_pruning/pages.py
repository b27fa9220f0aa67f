"""Figure and table of the study."""

from itertools import product

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import COLORS, Cells, Rows, Statistic, figure, finish, panels, result_table
from trialogue_lab.studies.dyck_pruning.statistics import error


@figure(
    "pruning",
    "Error of pruned random weights, which are uniform on (-1, 1). Medians and quartiles over seeds. Each weight takes "
    "the best subset. Left: the largest error of five numbers, and the error of attention scores.",
)
def _error_figure(rows: Rows) -> Drawing:
    drawing, (numbers, networks, transformers) = panels(3, width=4.2, height=3.4)
    _draw_quartiles(numbers, rows["number"], "count", COLORS[0], "a number")
    _draw_quartiles(numbers, rows["scores"], "units", COLORS[2], "scores, 2 x 2")
    xlabel = "products of random weights per weight"
    finish(numbers, "Error of the best subset", legend=True, yscale="log", xlabel=xlabel)
    for size, color in zip(rows.config["sizes"], COLORS, strict=False):
        _draw_quartiles(networks, rows.where("matrix", size=size), "units", color, f"{size} x {size}")
    _draw_quartiles(networks, rows["layers"], "units", COLORS[5], "two layers, 2 x 2")
    xlabel = "hidden units per input and sign"
    finish(networks, "Error of pruned ReLU networks", legend=True, yscale="log", xlabel=xlabel)
    for layers, color in zip(rows.config["layers"], COLORS, strict=False):
        table = rows.where("transformer", layers=layers, first=0)
        _draw_quartiles(transformers, table, "hidden", color, f"{layers} of {4 * layers} layers")
    xlabel = "width of keys and hidden layers"
    finish(transformers, "Error of pruned transformers", legend=True, yscale="log", xlabel=xlabel)
    return drawing


def _draw_quartiles(axes: Axes, table: DataFrame, column: str, color: str, label: str) -> None:
    low, middle, high = (table.groupby(column).error.quantile(share) for share in (0.25, 0.5, 0.75))
    axes.errorbar(middle.index, middle, (middle - low, high - middle), fmt="o-", color=color, label=label)


@result_table(
    "Random transformers pruned to given transformers",
    "Theorem 2.2.3, Corollary 2.2.3",
    row_heading="transformer",
    note="Targets have width 2. Error: largest distance of the outputs, relative to the largest input vector, on 50 "
    "sequences of 8 positions. Targets apart: median of the same distance between two targets.",
)
def _transformer_table(rows: Rows) -> Cells:
    cells: dict[str, dict[str, Statistic | float]] = {}
    for layers, hidden in product(rows.config["layers"], rows.config["hidden"]):
        table = rows.where("transformer", layers=layers, hidden=hidden)
        cells[f"{layers} of {4 * layers} layers, width {hidden}"] = {
            "error": error("transformer", layers=layers, hidden=hidden, first=0),
            "median": float(table.error.median()),
            "targets apart": float(table.targets_apart.median()),
        }
    return cells


FIGURES = (_error_figure,)
TABLES = (_transformer_table,)
