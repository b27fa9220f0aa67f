"""Figures of the study: correct test cases as a function of model calls, and comparisons with the thesis."""

from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import COLORS, GOOD, OURS, PUBLISHED, Rows, figure, finish, panels
from trialogue_lab.studies.test_cases.config import Role
from trialogue_lab.studies.test_cases.decodings import MAIN, block_best_of
from trialogue_lab.studies.test_cases.published import PUBLISHED as PUBLISHED_NUMBERS
from trialogue_lab.studies.test_cases.statistics import measured, per_query

_THESIS_CASES = 800  # Number of requested cases per repetition in the thesis.
_SHOWN = (*MAIN, *map(block_best_of, (4, 8)))


class Curve(NamedTuple):
    """Color, legend label and line style of a decoding method."""

    color: str
    label: str
    line: str


_CURVES = {
    "none": Curve(OURS, "no verifier", "--"),
    "trained": Curve(COLORS[3], "Algorithm 1, trained verifier", "-"),
    "ground_truth": Curve(GOOD, "Algorithm 1, ground truth", "-"),
    "random": Curve(COLORS[4], "Algorithm 1, random verifier", "-"),
    "block": Curve(COLORS[5], "block best-of-n", "--"),
}


def curve_of(name: str) -> Curve:
    """Return the color, label and line style of a decoding method.

    Args:
        name: Name of the method (see `DecodingRule.name`). The line is dotted for misleading function names.
    """
    judge, *words = name.split("-")
    curve = _CURVES["block" if "block" in words else judge]
    return curve._replace(label=f"{curve.label}, misleading names", line=":") if "ood" in words else curve


def _draw_queries(role: Role, rows: Rows) -> Drawing:
    drawing, panes = panels(2, width=5.0, height=3.9)
    points = pd.concat([rows.where(table, model=role) for table in ("draw", "progress")])
    labels = set()
    for name, table in points.groupby("decoding", sort=False):
        color, label, line = curve_of(str(name))
        mean = table.groupby("runs")[["queries", "distinct_correct"]].mean()
        shown = "_" if label in labels else label
        for axes in panes if label != _CURVES["block"].label else panes[:1]:
            axes.plot(mean.queries, mean.distinct_correct, f"o{line}", ms=3, color=color, label=shown)
        labels.add(label)
    xlabel, ylabel = "queries", "distinct correct test cases"
    for axes, title in zip(panes, ("Figure 3.3", "Figure 3.4: without block best-of-n"), strict=True):
        finish(axes, title, xlabel=xlabel, ylabel=ylabel, xlim=(0, None), ylim=(0, None))
    panes[0].legend(loc="upper right")
    return drawing


@figure(
    "queries",
    "Figures 3.3 and 3.4: distinct correct cases as a function of queries, for an increasing number of runs. Means "
    "over repetitions, with one line per decoding.",
)
def _pretrained_figure(rows: Rows) -> Drawing:
    return _draw_queries("pretrained", rows)


@figure(
    "queries-from-scratch",
    "Distinct correct cases as a function of queries, for models that are trained from scratch.",
)
def _scratch_figure(rows: Rows) -> Drawing:
    return _draw_queries("scratch", rows)


@figure(
    "decodings",
    "Decodings at top-p 0.95 and T = 1. Dots are means over repetitions, with bars of one standard deviation. Crosses "
    "are numbers of the thesis, which uses another model and prompts without a demonstration of the function. Its "
    "number for B = 10 is for top-p 1.",
)
def _decodings_figure(rows: Rows) -> Drawing:
    shown = [decoding for decoding in _SHOWN if len(measured(decoding)(rows))]
    drawing, (accuracies, rates) = panels(2, width=4.6, height=4.4, sharey=True)
    for place, decoding in enumerate(shown):
        color = curve_of(decoding.name).color
        for axes, statistic in ((accuracies, measured(decoding)), (rates, per_query(decoding))):
            numbers = statistic(rows)
            axes.errorbar(numbers.mean(), place, xerr=numbers.std(), fmt="o", color=color)
        accuracy, queries = PUBLISHED_NUMBERS[decoding]
        accuracies.plot(accuracy, place, "x", ms=7, color=PUBLISHED)
        rates.plot(100 * _THESIS_CASES * accuracy / queries, place, "x", ms=7, color=PUBLISHED)
    accuracies.set(xlabel="distinct accuracy", xlim=(0, None), title="Crosses: thesis (CodeLlama-7B)")
    accuracies.set(yticks=range(len(shown)), yticklabels=[decoding.label for decoding in shown])
    accuracies.invert_yaxis()
    rates.set(xlabel="distinct correct cases per 100 queries", xlim=(0, None))
    return drawing


FIGURES = (_pretrained_figure, _scratch_figure, _decodings_figure)
