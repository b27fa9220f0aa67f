"""Tables and figures of the study."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import Series

from trialogue.display.figures import COLORS, PUBLISHED, QUIET, panels
from trialogue.inspection.topic_structure.measure import AS_READ
from trialogue.inspection.topic_structure.ratios import ATTENTION, COSINE, DOT, RAW_ATTENTION
from trialogue_lab.ledger import Cells, NoRows, Rows, Statistic, figure, result_table, spread
from trialogue_lab.studies.topic_pretrained.config import MODELS, WORDS, Name
from trialogue_lab.studies.topic_pretrained.statistics import PRETRAINED, RANDOM, level, ratio

_HEADS = {"cosine": COSINE, "dot product": DOT, "attention": ATTENTION}

_TABLE_2_3 = {
    "BERT": ((1.21, 1.19, 1.32), (1.13, 1.15, 1.28), (1.11, 1.13, 1.22)),
    "ALBERT": ((5.64, 6.29, 1.33), (4.18, 3.74, 1.28), (3.24, 2.93, 1.22)),
    "BART": ((2.80, 2.67, 1.35), (1.95, 1.92, 1.31), (1.63, 1.62, 1.23)),
    "ELECTRA": ((5.98, 5.37, 2.14), (7.70, 7.35, 2.09), (7.46, 8.08, 1.95)),
    "RoBERTa": ((6.44, 6.81, 1.40), (5.73, 6.31, 1.31), (5.24, 5.30, 1.22)),
    "BERT, random": ((1.0008, 1.00063, 0.99943), (0.99974, 1.00036, 0.99996), (1.00016, 1.00027, 1.00007)),
}
_TABLE_2_4 = {
    "BERT": ((1.14, 1.04, 1.23), (0.97, 1.05, 1.17), (0.99, 0.93, 1.13)),
    "ALBERT": ((4.15, 3.06, 1.23), (3.09, 3.04, 1.17), (1.54, 1.44, 1.11)),
    "BART": ((2.51, 1.76, 1.27), (1.63, 1.12, 1.20), (1.06, 0.85, 1.11)),
    "ELECTRA": ((5.28, 3.99, 1.70), (5.56, 5.57, 1.58), (6.39, 5.61, 1.48)),
    "RoBERTa": ((4.39, 5.01, 1.19), (5.20, 4.25, 1.15), (4.71, 4.15, 1.12)),
    "BERT, random": ((0.99814, 0.99957, 1.00009), (0.9982, 1.00167, 1.00013), (0.99964, 0.99928, 0.99978)),
}
_TABLE_2_5 = {
    "BERT, 105 pairs": (0.00659, 0.00751, 0.468, 0.316),
    "BERT, 435 pairs": (0.00621, 0.00695, 0.461, 0.311),
    "BERT, 1711 pairs": (0.00597, 0.00677, 0.425, 0.323),
}
_HEADS_2_5 = {
    "attention, same topic": (ATTENTION, "same"),
    "attention, often together": (ATTENTION, "together"),
    "cosine, same topic": (COSINE, "same"),
    "cosine, often together": (COSINE, "together"),
}


def _models(rows: Rows) -> list[Name]:
    return list(dict.fromkeys(rows["comparison"].model))


def _words(rows: Rows) -> list[int]:
    return rows.distinct("comparison", "words")


def _ratios(rows: Rows, single: bool) -> Cells:
    heads = _HEADS | {"cosine as read": COSINE + AS_READ, "attention, not debiased": RAW_ATTENTION}
    return {
        f"{MODELS[model].name}{', random' if weights == RANDOM else ''}, {words} words": {
            head: _ratios_of_all_seeds(ratio(model, measure, words, single, weights), rows)
            for head, measure in heads.items()
        }
        for model in _models(rows)
        for weights in ((PRETRAINED, RANDOM) if single else (PRETRAINED,))
        for words in _words(rows)
    }


def _ratios_of_all_seeds(cell: Statistic, rows: Rows) -> "Series[float] | None":
    """Return the ratio of means for every seed, or None if a mean is not positive for some seed.

    If the true means are zero, both are positive only by chance.
    """
    values = cell(rows)
    return values if len(values) == rows["comparison"].seed.nunique() else None


def _published_cells(table: Mapping[str, Sequence[Sequence[float]]]) -> dict[str, dict[str, float | str]]:
    return {
        f"{model}, {words} words": dict(zip(_HEADS, numbers, strict=True))
        for model, lines in table.items()
        for words, numbers in zip(WORDS, lines, strict=True)
    }


@result_table(
    "Ratio of same topic to different topics, one topic per word",
    "Thesis, Table 2.3",
    published=_published_cells(_TABLE_2_3),
    row_heading="model",
    note="geometric mean over texts; 15, 30 and 61 words are shares of .0005, .001 and .002 of the vocabulary in the "
    "source; a dash: some sample has no such pairs, or no positive mean, as with random embeddings",
)
def _one_topic_table(rows: Rows) -> Cells:
    return _ratios(rows, single=True)


@result_table(
    "Ratio of same topic to different topics, one or more topics per word",
    "Thesis, Table 2.4",
    published=_published_cells(_TABLE_2_4),
    row_heading="model",
)
def _more_topics_table(rows: Rows) -> Cells:
    return _ratios(rows, single=False)


@result_table(
    "Pairs of words of a topic and pairs that most often occur together",
    "Thesis, Table 2.5",
    published={label: dict(zip(_HEADS_2_5, line, strict=True)) for label, line in _TABLE_2_5.items()},
    row_heading="model",
    note="means over all pairs of words of one topic (for attention, over the measured pairs); often together: the "
    "same number of pairs, which occur together in the most passages",
)
def _together_table(rows: Rows) -> Cells:
    heads = _HEADS_2_5 | {f"pairs, {measure}": (measure, "same_pairs") for measure in (ATTENTION, COSINE)}
    return {
        f"{MODELS[model].name}, {words} words": {
            head: level(model, measure, pairs, words)(rows) for head, (measure, pairs) in heads.items()
        }
        for model in _models(rows)
        for words in _words(rows)
    }


@result_table("The largest topics in one sample", "not in the source", row_heading="text, topic")
def _topics_table(rows: Rows) -> Cells:
    table = rows["topic"]
    model, seed = table.model.iloc[0], table.seed.iloc[0]
    shown = table[(table.model == model) & (table.seed == seed)]
    return {
        f"{one.text or 'synthetic documents'}, {one.rank + 1}": {"most likely words": one.likeliest}
        for one in shown.itertuples()
    }


TABLES = (_one_topic_table, _more_topics_table, _together_table, _topics_table)


@figure(
    "ratios",
    "Ratio of the mean over pairs of different words of one topic to the mean over words of different topics, with "
    "one topic per word. Points are means over texts and samples, with bars of one standard deviation. Thin: "
    "published, for other models. Dotted: the same architectures with random weights. "
    "Their embeddings have no positive mean.",
)
def _ratios_figure(rows: Rows) -> Drawing:
    drawing, axes = panels(3, width=4.2, height=3.6)
    words = _words(rows)
    for place, (axis, (head, measure)) in enumerate(zip(axes, _HEADS.items(), strict=True)):
        if set(words) <= set(WORDS):
            _draw_published(axis, place)
        for model, color in zip(_models(rows), COLORS, strict=False):
            cells = [ratio(model, measure, count) for count in words]
            if all(_ratios_of_all_seeds(cell, rows) is not None for cell in cells):
                spread(axis, words, cells, rows, "o-", color=color, label=MODELS[model].name)
            if measure == ATTENTION:
                random = [ratio(model, measure, count, weights=RANDOM) for count in words]
                spread(axis, words, random, rows, "s:", color=QUIET, markersize=3)
        axis.axhline(1, color=QUIET, lw=0.8)
        axis.set(xlabel="words of a topic", xticks=words)
        if measure != ATTENTION:
            axis.set_yscale("log")
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_formatter("{x:g}")
            axis.tick_params(axis="y", which="minor", labelsize=9)
        axis.set_title(f"{head.capitalize()}, same topic / different topics")
    axes[2].legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3)
    return drawing


def _draw_published(axis: Axes, column: int) -> None:
    """Draw the published ratios as thin lines.

    Lines that end close to each other share a label.
    """
    ends: list[tuple[float, list[str]]] = []
    models = [model for model in _TABLE_2_3 if "random" not in model]
    for model in sorted(models, key=lambda name: _TABLE_2_3[name][-1][column]):
        values = [line[column] for line in _TABLE_2_3[model]]
        axis.plot(WORDS, values, "-", color=PUBLISHED, lw=0.7, alpha=0.7)
        if ends and values[-1] < 1.03 * ends[-1][0]:
            ends[-1][1].append(model)
        else:
            ends.append((values[-1], [model]))
    for value, names in ends:
        place = (WORDS[-1] + 1.5, value)
        axis.annotate("\n".join(reversed(names)), place, fontsize=9, color=PUBLISHED, va="center")
    axis.set_xlim(WORDS[0] - 4, WORDS[-1] + 13)


@figure(
    "often-together",
    "Mean attention (debiased) and cosine of embeddings for pairs of words of one topic, for pairs of different "
    "topics, and for the pairs that occur together in the most passages (as many as pairs of one topic).",
)
def _together_figure(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, width=4.6, height=3.4)
    models, words = _models(rows), _words(rows)
    middle = words[len(words) // 2]
    kinds = (
        (-0.26, "different", "different topics", QUIET),
        (0.0, "same", "same topic", COLORS[0]),
        (0.26, "together", "often together", COLORS[3]),
    )
    for axis, measure in ((left, ATTENTION), (right, COSINE)):
        for shift, pairs, label, color in kinds:
            values = [level(model, measure, pairs, middle)(rows) for model in models]
            if not all(len(each) for each in values):
                raise NoRows(f"{measure} is missing for some models")
            means = [each.mean() for each in values]
            errors = [each.std() if len(each) > 1 else 0 for each in values]
            axis.bar(np.arange(len(models)) + shift, means, 0.24, yerr=errors, color=color, label=label)
        axis.set_xticks(range(len(models)), [MODELS[model].name for model in models])
        axis.set_title(f"{measure.capitalize()}, {middle} words of a topic")
    left.set_ylabel("mean, in a text of 100 tokens")
    left.legend(loc="upper left", bbox_to_anchor=(0, -0.12), ncols=3)
    return drawing


FIGURES = (_ratios_figure, _together_figure)
