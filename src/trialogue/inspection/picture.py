"""Figures of an inspection: curves of several models, and numbers over the steps of a training run."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trialogue.display.figures import COLORS, QUIET, panels
from trialogue.inspection.measures.quantities import Point, Quantity

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 3.7, 3.2
"""Size of the axes of a figure in inches. Labels of lines are written to the right of the axes."""
_MAX_SHARED = 2
"""Maximum number of quantities for which several models are compared in one figure per quantity."""
_LABEL_WIDTH = 16
"""Maximum number of characters per line of a label."""
_LINE_HEIGHT = 0.058
"""Height of a line of a label, relative to the height of the axes."""


class Series(NamedTuple):
    """Results of one measure for one model.

    Attributes:
        name: Name of the model.
        quantities: The results.
        quiet: Whether the results are a control, which is drawn in grey.
    """

    name: str
    quantities: Sequence[Quantity]
    quiet: bool = False


def curve_figures(lines: Sequence[Series], logarithmic: bool) -> list[Callable[[], matplotlib.figure.Figure]]:
    """Return functions that draw all quantities that are curves.

    If at most two quantities have the same horizontal axis and unit, each has a figure with one line per model.
    Otherwise, each model has a figure with one line per quantity.

    Args:
        lines: Results of one measure, one series per model.
        logarithmic: Whether the horizontal axis is logarithmic.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        for one in line.quantities:
            if one.along and one.name not in groups.setdefault((one.along, one.unit), []):
                groups[one.along, one.unit].append(one.name)
    exacts = {
        group: {one.exact for line in lines for one in line.quantities if (one.along, one.unit) == group}
        for group in groups
    }
    exact = {group: found.pop() if len(found) == 1 else None for group, found in exacts.items()}
    named = Counter(name for names in groups.values() for name in names)
    drawings: list[Callable[[], matplotlib.figure.Figure]] = []
    for group, names in groups.items():
        curves = {
            (line.name, one.name): _Line(one.points, line.quiet)
            for line in lines
            for one in line.quantities
            if (one.along, one.unit) == group
        }
        models = [line.name for line in lines]
        if len(names) > _MAX_SHARED:
            shared, labels = _split_names(names)
            figures = [
                (
                    ": ".join([model, shared] if shared else [model]),
                    {label: curves.get((model, name)) for label, name in zip(labels, names, strict=True)},
                )
                for model in models
            ]
        else:
            figures = [
                (
                    name if named[name] == 1 else f"{name}, by {group[0]}",
                    {model: curves.get((model, name)) for model in models},
                )
                for name in names
            ]
        drawings += [
            partial(
                _draw,
                title,
                {label: one for label, one in shown.items() if one},
                group,
                logarithmic,
                exact[group],
            )
            for title, shown in figures
            if any(shown.values())
        ]
    return drawings


def _split_names(names: Sequence[str]) -> tuple[str, list[str]]:
    """Split names at commas, and return the parts that all names share at their ends, and the names without them."""
    parts = [name.split(", ") for name in names]
    most = min(map(len, parts)) - 1
    before = next((k for k in range(most) if len({one[k] for one in parts}) > 1), most)
    after = next((k for k in range(most - before) if len({one[-1 - k] for one in parts}) > 1), most - before)
    first = parts[0]
    shared = ", ".join([*first[:before], *first[len(first) - after :]])
    return shared, [", ".join(one[before : len(one) - after]) for one in parts]


class _Line(NamedTuple):
    """Line of a figure. A quiet line is grey."""

    points: Sequence[Point]
    quiet: bool = False


def _draw(
    title: str,
    lines: Mapping[str, _Line],
    axes: tuple[str, str],
    logarithmic: bool = False,
    exact: float | None = None,
) -> matplotlib.figure.Figure:
    """Draw lines in one figure, each with its label at the right end in the same colour.

    Args:
        title: Title of the figure.
        lines: The lines by label.
        axes: Label of the horizontal axis, and unit of the values.
        logarithmic: Whether the horizontal axis is logarithmic.
        exact: Value of a perfect model, drawn as a dotted line. None if it is unknown.
    """
    figure, [panel] = panels(width=_WIDTH, height=_HEIGHT)
    colors = iter(COLORS * len(lines))
    ends = []
    for label, line in lines.items():
        color = QUIET if line.quiet else next(colors)
        _curve(panel, line.points, color)
        ends.append((label, color, line.points[-1].value))
    if exact is not None:
        panel.axhline(exact, color=QUIET, linestyle=":", linewidth=1)
    if logarithmic:
        panel.set_xscale("log", base=2)
        positions = sorted({float(point.at or 0) for line in lines.values() for point in line.points})
        panel.set_xticks(positions, [f"{position:g}" for position in positions])
        panel.set_xticks([], minor=True)
    panel.set_title("\n".join(textwrap.wrap(title, 38)))
    panel.set_xlabel(axes[0])
    panel.set_ylabel(axes[1])
    _label_ends(panel, ends)
    return figure


def _label_ends(panel: Axes, ends: Sequence[tuple[str, str, float]]) -> None:
    """Write labels to the right of the axes, at the heights of the last points, moved so that they do not overlap."""
    panel.set_ylim(*panel.get_ylim())
    bottom, top = panel.get_ylim()
    below = -math.inf
    labels = []
    for label, color, value in sorted(ends, key=lambda end: end[2]):
        wrapped = textwrap.wrap(label, _LABEL_WIDTH) or [""]
        half = _LINE_HEIGHT * len(wrapped) / 2
        height = max((value - bottom) / (top - bottom), below + half)
        below = height + half + _LINE_HEIGHT / 4
        labels.append((wrapped, color, height))
    for wrapped, color, height in labels:
        panel.annotate(
            "\n".join(wrapped),
            (1.03, height - max(0.0, below - 1)),
            xycoords="axes fraction",
            va="center",
            color=color,
            annotation_clip=False,
        )


def step_figure(
    steps: Sequence[int], found: Sequence[Quantity], control: Quantity | None
) -> Callable[[], matplotlib.figure.Figure]:
    """Return a function that draws a quantity over the steps of a training run. A curve counts by its last point.

    Args:
        steps: Training steps of the checkpoints.
        found: The quantity at each step.
        control: The quantity for random weights, drawn as a grey line. None if it was not measured.
    """

    def at(quantity: Quantity, step: int) -> Point:
        return replace(quantity.points[-1], at=step)

    lines = {"training": _Line([at(one, step) for step, one in zip(steps, found, strict=True)])}
    if control is not None:
        lines["random weights"] = _Line([at(control, step) for step in (steps[0], steps[-1])], quiet=True)
    label = found[0].point_label(found[0].points[-1])
    return partial(_draw, label, lines, ("step", found[0].unit), exact=found[0].exact)


def _curve(axes: Axes, points: Sequence[Point], color: str) -> None:
    at = [float(point.at or 0) for point in points]
    axes.plot(at, [point.value for point in points], "o-", color=color, ms=3.5)
    low, high = np.array([(point.low, point.high) for point in points], dtype=float).T
    # Points without an interval are NaN here, which leaves a gap in the band.
    if np.isfinite(low).any():
        axes.fill_between(at, low, high, color=color, alpha=0.15, lw=0)
