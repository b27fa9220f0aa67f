"""Figures of a study, drawn from its rows alone."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pandas import DataFrame, Series

from trialogue.display.figures import BAD as BAD
from trialogue.display.figures import COLORS as COLORS
from trialogue.display.figures import GOOD as GOOD
from trialogue.display.figures import OURS as OURS
from trialogue.display.figures import PUBLISHED as PUBLISHED
from trialogue.display.figures import QUIET as QUIET
from trialogue.display.figures import panels as panels
from trialogue.display.figures import rendered
from trialogue_lab.ledger.claims.statistics import Statistic
from trialogue_lab.ledger.rows import Rows

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of a study; `draw(rows)` makes a `matplotlib.figure.Figure` without pyplot's global state.

    `name` is the file's name without suffix. The style is set around `draw`, which leaves fonts, grids and colours
    alone; `panels` makes the axes.
    """

    name: str
    caption: str
    draw: Callable[[Rows], "matplotlib.figure.Figure"]


def figure(name: str, caption: str) -> "Callable[[Callable[[Rows], matplotlib.figure.Figure]], Figure]":
    """Return a decorator that makes a `Figure` of the function that draws it."""
    return lambda draw: Figure(name=name, caption=caption, draw=draw)


def finish(axes: "Axes", title: str = "", *, legend: str | bool = False, **settings: Any) -> None:
    """Set the title, the labels and the legend of axes.

    Args:
        axes: The axes.
        title: The title above them.
        legend: Where the legend is placed, such as "upper left". True for the best place, False for no legend.
        **settings: Arguments of `Axes.set`, such as `xlabel` or `yscale`.
    """
    axes.set(**settings)
    if title:
        axes.set_title(title)
    if legend:
        axes.legend(loc="best" if legend is True else legend)


def curves(
    axes: "Axes",
    table: DataFrame,
    x: str,
    y: str,
    by: str,
    *,
    label: str = "{}",
    fmt: str = "o-",
    **style: Any,
) -> None:
    """Draw one curve for each value of a column: means over rows of equal `x`, and bars of one standard deviation.

    Args:
        axes: The axes to draw on.
        table: The rows.
        x: Column of the abscissa.
        y: Column that is averaged.
        by: Column whose values are drawn apart, in ascending order and in the colours of `COLORS`.
        label: Label of a curve, with "{}" for the value of `by`.
        fmt: Format of matplotlib, such as "o-".
        **style: Further arguments of `Axes.errorbar`.
    """
    for color, (value, group) in zip(COLORS, table.groupby(by), strict=False):
        found = group.astype({y: float}).groupby(x)[y]
        label_of = label.format(f"{value:g}" if isinstance(value, float) else value)
        axes.errorbar(
            found.mean().index, found.mean(), found.std(), fmt=fmt, color=color, label=label_of, **style
        )


def spread(
    axes: "Axes",
    places: Sequence[float],
    cells: "Iterable[Statistic | Series[float]]",
    rows: Rows,
    fmt: str = "o-",
    **style: Any,
) -> None:
    """Draw statistics, or series over replications, at `places`: means, and bars of one standard deviation."""
    series = [cell(rows) if isinstance(cell, Statistic) else cell for cell in cells]
    means = [float(each.mean()) for each in series]
    bars = [float(each.std()) if len(each) > 1 else np.nan for each in series]
    axes.errorbar(places, means, bars, fmt=fmt, **style)


def svg(figure: Figure, rows: Rows) -> str:
    """The text of an SVG file of `rows`: equal rows, equal bytes, whatever the user's settings."""
    return rendered(lambda: figure.draw(rows), "svg", figure.name).decode()
