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
    LARGE_QUOTA,
    LONG_STRIDE,
    NO_ARGMAX,
    RANDOM,
    TEMPERATURES,
    TOP_PS,
    TRAINED,
    WIDE,
    Decoding,
    block_best_of,
)
from trialogue.studies.test_cases_published import PUBLISHED
from trialogue.studies.test_cases_rows import THESIS, measured, per_query, validation

_HEAD = "distinct accuracy"

_GRID_ACCURACY = {
    1.0: (0.080, 0.207, 0.399, 0.562, 0.504, 0.269),
    0.95: (0.057, 0.176, 0.337, 0.523, 0.660, 0.584),
    0.9: (0.029, 0.147, 0.284, 0.466, 0.634, 0.630),
    0.8: (0.021, 0.074, 0.212, 0.351, 0.511, 0.627),
    0.7: (0.018, 0.025, 0.101, 0.239, 0.353, 0.531),
}
_LAYERS = {
    28: 0.714, 29: 0.711, 27: 0.708, 31: 0.706, 25: 0.701, -1: 0.677, 30: 0.676, 26: 0.672,
    24: 0.709, 4: 0.700, 16: 0.700, 20: 0.692, 8: 0.691, 12: 0.650,
}  # fmt: skip
_DEPTHS = {2: (0.97, 0.687), 4: (0.97, 0.699), 8: (0.97, 0.684)}

_Cells = dict[str, dict[str, "Series[float]"]]


def _numbers(rows: DataFrame, decodings: Mapping[str, Decoding]) -> _Cells:
    cells = {
        label: {
            _HEAD: measured(rows, decoding),
            "queries": measured(rows, decoding, "queries"),
            "distinct correct per 100 queries": per_query(rows, decoding),
        }
        for label, decoding in decodings.items()
    }
    return {label: line for label, line in cells.items() if len(line[_HEAD])}


def _table(title: str, source: str, decodings: Mapping[str, Decoding], note: str = "") -> Table:
    published: dict[str, dict[str, float]] = {}
    for label, decoding in decodings.items():
        if decoding in PUBLISHED:
            accuracy, queries = PUBLISHED[decoding]
            published[label] = {_HEAD: accuracy}
            if not math.isnan(queries):
                published[label]["queries"] = queries
    return _of_cells(title, source, lambda rows: _numbers(rows, decodings), published, note)


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


def _probes(rows: DataFrame) -> _Cells:
    if "layer" not in rows:
        return {}
    cells: _Cells = {}
    for layer in sorted(rows.layer.dropna().unique().astype(int).tolist()):
        cells[f"layer {layer}"] = {
            "validation accuracy": validation(rows, "token", layer=layer, depth=1),
            _HEAD: measured(rows, replace(TRAINED, layer=layer)),
        }
    for depth in sorted(rows.depth.dropna().unique().astype(int).tolist()):
        if depth > 1:
            cells[f"depth {depth}"] = {
                "validation accuracy": validation(rows, "token", depth=depth),
                _HEAD: measured(rows, replace(TRAINED, depth=depth)),
            }
    cells["block verifier"] = {"validation accuracy": validation(rows, "block")}
    return cells


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
        "± one standard deviation over repetitions; the thesis requests 800 cases in 384-token completions",
    ),
    _table(
        "Table 3.10. The threshold below which a prefix is rejected",
        "Table 3.10",
        {
            f"Q = 4, B = {decoding.stride}, top-p {decoding.top_p}, T = {decoding.temperature}, "
            f"below {decoding.threshold}": decoding
            for decoding in (
                TRAINED,
                HIGH,
                *(
                    replace(WIDE, temperature=temperature, threshold=threshold)
                    for temperature in (1.0, 1.2)
                    for threshold in (0.1, 0.5)
                ),
                *(replace(WIDE, stride=10, threshold=threshold) for threshold in (0.1, 0.5)),
            )
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
            f"{label}, {where}": replace(decoding, out_of_distribution=where == "out of distribution")
            for label, decoding in (("below 0.1", TRAINED), ("below 0.5", HIGH), ("no verifier", BASELINE))
            for where in ("in distribution", "out of distribution")
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
    _of_cells(
        "Table 3.13. Nucleus and temperature grid without a verifier",
        "Table 3.13",
        lambda rows: _numbers(
            rows,
            {
                f"top-p {p}, T = {t}": Decoding(top_p=p, temperature=t)
                for p in TOP_PS
                if p > 0
                for t in TEMPERATURES
            },
        ),
        {
            f"top-p {p}, T = {t}": {_HEAD: accuracy}
            for p, line in _GRID_ACCURACY.items()
            for t, accuracy in zip(TEMPERATURES, line, strict=True)
        },
    ),
    _of_cells(
        "Tables 3.9 and 3.11. Layers and depths of the verifier",
        "Tables 3.9 and 3.11",
        _probes,
        {f"layer {layer}": {_HEAD: accuracy} for layer, accuracy in _LAYERS.items()}
        | {
            f"depth {depth}": {"validation accuracy": shown, _HEAD: accuracy}
            for depth, (shown, accuracy) in _DEPTHS.items()
        },
        "layers counted in blocks (the thesis' 27 is 28 here), of CodeLlama in print; -1 is what the head reads; "
        "± one standard deviation over verifiers or repetitions",
    ),
    Table(
        title="First errors of the completions that the verifiers learn from",
        source=f"{THESIS}.4",
        ours=_errors,
        rows_are="first error",
    ),
)
