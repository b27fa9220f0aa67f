"""The figure and the table of the study."""

import pandas as pd
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab import ledger
from trialogue_lab.ledger import BAD, COLORS, GOOD, QUIET, Rows, Statistic
from trialogue_lab.studies.constrained_law.measure import METHODS
from trialogue_lab.studies.constrained_law.statistics import (
    decoded,
    make_sampled_statistic,
    make_weighted_statistic,
    rejection_queries,
)

_SHOWN = 8
_COLUMNS = {
    "valid": "valid",
    "total variation": "tv",
    "model calls per output": "queries",
    "ESS per model call": "ess_per_query",
    "CPU seconds per output": "cpu_seconds",
}
_REJECTION: dict[str, Statistic | float] = {
    "valid": 1.0,
    "total variation": 0.0,
    "model calls per output": rejection_queries(),
}


def _make_line(measure: str, rule: str, **values: int) -> dict[str, Statistic]:
    return {head: decoded(measure, rule, column, **values) for head, column in _COLUMNS.items()}


@ledger.result_table(
    "What each decoding method samples, and its cost",
    "Definitions 3.1.4 and 3.1.5, Algorithms 1 and 2",
    row_heading="decoding method",
    note="means over questions, ± one standard deviation over seeds; rejection: geometric mean. N = 1 is masked "
    "decoding, which masks a rejected token and does not sample it again. The total variation of samplers as run "
    "includes the sampling error of few outputs. Sequential Monte Carlo ran with 16 particles. The value-guided walk "
    "ran to its first leaf, or to the limit of model calls",
)
def _methods_table(rows: Rows) -> ledger.Cells:
    drawn, particles = rows.distinct("exact", "size"), rows.distinct("simulated", "size")
    # Results from before a method was added have no rows of it.
    measured = rows.distinct("run", "rule")
    return {
        **{f"masked, weighted, N = {n}": _make_line("exact", "masked, weighted", size=n) for n in drawn},
        "value-guided": _make_line("exact", "value-guided"),
        **{f"smc, N = {n}": _make_line("simulated", "smc", size=n) for n in particles},
        **{f"{name}, as run": _make_line("run", name) for name in METHODS if name in measured},
        "rejection (expected)": _REJECTION,
    }


def _select_answers(rows: Rows, methods: list[str]) -> DataFrame:
    """Return the probabilities of the most probable answers to one question, by decoding method.

    The last row, "invalid", is the probability of invalid answers.
    """
    answers = rows.where("answer", kind="regex", seed=rows["answer"].seed.min())
    shown = answers.sort_values("restricted", ascending=False).set_index("text")[methods].fillna(0.0)
    invalid = (1.0 - shown.sum()).clip(lower=0.0).to_frame("invalid").T
    return pd.concat([shown.head(_SHOWN), invalid])


@ledger.figure(
    "laws-and-cost",
    "Left: answers of decoding methods to the first question, compared with the model conditioned on the constraint. "
    "Right: total variation to the conditioned model against model calls per output. Means, with bars of one standard "
    "deviation over seeds.",
)
def _methods_figure(rows: Rows) -> Drawing:
    drawing, (bars, lines) = ledger.panels(2, width=5.2, height=5.4, width_ratios=(2, 3))
    sizes, particles = rows.distinct("exact", "size"), rows.distinct("simulated", "size")
    bars_of = {
        "restricted": (QUIET, "the model, conditioned on the constraint"),
        "masked": (BAD, "masked decoding"),
        f"masked, weighted, {sizes[-1]}": (COLORS[7], f"one of {sizes[-1]} masked outputs, by weight"),
        "value-guided": (COLORS[4], "value-guided"),
        "backtracking, as run": (COLORS[3], "backtracking (as run)"),
    }
    answers = _select_answers(rows, list(bars_of))
    for place, (column, (color, label)) in enumerate(bars_of.items()):
        offsets = [index + (place - 2) * 0.17 for index in range(len(answers))]
        bars.barh(offsets, answers[column], height=0.16, color=color, label=label)
    bars.set(xlabel="probability of the answer", yticks=range(len(answers)), yticklabels=list(answers.index))
    bars.set_title("One question")
    bars.invert_yaxis()
    bars.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14))
    curves = (
        ("one of N masked outputs, by weight", BAD, "exact", "masked, weighted", sizes),
        ("sequential Monte Carlo, N particles", GOOD, "simulated", "smc", particles),
        ("value-guided, first leaf", COLORS[4], "exact", "value-guided", [1]),
    )
    for label, color, measure, rule, numbers in curves:
        costs = [decoded(measure, rule, "queries", size=size)(rows).mean() for size in numbers]
        distances = [decoded(measure, rule, size=size) for size in numbers]
        ledger.spread(lines, costs, distances, rows, color=color, label=label)
    cost, label = (
        make_sampled_statistic("backtracking", "queries")(rows).mean(),
        "backtracking, Q = B = 4 (as run)",
    )
    ledger.spread(
        lines, [cost], [make_sampled_statistic("backtracking")], rows, "o", color=COLORS[3], label=label
    )
    masked, rejection = make_weighted_statistic(1)(rows).mean(), rejection_queries()(rows).iloc[0]
    lines.axhline(masked, color=BAD, lw=1, ls=":", label="masked decoding, however often")
    lines.axvline(rejection, color=QUIET, lw=1, ls="--", label="rejection, exact (expected model calls)")
    lines.set(xscale="log", yscale="log", xlabel="model calls per output")
    ledger.finish(lines, "Total variation to the conditioned model")
    lines.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14))
    return drawing


FIGURES = (_methods_figure,)
TABLES = (_methods_table,)
