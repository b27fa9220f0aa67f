"""Figure and tables of the study."""

from itertools import product

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import COLORS, Cells, Rows, figure, finish, panels, result_table
from trialogue_lab.studies.dyck_pruning.statistics import matrix_error, number_error, transformer_error


@figure(
    "pruning",
    "How near pruned random weights, uniform on (-1, 1), come to what is wanted: medians and quartiles "
    "over draws of networks and targets, the best subset for each weight.",
)
def _draw(rows: Rows) -> Drawing:
    drawing, (numbers, networks, whole) = panels(3, width=4.2, height=3.4)
    _quartiles(numbers, rows["number"], "count", COLORS[0], "a number")
    _quartiles(numbers, rows["scores"], "units", COLORS[2], "scores, 2 x 2")
    numbers.set(yscale="log", xlabel="products of random weights for each weight")
    finish(numbers, "Distance of the nearest subsets", legend=True)
    for size, color in zip(rows.config["sizes"], COLORS, strict=False):
        _quartiles(networks, rows.where("matrix", size=size), "units", color, f"{size} x {size}")
    _quartiles(networks, rows["layers"], "units", COLORS[5], "two layers, 2 x 2")
    networks.set(yscale="log", xlabel="hidden units for each input and side of zero")
    finish(networks, "Error of pruned ReLU networks, inputs of length 1", legend=True)
    for layers, color in zip(rows.config["layers"], COLORS, strict=False):
        table = rows.where("transformer", layers=layers, first=0)
        _quartiles(whole, table, "hidden", color, f"{layers} of {4 * layers} layers")
    finish(whole, "Error of whole transformers", yscale="log", xlabel="width of keys and of hidden layers")
    whole.legend()
    return drawing


def _quartiles(axes: Axes, table: DataFrame, place: str, color: str, label: str) -> None:
    low, middle, high = (table.groupby(place).error.quantile(share) for share in (0.25, 0.5, 0.75))
    axes.errorbar(middle.index, middle, (middle - low, high - middle), fmt="o-", color=color, label=label)


@result_table(
    "Subsets of products near a number",
    "Lemma 2.2.2",
    rows_are="products",
    note="the worst of five numbers on (-1, 1); mean over draws ± one standard deviation, and median",
)
def _numbers_table(rows: Rows) -> Cells:
    return {
        str(count): {"worst error": number_error(count), "median": float(number_error(count)(rows).median())}
        for count in rows.config["counts"]
    }


@result_table(
    "Networks pruned to a matrix",
    "Lemma 2.2.2, Theorem 2.2.3",
    rows_are="matrix",
    note="error for inputs of length 1; hidden units for each input and side of zero; means over draws ± one "
    "standard deviation",
)
def _matrix_table(rows: Rows) -> Cells:
    return {
        f"{size} x {size}": {f"{units} units": matrix_error(size, units) for units in rows.config["units"]}
        for size in rows.config["sizes"]
    }


@result_table(
    "Random transformers pruned to given ones",
    "Theorem 2.2.3, Corollary 2.2.3",
    rows_are="transformer",
    note="targets of width 2; the largest distance of answers, over the largest input vector, of 50 sequences of 8 "
    "positions; beside it how far apart two such targets are (median)",
)
def _transformer_table(rows: Rows) -> Cells:
    return {
        f"{layers} of {4 * layers} layers, width {hidden}": {
            "error": transformer_error(layers, hidden),
            "median": float(own.error.median()),
            "targets apart": float(own.targets_apart.median()),
        }
        for layers, hidden in product(rows.config["layers"], rows.config["hidden"])
        for own in [rows.where("transformer", layers=layers, hidden=hidden)]
    }


FIGURES = (_draw,)
TABLES = (_numbers_table, _matrix_table, _transformer_table)
