"""Tests of tables and figures of the study test-cases, which show published numbers next to ours."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from case_rows import accuracy_records, probe_records, speed_records

from trialogue_lab.ledger import ResultTable, Rows
from trialogue_lab.ledger.runs.results import config_values
from trialogue_lab.studies.test_cases import STUDY
from trialogue_lab.studies.test_cases.config import PRESETS, ROLES, Config, Role, mark_heading
from trialogue_lab.studies.test_cases.decodings import (
    BASELINE,
    EXTENTS,
    GROUND_TRUTH,
    RANDOM,
    TRAINED,
    DecodingRule,
    make_block_best_of,
    out_of_distribution,
)
from trialogue_lab.studies.test_cases.figures import FIGURES, choose_curve
from trialogue_lab.studies.test_cases.published import MODEL, PUBLISHED, TABLE_3_13, VALIDATION
from trialogue_lab.studies.test_cases.tables import HEAD, TABLES

PAPER = PRESETS["paper"]


def test_published_numbers_agree_with_table_3_13() -> None:
    table = pd.read_csv(Path(__file__).with_name("table_3_13.csv"))
    defaults = table.fillna({"stride": 0, "candidates": 0, "threshold": 0.1})
    expected = {
        DecodingRule(
            judge="none" if math.isnan(row.layer) else "trained",
            quota=row.quota,
            stride=int(row.stride),
            candidates=int(row.candidates),
            threshold=row.threshold,
            top_p=row.top_p,
            temperature=row.temperature,
            layer=-1 if row.layer == 31 else None,
        ): (row.accuracy, row.queries)
        for row in defaults.itertuples()
    }
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
    """Return rows of a run whose results are the published numbers."""

    def probe(kind: str, layer: int, depth: int) -> float:
        return VALIDATION[depth] if layer == PAPER.pretrained.layer else 0.5

    return rows_of(
        PAPER,
        *accuracy_records(PAPER, printed),
        *probe_records(PAPER, probe),
        *speed_records(PAPER, lambda decoding: 1.0),
    )


def compared(table: ResultTable, rows: Rows) -> dict[tuple[str, str], tuple[Any, Any]]:
    """Return pairs of each published cell and our cell, or None if we have no cell."""
    cells = table.evaluate(rows)
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


@pytest.mark.parametrize(("role", "head"), [(role, mark_heading(HEAD, role)) for role in ROLES])
def test_every_measured_decoding_is_in_a_table(role: Role, head: str) -> None:
    """Every decoding has a different accuracy, which must be in a table."""
    decodings = [rule for extent in EXTENTS for rule in PAPER.decodings(role, extent)]
    places = {decoding: place for place, decoding in enumerate(decodings, start=1)}
    rows = rows_of(
        PAPER,
        *accuracy_records(PAPER, lambda decoding, seed: places.get(decoding, 999) / 1000),
        *probe_records(PAPER, lambda kind, layer, depth: 0.5),
    )
    shown = {
        round(1000 * float(str(cell.value)))
        for table in COMPARED
        for (_, column), cell in table.evaluate(rows).items()
        if column == head and str(cell.value) not in ("None", "nan")
    }
    assert {decoding.name for decoding, place in places.items() if place not in shown} == set()
    queried = {line["queries"] for table in TABLES for line in table.published.values() if "queries" in line}
    assert {published.queries for published in TABLE_3_13.values()} == queried


def test_the_night_preset_fills_every_published_table_and_adds_lines_for_its_layers() -> None:
    night = PRESETS["night"]
    rows = rows_of(
        night,
        *accuracy_records(night, lambda decoding, seed: 0.25 if seed >= 1000 else 0.5),
        *probe_records(night, lambda kind, layer, depth: 0.75),
    )
    for table in COMPARED:
        empty = {cell for cell, (_, ours) in compared(table, rows).items() if ours is None}
        if table.title.startswith("Table 3.9"):
            empty = {cell for cell in empty if MODEL not in cell[0]}
        assert not empty, table.title
    (layers,) = (table for table in TABLES if table.title.startswith("Table 3.9"))
    cells = layers.evaluate(rows)
    assert not any(MODEL in label for label, _ in cells)
    assert cells["layer 24, below 0.1, smollm2", HEAD].value == 0.5
    assert cells["layer 15, below 0.1, smollm2", "validation accuracy"].value == 0.75
    assert cells["layer 15, below 0.1, smollm2", HEAD].value == 0.5
    assert cells["layer 1, below 0.1, surrogate", mark_heading(HEAD, "scratch")].value == 0.25
    assert ("layer 1, below 0.1, surrogate", HEAD) not in cells


def test_seconds_are_per_query_alone_and_in_a_batch(paper: Rows) -> None:
    (seconds,) = (table for table in TABLES if table.title.startswith("Section 3.4.1"))
    cells = seconds.evaluate(paper)
    assert {label for label, _ in cells} >= {"block best-of-4"}
    assert cells["block best-of-4", "ms per query alone"].value == pytest.approx(10)
    assert cells["block best-of-4", "ms per query in a batch"].value == pytest.approx(1000 / 65496)


def test_each_kind_of_decoding_has_its_own_style(paper: Rows) -> None:
    kinds = (BASELINE, TRAINED, RANDOM, GROUND_TRUTH, make_block_best_of(2), out_of_distribution(TRAINED))
    curves = [choose_curve(decoding.name) for decoding in kinds]
    assert len({curve.label for curve in curves}) == len(kinds)
    assert len({(curve.color, curve.line) for curve in curves}) == len(kinds)
    assert choose_curve(dataclasses.replace(TRAINED, quota=10).name) == curves[1]
    accuracies, _ = FIGURES[-1].draw(paper).axes
    labels = [text.get_text() for text in accuracies.get_yticklabels()]
    assert len(set(labels)) == len(labels) == 14
