"""Claims on chapters 3 and 4 of the thesis: their statements, settings, preconditions and withdrawn claims."""

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


def test_the_statements_behind_the_holds_of_ising_masking_are_three() -> None:
    held = [
        verdict.claim
        for verdict in _entry("ising-masking").verdicts
        if verdict.answer == "holds" and verdict.claim.origin == "published"
    ]
    assert len(held) > 3
    assert len({claim.statement_id for claim in held}) == 3


def test_verdicts_that_hang_on_the_setting_say_so() -> None:
    for study, claim, word in (
        ("translation", "the-median-is-twice-as-fast", "TPU"),
        ("translation", "as-good-as-the-twin", "five million"),
        ("dyck-backtracking", "summary-queries-full", "five tokens"),
        ("decoding-laws", "masks-are-far", "hidden string"),
    ):
        assert word in _verdict(study, claim).claim.setting


def test_dyck_completions_are_as_short_and_as_often_correct_as_their_setting_says() -> None:
    unseen = _entry("dyck-backtracking").rows.where("unseen", verifier="none")
    means = unseen.groupby("top_p")[["accuracy", "queries"]].mean()
    assert means.accuracy.round(2).tolist() == [0.99, 0.97]
    assert means.queries.round(1).tolist() == [5.0, 5.0]


def test_stutter_is_judged_with_repeats_dropped() -> None:
    claim = "it-stutters-twice-as-often-with-repeats-dropped"
    rows = _entry("translation").rows
    table = rows["set"].pivot_table(
        index="set", columns=["arm", "steps", "hypotheses"], values="stutter_dropped"
    )
    excess = table["refiner", 4, 5] - 2 * table["twin", 0, 1]
    verdict = _verdict("translation", claim)
    assert verdict.answer == "undecided"
    assert verdict.estimate == pytest.approx(excess.mean())
    assert verdict.estimate == pytest.approx(0.00027, abs=5e-6)
    before = _verdict("translation", "it-stutters-twice-as-often")
    assert (before.claim.origin, before.answer) == ("ours", "holds")


def test_both_halves_of_the_trade_off_of_value_guided_walks_are_judged() -> None:
    halves = [_verdict("value-guided", name) for name in ("closer-on-dyck", "cheaper-than-rejection-on-dyck")]
    assert [half.answer for half in halves] == ["holds", "refuted"]
    assert len({half.claim.statement_id for half in halves}) == 1


def test_approximate_values_mix_as_fast_as_the_slowest_kind_of_error() -> None:
    verdict = _verdict("value-guided", "mixes-rapidly-with-approximate-values")
    assert verdict.estimate == pytest.approx(2.168, abs=1e-3)
    assert verdict.estimate > _verdict("value-guided", "mixes-rapidly").estimate


def test_stutter_of_refiners_that_have_not_learned_the_task_is_not_tested() -> None:
    entry = _entry("translation-dependency")
    conditional = [verdict for verdict in entry.verdicts if verdict.claim.preconditions]
    assert len(conditional) == 8
    for verdict in conditional:
        assert verdict.answer == "not tested"
        assert "has learned the task" in verdict.reason
    # The unconditional ones are judged as before.
    assert _verdict("translation-dependency", "a-deterministic-lexicon-helps").answer == "holds"


def test_estimates_that_became_geometric_means_are_marked() -> None:
    marked = [
        verdict.claim.id
        for name in ("ising-masking", "ising-sampling", "mixing-and-learning")
        for verdict in _entry(name).verdicts
        if any("geometric mean" in remark for remark in verdict.remarks)
    ]
    assert len(marked) == 13


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


def test_the_night_of_the_made_up_language_has_new_seeds() -> None:
    night = PRESETS["night"]
    assert len(night.seeds) == 8
    assert not set(night.seeds) & (set(PRESETS["default"].seeds) | set(PRESETS["pilot"].seeds))
