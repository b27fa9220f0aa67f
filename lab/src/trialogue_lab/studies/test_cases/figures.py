"""Figures of the study: correct test cases as a function of model calls, and comparisons with the thesis."""

from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import COLORS, GOOD, OURS, PUBLISHED, QUIET, Rows, figure, panels
from trialogue_lab.studies.test_cases.config import Role
from trialogue_lab.studies.test_cases.decodings import MAIN, make_block_best_of
from trialogue_lab.studies.test_cases.published import PUBLISHED as PUBLISHED_NUMBERS
from trialogue_lab.studies.test_cases.statistics import measured, per_query

_THESIS_CASES = 800  # Number of requested cases per repetition in the thesis.
_SHOWN = (*MAIN, *map(make_block_best_of, (4, 8)))


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


def choose_curve(name: str) -> Curve:
    """Return the color, label and line style of a decoding method.

    Args:
        name: Name of the method (see `DecodingRule.name`). The line is dotted for misleading function names.
    """
    judge, *words = name.split("-")
    curve = _CURVES["block" if "block" in words else judge]
    return curve._replace(label=f"{curve.label}, misleading names", line=":") if "ood" in words else curve


def _draw_queries(role: Role, rows: Rows) -> Drawing:
    """Draw one panel per group of decodings, with the decodings of all other groups in grey."""
    points = pd.concat([rows.where(table, model=role) for table in ("draw", "progress")])
    means = {
        str(name): table.groupby("runs")[["queries", "distinct_correct"]].mean()
        for name, table in points.groupby("decoding", sort=False)
    }
    measured_curves = [(choose_curve(name), mean) for name, mean in means.items()]
    groups = [
        curve
        for curve in _CURVES.values()
        if any(one.label.startswith(curve.label) for one, _ in measured_curves)
    ]
    drawing, panes = panels(3, -(-len(groups) // 3), width=3.7, height=3.1, sharex=True, sharey=True)
    for axes, group in zip(panes, groups, strict=False):
        for curve, mean in measured_curves:
            if not curve.label.startswith(group.label):
                axes.plot(mean.queries, mean.distinct_correct, "-", lw=0.6, color=QUIET, alpha=0.45)
        for curve, mean in measured_curves:
            if curve.label.startswith(group.label):
                line = ":" if curve.line == ":" else "-"
                axes.plot(mean.queries, mean.distinct_correct, f"o{line}", ms=3, color=group.color)
        axes.set(title=group.label, xscale="log", ylim=(0, None))
        axes.set_xticks((300, 1000, 3000), ["300", "1,000", "3,000"])
        axes.minorticks_off()
        axes.tick_params(labelbottom=True)
    for axes in panes[len(groups) :]:
        axes.axis("off")
    drawing.supxlabel("queries", fontsize=10)
    drawing.supylabel("distinct correct test cases", fontsize=10)
    return drawing


@figure(
    "queries",
    "Figures 3.3 and 3.4: distinct correct cases as a function of queries, for an increasing number of runs. Means "
    "over repetitions. Each panel highlights one group of decodings, which differ in quota, stride and truncation. "
    "Dotted lines are for misleading function names.",
)
def _pretrained_figure(rows: Rows) -> Drawing:
    return _draw_queries("pretrained", rows)


@figure(
    "queries-from-scratch",
    "Distinct correct cases as a function of queries, for models that are trained from scratch. Each "
    "panel highlights one group of decodings.",
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
        color = choose_curve(decoding.name).color
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
