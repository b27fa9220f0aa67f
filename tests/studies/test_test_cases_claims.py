"""Claims of the study of test cases: the thesis' own numbers meet them, and replications follow the config."""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from case_rows import drawn_records, published, timed_records

from trialogue.ledger import Rows
from trialogue.ledger.runs.results import config_values
from trialogue.studies.test_cases import STUDY
from trialogue.studies.test_cases.config import ALONE, PRESETS, Config
from trialogue.studies.test_cases.decodings import (
    BASELINE,
    GREEDY,
    GRID,
    RANDOM,
    TRAINED,
    DecodingRule,
    block_best_of,
)
from trialogue.studies.test_cases.quantities import (
    lead_on_the_grid,
    measured,
    per_query,
    repetitions,
    slope,
    tracking,
)

PAPER = dataclasses.replace(PRESETS["paper"], surrogate_seeds=(7, 8, 9))
"""The thesis' preset, with the surrogate beside its model."""

OF_REPETITIONS_IN_DEFAULT = {
    "algorithm-beats-nucleus",
    "algorithm-beats-block-best-of-2",
    "algorithm-beats-block-best-of-4",
    "algorithm-beats-greedy",
    "more-candidates-hurt",
    "greedy-is-worst",
    "more-per-query",
    "low-threshold-is-better",
    "trained-approaches-truth",
    "trained-beats-random",
    "random-is-the-baseline",
    "quota-does-not-help",
    "stride-does-not-help",
    "argmax-redo-is-minor",
    "steeper-nucleus",
    "summary-queries",
    "diversity-kept",
}
"""What the quick preset draws in all its repetitions of the model."""

OF_QUERIES = {"summary-queries", "scratch-summary-queries"}
"""What the thesis' own Table 3.13 contradicts."""

OF_SECONDS = {
    claim.id
    for claim in STUDY.claims
    if claim.id.startswith(("time-", "completions-of-a-batch", "queries-of-"))
}


def seconds(decoding: DecodingRule, at_once: int) -> float:
    """What a query takes where a batch, and candidates that share one, are cheap."""
    return 0.02 / (1 + (at_once > ALONE)) / (1 + (decoding.candidates > 0))


def rows_with(config: Config, accuracy: Callable[[DecodingRule, int], float]) -> Rows:
    records = drawn_records(config, accuracy) + timed_records(config, seconds)
    if config.surrogate_seeds:
        records += drawn_records(config.beside(), accuracy, beside=True)
    return Rows(records, STUDY.kind)


def regions_hold(rows: Rows) -> Mapping[str, bool]:
    return {
        claim.id: all(
            claim.criterion.region[0] <= value <= claim.criterion.region[1] for value in claim.quantity(rows)
        )
        for claim in STUDY.claims
    }


def fails(rows: Rows) -> set[str]:
    return {identity for identity, holds in regions_hold(rows).items() if not holds}


def test_the_numbers_of_the_thesis_meet_every_claim() -> None:
    """Each sense and sign, read from the table that the claim names; a shifted number is noticed."""
    rows = rows_with(PAPER, lambda decoding, seed: published(decoding).accuracy)
    for claim in STUDY.claims:
        assert len(claim.quantity(rows)) == claim.quantity.replication.required(config_values(PAPER)), (
            claim.id
        )
    assert fails(rows) == OF_QUERIES
    reversed_rows = rows_with(PAPER, lambda decoding, seed: 1 - published(decoding).accuracy)
    directed = {claim.id for claim in STUDY.claims if claim.criterion.direction != "equal"}
    assert fails(reversed_rows) == directed - OF_SECONDS
    off = rows_with(PAPER, lambda decoding, seed: published(decoding).accuracy + 0.1 * (decoding == RANDOM))
    moved = {"random-is-the-baseline", "trained-beats-random"}
    assert fails(off) == OF_QUERIES | moved | {f"scratch-{identity}" for identity in moved}


def test_replications_follow_the_config_and_what_is_not_drawn_has_no_estimate() -> None:
    for name in ("default", "night", "paper"):
        config = PRESETS[name]
        rows = rows_with(config, lambda decoding, seed: 0.5)
        for claim in STUDY.claims:
            required = claim.quantity.replication.required(config_values(config))
            drawn = len(claim.quantity(rows))
            assert np.isfinite(claim.quantity(rows)).all(), (name, claim.id)
            if (
                name == "default"
                and claim.quantity.replication == repetitions
                and claim.id not in OF_REPETITIONS_IN_DEFAULT
            ):
                assert drawn < required, (name, claim.id)
            else:
                assert drawn == required, (name, claim.id)
    night = PRESETS["night"]
    assert {claim.quantity.replication.required(config_values(night)) for claim in STUDY.claims} == {
        len(night.seeds),
        night.grids,
        len(night.surrogate_seeds),
    }


def test_what_is_said_names_the_model_that_repetitions_share_and_the_surrogate_shares_none() -> None:
    for claim in STUDY.claims:
        scratch = claim.id.startswith("scratch-")
        assert ("(for the model of the run)" in claim.said) != scratch, claim.id
        assert (claim.origin == "ours") or not scratch
        assert claim.unit == "training"


def test_every_repetition_has_verifiers_of_its_own() -> None:
    """A preset draws what its verifiers learn from by the repetition's seed: no two share a training."""
    for name, config in PRESETS.items():
        parts = [part.name for part in STUDY.parts(config)]
        collected = [part for part in parts if "-collect-" in part]
        assert len(collected) == len(config.seeds) + len(config.surrogate_seeds), name


def test_the_pilot_is_of_quantities_that_claims_are_about_on_seeds_of_its_own() -> None:
    known = {claim.quantity.name for claim in STUDY.claims}
    assert set(STUDY.pilot.estimates) <= known
    assert measured(TRAINED).name in next(iter(STUDY.pilot.estimates))
    for name, config in PRESETS.items():
        if name != "pilot":
            assert not set(STUDY.pilot.seeds) & {*config.seeds, *config.surrogate_seeds}


def test_quantities_of_known_rows() -> None:
    config = dataclasses.replace(PRESETS["default"], surrogate_seeds=())
    rows = rows_with(config, lambda decoding, seed: 0.1 * seed + 0.3 * (decoding == TRAINED))
    assert measured(TRAINED)(rows).round(3).to_dict() == {0: 0.3, 1: 0.4, 2: 0.5, 3: 0.6}
    gain = (measured(TRAINED) - measured(BASELINE))(rows)
    assert gain.round(9).tolist() == [0.3] * 4
    rates = [100 * 800 * 0.1 * seed / 38400 for seed in range(4)]
    assert per_query(GREEDY)(rows).tolist() == pytest.approx(rates)
    # A line through the origin has the slope of its last dot.
    assert slope(GREEDY)(rows).tolist() == pytest.approx(rates, abs=1e-12)


def test_a_slope_is_that_of_the_dots_and_not_of_the_last_one() -> None:
    dots = [(1, 100.0, 30.0), (2, 200.0, 40.0), (3, 300.0, 50.0)]
    shared = {"table": "draw", "beside": False, "seed": 3, "decoding": BASELINE.name}
    rows = Rows(
        [{**shared, "runs": runs, "queries": x, "distinct_correct": y} for runs, x, y in dots], STUDY.kind
    )
    assert slope(BASELINE)(rows).to_dict() == pytest.approx({3: 10.0})


def test_the_rival_on_the_grid_is_named_by_the_other_repetitions() -> None:
    """Two settings that win in one repetition each, by luck, are rivals where they do badly."""
    lucky, other = GRID[0], GRID[1]
    assert BASELINE not in (lucky, other)

    def accuracy(decoding: DecodingRule, seed: int) -> float:
        best = {(lucky, 0): 0.9, (other, 1): 0.8}
        return best.get((decoding, seed), 0.5 if decoding == BASELINE else 0.1)

    config = dataclasses.replace(PRESETS["night"], seeds=(0, 1), grids=2, timed=2, surrogate_seeds=())
    leads = lead_on_the_grid()(rows_with(config, accuracy))
    # In repetition 0 the rival is what won in 1, and the other way round.
    assert leads.to_dict() == pytest.approx({0: 0.4, 1: 0.4})


def test_seconds_track_queries_only_where_they_do() -> None:
    config = dataclasses.replace(PRESETS["paper"], seeds=(0,), grids=1, timed=1)
    assert tracking(ALONE)(Rows(timed_records(config, seconds), STUDY.kind)).tolist() == pytest.approx([1.0])
    flat = [dict(row, cpu_seconds=1 / row["queries"]) for row in timed_records(config, seconds)]
    assert tracking(ALONE)(Rows(flat, STUDY.kind)).tolist() == pytest.approx([-1.0])
    assert block_best_of(4).name not in (BASELINE.name, TRAINED.name)
