"""The tree of prefixes as a picture: how often a sampler goes each way, against how often it should."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trialogue.display.figures import BAD, OURS, QUIET
from trialogue.generation.exact.report import ExactOutput, SamplerDistribution

if TYPE_CHECKING:
    import matplotlib.figure

Prefix = tuple[int, ...]
_MOST_OFTEN = 4.0
"""Colours end where a way is taken so many times as often, or as seldom, as it should be."""


class Way(NamedTuple):
    """A prefix in the picture: where it stands, and its mass under the sampler and under the restricted
    distribution.
    """

    depth: int
    height: float
    distribution: float
    restricted: float


def shown_outputs(distribution: SamplerDistribution, most: int) -> list[ExactOutput]:
    """The outputs that are heaviest under either distribution, at most `most`, in the order of their tokens."""
    heaviest = sorted(distribution.outputs, key=lambda one: -max(one.distribution, one.restricted))[:most]
    return sorted(heaviest, key=lambda one: one.tokens)


def ways(outputs: Sequence[ExactOutput], everything: Sequence[ExactOutput]) -> dict[Prefix, Way]:
    """Every prefix of `outputs`; masses are those of `everything` that begins so."""
    heights: dict[Prefix, list[float]] = {}
    for line, output in enumerate(outputs):
        for depth in range(len(output.tokens) + 1):
            heights.setdefault(output.tokens[:depth], []).append(line)
    masses = {prefix: [0.0, 0.0] for prefix in heights}
    for one in everything:
        for depth in range(len(one.tokens) + 1):
            if one.tokens[:depth] in masses:
                masses[one.tokens[:depth]][0] += one.distribution
                masses[one.tokens[:depth]][1] += one.restricted
    return {
        prefix: Way(len(prefix), (min(lines) + max(lines)) / 2, *masses[prefix])
        for prefix, lines in heights.items()
    }


def draw_tree(distribution: SamplerDistribution, most: int) -> "matplotlib.figure.Figure":
    """The tree of the `most` heaviest outputs, and beside each what the sampler and the restricted distribution give
    it.

    A way is as thick as the sampler's mass on it, red where it is taken
    more often than it should be, blue where more seldom, dashed where it should not be taken at all.
    """
    import matplotlib.figure
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    outputs = shown_outputs(distribution, most)
    nodes = ways(outputs, distribution.outputs)
    names = {
        one.tokens[:depth]: one.spelled[depth - 1]
        for one in outputs
        for depth in range(1, len(one.tokens) + 1)
    }
    deepest = max((way.depth for way in nodes.values()), default=0)
    lines = len(outputs) + _hidden(distribution, outputs)
    drawing = matplotlib.figure.Figure(
        figsize=(2.5 + 0.55 * max(deepest, 4) + 3.4, 1.6 + 0.24 * max(lines, 6))
    )
    tree, bars = drawing.subplots(1, 2, sharey=True, width_ratios=(max(deepest, 4) * 0.55 + 1.0, 3.4))
    colours = ScalarMappable(LogNorm(1 / _MOST_OFTEN, _MOST_OFTEN), "coolwarm")
    for prefix, way in nodes.items():
        if not prefix:
            continue
        above = nodes[prefix[:-1]]
        ratio = way.distribution / way.restricted if way.restricted > 0 else math.inf
        shade = colours.to_rgba(np.clip([ratio], 1 / _MOST_OFTEN, _MOST_OFTEN))[0]
        style = "--" if way.restricted == 0 else "-" if way.distribution > 0 else ":"
        width = 0.8 + 7 * math.sqrt(way.distribution)
        # Down first, then on: lines of siblings do not cross those of others.
        places = ([above.depth, above.depth + 0.35, way.depth], [above.height, way.height, way.height])
        tree.plot(*places, color=shade, lw=width, ls=style, solid_capstyle="round", solid_joinstyle="round")
        tree.annotate(
            names[prefix],
            (way.depth - 0.32, way.height),
            ha="center",
            va="center",
            fontsize=8,
            bbox={"boxstyle": "round,pad=0.12", "fc": "white", "ec": "#bbbbbb", "lw": 0.4},
        )
    tree.set(xlim=(-0.15, deepest + 0.1), xticks=[], yticks=[])
    tree.grid(visible=False)
    for side in ("left", "bottom"):
        tree.spines[side].set_visible(False)
    tree.set_title(_title(distribution))
    _draw_bars(bars, distribution, outputs)
    tree.set_ylim(lines - 0.4, -0.6)
    scale = drawing.colorbar(
        colours,
        ax=[tree],
        location="bottom",
        ticks=[0.25, 0.5, 1, 2, 4],
        format="%g",
        fraction=min(0.08, 0.5 / (1 + 0.24 * lines)),
        shrink=0.8,
        label="taken so many times as often as it should be",
    )
    scale.ax.minorticks_off()
    return drawing


def _hidden(distribution: SamplerDistribution, outputs: Sequence[ExactOutput]) -> int:
    """Lines below the outputs: for those not shown, and for failing."""
    return int(len(outputs) < len(distribution.outputs)) + int(
        distribution.failed + distribution.never_halts > 0
    )


def _title(distribution: SamplerDistribution) -> str:
    queries = (
        f"{distribution.expected_calls:.3g}"
        if math.isfinite(distribution.expected_calls)
        else "infinitely many"
    )
    return (
        f"{distribution.sampler.partition('(')[0]}: TV {distribution.total_variation:.3f} from "
        f"the\nrestricted distribution, {queries} queries"
    )


def _draw_bars(bars: Any, distribution: SamplerDistribution, outputs: Sequence[ExactOutput]) -> None:
    rows = [(one.text or "(empty)", one.distribution, one.restricted) for one in outputs]
    if len(outputs) < len(distribution.outputs):
        rest = math.fsum(one.distribution for one in distribution.outputs) - math.fsum(
            one.distribution for one in outputs
        )
        due = 1 - math.fsum(one.restricted for one in outputs)
        rows.append((f"{len(distribution.outputs) - len(outputs):,} others", max(0.0, rest), max(0.0, due)))
    if distribution.failed + distribution.never_halts > 0:
        rows.append(("no output", distribution.failed + distribution.never_halts, 0.0))
    for line, (label, given, due) in enumerate(rows):
        bars.barh(
            line - 0.19, due, height=0.36, color=OURS, label="restricted distribution" if line == 0 else None
        )
        wrong = due == 0
        bars.barh(
            line + 0.19,
            given,
            height=0.36,
            color=BAD if wrong else "#bf8700",
            label="the sampler" if line == 0 else None,
        )
        bars.annotate(
            label, (max(given, due), line), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8
        )
    bars.set(xlabel="probability", yticks=[])
    bars.margins(x=0.25)
    bars.grid(visible=False, axis="y")
    bars.spines["left"].set_color(QUIET)
    bars.legend(loc="lower right")
