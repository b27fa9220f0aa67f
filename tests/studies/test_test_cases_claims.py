"""Claims of the study of test cases: the thesis' own numbers meet them, and pilots are read off results."""

import dataclasses
from collections.abc import Mapping

import pandas as pd
import pytest
from case_rows import rows_with

from trialogue.ledger.replication import pilot_estimates
from trialogue.studies.test_cases_claims import CLAIMS, REPLICATIONS
from trialogue.studies.test_cases_decodings import BASELINE, RANDOM
from trialogue.studies.test_cases_models import PRESETS
from trialogue.studies.test_cases_published import PUBLISHED

IN_GRIDS = {
    "algorithm-beats-sampling",
    "algorithm-beats-hot-sampling",
    "last-layer-is-worse",
    "depth-does-not-help",
    "misleading-names-hurt-nucleus",
    "misleading-names-spare-algorithm",
}


def regions_hold(rows: pd.DataFrame) -> Mapping[str, bool]:
    return {
        claim.id: all(claim.region[0] <= value <= claim.region[1] for value in claim.estimate(rows))
        for claim in CLAIMS
    }


def test_the_numbers_of_the_thesis_meet_every_claim() -> None:
    """Each sense and sign, read from the table that the claim names; a shifted number is noticed."""
    paper = PRESETS["paper"]
    rows = rows_with(paper, lambda decoding, seed: PUBLISHED[decoding].accuracy)
    for claim in CLAIMS:
        assert len(claim.estimate(rows)) == len(paper.seeds), claim.id
    assert all(regions_hold(rows).values())
    reversed_rows = rows_with(paper, lambda decoding, seed: 1 - PUBLISHED[decoding].accuracy)
    refuted = {identity for identity, holds in regions_hold(reversed_rows).items() if not holds}
    one_sided = {claim.id for claim in CLAIMS if claim.direction != "equal"}
    assert refuted == one_sided
    off = rows_with(paper, lambda decoding, seed: PUBLISHED[decoding].accuracy + 0.1 * (decoding == RANDOM))
    assert {identity for identity, holds in regions_hold(off).items() if not holds} == {
        "random-is-the-baseline",
        "trained-beats-random",
    }


def test_what_only_the_grids_hold_has_no_estimate_elsewhere() -> None:
    default = PRESETS["default"]
    rows = rows_with(default, lambda decoding, seed: 0.5)
    empty = {claim.id for claim in CLAIMS if not claim.estimate(rows)}
    assert empty == IN_GRIDS
    for claim in CLAIMS:
        asked = len(PRESETS["paper"].seeds if claim.id in IN_GRIDS else default.seeds)
        assert claim.replications == asked, claim.id
    assert len(default.seeds) == REPLICATIONS


def test_a_claim_on_trained_verifiers_says_so() -> None:
    rows = rows_with(PRESETS["paper"], lambda decoding, seed: 0.5)
    untrained = rows[~rows.decoding.str.startswith("trained")]
    for claim in CLAIMS:
        on_trained = not claim.estimate(untrained)
        assert claim.statement.startswith("With the verifiers trained (two in") == on_trained, claim.id
    assert PRESETS["default"].verifiers == 2


def test_a_pilot_s_estimates_are_rounded_and_may_be_fewer() -> None:
    config = dataclasses.replace(PRESETS["default"], seeds=tuple(range(100, 108)))
    rows = rows_with(config, lambda decoding, seed: 0.5 + (decoding == BASELINE) * seed / 1000 / 3)
    found = pilot_estimates(CLAIMS, rows)
    assert set(found) == {claim.id for claim in CLAIMS} - IN_GRIDS
    assert found["greedy-is-worst"] == pytest.approx([round(-seed / 3000, 4) for seed in config.seeds], abs=0)
    fewer = rows[~((rows.seed == 103) & (rows.decoding == BASELINE.name))]
    assert len(pilot_estimates(CLAIMS, fewer)["greedy-is-worst"]) == 7
    assert len(pilot_estimates(CLAIMS, fewer)["low-threshold-is-better"]) == 8
