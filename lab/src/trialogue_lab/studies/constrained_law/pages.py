"""The figure and the table of the study."""

import pandas as pd
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import (
    BAD,
    COLORS,
    GOOD,
    QUIET,
    Cells,
    Rows,
    Statistic,
    figure,
    finish,
    panels,
    result_table,
    spread,
)
from trialogue_lab.studies.constrained_law.measure import RULES
from trialogue_lab.studies.constrained_law.statistics import as_run, decoded, rejection_queries, weighted

_SHOWN = 8
_COLUMNS = {
    "valid": "valid",
    "total variation": "tv",
    "queries an output": "queries",
    "ESS a query": "ess_per_query",
    "CPU seconds an output": "cpu_seconds",
}
_REJECTION: dict[str, Statistic | float] = {
    "valid": 1.0,
    "total variation": 0.0,
    "queries an output": rejection_queries(),
}


def _sizes(rows: Rows, measure: str) -> list[int]:
    """Numbers of masked samples ("exact") or of particles ("simulated")."""
    return sorted(rows[measure]["size"].unique().tolist())


def _line(measure: str, rule: str, **values: int) -> dict[str, Statistic]:
    return {head: decoded(measure, rule, column, **values) for head, column in _COLUMNS.items()}


@result_table(
    "What each decoding rule samples, and what it costs",
    "Definitions 3.1.4 and 3.1.5, Algorithms 1 and 2",
    rows_are="decoding rule",
    note="means over questions, ± one standard deviation over seeds; rejection: geometric mean. N = 1 is masked "
    "decoding. The total variation of walks as run is that of the counts of few outputs, which adds their sampling "
    "error. Sequential Monte Carlo ran with 16 particles; the value-guided walk ran to its first leaf, but was "
    "stopped after the most queries that the config allows. A token that the rule forbids is masked out, not "
    "redrawn",
)
def _cells(rows: Rows) -> Cells:
    drawn, particles = _sizes(rows, "exact"), _sizes(rows, "simulated")
    return {
        **{f"masked, weighted, N = {n}": _line("exact", "masked, weighted", size=n) for n in drawn},
        "value-guided": _line("exact", "value-guided"),
        **{f"smc, N = {n}": _line("simulated", "smc", size=n) for n in particles},
        **{f"{rule}, as run": _line("run", rule) for rule in RULES},
        "rejection (expected)": _REJECTION,
    }


def _answers(rows: Rows, laws: list[str]) -> DataFrame:
    """Laws of the answers to the first question whose rule is a regular expression, the most probable first.

    The last line is what breaks the rule.
    """
    answers = rows.where("answer", kind="regex", seed=rows["answer"].seed.min())
    shown = answers.sort_values("restricted", ascending=False).set_index("text")[laws].fillna(0.0)
    broken = (1.0 - shown.sum()).clip(lower=0.0).to_frame("breaks the rule").T
    return pd.concat([shown.head(_SHOWN), broken])


@figure(
    "laws-and-cost",
    "Left: what decoding rules answer to the first question, beside the model restricted to the rule. "
    "Right: how far their outputs are from the restricted law, and how many queries an output takes: means, and "
    "bars of one deviation over seeds.",
)
def _draw_laws(rows: Rows) -> Drawing:
    drawing, (bars, lines) = panels(2, width=5.2, height=4.4, width_ratios=(2, 3))
    sizes, particles = _sizes(rows, "exact"), _sizes(rows, "simulated")
    bars_of = {
        "restricted": (QUIET, "the model, restricted to the rule"),
        "masked": (BAD, "masked decoding"),
        f"masked, weighted, {sizes[-1]}": (COLORS[7], f"drawn by weight among {sizes[-1]} of them"),
        "value-guided": (COLORS[4], "value-guided"),
        "backtracking, as run": (COLORS[3], "backtracking (as run)"),
    }
    answers = _answers(rows, list(bars_of))
    for place, (law, (color, label)) in enumerate(bars_of.items()):
        offsets = [index + (place - 2) * 0.17 for index in range(len(answers))]
        bars.barh(offsets, answers[law], height=0.16, color=color, label=label)
    bars.set(xlabel="probability of the answer", yticks=range(len(answers)), yticklabels=list(answers.index))
    bars.set_title("One question")
    bars.invert_yaxis()
    bars.legend()
    curves = (
        ("drawn by weight among N masked samples", BAD, "exact", "masked, weighted", sizes),
        ("sequential Monte Carlo, N particles", GOOD, "simulated", "smc", particles),
        ("value-guided, first leaf", COLORS[4], "exact", "value-guided", [1]),
    )
    for label, color, measure, rule, numbers in curves:
        costs = [decoded(measure, rule, "queries", size=size)(rows).mean() for size in numbers]
        distances = [decoded(measure, rule, size=size) for size in numbers]
        spread(lines, costs, distances, rows, color=color, label=label)
    cost, label = as_run("backtracking", "queries")(rows).mean(), "backtracking, Q = B = 4 (as run)"
    spread(lines, [cost], [as_run("backtracking")], rows, "o", color=COLORS[3], label=label)
    masked, rejection = weighted(1)(rows).mean(), rejection_queries()(rows).iloc[0]
    lines.axhline(masked, color=BAD, lw=1, ls=":", label="masked decoding, however often")
    lines.axvline(rejection, color=QUIET, lw=1, ls="--", label="rejection, exact (expected queries)")
    lines.set(xscale="log", yscale="log", xlabel="queries per output")
    finish(lines, "Total variation to the restricted law, mean over questions", legend=True)
    return drawing


FIGURES = (_draw_laws,)
TABLES = (_cells,)
