"""Tests of preconditions of claims and seeds of large presets in studies of chapters 3 and 4 of the thesis."""

import json
from functools import cache
from pathlib import Path

import pytest

from trialogue_lab import studies
from trialogue_lab.ledger import Entry, ledger
from trialogue_lab.ledger.claims.verdicts import Verdict
from trialogue_lab.studies.translation_dependency.config import PRESETS

RESULTS = Path(__file__).parents[2] / "results"


@cache
def _entry(name: str) -> Entry:
    (entry,) = ledger([studies.find(name)], RESULTS)
    return entry


def _verdict(study: str, claim: str) -> Verdict:
    return next(verdict for verdict in _entry(study).verdicts if verdict.claim.id == claim)


def test_stutter_of_untrained_refiners_is_not_tested() -> None:
    entry = _entry("translation-dependency")
    conditional = [verdict for verdict in entry.verdicts if verdict.claim.preconditions]
    assert len(conditional) == 8
    for verdict in conditional:
        assert verdict.answer == "not tested"
        assert "has learned the task" in verdict.reason
    # The unconditional ones are judged as before.
    assert _verdict("translation-dependency", "a-deterministic-lexicon-helps").answer == "holds"


@pytest.mark.parametrize("name", ["dyck-backtracking", "test-cases"])
def test_weekend_presets_use_seeds_that_no_result_has(name: str) -> None:
    study = studies.find(name)
    used = {
        seed
        for path in (RESULTS / name).glob("*/config.json")
        for field, seeds in json.loads(path.read_text("utf-8"))["config"].items()
        if field in ("seeds", "scratch_seeds")
        for seed in seeds
    }
    config = study.preset("weekend")
    seeds = {*config.seeds, *getattr(config, "scratch_seeds", ())}
    assert used
    assert not seeds & (used | set(study.pilot.seeds))


def test_night_preset_of_the_made_up_language_has_new_seeds() -> None:
    night = PRESETS["night"]
    assert len(night.seeds) == 8
    assert not set(night.seeds) & (set(PRESETS["default"].seeds) | set(PRESETS["pilot"].seeds))
