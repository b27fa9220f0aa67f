"""Tests of studies with settings that differ from the presets."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trialogue_lab import studies
from trialogue_lab.ledger import Result, judged
from trialogue_lab.ledger.pages.tables import sheet
from trialogue_lab.ledger.runs.execution import execute


def _of_seed_1(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    chosen = [record for record in records if record.get("seed") == 1]
    return [{name: value for name, value in record.items() if name != "part"} for record in chosen]


@pytest.mark.parametrize(
    "name", ["ising-masking", "ising-sampling", "mixing-and-learning", "potts-coherence"]
)
def test_the_rows_of_a_seed_do_not_depend_on_other_seeds(
    name: str, smoke_run: Callable[[str], Result], tmp_path: Path
) -> None:
    study = studies.find(name)
    parts = study.parts(replace(study.preset("smoke"), seeds=(1,)))
    parts = [part for part in parts if part.columns.get("seed", 1) == 1]
    alone = _of_seed_1(row for part in parts for row in part.rows(tmp_path))
    assert alone
    assert alone == _of_seed_1(smoke_run(name).records)


@pytest.mark.parametrize(
    ("name", "changes", "untested"),
    [
        ("ising-masking", {"couplings": (0.1,), "sites": 3, "sizes": (300,)}, ("-j0",)),
        (
            "ising-sampling",
            {"couplings": (0.5,), "block_sizes": (2, 3)},
            ("blocks-of-4-beat-1", "stronger-coupling-is-slower", "blocks-of-the-clique-arrive"),
        ),
    ],
)
def test_other_settings_leave_claims_without_estimates(
    name: str, changes: dict[str, Any], untested: tuple[str, ...], tmp_path: Path
) -> None:
    study = studies.find(name)
    entry = judged(study, execute(study, replace(study.preset("smoke"), seeds=(0,), **changes), tmp_path))
    estimates = {verdict.claim.id: verdict.replications for verdict in entry.verdicts}
    for part in untested:
        found = [number for identity, number in estimates.items() if part in identity]
        assert found == [0] * max(1, len(found)), part
    assert any(estimates.values())
    assert all(sheet(table, entry.rows).lines for table in study.tables)
