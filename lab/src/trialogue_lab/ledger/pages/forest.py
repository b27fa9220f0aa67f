"""Forest plot of a study: one line per claim with estimate, confidence interval and threshold."""

import math
import textwrap
from typing import TYPE_CHECKING

from trialogue.display.figures import BAD, GOOD, QUIET, panels
from trialogue.display.numbers import format_number
from trialogue_lab.ledger.claims.claims import NOT_PRINTED
from trialogue_lab.ledger.claims.verdicts import Verdict, by_origin
from trialogue_lab.ledger.entries import Entry
from trialogue_lab.ledger.pages.figures import Figure
from trialogue_lab.ledger.pages.terminal import format_verdict_criterion

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

_COLOURS = {"holds": GOOD, "refuted": BAD, "undecided": "#bf8700"}

_HALF_WIDTH = 1.15
"""Half the plotted width of a claim's line, with the threshold at 0."""

_PUBLISHED_WIDTH = 32
"""Longest text of a published number, in characters. Tables show it in full."""


def forest(entry: Entry) -> Figure:
    """Return a forest plot with the estimate and confidence interval of each claim.

    Each line has its own scale, with the threshold in the middle and the values that meet the criterion shaded. The
    scale is logarithmic if the statistic averages logarithms.

    Args:
        entry: The study with its verdicts.
    """
    caption = (
        "The claims of the study. Each line has its own scale. The dot is the estimate, the bar is the interval, the "
        "vertical line is the threshold, and the claimed values are shaded. Hollow dots mark claims that were "
        "registered after the run. A * marks a threshold or margin that this project chose."
    )
    return Figure(name="claims", caption=caption, draw=lambda _: _draw(entry))


def _draw(entry: Entry) -> "MatplotlibFigure":
    groups = by_origin(entry.verdicts)
    lines = sum(len(verdicts) + 1 for verdicts in groups.values())
    figure, [axes] = panels(width=9.6, height=0.26 * lines + 0.1)
    axes.set(xlim=(-_HALF_WIDTH, _HALF_WIDTH), ylim=(lines - 0.4, -0.6))
    axes.axis("off")
    # Constrained layout would shrink the axes to make room for the texts at both sides.
    figure.set_layout_engine("none")
    y = 0
    for origin, verdicts in groups.items():
        axes.text(-_HALF_WIDTH - 0.05, y, origin, ha="right", va="center", fontsize=9, weight="bold")
        for verdict in verdicts:
            y += 1
            _draw_claim(axes, y, verdict)
        y += 1
    return figure


def _draw_claim(axes: "Axes", y: int, verdict: Verdict) -> None:
    claim, colour = verdict.claim, _COLOURS.get(verdict.answer, QUIET)
    label = claim.title or claim.id
    axes.text(-_HALF_WIDTH - 0.05, y, label, ha="right", va="center", fontsize=9)
    words = f"{verdict.answer}   {format_number(verdict.estimate)}"
    if claim.published != NOT_PRINTED:
        words += f"   published: {textwrap.shorten(claim.published, _PUBLISHED_WIDTH, placeholder=' …')}"
    words += f"   holds if {format_verdict_criterion(verdict)}"
    axes.text(
        _HALF_WIDTH + 0.05, y, words, ha="left", va="center", fontsize=9, color=colour, parse_math=False
    )
    ends = [_subtract_threshold(verdict, value) for value in (verdict.low, verdict.estimate, verdict.high)]
    region = [_subtract_threshold(verdict, edge) for edge in claim.criterion.region]
    sizes = [*ends, *region] if claim.criterion.direction == "equal" else ends
    scale = max((abs(size) for size in sizes if math.isfinite(size)), default=0.0) or 1.0
    low, middle, high, left, right = (
        min(max(value / scale, -_HALF_WIDTH), _HALF_WIDTH) for value in (*ends, *region)
    )
    axes.fill_betweenx([y - 0.36, y + 0.36], left, right, color="#e6f2e9", lw=0)
    axes.plot([0, 0], [y - 0.36, y + 0.36], color="#57606a", lw=0.8)
    if math.isfinite(low) and math.isfinite(high):
        axes.plot([low, high], [y, y], color=colour, lw=2, solid_capstyle="butt")
    if math.isfinite(middle):
        face = colour if verdict.registered else "white"
        axes.plot([middle], [y], "o", ms=4.5, color=colour, markerfacecolor=face)


def _subtract_threshold(verdict: Verdict, value: float) -> float:
    """Return `value` minus the claim's threshold, or the difference of their logarithms for a logarithmic statistic."""
    threshold = verdict.claim.criterion.threshold
    if not verdict.claim.statistic.logarithmic or threshold <= 0 or math.isnan(value):
        return value - threshold
    if value <= 0:
        return -math.inf
    return math.log(value / threshold) if math.isfinite(value) else value
