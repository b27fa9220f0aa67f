"""Figures of the study `test-cases`: distinct correct cases against queries."""

from typing import NamedTuple

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.ledger import Figure

_ALGORITHM = {
    "trained": ("#d4760a", "Algorithm 1, trained verifier"),
    "ground_truth": ("#2da44e", "Algorithm 1, ground truth"),
    "random": ("#8250df", "Algorithm 1, random verifier"),
}
_BLOCK = ("#0a3069", "block best-of-n")
_BASELINE = ("#1f6feb", "no verifier")


class Curve(NamedTuple):
    """How a decoding is drawn."""

    color: str
    label: str
    line: str


def curve_of(name: str) -> Curve:
    """How the decoding called `name` is drawn: by its verifier, and dotted where names are out of distribution."""
    judge, *words = name.split("-")
    misleading = "ood" in words
    if "block" in words:
        (color, label), line = _BLOCK, "--"
    elif judge in _ALGORITHM:
        (color, label), line = _ALGORITHM[judge], "-"
    else:
        (color, label), line = _BASELINE, "--"
    return Curve(color, label + ", out of distribution" * misleading, ":" if misleading else line)


def _draw(rows: DataFrame, block: bool) -> Drawing:
    drawing = Drawing(figsize=(7, 4.4), layout="constrained")
    axes = drawing.add_subplot()
    named: set[str] = set()
    drawn = rows[rows.table == "draw"]
    for name, group in drawn.groupby("decoding", sort=False):
        curve = curve_of(str(name))
        if curve.label == _BLOCK[1] and not block:
            continue
        mean = group.groupby("runs")[["queries", "distinct_correct"]].mean()
        axes.plot(
            mean.queries, mean.distinct_correct, marker="o", ms=3, lw=1, color=curve.color, ls=curve.line,
            label=curve.label if curve.label not in named else "_",
        )  # fmt: skip
        named.add(curve.label)
        axes.annotate(
            str(name), (mean.queries.iloc[-1], mean.distinct_correct.iloc[-1]), fontsize=5, xytext=(3, 0),
            textcoords="offset points",
        )  # fmt: skip
    axes.set(xlabel="queries", ylabel="distinct correct test cases", xlim=(0, None), ylim=(0, None))
    axes.legend(fontsize=8)
    return drawing


FIGURES = (
    Figure(
        name="queries",
        caption="Figure 3.3: distinct correct cases against queries as runs are added, means over repetitions.",
        draw=lambda rows: _draw(rows, block=True),
    ),
    Figure(
        name="queries-without-blocks",
        caption="Figure 3.4: the same without block best-of-n.",
        draw=lambda rows: _draw(rows, block=False),
    ),
)
