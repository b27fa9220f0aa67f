"""Figures and tables of the study."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.display.figures import COLORS, GOOD, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, Statistic, curves, figure, finish, result_table
from trialogue_lab.studies.memorization_train import statistics
from trialogue_lab.studies.memorization_train.measure import DEEP, PER_HEAD
from trialogue_lab.studies.memorization_train.published import EXPERIMENTS
from trialogue_lab.studies.memorization_train.statistics import REACHED, SHAPE

_HEADS = "number of heads H"


def _draw_accuracies(
    axes: Axes, table: DataFrame, against: str, by: str, title: str, xlabel: str, label: str = "{}"
) -> None:
    """Draw one curve of accuracies per value of the column `by`, with bounds."""
    curves(axes, table, against, "accuracy", by, label=label)
    bounds = table[table.form == PER_HEAD].groupby(against)[["bound", "previous"]].max()
    axes.plot(bounds.index, bounds.bound, "-", color=GOOD, label="lower bound")
    axes.plot(bounds.index, bounds.previous, "--", color=GOOD, lw=1, label="previous bound")
    axes.axhline(1 / table.vocab_size.iloc[0], color=QUIET, ls=":", lw=1, label="chance")
    size = f"N = {table.vocab_size.iloc[0]}"
    finish(axes, f"{title}, {size}", legend="upper left", xlabel=xlabel, ylabel="accuracy", ylim=(0, 1.04))


def _draw_published(axes: Axes, rows: Rows, experiment: str, against: str, by: str) -> None:
    """Draw published accuracies as diamonds in the colors of the curves."""
    points = statistics.join_published(rows, experiment)
    points = points.groupby([*SHAPE, "published"])[["accuracy", "parameters"]].mean().reset_index()
    values = sorted(statistics.select_trainings(rows, experiment)[by].unique())
    for color, value in zip(COLORS, values, strict=False):
        own = points[points[by] == value]
        sizes = np.where(own.accuracy.isna(), 12, 42)
        faces = np.where(own.accuracy >= own.published - REACHED, color, "white")
        axes.scatter(own[against], own.published, sizes, faces, marker="D", edgecolors=color, zorder=3)


@figure(
    "scaling",
    "Accuracy on all pairs of tokens after training. Curves show means over seeds, and bars show one standard "
    f"deviation. Diamonds are published accuracies: filled if ours is at most {REACHED} lower, small if the network "
    "was not trained. Left: heads as wide as the embedding. The bounds are for the largest d. Middle "
    "and right: networks with per-head values (equation 1), and networks whose heads share a map. The published "
    "networks share a map if d and d_h differ.",
)
def _scaling_figure(rows: Rows) -> Drawing:
    drawing, axes = panels(3, width=4.3, height=3.9)
    for one, experiment, against, by, title, xlabel, label in (
        (axes[0], "heads", "heads", "width", "Experiment 1: d = d$_h$", _HEADS, "d = {}"),
        (axes[1], "head-width", "head_width", "form", "Experiment 2: d = 10", "head width d$_h$", "{}"),
        (axes[2], "width", "width", "form", "Experiment 3: d$_h$ = 10", "embedding width d", "{}"),
    ):
        table = statistics.select_trainings(rows, experiment)
        _draw_accuracies(one, table, against, by, title, xlabel, label)
        _draw_published(one, rows, experiment, against, by)
    return drawing


@figure(
    "parameters",
    "Left: networks of heads alone, and networks of one head and an MLP of as many parameters. Right: two dimensions. "
    "Diamonds are published accuracies, as in the other figure.",
)
def _parameters_figure(rows: Rows) -> Drawing:
    drawing, axes = panels(2, width=4.3, height=3.9)
    for one, experiment, against, title, xlabel in (
        (axes[0], "mlp", "parameters", "Experiment 5: d = d$_h$ = 10", "number of parameters"),
        (axes[1], "two-dimensions", "heads", "Experiment 6: d = d$_h$ = 2", _HEADS),
    ):
        _draw_accuracies(one, statistics.select_trainings(rows, experiment), against, "form", title, xlabel)
        _draw_published(one, rows, experiment, against, "form")
    return drawing


@figure(
    "size",
    "Left: more tokens and wider embeddings. Right: several layers, compared with one layer of as many heads.",
)
def _size_figure(rows: Rows) -> Drawing:
    drawing, (large, deep) = panels(2, width=4.6, height=3.6)
    table = statistics.select_trainings(rows, "large")
    _draw_accuracies(large, table, "heads", "width", "More tokens: d = d$_h$", _HEADS, "trained, d = {}")
    table = statistics.select_trainings(rows, "deep")
    table = table.assign(heads=table.heads * table.layers)
    title = f"Depth: d = d$_h$ = {table.width.iloc[0]}"
    _draw_accuracies(deep, table, "heads", "layers", title, "number of heads in all layers", "layers: {}")
    return drawing


@result_table(
    "Trained and published accuracies",
    "Experiments 1 to 3, 5 and 6",
    row_heading="network",
    note=f"Means over trainings, ± one standard deviation. Reached: our accuracy is at most {REACHED} lower. For a "
    "network with an MLP, H is the number of heads of the network of heads alone that has as many parameters.",
)
def _published_table(rows: Rows) -> Cells:
    cells: dict[str, dict[str, Any]] = {}
    for experiment, (title, _) in EXPERIMENTS.items():
        points = statistics.join_published(rows, experiment).dropna(subset="accuracy")
        for (form, width, head_width, heads), own in points.groupby(SHAPE, sort=False):
            published = own.published.iloc[0]
            cells[f"{title}: d {width}, d_h {head_width}, H {heads}, {form}"] = {
                "published": published,
                "trained": own.accuracy,
                "reached": "yes" if own.accuracy.mean() >= published - REACHED else "no",
                "lower bound": own.bound.iloc[0] if form == PER_HEAD else None,
                "previous bound": own.previous.iloc[0] if form == PER_HEAD else None,
            }
    return cells


@result_table(
    "Associations stored per head",
    "Experiments 1, 4 and 6, appendix B",
    row_heading="networks",
    note="Slope of the accuracy in the number of heads, times the number of contexts, for accuracies up to 0.95. For "
    "several layers, the number of heads is per layer.",
)
def _slopes_table(rows: Rows) -> Cells:
    cells: dict[str, dict[str, Statistic]] = {}
    for name in ("two-dimensions", "heads", "mlp", "large", "deep"):
        form = DEEP if name == "deep" else PER_HEAD
        table = statistics.select_trainings(rows, name)
        for width in sorted(table.width.unique().tolist()):
            slope = statistics.slope(name, width, form)
            cells[f"{name}: N {table.vocab_size.iloc[0]}, d = d_h = {width}"] = {
                "associations per head": slope,
                "divided by d_h d": slope * (1 / width**2),
                "explained variance": statistics.straightness(name, width, form),
            }
    return cells


FIGURES = (_scaling_figure, _parameters_figure, _size_figure)
TABLES = (_published_table, _slopes_table)
