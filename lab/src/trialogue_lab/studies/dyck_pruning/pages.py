"""Figure and tables of the study."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.display.figures import COLORS, panels
from trialogue_lab.ledger import Cells, Figure, ResultTable, Rows
from trialogue_lab.ledger.claims.statistics import Statistic
from trialogue_lab.studies.dyck_pruning.statistics import matrix_error, number_error, transformer_error


def _draw(rows: Rows) -> Drawing:
    drawing, (numbers, networks, whole) = panels(3, width=4.2, height=3.4)
    _quartiles(numbers, rows["number"], "count", COLORS[0], "a number")
    _quartiles(numbers, rows["scores"], "units", COLORS[2], "scores, 2 x 2")
    numbers.set(yscale="log", xlabel="products of random weights for each weight")
    numbers.set_title("Distance of the nearest subsets")
    numbers.legend()
    for size, color in zip(_different(rows, "size"), COLORS, strict=False):
        _quartiles(networks, rows.where("matrix", size=size), "units", color, f"{size} x {size}")
    _quartiles(networks, rows["layers"], "units", COLORS[5], "two layers, 2 x 2")
    networks.set(yscale="log", xlabel="hidden units for each input and side of zero")
    networks.set_title("Error of pruned ReLU networks, inputs of length 1")
    networks.legend()
    for layers, color in zip(sorted(rows["transformer"].layers.unique()), COLORS, strict=False):
        table = rows.where("transformer", layers=layers, first=0)
        _quartiles(whole, table, "hidden", color, f"{layers} of {4 * layers} layers")
    whole.set(yscale="log", xlabel="width of keys and of hidden layers")
    whole.set_title("Error of whole transformers")
    whole.legend()
    return drawing


def _quartiles(axes: Axes, table: DataFrame, place: str, color: str, label: str) -> None:
    errors = table.groupby(place).error
    low, middle, high = (errors.quantile(share) for share in (0.25, 0.5, 0.75))
    axes.errorbar(
        middle.index, middle, np.stack((middle - low, high - middle)), fmt="o-", color=color, label=label
    )


def _different(rows: Rows, column: str) -> Sequence[int]:
    return sorted(rows["matrix"][column].unique().tolist())


def _numbers_table(rows: Rows) -> Cells:
    counts = sorted(rows["number"]["count"].unique().tolist())
    return {
        str(count): {"worst error": number_error(count), "median": float(number_error(count)(rows).median())}
        for count in counts
    }


def _matrix_table(rows: Rows) -> Cells:
    return {
        f"{size} x {size}": {
            f"{units} units": matrix_error(size, units) for units in _different(rows, "units")
        }
        for size in _different(rows, "size")
    }


def _transformer_table(rows: Rows) -> Cells:
    table = rows["transformer"]
    widths = sorted(table.hidden.unique().tolist())
    cells: dict[str, dict[str, Statistic | float]] = {}
    for layers in sorted(table.layers.unique().tolist()):
        for hidden in widths:
            own = table[(table.layers == layers) & (table.hidden == hidden)]
            cells[f"{layers} of {4 * layers} layers, width {hidden}"] = {
                "error": transformer_error(layers, hidden),
                "median": float(own.error.median()),
                "targets apart": float(own.targets_apart.median()),
            }
    return cells


FIGURES = (
    Figure(
        name="pruning",
        caption="How near pruned random weights, uniform on (-1, 1), come to what is wanted: medians and quartiles "
        "over draws of networks and targets, the best subset for each weight.",
        draw=_draw,
    ),
)
TABLES = (
    ResultTable(
        title="Subsets of products near a number",
        source="Lemma 2.2.2",
        cells=_numbers_table,
        rows_are="products",
        note="the worst of five numbers on (-1, 1); mean over draws ± one standard deviation, and median",
    ),
    ResultTable(
        title="Networks pruned to a matrix",
        source="Lemma 2.2.2, Theorem 2.2.3",
        cells=_matrix_table,
        rows_are="matrix",
        note="error for inputs of length 1; hidden units for each input and side of zero; means over draws ± one "
        "standard deviation",
    ),
    ResultTable(
        title="Random transformers pruned to given ones",
        source="Theorem 2.2.3, Corollary 2.2.3",
        cells=_transformer_table,
        rows_are="transformer",
        note="targets of width 2; the largest distance of answers, over the largest input vector, of 50 sequences of 8 "
        "positions; beside it how far apart two such targets are (median)",
    ),
)
