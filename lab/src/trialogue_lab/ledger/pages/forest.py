"""The claims of a study as one picture: a line each with estimate, interval, threshold and verdict."""

import math
import textwrap
from typing import TYPE_CHECKING

from trialogue.display.figures import BAD, GOOD, QUIET, panels
from trialogue.display.numbers import format_number
from trialogue_lab.ledger.claims.claims import NOT_PRINTED, ORIGINS
from trialogue_lab.ledger.claims.verdicts import Verdict
from trialogue_lab.ledger.entries import Entry
from trialogue_lab.ledger.pages.figures import Figure
from trialogue_lab.ledger.pages.terminal import rule_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_COLOURS = {"holds": GOOD, "refuted": BAD, "undecided": "#bf8700"}
_EDGE = 1.15  # half the width of the band in which a claim is drawn: its own threshold is at 0

_PRINTED_WIDTH = 32
"""Characters of the source's words that fit on a line; the rest stands in the tables of the page."""


def forest(entry: Entry) -> Figure:
    """The picture of the claims of `entry`.

    Every line has a scale of its own, on which the threshold is the middle and the interval fills the band; a
    logarithmic statistic is drawn by its logarithm. What the claim says is shaded.
    """
    caption = (
        "The claims, each on a scale of its own: dot and bar are estimate and interval, the line in the middle is the "
        "threshold, what is claimed is shaded. Hollow dots: registered after the run."
    )
    return Figure(name="claims", caption=caption, draw=lambda _: _draw(entry))


def _draw(entry: Entry) -> "Drawing":
    groups = [
        (origin, [verdict for verdict in entry.verdicts if verdict.claim.origin == origin])
        for origin in ORIGINS
    ]
    groups = [(origin, verdicts) for origin, verdicts in groups if verdicts]
    lines = sum(len(verdicts) + 1 for _, verdicts in groups)
    drawing, [axes] = panels(width=9.6, height=0.23 * lines + 0.1)
    axes.set(xlim=(-_EDGE, _EDGE), ylim=(lines - 0.4, -0.6))
    axes.axis("off")
    place = 0
    for origin, verdicts in groups:
        axes.text(-_EDGE - 0.05, place, origin, ha="right", va="center", fontsize=9, weight="bold")
        for verdict in verdicts:
            place += 1
            _line(axes, place, verdict)
        place += 1
    return drawing


def _line(axes: "Axes", place: int, verdict: Verdict) -> None:
    """One claim at the height `place`."""
    colour = _COLOURS.get(verdict.answer, QUIET)
    axes.text(
        -_EDGE - 0.05, place, verdict.claim.title or verdict.claim.id, ha="right", va="center", fontsize=8
    )
    words = f"{verdict.answer}   {format_number(verdict.estimate)}"
    if verdict.claim.published != NOT_PRINTED:
        words += f"   in print {textwrap.shorten(verdict.claim.published, _PRINTED_WIDTH, placeholder=' …')}"
    words += f"   claimed {rule_text(verdict)}"
    axes.text(_EDGE + 0.05, place, words, ha="left", va="center", fontsize=8, color=colour, parse_math=False)
    ends = [_placed(verdict, value) for value in (verdict.low, verdict.estimate, verdict.high)]
    bottom, top = (_placed(verdict, edge) for edge in verdict.claim.criterion.region)
    scale = max((abs(end) for end in ends if math.isfinite(end)), default=0.0)
    if verdict.claim.criterion.direction == "equal":
        scale = max(scale, abs(bottom), abs(top))
    scale = scale or 1.0
    left, right = (min(max(edge / scale, -_EDGE), _EDGE) for edge in (bottom, top))
    axes.fill_betweenx([place - 0.36, place + 0.36], left, right, color="#e6f2e9", lw=0)
    axes.plot([0, 0], [place - 0.36, place + 0.36], color="#57606a", lw=0.8)
    low, middle, high = (min(max(end / scale, -_EDGE), _EDGE) for end in ends)
    if math.isfinite(low) and math.isfinite(high):
        axes.plot([low, high], [place, place], color=colour, lw=2, solid_capstyle="butt")
    if math.isfinite(middle):
        face = colour if verdict.registered else "white"
        axes.plot([middle], [place], "o", ms=4.5, color=colour, markerfacecolor=face)


def _placed(verdict: Verdict, value: float) -> float:
    """`value` less the threshold, on the scale on which the claim's interval is symmetric."""
    threshold = verdict.claim.criterion.threshold
    if not verdict.claim.statistic.logarithmic or threshold <= 0 or math.isnan(value):
        return value - threshold
    if value <= 0:
        return -math.inf
    return math.log(value / threshold) if math.isfinite(value) else value
