"""Tables and the figure of the study."""

import numpy as np
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import (
    BAD,
    COLORS,
    GOOD,
    QUIET,
    ResultTable,
    Rows,
    figure,
    finish,
    panels,
    result_table,
)
from trialogue_lab.studies.exact_rejection.requests import SCHEMAS
from trialogue_lab.studies.exact_rejection.statistics import first_of_shared, of_question, question_calls

_questions_table = ResultTable(
    title="Model calls per output on the questions of constrained-law",
    source="ours",
    row_heading="method",
    note="geometric means over questions, ± one standard deviation over seeds. Distinct calls leave out prefixes that "
    "the run has evaluated before, of this or of earlier outputs of the question. The distinct calls of the first "
    "output are those of the first of the successive outputs. Rejection is computed from the probability of the "
    "constraint and the mean calls of an attempt",
    cells={
        "masked decoding": {
            "calls": question_calls("masked"),
            "distinct calls": question_calls("masked", "distinct"),
        },
        "first exact output": {
            "calls": question_calls("first"),
            "distinct calls": first_of_shared("distinct"),
        },
        "successive exact outputs with a shared table": {
            "calls": question_calls("shared"),
            "distinct calls": question_calls("shared", "distinct"),
        },
        "rejection that stops at the first rejected token": {"calls": of_question("stopping_calls")},
    },
)


@result_table(
    "Requests for JSON by schema",
    "ours",
    row_heading="schema",
    note="Means over requests. Calls per exact output count the calls of failed outputs. Distinct calls leave out "
    "prefixes that the run has evaluated before. Outputs that exceed the budget of attempts are not accepted. The mass "
    "of the constraint is estimated from the weights of masked decoding, whose effective samples are per output",
)
def _requests_table(rows: Rows) -> DataFrame:
    table = rows["request"].groupby("schema").mean(numeric_only=True).loc[list(SCHEMAS)]
    columns = {
        "tokens of masked outputs": table.masked_length,
        "estimated mass": table.estimated_mass,
        "accepted within the budget": table.accepted / table.outputs,
        "calls per exact output": table.calls / table.accepted.replace(0, np.nan),
        "distinct": table.distinct / table.accepted.replace(0, np.nan),
        "calls of masked decoding": table.masked_calls / table.masked_outputs,
        "distinct, masked": table.masked_distinct / table.masked_outputs,
        "effective samples per masked output": table.masked_effective / table.masked_outputs,
    }
    return DataFrame(columns)


@result_table(
    "Exact checks on random trees",
    "arXiv 2510.01902 and 2405.21047",
    row_heading="sampler and verifier",
    note="ASAp is the algorithm of grammar-aligned decoding. Largest error of an output probability over all "
    "trees: of the first sample, of a sample after each of the successive ones, and of the second sample after any "
    "table that the first can leave. Expected model calls of the first and of the last sample are means over trees",
    digits=2,
)
def _trees_table(rows: Rows) -> DataFrame:
    groups = rows["tree"].groupby(["sampler", "verifier"])
    largest = groups[["first_error", "later_error", "second_error"]].max()
    means = groups[["calls", "later_calls"]].mean()
    table = largest.join(means).set_axis([", ".join(label) for label in largest.index])
    names = ("first sample", "later samples", "second sample", "calls, first", "calls, last")
    return table.set_axis(list(names), axis=1)


TABLES = (_questions_table, _requests_table, _trees_table)


@figure(
    "calls",
    "Left: model calls of successive outputs that share a table, as means over the questions of "
    "constrained-law. Middle: calls per exact output of requests for JSON against the length of masked outputs; "
    "requests without an output within the budget are at the top. Right: total variation of successive samples of ASAp "
    "to the restricted distribution, on trees with four allowed outputs.",
)
def _calls_figure(rows: Rows) -> Drawing:
    drawing, (left, middle, right) = panels(3, width=5.0, height=3.9)
    shared = rows["shared"]
    for column, fmt, color, label in (
        ("calls", ".-", GOOD, "all calls"),
        ("distinct", ".", COLORS[4], "distinct calls"),
    ):
        means = shared.groupby("output")[column].mean()
        left.plot(means.index + 1, means, fmt, color=color, lw=1, label=f"exact, {label}")
    left.axhline(rows["masked"].calls.mean(), color=BAD, ls=":", label="masked decoding, all calls")
    finish(left, "Questions", legend=True, xscale="log", yscale="log", xlabel="output", ylabel="model calls")
    requests = rows["request"]
    top = 2 * float((requests.calls / requests.accepted.replace(0, np.nan)).max())
    for free, color, label in ((False, GOOD, "bounded fields"), (True, COLORS[3], "free strings")):
        chosen = requests[requests.free == free]
        calls = (chosen.calls / chosen.accepted.replace(0, np.nan)).fillna(top)
        middle.plot(chosen.masked_length, calls, "o", ms=4, color=color, label=f"exact, {label}")
    length = np.array([requests.masked_length.min(), requests.masked_length.max()])
    middle.plot(length, length, color=BAD, ls=":", label="one call per token")
    middle.plot(length, 10 * length, color=QUIET, ls="--", label="ten calls per token")
    finish(
        middle,
        "Requests",
        legend=True,
        xscale="log",
        yscale="log",
        xlabel="tokens of masked outputs",
        ylabel="calls per output",
    )
    rare = rows["rare tree"]
    for _, tree in rare.groupby("seed"):
        right.plot(tree.earlier + 1, tree.tv, "-", color=QUIET, lw=0.8)
    mean = rare.groupby("earlier").tv.mean()
    right.plot(mean.index + 1, mean, "o-", ms=3, color=BAD, label="ASAp, mean over trees")
    right.axhline(0, color=GOOD, label="adaptive rejection")
    finish(right, "Bias of ASAp", legend=True, xscale="log", xlabel="sample", ylabel="total variation")
    return drawing


FIGURES = (_calls_figure,)
