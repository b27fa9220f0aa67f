"""Tables and the figure of the study."""

from collections.abc import Callable
from functools import partial

from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import (
    BAD,
    COLORS,
    GOOD,
    OURS,
    QUIET,
    Cells,
    Rows,
    Statistic,
    figure,
    finish,
    panels,
    result_table,
)
from trialogue_lab.studies.code_values.measure import METHODS
from trialogue_lab.studies.code_values.statistics import (
    accepted,
    auc_after,
    cost,
    distance,
    excess_items,
    share_distinct,
)

_STYLES = dict(
    zip(METHODS, zip((QUIET, GOOD, BAD, OURS, *COLORS[3:5], GOOD), "xoDs^v*", strict=True), strict=True)
)
"""Color and marker of each method."""
_COLUMNS: dict[str, Callable[[str], Statistic]] = {
    "accepted": accepted,
    "distinct and correct": share_distinct,
    "model calls per accepted output": cost,
    "positions per accepted output": partial(cost, column="positions"),
    "squared distance": distance,
    "excess list items": excess_items,
}


@result_table(
    "Test cases with trained values",
    "Section 3.3.1",
    row_heading="method",
    note="± one standard deviation over trainings. All methods sample equally many outputs. Distances compare the "
    "numbers of list items in accepted outputs with independent outputs of rejection. They are estimated without bias, "
    "so that rejection is at zero on average. Positions include the evaluations for values of next tokens.",
)
def _methods_table(_: Rows) -> Cells:
    return {method: {head: statistic(method) for head, statistic in _COLUMNS.items()} for method in METHODS}


@result_table(
    "Trained values after each line",
    "not in the source",
    row_heading="line",
    note="± one standard deviation over trainings. The area under the ROC curve measures how well values tell accepted "
    "completions from others. Chance is 0.5.",
)
def _values_table(rows: Rows) -> Cells:
    return {
        str(line): {"area under the ROC curve": auc_after(line)} for line in rows.distinct("values", "line")
    }


TABLES = (_methods_table, _values_table)


@figure(
    "cost-and-distance",
    "Cost per accepted output by method, with the share of accepted outputs (left) and the squared distance of "
    "accepted outputs from the target by their numbers of list items (right, zero for rejection on average). Means "
    "over trainings ± one standard deviation.",
)
def _cost_figure(rows: Rows) -> Drawing:
    drawing, panes = panels(2, width=5.0, height=3.9)
    for axes, statistic, label in zip(
        panes,
        (accepted, distance),
        ("Share of accepted outputs", "Squared distance from the target"),
        strict=True,
    ):
        for method, (color, marker) in _STYLES.items():
            calls, found = cost(method)(rows), statistic(method)(rows)
            axes.errorbar(
                calls.mean(),
                found.mean(),
                found.std(),
                calls.std(),
                fmt=marker,
                color=color,
                label=method,
                ms=7,
                mfc="none",
            )
        axes.set(xscale="log")
        finish(axes, label, xlabel="model calls per accepted output")
    panes[0].set_ylim(0, 1.05)
    panes[1].axhline(0, color=QUIET, lw=0.8, ls=":")
    panes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return drawing


FIGURES = (_cost_figure,)
