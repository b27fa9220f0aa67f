"""Figures of the study: distinct correct cases against queries, and every decoding beside the thesis."""

from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure as Drawing

from trialogue.display.figures import COLORS, GOOD, OURS, PUBLISHED, panels
from trialogue_lab.ledger import Rows, figure
from trialogue_lab.studies.test_cases.config import Role
from trialogue_lab.studies.test_cases.decodings import MAIN, DecodingRule, block_best_of
from trialogue_lab.studies.test_cases.published import PUBLISHED as PRINTED
from trialogue_lab.studies.test_cases.statistics import measured, per_query

_BLOCK = "block best-of-n"
_REQUESTED = 800  # cases of a repetition of the thesis
_KINDS = {
    "none": (OURS, "no verifier", "--"),
    "trained": (COLORS[3], "Algorithm 1, trained verifier", "-"),
    "ground_truth": (GOOD, "Algorithm 1, ground truth", "-"),
    "random": (COLORS[4], "Algorithm 1, random verifier", "-"),
    "block": (COLORS[5], _BLOCK, "--"),
}
_SHOWN = (*MAIN, *map(block_best_of, (4, 8)))
_WORDS = {
    "-no-argmax": ", no greedy redo",
    "Q4-B4": "Q = B = 4",
    "Q10-B4": "Q = 10",
    "Q4-B10": "B = 10",
    "-below-": ", below ",
    "block-best-of-": "best of ",
    "top_p-0.0": "greedy",
    "ground_truth": "ground truth:",
    "none": "no verifier:",
    "random": "random:",
    "trained": "trained:",
}


class Curve(NamedTuple):
    """How a decoding is drawn."""

    color: str
    label: str
    line: str


def curve_of(name: str) -> Curve:
    """How the decoding called `name` is drawn: by its verifier, and dotted where names are out of distribution."""
    judge, *words = name.split("-")
    color, label, line = _KINDS["block" if "block" in words else judge]
    return Curve(color, f"{label}, out of distribution", ":") if "ood" in words else Curve(color, label, line)


def _words(decoding: DecodingRule) -> str:
    judge, _, rest = decoding.name.partition("-")
    text = f"{judge} {rest or 'nucleus'}"
    for word, plain in _WORDS.items():
        text = text.replace(word, plain)
    return text


def _draw_queries(role: Role, rows: Rows) -> Drawing:
    drawing, axes = panels(2, width=5.0, height=3.9)
    points = pd.concat([rows.where(table, model=role) for table in ("draw", "progress")])
    for name, table in points.groupby("decoding", sort=False):
        curve = curve_of(str(name))
        mean = table.groupby("runs")[["queries", "distinct_correct"]].mean()
        for panel in axes if curve.label != _BLOCK else axes[:1]:
            known = {line.get_label() for line in panel.lines}
            label = "_" if curve.label in known else curve.label
            line = panel.plot(mean.queries, mean.distinct_correct, "o", ms=3, color=curve.color, label=label)
            line[0].set_linestyle(curve.line)
    for panel, title in zip(axes, ("Figure 3.3", f"Figure 3.4: without {_BLOCK}"), strict=True):
        panel.set(xlabel="queries", ylabel="distinct correct test cases", xlim=(0, None), ylim=(0, None))
        panel.set_title(title)
    axes[0].legend(loc="upper right")
    return drawing


@figure(
    "queries",
    "Figures 3.3 and 3.4: distinct correct cases against queries as runs are added, means over repetitions, one line "
    "per decoding.",
)
def _pretrained_queries(rows: Rows) -> Drawing:
    return _draw_queries("pretrained", rows)


@figure("queries-from-scratch", "The same with models that were trained from scratch.")
def _scratch_queries(rows: Rows) -> Drawing:
    return _draw_queries("scratch", rows)


@figure(
    "decodings",
    "Every decoding at top-p 0.95 and T = 1: means over repetitions with bars of one deviation, beside the numbers of "
    "the thesis, whose model is another and whose prompts hold no demonstration of the function (its number for B = 10 "
    "is of top-p 1).",
)
def _decodings(rows: Rows) -> Drawing:
    """One line per decoding: distinct accuracy on the left, distinct correct cases in 100 queries on the right."""
    of_run = [decoding for decoding in _SHOWN if len(measured(decoding)(rows))]
    drawing, (accuracies, rates) = panels(2, width=4.6, height=4.4, sharey=True)
    for place, decoding in enumerate(of_run):
        color = curve_of(decoding.name).color
        for axes, quantity in ((accuracies, measured(decoding)), (rates, per_query(decoding))):
            numbers = quantity(rows)
            axes.errorbar(numbers.mean(), place, xerr=numbers.std(), fmt="o", color=color)
        accuracy, queries = PRINTED[decoding]
        accuracies.plot(accuracy, place, "x", ms=7, color=PUBLISHED)
        rates.plot(100 * _REQUESTED * accuracy / queries, place, "x", ms=7, color=PUBLISHED)
    accuracies.set(xlabel="distinct accuracy", xlim=(0, None), title="Crosses: the thesis (CodeLlama-7B)")
    accuracies.set(yticks=range(len(of_run)), yticklabels=[_words(decoding) for decoding in of_run])
    accuracies.invert_yaxis()
    rates.set(xlabel="distinct correct cases in 100 queries", xlim=(0, None))
    return drawing


FIGURES = (_pretrained_queries, _scratch_queries, _decodings)
