"""Figures of a study, plotted from its measurements."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pandas import DataFrame, Series

from trialogue.display.figures import COLORS, render_figure
from trialogue_lab.ledger.claims.statistics import Statistic
from trialogue_lab.ledger.rows import Rows

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of a study.

    Args:
        name: File name without suffix.
        caption: Caption below the figure.
        draw: Function from measurements to a `matplotlib.figure.Figure`. It must create axes by `panels`, must not use
            pyplot, and should leave fonts, grids and colors to the common style.
    """

    name: str
    caption: str
    draw: Callable[[Rows], "matplotlib.figure.Figure"]


def figure(name: str, caption: str) -> "Callable[[Callable[[Rows], matplotlib.figure.Figure]], Figure]":
    """Return a decorator that turns a plotting function into a `Figure`.

    Args:
        name: File name without suffix.
        caption: Caption below the figure.
    """
    return lambda draw: Figure(name=name, caption=caption, draw=draw)


def finish(axes: "Axes", title: str = "", *, legend: str | bool = False, **settings: Any) -> None:
    """Set title, labels and legend of axes.

    Args:
        axes: The axes.
        title: The title (default: none).
        legend: Location of the legend, for example "upper left". True for the best location, False for no legend
            (default).
        **settings: Arguments of `Axes.set`, for example `xlabel` or `yscale`.
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
    """Plot one curve for each value of the column `by`.

    The points are means over rows with equal `x`, and the error bars are one standard deviation.

    Args:
        axes: The axes to plot on.
        table: The measurements.
        x: Column of the x-axis.
        y: Column whose mean is plotted.
        by: Column with one value per curve. The curves are in ascending order.
        label: Legend label, in which "{}" stands for the value of `by`.
        fmt: Matplotlib format of the curves (default: "o-").
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
    """Plot means over replications of several statistics, with one standard deviation as error bars.

    Args:
        axes: The axes to plot on.
        places: The x-coordinate of each statistic.
        cells: Statistics, or series with one number per replication.
        rows: The measurements from which statistics are computed.
        fmt: Matplotlib format (default: "o-").
        **style: Further arguments of `Axes.errorbar`.
    """
    series = [cell(rows) if isinstance(cell, Statistic) else cell for cell in cells]
    means = [float(each.mean()) for each in series]
    bars = [float(each.std()) for each in series]
    axes.errorbar(places, means, bars, fmt=fmt, **style)


def svg(figure: Figure, rows: Rows) -> str:
    """Plot a figure and return it as SVG text, independent of the user's matplotlib settings.

    Args:
        figure: The figure.
        rows: The measurements to plot.
    """
    return render_figure(lambda: figure.draw(rows), "svg", figure.name).decode()
