"""Figures drawn from rows alone, as SVG whose bytes depend on nothing else."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pandas import DataFrame

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of a study; `draw(rows)` makes a `matplotlib.figure.Figure` without pyplot's global state.

    `name` is the file's name without suffix.
    """

    name: str
    caption: str
    draw: Callable[[DataFrame], "matplotlib.figure.Figure"]


def svg(figure: Figure, rows: DataFrame) -> str:
    """The text of an SVG file of `rows`: equal rows, equal bytes, whatever the user's settings."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": figure.name, "svg.fonttype": "path"})
        buffer = io.StringIO()
        drawn = figure.draw(rows)
        drawn.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
