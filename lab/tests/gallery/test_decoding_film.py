"""Tests of the pictures of README, which are drawn from stored samples."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from trialogue_lab.gallery import decoding_film
from trialogue_lab.ledger.runs.results import COMMITTED, load_rows

FIGURES = Path(__file__).parents[3] / "docs" / "figures"


def test_stored_pictures_are_up_to_date(tmp_path: Path) -> None:
    (tmp_path / "samples.json").write_bytes((FIGURES / "samples.json").read_bytes())
    for path in decoding_film.write(tmp_path):
        text = path.read_text("utf-8")
        assert text == (FIGURES / path.name).read_text("utf-8")
        assert ElementTree.fromstring(text).tag.endswith("svg")
        assert len(text) < 300_000
        assert min(float(size) for size in re.findall(r'font(?:-size="|: )([\d.]+)', text)) >= 12.9


def test_bars_end_at_the_shares_of_the_samples() -> None:
    record = json.loads((FIGURES / "samples.json").read_text("utf-8"))
    for method in ("masked", "exact"):
        answers = record[method]["answers"]
        assert len(answers) == len(record[method]["calls"]) == decoding_film.SAMPLES
        assert sum(decoding_film.compute_shares(answers).values()) == pytest.approx(1)
        frames = decoding_film.compute_keyframes(answers, "Santiago")
        assert len(frames) == answers.count("Santiago") + 2
        assert frames == sorted(frames)
        assert frames[-1] == (100.0, 1.0)


def test_distances_are_those_of_the_study() -> None:
    rows = load_rows("constrained-law", COMMITTED)
    target = decoding_film.compute_target(rows)
    chosen = rows[(rows.seed == decoding_film.SEED) & (rows.kind == "regex")]
    answers = chosen[chosen.measure == "answer"].set_index("text")
    for column, rule, size in (("masked", "masked, weighted", 1), ("smc, 16", "smc", 16)):
        row = chosen[
            chosen.measure.isin(("exact", "simulated")) & (chosen.rule == rule) & (chosen["size"] == size)
        ]
        found = decoding_film.compute_distance(answers[column].to_dict(), target)
        assert found == pytest.approx(row.tv.item(), abs=0.002)
