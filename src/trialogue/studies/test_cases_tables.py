"""Tables of the study `test-cases`: our numbers beside those of the thesis."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from pandas import DataFrame, Series

from trialogue.ledger import Table
from trialogue.studies.test_cases_decodings import (
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
    Decoding,
    below_half,
    block_best_of,
    out_of_distribution,
)
from trialogue.studies.test_cases_published import LAYER, MODEL, PUBLISHED, VALIDATION
from trialogue.studies.test_cases_rows import THESIS, measured, per_query, validation

_HEAD = "distinct accuracy"
_VALIDATION = "validation accuracy"
_OTHERS = {"random verifier": RANDOM, "no verifier": BASELINE}

_REQUESTED = (
    "± one standard deviation over repetitions; the thesis requests 800 cases in 384-token completions"
)

_Cells = dict[str, dict[str, "Series[float]"]]


def _numbers(rows: DataFrame, decodings: Mapping[str, Decoding]) -> _Cells:
    cells = {label: _measurements(rows, decoding) for label, decoding in decodings.items()}
    return {label: line for label, line in cells.items() if len(line[_HEAD])}


def _measurements(rows: DataFrame, decoding: Decoding) -> "dict[str, Series[float]]":
    return {
        _HEAD: measured(rows, decoding),
        "queries": measured(rows, decoding, "queries"),
        "distinct correct per 100 queries": per_query(rows, decoding),
    }


def _printed(decodings: Mapping[str, Decoding]) -> dict[str, dict[str, float]]:
    """The thesis' numbers of decodings by their labels."""
    found = {label: PUBLISHED[decoding] for label, decoding in decodings.items()}
    return {
        label: {_HEAD: accuracy} | ({} if math.isnan(queries) else {"queries": queries})
        for label, (accuracy, queries) in found.items()
    }


def _table(title: str, source: str, decodings: Mapping[str, Decoding], note: str = "") -> Table:
    return _of_cells(title, source, lambda rows: _numbers(rows, decodings), _printed(decodings), note)


def _of_cells(
    title: str,
    source: str,
    cells: Callable[[DataFrame], _Cells],
    published: Mapping[str, Mapping[str, float]],
    note: str = "",
) -> Table:
    def frame(rows: DataFrame, how: Callable[["Series[float]"], float]) -> DataFrame:
        values = {
            label: {head: float(how(series)) for head, series in line.items()}
            for label, line in cells(rows).items()
        }
        return DataFrame.from_dict(values, orient="index")

    return Table(
        title=title,
        source=f"{THESIS}, {source}",
        ours=lambda rows: frame(rows, lambda series: series.mean()),
        deviation=lambda rows: frame(rows, lambda series: series.std()),
        published=published,
        note=note or "± one standard deviation over repetitions",
    )


def _setting(decoding: Decoding) -> str:
    """A label that says how a decoding with or without a trained verifier draws."""
    head = "no verifier" if decoding.judge == "none" else f"Q = {decoding.quota}, B = {decoding.stride}"
    tail = f", below {decoding.threshold}" if decoding.quota else ""
    return f"{head}, top-p {decoding.top_p}, T = {decoding.temperature}{tail}"


def _layer(layer: int, threshold: float, model: str) -> str:
    """A label for the verifier on one layer of a model; -1 is the last."""
    return f"{'last layer' if layer < 0 else f'layer {layer}'}, below {threshold}, {model}"


def _layers(rows: DataFrame) -> _Cells:
    if "validation_accuracy" not in rows:
        return {}
    cells: _Cells = {}
    probes = rows[(rows.table == "probe") & (rows.kind == "token") & (rows.depth == 1)]
    for model, layer, chosen in (
        probes[["model", "layer", "chosen"]].drop_duplicates().itertuples(index=False)
    ):
        kinds = (TRAINED, HIGH) if layer < 0 else (TRAINED,)
        drawn = {
            _layer(int(layer), kind.threshold, model): kind if chosen else replace(kind, layer=int(layer))
            for kind in kinds
        }
        shown = {_VALIDATION: validation(rows, "token", layer=int(layer), depth=1)}
        cells |= {label: shown | _measurements(rows, decoding) for label, decoding in drawn.items()}
    return cells | _numbers(rows, _OTHERS)


def _depths(rows: DataFrame) -> _Cells:
    if "validation_accuracy" not in rows:
        return {}
    cells: _Cells = {}
    for depth in sorted(rows.depth.dropna().unique().astype(int).tolist()):
        decoding = TRAINED if depth == 1 else replace(TRAINED, depth=depth)
        shown = {_VALIDATION: validation(rows, "token", depth=depth, chosen=True)}
        cells[f"depth {depth}"] = shown | _measurements(rows, decoding)
    return cells | _numbers(rows, _OTHERS) | {"block verifier": {_VALIDATION: validation(rows, "block")}}


def _errors(rows: DataFrame) -> DataFrame:
    """Share of each first error in the completions that the verifiers learn from."""
    counts = rows[rows.table == "collect"].groupby("error")["count"].sum().sort_values(ascending=False)
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
        _REQUESTED,
    ),
    _table(
        "Tables 3.6 and 3.13. The same at top-p 1",
        "Tables 3.6 and 3.13",
        {
            _setting(decoding): decoding
            for decoding in (WIDE, WIDE_LONG_STRIDE, WIDE_BASELINE, HOT, HOT_BASELINE)
        },
        _REQUESTED,
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
            f"top-p {top_p}, T = {temperature}": Decoding(top_p=top_p, temperature=temperature)
            for top_p in TOP_PS
            if top_p > 0
            for temperature in TEMPERATURES
        },
    ),
    _of_cells(
        "Table 3.9. The layer that the verifier reads",
        "Tables 3.9 and 3.13",
        _layers,
        _printed(
            {
                _layer(decoding.layer, decoding.threshold, MODEL): decoding
                for decoding in PUBLISHED
                if decoding.layer is not None
            }
            | {_layer(LAYER, TRAINED.threshold, MODEL): TRAINED}
            | _OTHERS
        ),
        "layers counted in blocks (the thesis' layer 27 is 28 here, its 31 the last, after the final norm); for its "
        "last layer Table 3.9 prints 0.688, which is the number of the threshold 0.5 in Table 3.13; ± one standard "
        "deviation over verifiers or repetitions",
    ),
    _of_cells(
        "Table 3.11. The depth of the verifier",
        "Table 3.11",
        _depths,
        {
            label: ({_VALIDATION: VALIDATION[label]} if label in VALIDATION else {}) | line
            for label, line in _printed(
                {"depth 1": TRAINED}
                | {f"depth {depth}": replace(TRAINED, depth=depth) for depth in (2, 4, 8)}
                | _OTHERS
            ).items()
        },
        "± one standard deviation over verifiers or repetitions; the block verifier is that of block best-of-n",
    ),
    Table(
        title="First errors of the completions that the verifiers learn from",
        source=f"{THESIS}.4",
        ours=_errors,
        rows_are="first error",
    ),
)
