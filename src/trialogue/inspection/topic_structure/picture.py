"""Figure with the ratios of topic similarity, and the cosines between embeddings of the words of topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from trialogue.display.figures import COLORS, QUIET, panels
from trialogue.inspection.topic_structure.measure import TopicMeasurement
from trialogue.inspection.topic_structure.ratios import COSINE, TopicComparison
from trialogue.inspection.topic_structure.words import assign_words

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes

_TOPICS, _WORDS = 8, 4


def draw_topics(
    measurement: TopicMeasurement, compared: Mapping[str, Sequence[TopicComparison]], words: int
) -> matplotlib.figure.Figure:
    """Draw two panels that compare words of the same topic with words of different topics.

    The left panel shows the ratio of the mean similarity within topics to the mean similarity between topics,
    with intervals. The right panel shows the cosines between the embeddings of words, ordered by topic.

    Args:
        measurement: Measurement whose cosines are drawn in the right panel.
        compared: Comparisons for the left panel, by their names in the legend.
        words: Number of words per topic.
    """
    figure, (left, right) = panels(2, width=5.0, height=4.2)
    _draw_ratios(left, compared)
    _draw_cosines(right, measurement, words)
    return figure


def _draw_ratios(axes: Axes, compared: Mapping[str, Sequence[TopicComparison]]) -> None:
    measures = list(dict.fromkeys(one.measure for found in compared.values() for one in found))
    for shift, (name, found) in enumerate(compared.items()):
        ratios = {one.measure: one.ratio for one in found}
        positions = [index + 0.2 * (shift - (len(compared) - 1) / 2) for index in range(len(measures))]
        values = np.array([ratios[measure].estimate if measure in ratios else np.nan for measure in measures])
        ends = np.array([ratios[m][1:] if m in ratios else (np.nan, np.nan) for m in measures]).T
        bars = np.abs(ends - values)
        color = QUIET if "random" in name else COLORS[shift % len(COLORS)]
        axes.errorbar(values, positions, xerr=bars, fmt="o", color=color, label=name)
    axes.axvline(1, color=QUIET, lw=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.tick_params(axis="x", which="minor", labelsize=7)
    axes.set_yticks(range(len(measures)), measures)
    axes.invert_yaxis()
    axes.set_xlabel("same topic / different topics")
    axes.set_title("Pairs of the same topic relative to different topics")
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.15), ncols=2)


def _draw_cosines(axes: Axes, measurement: TopicMeasurement, words: int) -> None:
    """Draw the cosines between the most likely words of the largest topics that have enough unambiguous words."""
    assignment = assign_words(measurement.distributions, words, single=True)
    shown: list[int] = []
    for topic in range(len(measurement.distributions)):
        members = assignment.words[assignment.topics[:, topic]]
        if len(members) >= _WORDS:
            order = np.argsort(-measurement.distributions[topic, members], kind="stable")
            shown += members[order[:_WORDS]].tolist()
        if len(shown) == _TOPICS * _WORDS:
            break
    vectors = torch.nn.functional.normalize(measurement.table[shown], dim=1)
    cosines = (vectors @ vectors.T).numpy().copy()
    np.fill_diagonal(cosines, np.nan)
    limit = float(np.nanquantile(np.abs(cosines), 0.99)) if len(shown) > 1 else 1.0
    image = axes.imshow(cosines, cmap="RdBu_r", vmin=-limit, vmax=limit)
    names = [measurement.words.names[word] for word in shown]
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
    axes.set_yticks(range(len(names)), names, fontsize=6)
    axes.grid(visible=False)
    for edge in range(_WORDS, len(names), _WORDS):
        axes.axhline(edge - 0.5, color="black", lw=0.4)
        axes.axvline(edge - 0.5, color="black", lw=0.4)
    axes.set_title(f"{COSINE.capitalize()} of embeddings, topic by topic")
    axes.figure.colorbar(image, ax=axes, shrink=0.7)
