"""Tables and figures of the study test-cases: published numbers next to ours for the same setting."""

import dataclasses
import re
from typing import Any

import pytest
from case_rows import drawn_records, probe_records, speed_records

from trialogue_lab.ledger import ResultTable, Rows
from trialogue_lab.ledger.runs.results import config_values
from trialogue_lab.studies.test_cases import STUDY
from trialogue_lab.studies.test_cases.config import PRESETS, ROLES, Config, Role, headed
from trialogue_lab.studies.test_cases.decodings import (
    BASELINE,
    EXTENTS,
    GROUND_TRUTH,
    RANDOM,
    TRAINED,
    DecodingRule,
    block_best_of,
    out_of_distribution,
)
from trialogue_lab.studies.test_cases.figures import FIGURES, curve_of
from trialogue_lab.studies.test_cases.published import MODEL, PUBLISHED, TABLE_3_13, VALIDATION
from trialogue_lab.studies.test_cases.tables import HEAD, TABLES

TABLE = """
| 4 | 4 | 27 | 0.1 | 0.95 | 1.0 | | 0.714 +- 0.011 | 39443 +- 235 |
| 4 | 4 | 31 | 0.5 | 0.95 | 1.0 | | 0.688 +- 0.028 | 39629 +- 135 |
| 0 | | 27 | | 0.95 | 1.0 | 2 | 0.684 +- 0.038 | 39364 +- 1252 |
| 4 | 4 | 31 | 0.1 | 0.95 | 1.0 | | 0.677 +- 0.033 | 39546 +- 98 |
| 4 | 4 | 27 | 0.5 | 0.95 | 1.0 | | 0.676 +- 0.019 | 38555 +- 140 |
| 0 | | | | 0.95 | 1.0 | | 0.660 +- 0.042 | 38231 +- 165 |
| 4 | 4 | 27 | 0.1 | 1.0 | 1.0 | | 0.639 +- 0.061 | 31274 +- 1559 |
| 0 | | | | 0.9 | 1.0 | | 0.634 +- 0.023 | 38393 +- 14 |
| 0 | | | | 0.9 | 1.2 | | 0.630 +- 0.028 | 38005 +- 232 |
| 0 | | | | 0.8 | 1.2 | | 0.627 +- 0.015 | 38343 +- 90 |
| 0 | | 27 | | 0.95 | 1.0 | 4 | 0.623 +- 0.036 | 65496 +- 7638 |
| 4 | 10 | 27 | 0.1 | 1.0 | 1.0 | | 0.622 +- 0.046 | 32923 +- 1772 |
| 4 | 4 | 27 | 0.5 | 1.0 | 1.0 | | 0.604 +- 0.047 | 31091 +- 968 |
| 4 | 10 | 27 | 0.5 | 1.0 | 1.0 | | 0.604 +- 0.030 | 27287 +- 7580 |
| 0 | | | | 0.95 | 1.2 | | 0.584 +- 0.027 | 36601 +- 535 |
| 0 | | | | 1.0 | 0.8 | | 0.562 +- 0.021 | 36610 +- 669 |
| 0 | | 27 | | 0.95 | 1.0 | 8 | 0.559 +- 0.038 | 122933 +- 3832 |
| 0 | | | | 0.7 | 1.2 | | 0.531 +- 0.035 | 38400 +- 0 |
| 0 | | | | 0.95 | 0.8 | | 0.523 +- 0.029 | 38386 +- 28 |
| 0 | | | | 0.8 | 1.0 | | 0.511 +- 0.028 | 38400 +- 0 |
| 0 | | | | 1.0 | 1.0 | | 0.504 +- 0.025 | 30754 +- 1272 |
| 0 | | | | 0.9 | 0.8 | | 0.466 +- 0.032 | 38400 +- 0 |
| 4 | 4 | 27 | 0.1 | 1.0 | 1.2 | | 0.440 +- 0.026 | 24916 +- 954 |
| 0 | | | | 1.0 | 0.6 | | 0.399 +- 0.070 | 38320 +- 73 |
| 0 | | | | 0.7 | 1.0 | | 0.353 +- 0.021 | 38400 +- 0 |
| 0 | | | | 0.8 | 0.8 | | 0.351 +- 0.039 | 38400 +- 0 |
| 0 | | | | 0.95 | 0.6 | | 0.337 +- 0.053 | 38400 +- 0 |
| 4 | 4 | 27 | 0.5 | 1.0 | 1.2 | | 0.334 +- 0.013 | 24217 +- 1214 |
| 0 | | | | 0.9 | 0.6 | | 0.284 +- 0.044 | 38400 +- 0 |
| 0 | | | | 1.0 | 1.2 | | 0.269 +- 0.025 | 21906 +- 1780 |
| 0 | | | | 0.7 | 0.8 | | 0.239 +- 0.019 | 38400 +- 0 |
| 0 | | | | 0.8 | 0.6 | | 0.212 +- 0.011 | 38400 +- 0 |
| 0 | | | | 1.0 | 0.4 | | 0.207 +- 0.029 | 38400 +- 0 |
| 0 | | | | 0.95 | 0.4 | | 0.176 +- 0.013 | 38400 +- 0 |
| 0 | | | | 0.9 | 0.4 | | 0.147 +- 0.013 | 38400 +- 0 |
| 0 | | | | 0.7 | 0.6 | | 0.101 +- 0.028 | 38400 +- 0 |
| 0 | | | | 1.0 | 0.2 | | 0.080 +- 0.020 | 38400 +- 0 |
| 0 | | | | 0.8 | 0.4 | | 0.074 +- 0.027 | 38400 +- 0 |
| 0 | | | | 0.95 | 0.2 | | 0.057 +- 0.018 | 38400 +- 0 |
| 0 | | | | 0.9 | 0.2 | | 0.029 +- 0.015 | 38400 +- 0 |
| 0 | | | | 0.7 | 0.4 | | 0.025 +- 0.016 | 38400 +- 0 |
| 0 | | | | 0.8 | 0.2 | | 0.021 +- 0.014 | 38400 +- 0 |
| 0 | | | | 0.7 | 0.2 | | 0.018 +- 0.011 | 38400 +- 0 |
| 0 | | | | 0.0 | 1.0 | | 0.013 +- 0.000 | 38400 +- 0 |
"""
"""Table 3.13: Q, B, layer, threshold, top-p, temperature, candidates, distinct accuracy, queries."""

PAPER = PRESETS["paper"]


def decoding_of(line: str) -> DecodingRule:
    quota, stride, layer, threshold, top_p, temperature, candidates = line.strip("|").split("|")[:7]
    last = layer.strip() == "31"
    return DecodingRule(
        judge="trained" if layer.strip() else "none",
        quota=int(quota),
        stride=int(stride) if stride.strip() else 0,
        candidates=int(candidates) if candidates.strip() else 0,
        threshold=float(threshold) if threshold.strip() else 0.1,
        top_p=float(top_p),
        temperature=float(temperature),
        layer=-1 if last else None,
    )


def test_the_published_numbers_are_those_of_table_3_13() -> None:
    expected = {}
    for line in TABLE.strip().splitlines():
        accuracy, queries = re.findall(r"([0-9.]+) \+-", line)
        expected[decoding_of(line)] = (float(accuracy), float(queries))
    assert len(expected) == 44
    assert {decoding: tuple(published) for decoding, published in TABLE_3_13.items()} == expected


COMPARED = [
    table for table in TABLES if any("distinct accuracy" in line for line in table.published.values())
]


def rows_of(config: Config, *records: dict[str, Any]) -> Rows:
    return Rows(records, STUDY.kind, config_values(config))


def printed(decoding: DecodingRule, seed: int) -> float:
    """Return the published accuracy of a decoding, or 0.5."""
    del seed
    return PUBLISHED[decoding].accuracy if decoding in PUBLISHED else 0.5


@pytest.fixture(scope="module")
def paper() -> Rows:
    """Rows of a run whose results are the published numbers."""

    def probe(kind: str, layer: int, depth: int) -> float:
        return VALIDATION[depth] if layer == PAPER.pretrained.layer else 0.5

    return rows_of(
        PAPER,
        *drawn_records(PAPER, printed),
        *probe_records(PAPER, probe),
        *speed_records(PAPER, lambda decoding: 1.0),
    )


def compared(table: ResultTable, rows: Rows) -> dict[tuple[str, str], tuple[Any, Any]]:
    """Return each published cell with ours, or with None if there is none."""
    cells = table.filled(rows)
    return {
        (label, head): (number, cells[label, head].value if (label, head) in cells else None)
        for label, line in table.published.items()
        for head, number in line.items()
    }


def test_each_published_number_is_next_to_ours_for_the_same_setting(paper: Rows) -> None:
    found = 0
    for table in COMPARED:
        for cell, (number, ours) in compared(table, paper).items():
            assert ours == pytest.approx(number, abs=1e-9), (table.title, cell)
            found += 1
    assert found > 120


@pytest.mark.parametrize(("role", "head"), [(role, headed(HEAD, role)) for role in ROLES])
def test_every_measured_decoding_is_in_a_table(role: Role, head: str) -> None:
    """Every decoding has a different accuracy, which must be in a table."""
    drawn = [rule for extent in EXTENTS for rule in PAPER.decodings(role, extent)]
    places = {decoding: place for place, decoding in enumerate(drawn, start=1)}
    rows = rows_of(
        PAPER,
        *drawn_records(PAPER, lambda decoding, seed: places.get(decoding, 999) / 1000),
        *probe_records(PAPER, lambda kind, layer, depth: 0.5),
    )
    shown = {
        round(1000 * float(str(cell.value)))
        for table in COMPARED
        for (_, column), cell in table.filled(rows).items()
        if column == head and cell.value is not None
    }
    assert {decoding.name for decoding, place in places.items() if place not in shown} == set()
    queried = {line["queries"] for table in TABLES for line in table.published.values() if "queries" in line}
    assert {published.queries for published in TABLE_3_13.values()} == queried


def test_the_night_preset_fills_every_published_table_and_adds_lines_for_its_layers() -> None:
    night = PRESETS["night"]
    rows = rows_of(
        night,
        *drawn_records(night, lambda decoding, seed: 0.25 if seed >= 1000 else 0.5),
        *probe_records(night, lambda kind, layer, depth: 0.75),
    )
    for table in COMPARED:
        empty = {cell for cell, (_, ours) in compared(table, rows).items() if ours is None}
        if table.title.startswith("Table 3.9"):
            empty = {cell for cell in empty if MODEL not in cell[0]}
        assert not empty, table.title
    (layers,) = (table for table in TABLES if table.title.startswith("Table 3.9"))
    cells = layers.filled(rows)
    assert not any(MODEL in label for label, _ in cells)
    assert cells["layer 24, below 0.1, smollm2", HEAD].value == 0.5
    assert cells["layer 15, below 0.1, smollm2", "validation accuracy"].value == 0.75
    assert cells["layer 15, below 0.1, smollm2", HEAD].value == 0.5
    assert cells["layer 1, below 0.1, surrogate", headed(HEAD, "scratch")].value == 0.25
    assert ("layer 1, below 0.1, surrogate", HEAD) not in cells


def test_seconds_are_per_query_alone_and_in_a_batch(paper: Rows) -> None:
    (seconds,) = (table for table in TABLES if table.title.startswith("Section 3.4.1"))
    cells = seconds.filled(paper)
    assert {label for label, _ in cells} >= {"block best-of-4"}
    assert cells["block best-of-4", "ms per query alone"].value == pytest.approx(10)
    assert cells["block best-of-4", "ms per query in a batch"].value == pytest.approx(1000 / 65496)


def test_each_kind_of_decoding_has_its_own_style(paper: Rows) -> None:
    kinds = (BASELINE, TRAINED, RANDOM, GROUND_TRUTH, block_best_of(2), out_of_distribution(TRAINED))
    curves = [curve_of(decoding.name) for decoding in kinds]
    assert len({curve.label for curve in curves}) == len(kinds)
    assert len({(curve.color, curve.line) for curve in curves}) == len(kinds)
    assert curve_of(dataclasses.replace(TRAINED, quota=10).name) == curves[1]
    steps = [{**record, "table": "progress"} for record in paper.records if record["table"] == "draw"]
    every, without_blocks = FIGURES[0].draw(Rows([*paper.records, *steps], STUDY.kind, paper.config)).axes
    legend = every.get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    assert len(labels) == len(set(labels))
    assert set(labels) == {curve_of(name).label for name in paper.where("draw", model="pretrained").decoding}
    shown = [{str(line.get_label()) for line in axes.lines} - {"_"} for axes in (every, without_blocks)]
    assert shown[0] - shown[1] == {curves[4].label}
    accuracies, _ = FIGURES[-1].draw(paper).axes
    labels = [text.get_text() for text in accuracies.get_yticklabels()]
    assert len(set(labels)) == len(labels) == 14
