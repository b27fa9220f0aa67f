"""Tables of the study: its quantities, with either model, beside the numbers of the thesis."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from pandas import DataFrame

from trialogue_lab.ledger import Cells, ResultTable, Rows, Statistic, result_table
from trialogue_lab.studies.test_cases import decodings
from trialogue_lab.studies.test_cases.config import ROLES, Role, headed
from trialogue_lab.studies.test_cases.decodings import (
    BASELINE,
    HIGH,
    TRAINED,
    DecodingRule,
    below_half,
    block_best_of,
    out_of_distribution,
)
from trialogue_lab.studies.test_cases.draws import TIMED
from trialogue_lab.studies.test_cases.published import LAYER, MODEL, PUBLISHED, VALIDATION
from trialogue_lab.studies.test_cases.statements import THESIS
from trialogue_lab.studies.test_cases.statistics import measured, milliseconds, per_query, timed, validation

HEAD = "distinct accuracy"
VALIDATED = "validation accuracy"
_SPREAD = "± one standard deviation over repetitions"
DEVIATIONS = (
    "the thesis runs CodeLlama-7B on prompts without a demonstration of the target function, with 8 cases of at most "
    "384 tokens; but in the preset paper ours is a smaller model whose prompts hold one demonstration, with 4 cases of "
    "at most 96 tokens; from scratch: a model of two blocks that learned flawed completions alone"
)


def line(decoding: DecodingRule, roles: tuple[Role, ...] = ROLES) -> dict[str, Statistic]:
    """What is measured of a decoding, with either model."""
    return {
        headed(head, role): quantity
        for role in roles
        for head, quantity in (
            (HEAD, measured(decoding, role=role)),
            ("queries", measured(decoding, "queries", role)),
            ("distinct correct per 100 queries", per_query(decoding, role)),
        )
    }


def lines(rules: Mapping[str, DecodingRule]) -> dict[str, dict[str, Statistic]]:
    """Return a line of each decoding, by its label."""
    return {label: line(rule) for label, rule in rules.items()}


def table(
    title: str,
    source: str,
    rules: Mapping[str, DecodingRule],
    note: str = "",
    cells: Cells | Callable[[Rows], Cells] | None = None,
    accuracies: Mapping[str, float] | None = None,
) -> ResultTable:
    """Return a table of our numbers next to the published ones.

    Args:
        title: The title above the table.
        source: Place within the thesis' section.
        rules: The decodings of the table's lines, by label. A decoding without published numbers has only ours.
        note: A remark below the table.
        cells: Our cells, by default those of `rules`.
        accuracies: Published validation accuracies, by label.
    """
    published = {}
    for label, rule in rules.items():
        if rule in PUBLISHED:
            accuracy, queries = PUBLISHED[rule]
            printed = {HEAD: accuracy, "queries": queries, VALIDATED: (accuracies or {}).get(label, math.nan)}
            published[label] = {head: number for head, number in printed.items() if not math.isnan(number)}
    return ResultTable(
        title=title,
        source=f"{THESIS}, {source}",
        cells=cells or lines(rules),
        published=published,
        note="; ".join(filter(None, (_SPREAD, note, DEVIATIONS))),
    )


def setting(decoding: DecodingRule) -> str:
    """A label that says how a decoding with or without a trained verifier draws."""
    head = "no verifier" if decoding.judge == "none" else f"Q = {decoding.quota}, B = {decoding.stride}"
    tail = f", below {decoding.threshold}" if decoding.quota else ""
    return f"{head}, top-p {decoding.top_p}, T = {decoding.temperature}{tail}"


def layer_label(layer: int, threshold: float, network: str) -> str:
    """A label for the verifier on one layer of a network; -1 is the last."""
    return f"{'last layer' if layer < 0 else f'layer {layer}'}, below {threshold}, {network}"


_OTHERS = {"random verifier": decodings.RANDOM, "no verifier": BASELINE}


def _layers(rows: Rows) -> Cells:
    probes = rows.where("probe", kind="token", depth=1)
    found: dict[str, dict[str, Statistic]] = {}
    layers = probes[["model", "network", "layer", "chosen"]].drop_duplicates().itertuples(index=False)
    for role, network, layer, chosen in layers:
        for rule in (TRAINED, HIGH) if layer < 0 else (TRAINED,):
            cells = found.setdefault(layer_label(layer, rule.threshold, network), {})
            cells[headed(VALIDATED, role)] = validation(role, kind="token", layer=layer, depth=1)
            cells |= line(rule if chosen else replace(rule, layer=layer), (role,))
    return found | lines(_OTHERS)


def _depths(rows: Rows) -> Cells:
    def validated(**values: object) -> dict[str, Statistic]:
        return {headed(VALIDATED, role): validation(role, **values) for role in ROLES}

    depths = {
        f"depth {depth}": validated(kind="token", depth=depth, chosen=True)
        | line(TRAINED if depth == 1 else replace(TRAINED, depth=depth))
        for depth in sorted(rows["probe"].depth.unique().tolist())
    }
    return depths | lines(_OTHERS) | {"block verifier": validated(kind="block")}


@result_table(
    "Section 3.4.1. Queries and processor seconds",
    f"{THESIS}; section 3.4.1",
    note="alone: one completion after the other; in a batch: as many rows as the tables above move at once; "
    + DEVIATIONS,
)
def _seconds(_: Rows) -> Cells:
    found: dict[str, dict[str, Statistic]] = {}
    for decoding in TIMED:
        label = f"block best-of-{decoding.candidates}" if decoding.candidates else setting(decoding)
        cells = found[label] = {}
        for role in ROLES:
            cells[headed("queries alone", role)] = timed(decoding.name, "queries", role)
            cells[headed("ms per query alone", role)] = timed(decoding.name, "milliseconds", role)
            cells[headed("ms per query in a batch", role)] = milliseconds(decoding, role)
    return found


@result_table(
    "First errors of the completions that the verifiers learn from",
    f"{THESIS}.4",
    rows_are="first error",
    note=DEVIATIONS,
)
def _errors(rows: Rows) -> DataFrame:
    counts = rows["collect"].groupby(["error", "model"])["count"].sum().unstack(fill_value=0)
    shares = counts / counts.sum()
    return shares.sort_values(list(shares.columns), ascending=False)


TABLES = (
    table(
        "Tables 3.6 and 3.13. Algorithm 1 and what it is held against (top-p 0.95, T = 1)",
        "Tables 3.6 and 3.13",
        {
            "Algorithm 1, Q = B = 4": TRAINED,
            "block best-of-2": block_best_of(2),
            "no verifier": BASELINE,
            "block best-of-4": block_best_of(4),
            "block best-of-8": block_best_of(8),
            "greedy": decodings.GREEDY,
        },
    ),
    table(
        "Tables 3.6 and 3.13. The same at top-p 1",
        "Tables 3.6 and 3.13",
        {
            setting(rule): rule
            for rule in (
                decodings.WIDE,
                decodings.WIDE_LONG_STRIDE,
                decodings.WIDE_BASELINE,
                decodings.HOT,
                decodings.HOT_BASELINE,
            )
        },
    ),
    table(
        "Table 3.10. The threshold below which a prefix is rejected",
        "Table 3.10",
        {
            setting(rule): rule
            for low in (TRAINED, decodings.WIDE, decodings.HOT, decodings.WIDE_LONG_STRIDE)
            for rule in (low, below_half(low))
        },
        "the last row's threshold is 0.5: the thesis prints 0.1 there, and 0.5 in Table 3.13",
    ),
    table(
        "Table 3.12. What the verifier knows, and larger quotas and strides",
        "Table 3.12",
        {
            "ground truth, Q = 4, B = 4": decodings.GROUND_TRUTH,
            "ground truth, Q = 10, B = 4": decodings.GROUND_TRUTH_LARGE_QUOTA,
            "trained, Q = 4, B = 4": TRAINED,
            "trained, Q = 10, B = 4": decodings.LARGE_QUOTA,
            "random, Q = 4, B = 4": decodings.RANDOM,
            "no verifier": BASELINE,
            "trained, Q = 4, B = 10": decodings.LONG_STRIDE,
        },
        "the thesis' last row is that of top-p 1 in Table 3.13, although the caption says 0.95",
    ),
    table(
        "Tables 3.14 and 3.15. Function names that mean something else",
        "Tables 3.14 and 3.15",
        {
            f"{label}, {where}": place(decoding)
            for label, decoding in (("below 0.1", TRAINED), ("below 0.5", HIGH), ("no verifier", BASELINE))
            for where, place in (("in distribution", replace), ("out of distribution", out_of_distribution))
        },
        "the model from scratch reads random names alone, of which none misleads",
    ),
    table(
        "Table 3.17. Leaving out the greedy redo, and the redo of the released code",
        "Table 3.17",
        {
            "Algorithm 1, below 0.1": TRAINED,
            "no argmax, below 0.1": decodings.NO_ARGMAX,
            "as released, below 0.1": decodings.RELEASED,
            "Algorithm 1, below 0.5": HIGH,
            "no argmax, below 0.5": decodings.HIGH_NO_ARGMAX,
        },
        "as released, redone tokens accumulate and every prefix is judged",
    ),
    table(
        "Table 3.13. Nucleus and temperature grid without a verifier",
        "Table 3.13",
        {
            f"top-p {rule.top_p}, T = {rule.temperature}": rule
            for rule in (*decodings.PLANE, decodings.GREEDY)
        },
        "greedy decoding stands for top-p 0 and for T = 0",
    ),
    table(
        "Table 3.9. The layer that the verifier reads",
        "Tables 3.9 and 3.13",
        {layer_label(rule.layer, rule.threshold, MODEL): rule for rule in PUBLISHED if rule.layer is not None}
        | {layer_label(LAYER, TRAINED.threshold, MODEL): TRAINED}
        | _OTHERS,
        "layers counted in blocks (the thesis' layer 27 is 28 here, its 31 the last, after the final norm); for its "
        "last layer Table 3.9 prints 0.688, which is the number of the threshold 0.5 in Table 3.13",
        _layers,
    ),
    table(
        "Table 3.11. The depth of the verifier",
        "Table 3.11",
        {"depth 1": TRAINED}
        | {f"depth {depth}": replace(TRAINED, depth=depth) for depth in (2, 4, 8)}
        | _OTHERS,
        "the block verifier is that of block best-of-n",
        _depths,
        VALIDATION,
    ),
    _seconds,
    _errors,
)
