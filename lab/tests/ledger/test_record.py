"""Tests that hashes, registrations, parts, pilots and verdicts agree with the committed record."""

import json
from pathlib import Path

import pytest

from ledger.record import record_of

RECORD = json.loads((Path(__file__).parent / "record.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", RECORD)
def test_a_study_agrees_with_its_record(name: str) -> None:
    recorded, found = dict(RECORD[name]), record_of(name)
    verdicts, seen = recorded.pop("verdicts"), found.pop("verdicts")
    results, kept = recorded.pop("results"), found.pop("results")
    assert found == recorded
    # A larger result may be added, which then counts. A recorded result must not change.
    assert results.items() <= kept.items()
    if kept == results:
        assert {claim: answer for claim, (answer, *_) in seen.items()} == {
            claim: answer for claim, (answer, *_) in verdicts.items()
        }
        for claim, (_, *numbers) in verdicts.items():
            for before, now in zip(numbers, seen[claim][1:], strict=True):
                assert now == (None if before is None else pytest.approx(before, rel=1e-9, abs=1e-12)), claim
