"""Decision records are short, have the same sections, and are listed in the index and the navigation."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECORDS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_record_is_short_and_has_all_sections(record):
    lines = record.read_text().splitlines()
    assert len(lines) <= 40
    assert lines[0].startswith("# ")
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", lines[2])
    sections = [line for line in lines if line.startswith("## ")]
    assert sections == ["## Context", "## Decision", "## Consequences", "## Evidence"]


def test_every_record_is_listed():
    index = (ROOT / "docs/decisions/index.md").read_text()
    navigation = (ROOT / "mkdocs.yml").read_text()
    listed = [
        f"| {int(record.stem[:2])} | [{record.read_text().splitlines()[0][2:]}]({record.name})"
        for record in RECORDS
    ]
    assert [line for line in listed if line not in index] == []
    assert [record.name for record in RECORDS if f"decisions/{record.name}" not in navigation] == []
