"""Common style of all figures, and rendering to reproducible SVG or PNG files."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from trialogue.extras import from_extra

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

OURS, PUBLISHED, BAD, GOOD, QUIET = "#0072b2", "#8a5a00", "#d55e00", "#009e73", "#7d868f"
"""Colours of measured values, published values, errors, correct results and background elements.

The colours are those of Okabe and Ito, which differ for colour-blind readers, or close to them.
"""

COLORS = (OURS, BAD, GOOD, "#e69f00", "#b0599a", "#57606a", "#56b4e9", "#8a5a00")
"""Colours of data series, in order."""

STYLE: dict[str, Any] = {
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "errorbar.capsize": 2,
    "figure.constrained_layout.use": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 5,
    "svg.fonttype": "path",
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
}
"""Matplotlib settings of all figures."""


def panels(
    columns: int = 1, rows: int = 1, *, width: float = 4.4, height: float = 3.4, **subplots: Any
) -> "tuple[matplotlib.figure.Figure, list[Axes]]":
    """Create a figure with a grid of axes.

    Args:
        columns: Number of columns.
        rows: Number of rows.
        width: Width of each axes in inches.
        height: Height of each axes in inches.
        **subplots: Further arguments of `matplotlib.figure.Figure.subplots`.

    Returns:
        The figure and its axes in row-major order.
    """
    drawing = from_extra("matplotlib.figure", "plot").Figure(figsize=(width * columns, height * rows))
    return drawing, list(drawing.subplots(rows, columns, squeeze=False, **subplots).flat)


def render_figure(
    draw: "Callable[[], matplotlib.figure.Figure]", form: Literal["svg", "png"], name: str = ""
) -> bytes:
    """Render a figure in the common style. The same figure always gives the same bytes.

    Args:
        draw: Function that creates the figure.
        form: Image format, "svg" or "png".
        name: Text from which the ids in an SVG are derived. Use different names for figures on one page.

    Returns:
        Content of the image file.
    """
    matplotlib = from_extra("matplotlib", "plot")
    from cycler import cycler

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE | {"axes.prop_cycle": cycler(color=COLORS), "svg.hashsalt": name})
        buffer = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
        draw().savefig(buffer, format=form, bbox_inches="tight", metadata=metadata, dpi=150)
    return buffer.getvalue()
