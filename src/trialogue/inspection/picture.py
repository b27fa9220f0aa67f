"""Figures of an inspection: curves of several models, and numbers over the steps of a training run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trialogue.display.figures import COLORS, QUIET, panels
from trialogue.inspection.measures.quantities import Point, Quantity

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

_STYLES = ("-", "--", "-.", ":")
_PANELS_PER_ROW = 2
_MAX_SHARED = 2
"""Maximum number of quantities in a panel that shows several models."""


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


def has_curves(lines: Sequence[Series]) -> bool:
    """Return whether at least one of the quantities is a curve, which means that it has a horizontal axis.

    Args:
        lines: Results of one measure, one series per model.
    """
    return any(quantity.along for line in lines for quantity in line.quantities)


def draw_curves(lines: Sequence[Series], logarithmic: bool) -> matplotlib.figure.Figure:
    """Draw all quantities that are curves.

    Quantities with the same horizontal axis and unit share a panel. Colours distinguish quantities, and line
    styles distinguish models. If a panel would have more than two quantities, each model is drawn in a separate
    panel.

    Args:
        lines: Results of one measure, one series per model.
        logarithmic: Whether the horizontal axis is logarithmic.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        for one in line.quantities:
            if one.along and one.name not in groups.setdefault((one.along, one.unit), []):
                groups[one.along, one.unit].append(one.name)
    panels_to_draw = [
        (group, shown)
        for group, names in groups.items()
        for shown in ([[line] for line in lines] if len(names) > _MAX_SHARED else [list(lines)])
    ]
    figure, axes = _panels(len(panels_to_draw))
    for panel, ((along, unit), shown) in zip(axes, panels_to_draw, strict=False):
        names = groups[along, unit]
        positions: set[float] = set()
        for stroke, line in enumerate(shown):
            curves = {one.name: one for one in line.quantities if (one.along, one.unit) == (along, unit)}
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
        panel.set_xlabel(along)
        single = names[0] if len(names) == 1 else ""
        panel.set_ylabel(f"{single} ({unit})" if single and unit else single or unit)
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18))
    return figure


def draw_steps(
    steps: Sequence[int],
    series: Sequence[Series],
    control: Sequence[Series],
) -> matplotlib.figure.Figure:
    """Draw the results of a measure over the steps of a training run.

    A curve is represented by its last point. Dotted lines show the values for random weights.

    Args:
        steps: Training steps of the checkpoints.
        series: Results of the measure, one series per checkpoint.
        control: Results for random weights. Empty if there are none.
    """
    numbers: dict[tuple[str, str], dict[int, Point]] = {}
    for step, checkpoint in zip(steps, series, strict=True):
        for quantity in checkpoint.quantities:
            numbers.setdefault((quantity.unit, _last_label(quantity)), {})[step] = quantity.points[-1]
    control_values = {_last_label(one): one.points[-1].value for line in control for one in line.quantities}
    units = list(dict.fromkeys(unit for unit, _ in numbers))
    figure, axes = _panels(len(units))
    for panel, unit in zip(axes, units, strict=False):
        names = [name for other, name in numbers if other == unit]
        for number, name in enumerate(names):
            color = COLORS[number % len(COLORS)]
            points = [Point(p.value, p.low, p.high, step) for step, p in numbers[unit, name].items()]
            _curve(panel, points, "-", color, name, False)
            if name in control_values:
                panel.axhline(control_values[name], color=color, lw=0.8, ls=":")
        panel.set_xlabel("step")
        panel.set_ylabel(unit)
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18))
    return figure


def _last_label(quantity: Quantity) -> str:
    return quantity.point_label(quantity.points[-1])


def _panels(number: int) -> tuple[matplotlib.figure.Figure, list[Axes]]:
    columns = min(number, _PANELS_PER_ROW)
    rows = -(-number // columns)
    figure, axes = panels(columns, rows, width=4.8, height=4.2)
    for panel in axes[number:]:
        panel.axis("off")
    return figure, axes


def _curve(axes: Axes, points: Sequence[Point], style: str, color: str, label: str, quiet: bool) -> None:
    at = [float(point.at or 0) for point in points]
    values = np.array([point.value for point in points])
    axes.plot(at, values, f"o{style}", color=color, label=label, alpha=0.5 if quiet else 1.0, ms=3.5)
    low, high = np.array([(point.low, point.high) for point in points], dtype=float).T
    # Points without an interval are NaN here, which leaves a gap in the band.
    if np.isfinite(low).any():
        axes.fill_between(at, low, high, color=color, alpha=0.08 if quiet else 0.15, lw=0)
