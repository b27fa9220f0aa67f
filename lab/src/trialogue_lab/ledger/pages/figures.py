"""Figures of a study, drawn from its rows alone."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pandas import Series

from trialogue.display.figures import rendered
from trialogue_lab.ledger.claims.quantities import Quantity
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


def spread(
    axes: "Axes",
    places: Sequence[float],
    cells: "Iterable[Quantity | Series[float]]",
    rows: Rows,
    fmt: str = "o-",
    **style: Any,
) -> None:
    """Draw quantities, or series over replications, at `places`: means, and bars of one standard deviation."""
    series = [cell(rows) if isinstance(cell, Quantity) else cell for cell in cells]
    means = [float(each.mean()) for each in series]
    bars = [float(each.std()) if len(each) > 1 else np.nan for each in series]
    axes.errorbar(places, means, bars, fmt=fmt, **style)


def svg(figure: Figure, rows: Rows) -> str:
    """The text of an SVG file of `rows`: equal rows, equal bytes, whatever the user's settings."""
    return rendered(lambda: figure.draw(rows), "svg", figure.name).decode()
