"""Curves of models beside one another and beside random weights, and single numbers through a training."""

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
_ACROSS, _TOGETHER = 2, 2


class Series(NamedTuple):
    """The numbers of one model by its name, `quiet` where they are those of a control."""

    name: str
    quantities: Sequence[Quantity]
    quiet: bool = False


def has_curves(lines: Sequence[Series]) -> bool:
    """Whether there is anything to draw along something."""
    return any(quantity.along for line in lines for quantity in line.quantities)


def draw_curves(lines: Sequence[Series], logarithmic: bool) -> matplotlib.figure.Figure:
    """Panels for all curves along one thing in one unit: colours tell quantities apart, strokes models.

    Where there are more than two quantities, each model has a panel of its own.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        for one in line.quantities:
            if one.along and one.name not in groups.setdefault((one.along, one.unit), []):
                groups[one.along, one.unit].append(one.name)
    drawn = [
        (group, part)
        for group, names in groups.items()
        for part in ([[line] for line in lines] if len(names) > _TOGETHER else [list(lines)])
    ]
    drawing, axes = _panels(len(drawn))
    for panel, ((along, unit), shown) in zip(axes, drawn, strict=False):
        names = groups[along, unit]
        places: set[float] = set()
        for stroke, line in enumerate(shown):
            of = {one.name: one for one in line.quantities if (one.along, one.unit) == (along, unit)}
            for number, name in enumerate(names):
                if name not in of:
                    continue
                color = QUIET if line.quiet and len(names) == 1 else COLORS[number % len(COLORS)]
                label = name if len(shown) == 1 else line.name if len(names) == 1 else f"{name}: {line.name}"
                _curve(panel, of[name].points, _STYLES[stroke % len(_STYLES)], color, label, line.quiet)
                places |= {float(point.at or 0) for point in of[name].points}
        if len(names) > _TOGETHER:
            panel.set_title(shown[0].name)
        if logarithmic:
            panel.set_xscale("log", base=2)
        panel.set_xticks(sorted(places), [f"{place:g}" for place in sorted(places)])
        panel.set_xticks([], minor=True)
        panel.set_xlabel(along)
        alone = names[0] if len(names) == 1 else ""
        panel.set_ylabel(f"{alone} ({unit})" if alone and unit else alone or unit)
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18))
    return drawing


def draw_steps(
    steps: Sequence[int],
    series: Sequence[Series],
    control: Sequence[Series],
) -> matplotlib.figure.Figure:
    """Single numbers, and the last points of curves, by the step of a training; dotted is what random weights give."""
    numbers: dict[tuple[str, str], dict[int, Point]] = {}
    for place, taken in enumerate(series):
        for quantity in taken.quantities:
            numbers.setdefault((quantity.unit, _last(quantity)), {})[steps[place]] = quantity.points[-1]
    chance = {_last(one): one.points[-1].value for drawn in control for one in drawn.quantities}
    units = list(dict.fromkeys(unit for unit, _ in numbers))
    drawing, axes = _panels(len(units))
    for panel, unit in zip(axes, units, strict=False):
        names = [name for of, name in numbers if of == unit]
        for number, name in enumerate(names):
            color = COLORS[number % len(COLORS)]
            points = [Point(p.value, p.low, p.high, step) for step, p in numbers[unit, name].items()]
            _curve(panel, points, "-", color, name, False)
            if name in chance:
                panel.axhline(chance[name], color=color, lw=0.8, ls=":")
        panel.set_xlabel("step")
        panel.set_ylabel(unit)
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18))
    return drawing


def _last(quantity: Quantity) -> str:
    return quantity.told(quantity.points[-1])


def _panels(number: int) -> tuple[matplotlib.figure.Figure, list[Axes]]:
    across = min(number, _ACROSS)
    down = -(-number // across)
    drawing, axes = panels(across, down, width=4.8, height=4.2)
    for panel in axes[number:]:
        panel.axis("off")
    return drawing, axes


def _curve(axes: Axes, points: Sequence[Point], style: str, color: str, label: str, quiet: bool) -> None:
    at = [float(point.at or 0) for point in points]
    values = np.array([point.value for point in points])
    axes.plot(at, values, f"o{style}", color=color, label=label, alpha=0.5 if quiet else 1.0, ms=3.5)
    low, high = np.array([(point.low, point.high) for point in points], dtype=float).T
    if np.isfinite(low).any():  # gaps where an end is not known
        axes.fill_between(at, low, high, color=color, alpha=0.08 if quiet else 0.15, lw=0)
