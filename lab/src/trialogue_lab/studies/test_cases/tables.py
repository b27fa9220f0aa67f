"""Tables of the study for both models, with the published numbers of the thesis."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pandas import DataFrame

from trialogue_lab.ledger import Cells, ResultTable, Rows, Statistic, result_table
from trialogue_lab.studies.test_cases import decodings
from trialogue_lab.studies.test_cases.config import ROLES, Role, mark_heading
from trialogue_lab.studies.test_cases.draws import TIMED
from trialogue_lab.studies.test_cases.published import LAYER, MODEL, PUBLISHED, VALIDATION
from trialogue_lab.studies.test_cases.statements import THESIS
from trialogue_lab.studies.test_cases.statistics import measured, milliseconds, per_query, timed, validation

HEAD = "distinct accuracy"
VALIDATED = "validation accuracy"
_SPREAD = "Means ± one standard deviation over repetitions."
DEVIATIONS = (
    "The thesis uses CodeLlama-7B on prompts without a demonstration of the target function, with 8 cases in at most "
    "384 tokens. Except in the preset `paper`, ours is a smaller model whose prompts have one demonstration, with 4 "
    "cases in at most 96 tokens. From scratch: a model of two blocks that is trained on flawed completions only."
)


def _make_cells(decoding: decodings.DecodingRule, roles: tuple[Role, ...] = ROLES) -> dict[str, Statistic]:
    """Return the table cells of a decoding method, for each of the given models."""
    cells = {}
    for role in roles:
        cells[mark_heading(HEAD, role)] = measured(decoding, role=role)
        cells[mark_heading("queries", role)] = measured(decoding, "queries", role)
        cells[mark_heading("distinct correct per 100 queries", role)] = per_query(decoding, role)
    return cells


def _list_published(rules: Mapping[str, decodings.DecodingRule]) -> dict[str, dict[str, float]]:
    """Return the published numbers of decoding methods, by label."""
    cells = {}
    for label, rule in rules.items():
        if rule in PUBLISHED:
            accuracy, queries = PUBLISHED[rule]
            cells[label] = {HEAD: accuracy} if math.isnan(queries) else {HEAD: accuracy, "queries": queries}
    return cells


def _make_table(
    title: str, source: str, rules: Iterable[decodings.DecodingRule], note: str = ""
) -> ResultTable:
    """Return a table of decoding methods with their published numbers.

    Args:
        title: The title above the table.
        source: Place within the section of the thesis.
        rules: The decoding methods. Methods without published numbers have only ours.
        note: A remark below the table.
    """
    labelled = {rule.label: rule for rule in rules}
    return ResultTable(
        title=title,
        source=f"{THESIS}, {source}",
        cells={label: _make_cells(rule) for label, rule in labelled.items()},
        published=_list_published(labelled),
        note=" ".join(filter(None, (_SPREAD, note, DEVIATIONS))),
    )


def _make_layer_label(layer: int, threshold: float, network: str) -> str:
    return f"{'last layer' if layer < 0 else f'layer {layer}'}, below {threshold}, {network}"


@result_table(
    "Table 3.9. The layer that the verifier reads",
    f"{THESIS}, Tables 3.9 and 3.13",
    published=_list_published(
        {
            _make_layer_label(rule.layer, rule.threshold, MODEL): rule
            for rule in PUBLISHED
            if rule.layer is not None
        }
        | {_make_layer_label(LAYER, decodings.TRAINED.threshold, MODEL): decodings.TRAINED}
    ),
    note=f"{_SPREAD} Layers are numbered by the number of preceding blocks. Layer 27 of the thesis is 28 here, and its "
    "layer 31 is the last one, after the final norm. For its last layer, Table 3.9 prints 0.688, which is the number "
    f"of the threshold 0.5 in Table 3.13. {DEVIATIONS}",
)
def _layers_table(rows: Rows) -> Cells:
    probes = rows.where("probe", kind="token", depth=1)
    found: dict[str, dict[str, Statistic]] = {}
    layers = probes[["model", "network", "layer", "chosen"]].drop_duplicates().itertuples(index=False)
    for role, network, layer, chosen in layers:
        for rule in (decodings.TRAINED, decodings.HIGH) if layer < 0 else (decodings.TRAINED,):
            cells = found.setdefault(_make_layer_label(layer, rule.threshold, network), {})
            cells[mark_heading(VALIDATED, role)] = validation(role, kind="token", layer=layer, depth=1)
            cells |= _make_cells(rule if chosen else replace(rule, layer=layer), (role,))
    return found


def _make_decoding_of_depth(depth: int) -> decodings.DecodingRule:
    return decodings.TRAINED if depth == 1 else replace(decodings.TRAINED, depth=depth)


def _make_validation_cells(**values: object) -> dict[str, Statistic]:
    return {mark_heading(VALIDATED, role): validation(role, **values) for role in ROLES}


@result_table(
    "Table 3.11. The depth of the verifier",
    f"{THESIS}, Table 3.11",
    published={
        f"depth {depth}": {VALIDATED: accuracy, HEAD: PUBLISHED[_make_decoding_of_depth(depth)].accuracy}
        for depth, accuracy in VALIDATION.items()
    },
    note=f"{_SPREAD} The block verifier is the verifier of block best-of-n. {DEVIATIONS}",
)
def _depths_table(rows: Rows) -> Cells:
    depths = {
        f"depth {depth}": _make_validation_cells(kind="token", depth=depth, chosen=True)
        | _make_cells(_make_decoding_of_depth(depth))
        for depth in rows.distinct("probe", "depth")
    }
    return depths | {"block verifier": _make_validation_cells(kind="block")}


@result_table(
    "Section 3.4.1. Queries and processor time",
    f"{THESIS}; section 3.4.1",
    note=f"Alone: completions are generated one after the other. In a batch: with the batch size of the other tables. "
    f"{DEVIATIONS}",
)
def _time_table(_: Rows) -> Cells:
    found: dict[str, dict[str, Statistic]] = {}
    for decoding in TIMED:
        cells = found[decoding.label] = {}
        for role in ROLES:
            cells[mark_heading("queries alone", role)] = timed(decoding.name, "queries", role)
            cells[mark_heading("ms per query alone", role)] = timed(decoding.name, "milliseconds", role)
            cells[mark_heading("ms per query in a batch", role)] = milliseconds(decoding, role)
    return found


@result_table(
    "First errors of the completions on which the verifiers are trained",
    f"{THESIS}.4",
    row_heading="first error",
    note=f"Shares of completions. {DEVIATIONS}",
)
def _errors_table(rows: Rows) -> DataFrame:
    counts = rows["collect"].groupby(["error", "model"])["count"].sum().unstack(fill_value=0)
    shares = counts / counts.sum()
    return shares.sort_values(list(shares.columns), ascending=False)


TABLES = (
    _make_table(
        "Tables 3.6 and 3.13. Algorithm 1 and baselines (top-p 0.95, T = 1)",
        "Tables 3.6 and 3.13",
        (
            decodings.TRAINED,
            *map(decodings.make_block_best_of, (2, 4, 8)),
            decodings.BASELINE,
            decodings.GREEDY,
        ),
    ),
    _make_table(
        "Tables 3.6, 3.10 and 3.13. The threshold below which a prefix is rejected, by top-p and temperature",
        "Tables 3.6, 3.10 and 3.13",
        (
            *(
                rule
                for low in (decodings.TRAINED, decodings.WIDE, decodings.WIDE_LONG_STRIDE, decodings.HOT)
                for rule in (low, decodings.lower_threshold_to_half(low))
            ),
            decodings.WIDE_BASELINE,
            decodings.HOT_BASELINE,
        ),
        "For B = 10 and the threshold 0.5, Table 3.10 prints the threshold 0.1, and Table 3.13 prints 0.5.",
    ),
    _make_table(
        "Table 3.12. Verifiers, and larger quotas and strides",
        "Table 3.12",
        (
            decodings.GROUND_TRUTH,
            decodings.GROUND_TRUTH_LARGE_QUOTA,
            decodings.TRAINED,
            decodings.LARGE_QUOTA,
            decodings.LONG_STRIDE,
            decodings.RANDOM,
            decodings.BASELINE,
        ),
        "The thesis' number for B = 10 is that of top-p 1 in Table 3.13, although the caption says 0.95.",
    ),
    _make_table(
        "Tables 3.14 and 3.15. Misleading function names",
        "Tables 3.14 and 3.15",
        (
            rule
            for own in (decodings.TRAINED, decodings.HIGH, decodings.BASELINE)
            for rule in (own, decodings.out_of_distribution(own))
        ),
        "The prompts from scratch are random names, which cannot mislead.",
    ),
    _make_table(
        "Table 3.17. No greedy redo, and the redo of the released code",
        "Table 3.17",
        (
            decodings.TRAINED,
            decodings.NO_ARGMAX,
            decodings.RELEASED,
            decodings.HIGH,
            decodings.HIGH_NO_ARGMAX,
        ),
        "In the released code, redone tokens accumulate and every prefix is judged.",
    ),
    _make_table(
        "Table 3.13. Grid of top-p and temperature without a verifier",
        "Table 3.13",
        (*decodings.PLANE, decodings.GREEDY),
        "Greedy decoding corresponds to top-p 0 and to T = 0.",
    ),
    _layers_table,
    _depths_table,
    _time_table,
    _errors_table,
)
