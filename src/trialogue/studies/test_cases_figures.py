"""Figures of the study `test-cases`: distinct correct cases against queries."""

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.ledger import Figure

_BASELINE, _ALGORITHM = "#1f6feb", "#d4760a"


def _draw(rows: DataFrame, block: bool) -> Drawing:
    drawing = Drawing(figsize=(7, 4.4), layout="constrained")
    axes = drawing.add_subplot()
    drawn = rows[rows.table == "draw"]
    for name, group in drawn.groupby("decoding", sort=False):
        candidates, algorithm = "block" in str(name), "-Q" in str(name)
        if candidates and not block:
            continue
        mean = group.groupby("runs")[["queries", "distinct_correct"]].mean()
        color, line = (_ALGORITHM, "-") if algorithm else (_BASELINE, "--")
        axes.plot(mean.queries, mean.distinct_correct, marker="o", ms=3, lw=1, color=color, ls=line)
        axes.annotate(
            str(name), (mean.queries.iloc[-1], mean.distinct_correct.iloc[-1]), fontsize=5, xytext=(3, 0),
            textcoords="offset points",
        )  # fmt: skip
    axes.set(xlabel="queries", ylabel="distinct correct test cases", xlim=(0, None), ylim=(0, None))
    axes.plot([], [], color=_ALGORITHM, label="Algorithm 1")
    axes.plot([], [], color=_BASELINE, ls="--", label="baselines")
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
