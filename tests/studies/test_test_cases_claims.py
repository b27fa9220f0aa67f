"""Claims of the study of test cases: the thesis' own numbers meet them, and replications follow the config."""

import dataclasses
from collections.abc import Callable, Mapping

import pytest
from case_rows import drawn_records

from trialogue.ledger import Rows
from trialogue.ledger.runs.results import config_values
from trialogue.studies.test_cases import STUDY
from trialogue.studies.test_cases.config import PRESETS, Config
from trialogue.studies.test_cases.decodings import BASELINE, GREEDY, RANDOM, TRAINED, DecodingRule
from trialogue.studies.test_cases.published import PUBLISHED
from trialogue.studies.test_cases.quantities import measured, per_query

IN_GRIDS = {
    "algorithm-beats-sampling",
    "algorithm-beats-hot-sampling",
    "last-layer-is-worse",
    "depth-does-not-help",
    "misleading-names-hurt-nucleus",
    "misleading-names-spare-algorithm",
}


def rows_with(config: Config, accuracy: Callable[[DecodingRule, int], float]) -> Rows:
    return Rows(drawn_records(config, accuracy), STUDY.kind)


def regions_hold(rows: Rows) -> Mapping[str, bool]:
    return {
        claim.id: all(
            claim.criterion.region[0] <= value <= claim.criterion.region[1] for value in claim.quantity(rows)
        )
        for claim in STUDY.claims
    }


def test_the_numbers_of_the_thesis_meet_every_claim() -> None:
    """Each sense and sign, read from the table that the claim names; a shifted number is noticed."""
    paper = PRESETS["paper"]
    rows = rows_with(paper, lambda decoding, seed: PUBLISHED[decoding].accuracy)
    for claim in STUDY.claims:
        assert len(claim.quantity(rows)) == len(paper.seeds), claim.id
    assert all(regions_hold(rows).values())
    reversed_rows = rows_with(paper, lambda decoding, seed: 1 - PUBLISHED[decoding].accuracy)
    refuted = {identity for identity, holds in regions_hold(reversed_rows).items() if not holds}
    assert refuted == {claim.id for claim in STUDY.claims if claim.criterion.direction != "equal"}
    off = rows_with(paper, lambda decoding, seed: PUBLISHED[decoding].accuracy + 0.1 * (decoding == RANDOM))
    assert {identity for identity, holds in regions_hold(off).items() if not holds} == {
        "random-is-the-baseline",
        "trained-beats-random",
    }


def test_replications_follow_the_config_and_what_only_the_grids_hold_has_no_estimate_elsewhere() -> None:
    for name, count in (("default", 8), ("night", 40), ("paper", 5)):
        config = PRESETS[name]
        rows = rows_with(config, lambda decoding, seed: 0.5)
        for claim in STUDY.claims:
            assert claim.quantity.replication.required(config_values(config)) == count
            drawn = count if name == "paper" or claim.id not in IN_GRIDS else 0
            assert len(claim.quantity(rows)) == drawn, (name, claim.id)


def test_a_claim_on_trained_verifiers_says_so() -> None:
    records = drawn_records(PRESETS["paper"], lambda decoding, seed: 0.5)
    untrained = Rows([row for row in records if not row["decoding"].startswith("trained")], STUDY.kind)
    for claim in STUDY.claims:
        on_trained = claim.quantity(untrained).empty
        assert ("the verifiers that the run trained" in claim.said) == on_trained, claim.id
        assert "(for the " in claim.said, claim.id


def test_every_claim_that_the_pilot_measured_has_its_estimates() -> None:
    piloted = {claim.id for claim in STUDY.claims if claim.quantity.name in STUDY.pilot.estimates}
    assert piloted == {claim.id for claim in STUDY.claims} - IN_GRIDS - {"algorithm-beats-greedy"}
    assert set(STUDY.pilot.seeds) == set(PRESETS["pilot"].seeds)


def test_quantities_of_known_rows() -> None:
    config = dataclasses.replace(PRESETS["default"], seeds=(0, 1, 2, 3))
    rows = rows_with(config, lambda decoding, seed: 0.1 * seed + 0.3 * (decoding == TRAINED))
    # Repetitions that share a verifier stand side by side.
    assert measured(TRAINED)(rows).round(3).to_dict() == {(0, 0): 0.3, (0, 2): 0.5, (1, 1): 0.4, (1, 3): 0.6}
    gain = (measured(TRAINED) - measured(BASELINE))(rows)
    assert gain.round(9).tolist() == [0.3] * 4
    assert per_query(GREEDY)(rows).tolist() == pytest.approx(
        [100 * 800 * 0.1 * seed / 38400 for seed in (0, 2, 1, 3)]
    )
