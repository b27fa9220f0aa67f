"""Figures of an inspection: curves of several models, and numbers over the steps of a training run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trialogue.display.figures import COLORS, QUIET, panels
from trialogue.inspection.measures.quantities import Point, Quantity

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

_STYLES = ("-", "--", "-.", ":")
_WIDTH, _HEIGHT = 4.8, 4.2
"""Size of a figure in inches."""
_MAX_SHARED = 2
"""Maximum number of quantities in a figure that shows several models."""


class Series(NamedTuple):
    """Results of one measure for one model.

    Attributes:
        name: Name of the model.
        quantities: The results.
        quiet: Whether the results are a control, which is drawn in grey or with more transparency.
    """

    name: str
    quantities: Sequence[Quantity]
    quiet: bool = False


def curve_figures(lines: Sequence[Series], logarithmic: bool) -> list[Callable[[], matplotlib.figure.Figure]]:
    """Return functions that draw all quantities that are curves, one figure each.

    Quantities with the same horizontal axis and unit share a figure. Colours distinguish quantities, and line
    styles distinguish models. If a figure would have more than two quantities, each model is drawn in a separate
    figure.

    Args:
        lines: Results of one measure, one series per model.
        logarithmic: Whether the horizontal axis is logarithmic.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        for one in line.quantities:
            if one.along and one.name not in groups.setdefault((one.along, one.unit), []):
                groups[one.along, one.unit].append(one.name)
    return [
        partial(_draw_curves, group, names, shown, logarithmic)
        for group, names in groups.items()
        for shown in ([[line] for line in lines] if len(names) > _MAX_SHARED else [list(lines)])
    ]


def _draw_curves(
    group: tuple[str, str], names: Sequence[str], shown: Sequence[Series], logarithmic: bool
) -> matplotlib.figure.Figure:
    """Draw curves of one or more models in a figure. All curves share the horizontal axis and the unit.

    Args:
        group: Name of the horizontal axis, and unit of the values. Curves with another axis or unit are left out.
        names: Names of the quantities to draw. Each has its own colour.
        shown: Results of the models to draw. Each model has its own line style.
        logarithmic: Whether the horizontal axis is logarithmic.
    """
    figure, [panel] = panels(width=_WIDTH, height=_HEIGHT)
    positions: set[float] = set()
    for stroke, line in enumerate(shown):
        curves = {one.name: one for one in line.quantities if (one.along, one.unit) == group}
        for number, name in enumerate(names):
            if name not in curves:
                continue
            color = QUIET if line.quiet and len(names) == 1 else COLORS[number % len(COLORS)]
            label = name if len(shown) == 1 else line.name if len(names) == 1 else f"{name}: {line.name}"
            _curve(panel, curves[name].points, _STYLES[stroke % len(_STYLES)], color, label, line.quiet)
            positions |= {float(point.at or 0) for point in curves[name].points}
    if len(names) > _MAX_SHARED:
        panel.set_title(shown[0].name)
    if logarithmic:
        panel.set_xscale("log", base=2)
    panel.set_xticks(sorted(positions), [f"{position:g}" for position in sorted(positions)])
    panel.set_xticks([], minor=True)
    along, unit = group
    panel.set_xlabel(along)
    single = names[0] if len(names) == 1 else ""
    panel.set_ylabel(f"{single} ({unit})" if single and unit else single or unit)
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18))
    return figure


def step_figures(
    steps: Sequence[int],
    series: Sequence[Series],
    control: Sequence[Series],
) -> list[Callable[[], matplotlib.figure.Figure]]:
    """Return functions that draw the results of a measure over the steps of a training run, one figure per unit.

    A curve is represented by its last point. Dotted lines show the values for random weights.

    Args:
        steps: Training steps of the checkpoints.
        series: Results of the measure, one series per checkpoint.
        control: Results for random weights. Empty if there are none.
    """
    units: dict[str, dict[str, list[Point]]] = {}
    for step, checkpoint in zip(steps, series, strict=True):
        for quantity in checkpoint.quantities:
            last = quantity.points[-1]
            points = units.setdefault(quantity.unit, {}).setdefault(_last_label(quantity), [])
            points.append(Point(last.value, last.low, last.high, step))
    control_values = {_last_label(one): one.points[-1].value for line in control for one in line.quantities}
    return [partial(_draw_steps, unit, numbers, control_values) for unit, numbers in units.items()]


def _draw_steps(
    unit: str, numbers: Mapping[str, Sequence[Point]], control_values: Mapping[str, float]
) -> matplotlib.figure.Figure:
    """Draw the numbers of one unit over the steps of a training run."""
    figure, [panel] = panels(width=_WIDTH, height=_HEIGHT)
    for number, (name, points) in enumerate(numbers.items()):
        color = COLORS[number % len(COLORS)]
        _curve(panel, points, "-", color, name, False)
        if name in control_values:
            panel.axhline(control_values[name], color=color, lw=0.8, ls=":")
    panel.set_xlabel("step")
    panel.set_ylabel(unit)
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18))
    return figure


def _last_label(quantity: Quantity) -> str:
    return quantity.point_label(quantity.points[-1])


def _curve(axes: Axes, points: Sequence[Point], style: str, color: str, label: str, quiet: bool) -> None:
    at = [float(point.at or 0) for point in points]
    values = np.array([point.value for point in points])
    axes.plot(at, values, f"o{style}", color=color, label=label, alpha=0.5 if quiet else 1.0, ms=3.5)
    low, high = np.array([(point.low, point.high) for point in points], dtype=float).T
    # Points without an interval are NaN here, which leaves a gap in the band.
    if np.isfinite(low).any():
        axes.fill_between(at, low, high, color=color, alpha=0.08 if quiet else 0.15, lw=0)
