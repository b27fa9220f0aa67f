"""Tables of the study: its quantities beside the numbers of the thesis."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from pandas import DataFrame

from trialogue.ledger import Cells, Quantity, ResultTable, Rows
from trialogue.studies.test_cases.claims import THESIS
from trialogue.studies.test_cases.decodings import (
    BASELINE,
    GREEDY,
    GROUND_TRUTH,
    GROUND_TRUTH_LARGE_QUOTA,
    HIGH,
    HIGH_NO_ARGMAX,
    HOT,
    HOT_BASELINE,
    LARGE_QUOTA,
    LONG_STRIDE,
    NO_ARGMAX,
    RANDOM,
    TEMPERATURES,
    TOP_PS,
    TRAINED,
    WIDE,
    WIDE_BASELINE,
    WIDE_LONG_STRIDE,
    DecodingRule,
    below_half,
    block_best_of,
    out_of_distribution,
)
from trialogue.studies.test_cases.published import LAYER, MODEL, PUBLISHED, VALIDATION
from trialogue.studies.test_cases.quantities import measured, per_query, validation

_HEAD = "distinct accuracy"
_VALIDATION = "validation accuracy"
_OTHERS = {"random verifier": RANDOM, "no verifier": BASELINE}
_SPREAD = "± one standard deviation over repetitions, of validation accuracies over verifiers"
_DEVIATIONS = (
    "the thesis runs CodeLlama-7B on prompts without a demonstration of the target function, with 8 cases of at most "
    "384 tokens; but in the preset paper ours is a smaller model whose prompts hold one demonstration, with 4 cases of "
    "at most 96 tokens"
)


def _line(decoding: DecodingRule) -> dict[str, Quantity]:
    return {
        _HEAD: measured(decoding),
        "queries": measured(decoding, "queries"),
        "distinct correct per 100 queries": per_query(decoding),
    }


def _lines(decodings: Mapping[str, DecodingRule]) -> dict[str, dict[str, Quantity]]:
    return {label: _line(decoding) for label, decoding in decodings.items()}


def _table(
    title: str,
    source: str,
    decodings: Mapping[str, DecodingRule],
    note: str = "",
    cells: Callable[[Rows], Cells] | None = None,
    accuracies: Mapping[str, float] | None = None,
) -> ResultTable:
    """Our numbers of `decodings`, or `cells`, beside the thesis' and its validation `accuracies`, by label."""
    published = {}
    for label, decoding in decodings.items():
        accuracy, queries = PUBLISHED[decoding]
        printed = {_HEAD: accuracy, "queries": queries, _VALIDATION: (accuracies or {}).get(label, math.nan)}
        published[label] = {head: number for head, number in printed.items() if not math.isnan(number)}
    return ResultTable(
        title=title,
        source=f"{THESIS}, {source}",
        cells=cells or _lines(decodings),
        published=published,
        note="; ".join(filter(None, (_SPREAD, note, _DEVIATIONS))),
    )


def _setting(decoding: DecodingRule) -> str:
    """A label that says how a decoding with or without a trained verifier draws."""
    head = "no verifier" if decoding.judge == "none" else f"Q = {decoding.quota}, B = {decoding.stride}"
    tail = f", below {decoding.threshold}" if decoding.quota else ""
    return f"{head}, top-p {decoding.top_p}, T = {decoding.temperature}{tail}"


def _layer(layer: int, threshold: float, model: str) -> str:
    """A label for the verifier on one layer of a model; -1 is the last."""
    return f"{'last layer' if layer < 0 else f'layer {layer}'}, below {threshold}, {model}"


def _layers(rows: Rows) -> Cells:
    probes = rows.where("probe", kind="token", depth=1)
    layers = probes[["model", "layer", "chosen"]].drop_duplicates().itertuples(index=False)
    return {
        _layer(layer, kind.threshold, model): {_VALIDATION: validation(kind="token", layer=layer, depth=1)}
        | _line(kind if chosen else replace(kind, layer=layer))
        for model, layer, chosen in layers
        for kind in ((TRAINED, HIGH) if layer < 0 else (TRAINED,))
    } | _lines(_OTHERS)


def _depths(rows: Rows) -> Cells:
    depths = {
        f"depth {depth}": {_VALIDATION: validation(kind="token", depth=depth, chosen=True)}
        | _line(TRAINED if depth == 1 else replace(TRAINED, depth=depth))
        for depth in sorted(rows["probe"].depth.unique().tolist())
    }
    return depths | _lines(_OTHERS) | {"block verifier": {_VALIDATION: validation(kind="block")}}


def _errors(rows: Rows) -> DataFrame:
    """Share of each first error in the completions that the verifiers learn from."""
    counts = rows["collect"].groupby("error")["count"].sum().sort_values(ascending=False)
    return (counts / counts.sum()).to_frame("share")


TABLES = (
    _table(
        "Tables 3.6 and 3.13. Algorithm 1 and what it is held against (top-p 0.95, T = 1)",
        "Tables 3.6 and 3.13",
        {
            "Algorithm 1, Q = B = 4": TRAINED,
            "block best-of-2": block_best_of(2),
            "no verifier": BASELINE,
            "block best-of-4": block_best_of(4),
            "block best-of-8": block_best_of(8),
            "greedy": GREEDY,
        },
    ),
    _table(
        "Tables 3.6 and 3.13. The same at top-p 1",
        "Tables 3.6 and 3.13",
        {
            _setting(decoding): decoding
            for decoding in (WIDE, WIDE_LONG_STRIDE, WIDE_BASELINE, HOT, HOT_BASELINE)
        },
    ),
    _table(
        "Table 3.10. The threshold below which a prefix is rejected",
        "Table 3.10",
        {
            _setting(decoding): decoding
            for above in (TRAINED, WIDE, HOT, WIDE_LONG_STRIDE)
            for decoding in (above, below_half(above))
        },
        "the last row's threshold is 0.5: the thesis prints 0.1 there, and 0.5 in Table 3.13",
    ),
    _table(
        "Table 3.12. What the verifier knows, and larger quotas and strides",
        "Table 3.12",
        {
            "ground truth, Q = 4, B = 4": GROUND_TRUTH,
            "ground truth, Q = 10, B = 4": GROUND_TRUTH_LARGE_QUOTA,
            "trained, Q = 4, B = 4": TRAINED,
            "trained, Q = 10, B = 4": LARGE_QUOTA,
            "random, Q = 4, B = 4": RANDOM,
            "no verifier": BASELINE,
            "trained, Q = 4, B = 10": LONG_STRIDE,
        },
        "the thesis' last row is that of top-p 1 in Table 3.13, although the caption says 0.95",
    ),
    _table(
        "Table 3.15. Function names that mean something else",
        "Table 3.15",
        {
            f"{label}, {where}": place(decoding)
            for label, decoding in (("below 0.1", TRAINED), ("below 0.5", HIGH), ("no verifier", BASELINE))
            for where, place in (("in distribution", replace), ("out of distribution", out_of_distribution))
        },
    ),
    _table(
        "Table 3.17. Leaving out the greedy redo",
        "Table 3.17",
        {
            "Algorithm 1, below 0.1": TRAINED,
            "no argmax, below 0.1": NO_ARGMAX,
            "Algorithm 1, below 0.5": HIGH,
            "no argmax, below 0.5": HIGH_NO_ARGMAX,
        },
    ),
    _table(
        "Table 3.13. Nucleus and temperature grid without a verifier",
        "Table 3.13",
        {
            f"top-p {top_p}, T = {temperature}": DecodingRule(top_p=top_p, temperature=temperature)
            for top_p in TOP_PS
            if top_p > 0
            for temperature in TEMPERATURES
        },
    ),
    _table(
        "Table 3.9. The layer that the verifier reads",
        "Tables 3.9 and 3.13",
        {
            _layer(decoding.layer, decoding.threshold, MODEL): decoding
            for decoding in PUBLISHED
            if decoding.layer is not None
        }
        | {_layer(LAYER, TRAINED.threshold, MODEL): TRAINED}
        | _OTHERS,
        "layers counted in blocks (the thesis' layer 27 is 28 here, its 31 the last, after the final norm); for its "
        "last layer Table 3.9 prints 0.688, which is the number of the threshold 0.5 in Table 3.13",
        _layers,
    ),
    _table(
        "Table 3.11. The depth of the verifier",
        "Table 3.11",
        {"depth 1": TRAINED}
        | {f"depth {depth}": replace(TRAINED, depth=depth) for depth in (2, 4, 8)}
        | _OTHERS,
        "the block verifier is that of block best-of-n",
        _depths,
        VALIDATION,
    ),
    ResultTable(
        title="First errors of the completions that the verifiers learn from",
        source=f"{THESIS}.4",
        cells=_errors,
        rows_are="first error",
        note=_DEVIATIONS,
    ),
)
