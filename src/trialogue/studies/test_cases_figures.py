"""Figures of the study `test-cases`: distinct correct cases against queries."""

from typing import NamedTuple

from matplotlib.axes import Axes
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


_WORDS = {
    "-no-argmax": ", no greedy redo",
    "Q4-B4": "Q = B = 4",
    "Q10-B4": "Q = 10",
    "Q4-B10": "B = 10",
    "-below-": ", below ",
    "block-best-of-": "best of ",
    "top_p-0.0": "greedy",
}


def short(name: str) -> str:
    """The name of a decoding without its verifier, which the colour tells."""
    text = name.partition("-")[2] or "nucleus"
    for word, plain in _WORDS.items():
        text = text.replace(word, plain)
    return text


def _label_ends(axes: Axes, ends: list[tuple[float, float, str]]) -> None:
    """Write labels beside the last points (x, y), moved up where they would lie on one another."""
    width, height = axes.get_xlim()[1], axes.get_ylim()[1]
    placed: list[tuple[float, float]] = []
    for x, y, label in sorted(ends, key=lambda end: end[1]):
        at = y
        for left, below in placed:
            if abs(x - left) < 0.2 * width and at - below < 0.025 * height:
                at = below + 0.025 * height
        placed.append((x, at))
        axes.annotate(label, (x, at), fontsize=6, xytext=(4, -2), textcoords="offset points")


def _draw(rows: DataFrame, block: bool) -> Drawing:
    drawing = Drawing(figsize=(7, 4.4), layout="constrained")
    axes = drawing.add_subplot()
    named: set[str] = set()
    ends: list[tuple[float, float, str]] = []
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
        ends.append((mean.queries.iloc[-1], mean.distinct_correct.iloc[-1], short(str(name))))
    # Room on the right for the labels.
    right = 1.25 * max((x for x, _, _ in ends), default=1.0)
    axes.set(xlabel="queries", ylabel="distinct correct test cases", xlim=(0, right), ylim=(0, None))
    _label_ends(axes, ends)
    axes.legend(fontsize=8, loc="lower right")
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
