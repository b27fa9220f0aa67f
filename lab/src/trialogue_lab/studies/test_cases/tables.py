"""Tables of the study: its quantities beside the numbers of the thesis."""

from collections.abc import Iterator
from dataclasses import replace

from pandas import DataFrame

from trialogue_lab.ledger import Cells, ResultTable, Rows, Statistic
from trialogue_lab.studies.test_cases.decodings import (
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
    PLANE,
    RANDOM,
    RELEASED,
    TRAINED,
    WIDE,
    WIDE_BASELINE,
    WIDE_LONG_STRIDE,
    below_half,
    block_best_of,
    out_of_distribution,
)
from trialogue_lab.studies.test_cases.lines import (
    DEVIATIONS,
    VALIDATED,
    headed,
    layer_label,
    line,
    lines,
    setting,
    table,
)
from trialogue_lab.studies.test_cases.published import LAYER, MODEL, PUBLISHED, VALIDATION
from trialogue_lab.studies.test_cases.speed import TIMED
from trialogue_lab.studies.test_cases.statistics import milliseconds, timed, validation
from trialogue_lab.studies.test_cases.subjects import ROLES
from trialogue_lab.studies.test_cases.twins import THESIS

_OTHERS = {"random verifier": RANDOM, "no verifier": BASELINE}


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


def _seconds() -> Iterator[tuple[str, dict[str, Statistic]]]:
    for decoding in TIMED:
        cells: dict[str, Statistic] = {}
        for role in ROLES:
            cells |= {
                headed("queries alone", role): timed(decoding.name, "queries", role),
                headed("ms per query alone", role): timed(decoding.name, "milliseconds", role),
                headed("ms per query in a batch", role): milliseconds(decoding, role),
            }
        yield setting(decoding) if not decoding.candidates else f"block best-of-{decoding.candidates}", cells


def _errors(rows: Rows) -> DataFrame:
    """Share of each first error in the completions that the verifiers learn from."""
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
            "greedy": GREEDY,
        },
    ),
    table(
        "Tables 3.6 and 3.13. The same at top-p 1",
        "Tables 3.6 and 3.13",
        {
            setting(decoding): decoding
            for decoding in (WIDE, WIDE_LONG_STRIDE, WIDE_BASELINE, HOT, HOT_BASELINE)
        },
    ),
    table(
        "Table 3.10. The threshold below which a prefix is rejected",
        "Table 3.10",
        {
            setting(decoding): decoding
            for above in (TRAINED, WIDE, HOT, WIDE_LONG_STRIDE)
            for decoding in (above, below_half(above))
        },
        "the last row's threshold is 0.5: the thesis prints 0.1 there, and 0.5 in Table 3.13",
    ),
    table(
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
            "no argmax, below 0.1": NO_ARGMAX,
            "Algorithm 1, below 0.5": HIGH,
            "no argmax, below 0.5": HIGH_NO_ARGMAX,
        },
        "as released, redone tokens accumulate and every prefix is judged",
        lines(
            {
                "Algorithm 1, below 0.1": TRAINED,
                "no argmax, below 0.1": NO_ARGMAX,
                "as released, below 0.1": RELEASED,
                "Algorithm 1, below 0.5": HIGH,
                "no argmax, below 0.5": HIGH_NO_ARGMAX,
            }
        ),
    ),
    table(
        "Table 3.13. Nucleus and temperature grid without a verifier",
        "Table 3.13",
        {f"top-p {decoding.top_p}, T = {decoding.temperature}": decoding for decoding in (*PLANE, GREEDY)},
        "greedy decoding stands for top-p 0 and for T = 0",
    ),
    table(
        "Table 3.9. The layer that the verifier reads",
        "Tables 3.9 and 3.13",
        {
            layer_label(decoding.layer, decoding.threshold, MODEL): decoding
            for decoding in PUBLISHED
            if decoding.layer is not None
        }
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
    ResultTable(
        title="Section 3.4.1. Queries and processor seconds",
        source=f"{THESIS}; section 3.4.1",
        cells=dict(_seconds()),
        note="alone: one completion after the other; in a batch: as many rows as the tables above move at once; "
        + DEVIATIONS,
    ),
    ResultTable(
        title="First errors of the completions that the verifiers learn from",
        source=f"{THESIS}.4",
        cells=_errors,
        rows_are="first error",
        note=DEVIATIONS,
    ),
)
