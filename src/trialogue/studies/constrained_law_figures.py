"""The figure and the table of the study `constrained-law`."""

import math

import pandas as pd
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.ledger import Figure, Table

_TARGET, _MASKED, _GUIDED, _SMC, _BACK = "#57606a", "#cf222e", "#8250df", "#1a7f37", "#bf8700"
_LINES = {
    "masked, weighted": (_MASKED, "drawn by weight among N masked samples"),
    "smc": (_SMC, "sequential Monte Carlo, N particles"),
    "value-guided": (_GUIDED, "value-guided, first leaf"),
    "backtracking": (_BACK, "backtracking, Q = B = 4 (as run)"),
}
_SHOWN = 8


def _answers(rows: DataFrame) -> DataFrame:
    """The answers to the first question of the kind whose rule is a regular expression, the most probable first."""
    answers = rows[(rows.measure == "answer") & (rows.kind == "regex")]
    answers = answers[answers.seed == answers.seed.min()].sort_values("restricted", ascending=False)
    return answers.head(_SHOWN)


def _draw_laws(rows: DataFrame) -> Drawing:
    drawing = Drawing(figsize=(9.6, 3.8), layout="constrained")
    bars, lines = drawing.subplots(1, 2, width_ratios=(2, 3))
    answers = _answers(rows)
    for place, (column, color, label) in enumerate(
        (
            ("restricted", _TARGET, "the model, restricted to the rule"),
            ("masked", _MASKED, "masked decoding"),
            ("backtracking, as run", _BACK, "backtracking (as run)"),
            ("value-guided", _GUIDED, "value-guided"),
        )
    ):
        offsets = [index + (place - 1.5) * 0.2 for index in range(len(answers))]
        bars.barh(offsets, answers[column].fillna(0.0), height=0.18, color=color, label=label)
    bars.set(xlabel="probability of the answer", yticks=range(len(answers)), yticklabels=list(answers.text))
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
    lines.set(xscale="log", yscale="log", xlabel="queries per output")
    lines.set_title("Total variation to the restricted law, mean over questions", fontsize=10, loc="left")
    lines.grid(color="#dddddd", lw=0.6)
    lines.legend(fontsize=7)
    return drawing


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
    masses = rows.groupby("part").accepted_mass.first()
    lengths = rows[rows.rule == "no rule"].groupby("part").queries.first()
    log_queries = (lengths / masses).map(math.log)
    table.loc["rejection (expected)", ["valid", "tv", "queries"]] = [1.0, 0.0, math.exp(log_queries.mean())]
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
