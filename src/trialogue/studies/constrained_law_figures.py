"""The figure and the table of the study `constrained-law`."""

import math

import pandas as pd
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.ledger import Figure, Table

_TARGET, _MASKED, _GUIDED, _SMC, _BACK = "#57606a", "#cf222e", "#8250df", "#1a7f37", "#bf8700"
_WEIGHTED = "#ffaba8"
_LINES = {
    "masked, weighted": (_MASKED, "drawn by weight among N masked samples"),
    "smc": (_SMC, "sequential Monte Carlo, N particles"),
    "value-guided": (_GUIDED, "value-guided, first leaf"),
    "backtracking": (_BACK, "backtracking, Q = B = 4 (as run)"),
}
_SHOWN = 8


def _answers(rows: DataFrame, laws: list[str]) -> DataFrame:
    """Laws of the answers to the first question whose rule is a regular expression, the most probable first.

    The last line is what breaks the rule.
    """
    answers = rows[(rows.measure == "answer") & (rows.kind == "regex")]
    answers = answers[answers.seed == answers.seed.min()].sort_values("restricted", ascending=False)
    shown = answers.set_index("text")[laws].fillna(0.0)
    broken = (1.0 - shown.sum()).clip(lower=0.0).to_frame("breaks the rule").T
    return pd.concat([shown.head(_SHOWN), broken])


def _draw_laws(rows: DataFrame) -> Drawing:
    drawing = Drawing(figsize=(10.4, 4.2), layout="constrained")
    bars, lines = drawing.subplots(1, 2, width_ratios=(2, 3))
    largest = int(rows[rows.rule == "masked, weighted"]["size"].max())
    bars_of = {
        "restricted": (_TARGET, "the model, restricted to the rule"),
        "masked": (_MASKED, "masked decoding"),
        f"masked, weighted, {largest}": (_WEIGHTED, f"drawn by weight among {largest} of them"),
        "value-guided": (_GUIDED, "value-guided"),
        "backtracking, as run": (_BACK, "backtracking (as run)"),
    }
    answers = _answers(rows, list(bars_of))
    for place, (law, (color, label)) in enumerate(bars_of.items()):
        offsets = [index + (place - 2) * 0.17 for index in range(len(answers))]
        bars.barh(offsets, answers[law], height=0.16, color=color, label=label)
    bars.set(xlabel="probability of the answer", yticks=range(len(answers)), yticklabels=list(answers.index))
    bars.set_title("One question", fontsize=10, loc="left")
    bars.invert_yaxis()
    bars.legend(fontsize=7)
    measured = rows[rows.rule.isin(list(_LINES)) & ((rows.measure != "run") | (rows.rule == "backtracking"))]
    for rule, (color, label) in _LINES.items():
        own = measured[measured.rule == rule]
        means = own.groupby(own["size"].fillna(1))[["queries", "tv"]].mean()
        lines.plot(means.queries, means.tv, "o-", ms=5, color=color, label=label)
    masked = measured[(measured.rule == "masked, weighted") & (measured["size"] == 1)]
    lines.axhline(masked.tv.mean(), color=_MASKED, lw=1, ls=":", label="masked decoding, however often")
    rejection = _rejection_queries(rows)
    lines.axvline(rejection, color=_TARGET, lw=1, ls="--", label="rejection, exact (expected queries)")
    lines.set(xscale="log", yscale="log", xlabel="queries per output")
    lines.set_title("Total variation to the restricted law, mean over questions", fontsize=10, loc="left")
    lines.grid(color="#dddddd", lw=0.6)
    lines.legend(fontsize=7)
    return drawing


def _rejection_queries(rows: DataFrame) -> float:
    """What one output of rejection is expected to cost: geometric mean over questions."""
    masses = rows.groupby("part").accepted_mass.first()
    lengths = rows[rows.rule == "no rule"].groupby("part").queries.first()
    return math.exp((lengths / masses).map(math.log).mean())


def _cells(rows: DataFrame) -> DataFrame:
    measured = rows[rows.rule.notna()].copy()
    sizes = measured["size"].fillna(1).astype(int)
    measured["label"] = [
        f"{rule}, as run" if measure == "run" else f"{rule}, N = {size}" if rule != "value-guided" else rule
        for rule, size, measure in zip(measured.rule, sizes, measured.measure, strict=True)
    ]
    table = measured.groupby("label", sort=False).agg(
        {"valid": "mean", "tv": "mean", "queries": "mean", "ess_per_query": "mean", "cpu_seconds": "mean"}
    )
    table.loc["rejection (expected)", ["valid", "tv", "queries"]] = [1.0, 0.0, _rejection_queries(rows)]
    table["ess_per_query"] *= 100
    table.columns = pd.Index(
        ["valid", "total variation", "queries an output", "ESS in 100 queries", "CPU seconds an output"]
    )
    return table


FIGURES = (
    Figure(
        name="laws-and-cost",
        caption="Left: what decoding rules answer to the first question, beside the model restricted to the rule. "
        "Right: how far their outputs are from the restricted law, and how many queries an output takes.",
        draw=_draw_laws,
    ),
)
TABLES = (
    Table(
        title="What each decoding rule samples, and what it costs",
        source="Definitions 3.1.4 and 3.1.5, Algorithms 1 and 2",
        ours=_cells,
        rows_are="decoding rule",
        note="means over questions; rejection: geometric mean. N = 1 is masked decoding. The total variation of "
        "walks as run is that of the counts of few outputs, which adds their sampling error; smc ran with 16 "
        "particles",
    ),
)
