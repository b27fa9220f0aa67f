"""Figure of the outputs of a sampler as a tree, colored by the difference between sampler and target."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trialogue.display.figures import BAD, OURS, QUIET
from trialogue.generation.exact.report import ExactOutput, SamplerDistribution

if TYPE_CHECKING:
    import matplotlib.figure

Prefix = tuple[int, ...]
_MAX_RATIO = 4.0
"""Largest ratio of the two probabilities on the colour scale."""


class TreeNode(NamedTuple):
    """A node in the figure of the tree of prefixes, with its position and probabilities.

    The restricted distribution is the model's distribution conditioned on acceptance by the verifiers.

    Attributes:
        depth: Number of tokens of the prefix, which is the horizontal position.
        height: Vertical position.
        distribution: Probability that the output of the sampler begins with the prefix.
        restricted: Probability of the prefix under the restricted distribution.
    """

    depth: int
    height: float
    distribution: float
    restricted: float


def most_probable_outputs(distribution: SamplerDistribution, most: int) -> list[ExactOutput]:
    """Select the outputs that are most probable under the sampler or under its target.

    Outputs are ranked by the larger of both probabilities.

    Args:
        distribution: Exact distribution of a sampler, with the target distribution.
        most: Maximum number of outputs.

    Returns:
        The selected outputs, ordered by their tokens.
    """
    heaviest = sorted(distribution.outputs, key=lambda one: -max(one.distribution, one.restricted))[:most]
    return sorted(heaviest, key=lambda one: one.tokens)


def tree_nodes(outputs: Sequence[ExactOutput], everything: Sequence[ExactOutput]) -> dict[Prefix, TreeNode]:
    """Return the nodes of the tree whose leaves are the given outputs.

    Args:
        outputs: Outputs to show, in vertical order.
        everything: All outputs. The probability of a prefix is the sum over all outputs that begin with it.

    Returns:
        One node per prefix of the outputs, by the tokens of the prefix.
    """
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
        prefix: TreeNode(len(prefix), (min(lines) + max(lines)) / 2, *masses[prefix])
        for prefix, lines in heights.items()
    }


def draw_tree(distribution: SamplerDistribution, most: int) -> "matplotlib.figure.Figure":
    """Draw the tree of the most probable outputs of a sampler, next to bars of their probabilities.

    The target is the model's distribution conditioned on acceptance by the verifiers. The width of a branch
    shows its probability under the sampler. Red branches have a larger probability under the sampler than
    under the target, and blue branches a smaller one. Dashed branches have probability zero under the target.

    Args:
        distribution: Exact distribution of a sampler, with the target distribution.
        most: Maximum number of outputs to show.
    """
    import matplotlib.figure
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    outputs = most_probable_outputs(distribution, most)
    nodes = tree_nodes(outputs, distribution.outputs)
    names = {
        one.tokens[:depth]: one.spelled[depth - 1]
        for one in outputs
        for depth in range(1, len(one.tokens) + 1)
    }
    deepest = max((node.depth for node in nodes.values()), default=0)
    lines = len(outputs) + _extra_lines(distribution, outputs)
    drawing = matplotlib.figure.Figure(
        figsize=(2.5 + 0.55 * max(deepest, 4) + 3.4, 1.6 + 0.24 * max(lines, 6))
    )
    tree, bars = drawing.subplots(1, 2, sharey=True, width_ratios=(max(deepest, 4) * 0.55 + 1.0, 3.4))
    colours = ScalarMappable(LogNorm(1 / _MAX_RATIO, _MAX_RATIO), "coolwarm")
    for prefix, node in nodes.items():
        if not prefix:
            continue
        above = nodes[prefix[:-1]]
        ratio = node.distribution / node.restricted if node.restricted > 0 else math.inf
        shade = colours.to_rgba(np.clip([ratio], 1 / _MAX_RATIO, _MAX_RATIO))[0]
        style = "--" if node.restricted == 0 else "-" if node.distribution > 0 else ":"
        width = 0.8 + 7 * math.sqrt(node.distribution)
        # The vertical segment comes first, so that branches do not cross.
        places = ([above.depth, above.depth + 0.35, node.depth], [above.height, node.height, node.height])
        tree.plot(*places, color=shade, lw=width, ls=style, solid_capstyle="round", solid_joinstyle="round")
        tree.annotate(
            names[prefix],
            (node.depth - 0.32, node.height),
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
        label="probability under the sampler / target",
    )
    scale.ax.minorticks_off()
    return drawing


def _extra_lines(distribution: SamplerDistribution, outputs: Sequence[ExactOutput]) -> int:
    """Return the number of additional lines, for other outputs and for failures."""
    return int(len(outputs) < len(distribution.outputs)) + int(
        distribution.failed + distribution.never_halts > 0
    )


def _title(distribution: SamplerDistribution) -> str:
    calls = (
        f"{distribution.expected_calls:.3g}"
        if math.isfinite(distribution.expected_calls)
        else "infinitely many"
    )
    return (
        f"{distribution.sampler.partition('(')[0]}: TV {distribution.total_variation:.3f} from "
        f"the\nrestricted distribution, {calls} model calls"
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
        is_wrong = due == 0
        bars.barh(
            line + 0.19,
            given,
            height=0.36,
            color=BAD if is_wrong else "#bf8700",
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
