"""Figures and tables of the study."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, NoRows, Rows, figure, result_table, spread
from trialogue_lab.studies.memorization_train import statistics
from trialogue_lab.studies.memorization_train.measure import DEEP, MLP, PER_HEAD, SHARED
from trialogue_lab.studies.memorization_train.published import EXPERIMENTS, POINTS, Point
from trialogue_lab.studies.memorization_train.statistics import REACHED

_FORMS = {PER_HEAD: (OURS, "o-"), SHARED: (BAD, "s-"), MLP: (BAD, "s-"), DEEP: (BAD, "s-")}


def _values(table: DataFrame, column: str) -> list[int]:
    return sorted(map(int, table[column].unique()))


def _sizes(table: DataFrame) -> str:
    return f"N = {table.vocab_size.iloc[0]}, d = d$_h$ = {table.width.iloc[0]}"


def _curve(axes: Axes, rows: Rows, table: DataFrame, against: str, fmt: str, color: str, label: str) -> None:
    """Accuracies against a column: means over seeds, and deviations."""
    places = _values(table, against)
    cells = [table[table[against] == place].set_index("seed").accuracy for place in places]
    spread(axes, places, cells, rows, fmt, color=color, label=label)


def _printed(
    axes: Axes, points: list[Point], places: list[float], ours: dict[Point, float], color: str
) -> None:
    """Accuracies in print: filled where ours are at most `REACHED` below, hollow where not, small where none was."""
    for point, place in zip(points, places, strict=True):
        found = ours.get(point)
        reached = found is not None and found >= point.accuracy - REACHED
        size = 3.5 if found is None else 6.5
        axes.plot(place, point.accuracy, "D", ms=size, mfc=color if reached else "white", mec=color, zorder=3)


def _finish(
    axes: Axes, table: DataFrame, against: str, title: str, xlabel: str, marks: str = "", legend: bool = True
) -> None:
    """The bounds of networks with per-head values, chance, and what marks of accuracies in print say."""
    own = table[table.form == PER_HEAD].groupby(against)[["bound", "previous"]].max()
    axes.plot(own.index, own.bound, "-", color=GOOD, label="lower bound")
    axes.plot(own.index, own.previous, "--", color=GOOD, lw=1, label="previous bound")
    axes.axhline(1 / table.vocab_size.iloc[0], color=QUIET, ls=":", lw=1, label="chance")
    axes.set(xlabel=xlabel, ylim=(0, 1.04), title=title)
    if marks:
        for face, label in ((marks, "in print, reached"), ("white", "in print, not reached")):
            axes.plot([], [], "D", ms=6.5, mfc=face, mec=marks, ls="", label=label)
    if legend:
        axes.legend(loc="upper left", fontsize=7 if marks else None)


def _found(rows: Rows, experiment: str) -> dict[Point, float]:
    """The mean of our accuracies for each published network that was trained."""
    try:
        table = statistics.beside_published(rows, experiment)
    except NoRows:
        return {}
    means = table.groupby(["form", "width", "head_width", "heads"]).accuracy.mean()
    return {point: float(means[point[:4]]) for point in POINTS[experiment] if point[:4] in means.index}


@figure(
    "scaling",
    "Accuracy on all pairs of 50 tokens after training, means and deviations over seeds, beside those in "
    f"print: diamonds, filled where ours are at most {REACHED} below, small where the network was not trained. "
    "Left: the bounds are those of d = 10. Middle and right: in print heads share a map where d and d_h differ.",
)
def _scaling_figure(rows: Rows) -> Drawing:
    drawing, (heads, head_width, width) = panels(3, width=4.3, height=3.9)
    table = statistics.trained(rows, "heads")
    found = _found(rows, "heads")
    for each, color in zip(_values(table, "width"), (COLORS[4], OURS, COLORS[6], COLORS[7]), strict=False):
        _curve(heads, rows, table[table.width == each], "heads", "o-", color, f"trained, d = {each}")
        points = [point for point in POINTS["heads"] if point.width == each]
        _printed(heads, points, [point.heads for point in points], found, color)
    middle = table[table.width == _values(table, "width")[1]]
    _finish(heads, middle, "heads", "Experiment 1: against heads, d = d$_h$", "heads H", QUIET)
    heads.set_ylabel("accuracy")
    both = (
        (head_width, "head-width", "head_width", "Experiment 2: d = 10", "width of heads d$_h$"),
        (width, "width", "width", "Experiment 3: d$_h$ = 10", "width of the embedding d"),
    )
    for axes, experiment, against, title, xlabel in both:
        table = _with_both(rows, experiment)
        for form, label in ((PER_HEAD, "per-head values (equation 1)"), (SHARED, "a map that heads share")):
            color, style = _FORMS[form]
            _curve(axes, rows, table[table.form == form], against, style, color, label)
        for point in POINTS[experiment]:
            color = _FORMS[point.form][0]
            _printed(axes, [point], [getattr(point, against)], _found(rows, experiment), color)
        title = f"{title}, H = {table.heads.iloc[0]}"
        _finish(axes, table, against, title, xlabel, QUIET, legend=axes is head_width)
    return drawing


def _with_both(rows: Rows, experiment: str) -> DataFrame:
    """The networks of an experiment; of `width`, the one too whose widths are equal, which `head-width` has."""
    table = statistics.trained(rows, experiment)
    if experiment != "width":
        return table
    equal = statistics.trained(rows, "head-width").query("head_width == width")
    return DataFrame([*table.to_dict("records"), *equal.to_dict("records")])


@figure(
    "parameters",
    "Left: heads alone beside one head and an MLP of as many parameters. Middle: d = 2. Right: how "
    "many associations a head more holds, where heads are as wide as the embedding.",
)
def _parameters_figure(rows: Rows) -> Drawing:
    drawing, (mlp, small, sizes) = panels(3, width=4.3, height=3.9)
    table = statistics.trained(rows, "mlp")
    found = _found(rows, "mlp")
    start = table[table.heads == table.heads.min()]
    counts = table.groupby("heads").parameters.first()
    for form, label in ((PER_HEAD, "heads alone"), (MLP, "one head and an MLP")):
        color, style = _FORMS[form]
        own = table[(table.form == form) | table.index.isin(start.index)]
        _curve(mlp, rows, own, "parameters", style, color, label)
        points = [point for point in POINTS["mlp"] if point.form == form and point.heads in counts.index]
        _printed(mlp, points, [counts[point.heads] for point in points], found, color)
    _finish(mlp, table, "parameters", f"Experiment 5: {_sizes(table)}", "parameters", QUIET)
    mlp.set_ylabel("accuracy")
    table = statistics.trained(rows, "two-dimensions")
    _curve(small, rows, table, "heads", "o-", OURS, "trained")
    points = list(POINTS["two-dimensions"])
    _printed(small, points, [point.heads for point in points], _found(rows, "two-dimensions"), OURS)
    _finish(small, table, "heads", f"Experiment 6: {_sizes(table)}", "heads H", OURS)
    _draw_slopes(sizes, rows)
    return drawing


def _draw_slopes(axes: Axes, rows: Rows) -> None:
    """Associations that a head more holds, against d = d_h, beside d_h of the bound and the published range."""
    widths, reference = np.array([2.0, 30.0]), list[float]()
    for experiment, marker, color in (
        ("two-dimensions", "^", COLORS[4]),
        ("heads", "o", OURS),
        ("mlp", "s", COLORS[6]),
        ("large", "v", COLORS[7]),
    ):
        table = statistics.trained(rows, experiment, PER_HEAD)
        found = {width: statistics.slope(experiment, width)(rows) for width in _values(table, "width")}
        found = {width: slopes for width, slopes in found.items() if len(slopes)}
        label = f"N = {table.vocab_size.iloc[0]}"
        spread(axes, list(found), found.values(), rows, marker, color=color, label=label)
        reference += [float(slopes.mean()) / width**2 for width, slopes in found.items()]
    middle = float(np.exp(np.mean(np.log(np.maximum(reference, 1e-3))))) if reference else 1.0
    axes.plot(widths, middle * widths**2, "-", color=QUIET, lw=1, label=f"{middle:.2f} d$_h$ d")
    axes.plot(widths, widths, "-", color=GOOD, label="lower bound: d$_h$")
    axes.set(xscale="log", yscale="log", xlabel="d = d$_h$")
    axes.set_xticks([2, 5, 10, 20], ["2", "5", "10", "20"])
    axes.minorticks_off()
    axes.set_title("Experiment 4: associations that a head adds")
    axes.legend(loc="upper left", fontsize=7)


@figure("size", "Left: more tokens and wider embeddings. Right: heads in three layers beside as many in one.")
def _size_figure(rows: Rows) -> Drawing:
    drawing, (large, deep) = panels(2, width=4.6, height=3.6)
    table = statistics.trained(rows, "large")
    for width, color in zip(_values(table, "width"), (OURS, COLORS[4], COLORS[6]), strict=False):
        _curve(large, rows, table[table.width == width], "heads", "o-", color, f"trained, d = {width}")
    _finish(large, table, "heads", f"More tokens: N = {table.vocab_size.iloc[0]}, d = d$_h$", "heads H")
    large.set_ylabel("accuracy")
    table = statistics.trained(rows, "deep")
    layers = int(table.layers.max())
    total = table.assign(heads=table.heads * table.layers)
    for form, label in ((PER_HEAD, "one layer"), (DEEP, f"{layers} layers")):
        color, style = _FORMS[form]
        _curve(deep, rows, total[total.form == form], "heads", style, color, label)
    _finish(deep, total, "heads", f"Layers: {_sizes(table)}", "heads in all layers")
    return drawing


@result_table(
    "Accuracies beside those in print",
    "Experiments 1 to 3, 5 and 6",
    rows_are="network",
    note=f"means over trainings, ± one standard deviation; reached: ours is at most {REACHED} below. H of a "
    "network with an MLP is that of attention at equal parameters",
)
def _beside_table(rows: Rows) -> Cells:
    """Published networks that were trained: our accuracy, theirs, the bounds, and whether theirs is reached."""
    cells: dict[str, dict[str, Any]] = {}
    for experiment, (title, _) in EXPERIMENTS.items():
        for point, mean in _found(rows, experiment).items():
            sizes = {name: getattr(point, name) for name in ("width", "head_width", "heads")}
            table = statistics.trained(rows, experiment, point.form, **sizes)
            bounded = point.form == PER_HEAD
            cells[f"{title}: d {point.width}, d_h {point.head_width}, H {point.heads}, {point.form}"] = {
                "in print": point.accuracy,
                "trained": table.set_index("seed").accuracy,
                "reached": "yes" if mean >= point.accuracy - REACHED else "no",
                "lower bound": float(table.bound.iloc[0]) if bounded else None,
                "previous bound": float(table.previous.iloc[0]) if bounded else None,
            }
    return cells


@result_table(
    "What a head more holds",
    "Experiments 1, 4 and 6, appendix B",
    rows_are="networks",
    note="slope of accuracy in heads times the number of contexts, up to accuracies of 0.95; of three layers heads "
    "are those of each",
)
def _line_table(rows: Rows) -> Cells:
    return {
        f"{name}: N {table.vocab_size.iloc[0]}, d = d_h = {width}": {
            "associations a head": statistics.slope(name, width, form),
            "over d_h d": statistics.slope(name, width, form) * (1 / width**2),
            "explained by a line": statistics.straightness(name, width, form),
        }
        for name in ("two-dimensions", "heads", "mlp", "large", "deep")
        for form, table in ((DEEP if name == "deep" else PER_HEAD, statistics.trained(rows, name)),)
        for width in _values(table, "width")
    }


FIGURES = (_scaling_figure, _parameters_figure, _size_figure)
TABLES = (_beside_table, _line_table)
