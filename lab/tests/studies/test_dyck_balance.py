"""Tests of the study `dyck-balance`: rows of a network, and verdicts of known rows."""

from pathlib import Path

import numpy as np
import pytest
from known_rows import table

from trialogue_lab.ledger import Rows
from trialogue_lab.ledger.claims.verdicts import Evidence, evaluate
from trialogue_lab.studies.dyck_balance import STUDY
from trialogue_lab.studies.dyck_balance.config import PRESETS

COUNT = 40


def rows(errors: float, unsure: float, inside: float = 0.99) -> Rows:
    """Return rows of networks with increasing violation, whose errors and unsure positions have the given slopes."""
    seed = np.arange(COUNT)
    columns = {
        "outside": 0.8 - errors * seed + 0.001 * (7 * seed % 11),
        "outside_confident": 0.7 - unsure * seed + 0.001 * (5 * seed % 13),
        "balance": 0.1 + 0.01 * seed,
        "balance_released": 0.2 + 0.01 * (seed + seed % 3),
    }
    return Rows(table("network", arm="words", seed=seed, inside=inside, **columns))


def verdicts(table: Rows) -> dict[str, str]:
    found = evaluate(STUDY.claims, Evidence(rows=table, config={"seeds": range(COUNT)}, preset="default"))
    return {verdict.claim.id: verdict.answer for verdict in found}


@pytest.mark.parametrize(
    ("errors", "unsure", "expected"),
    [
        (0.001, 0.001, ("holds", "holds", "holds", "holds")),
        (-0.001, 0.001, ("refuted", "holds", "holds", "refuted")),
        (-0.001, -0.001, ("refuted", "refuted", "refuted", "refuted")),
    ],
)
def test_each_accuracy_decides_its_claim(errors: float, unsure: float, expected: tuple[str, ...]) -> None:
    found = verdicts(rows(errors, unsure))
    assert tuple(found.values())[:4] == expected
    assert (found["the-accuracy-matters"] == "holds") == (errors < 0 < unsure)


ACCURATE = "minimal-networks-close-rightly"


def test_claims_about_untrained_networks_are_not_tested() -> None:
    found = verdicts(rows(0.001, 0.001, inside=0.5))
    assert found.pop(ACCURATE) == "refuted"
    assert set(found.values()) == {"not tested"}


def test_the_number_of_networks_limits_what_equal_accuracies_decide() -> None:
    assert verdicts(rows(0.001, 0.001, inside=1.0))[ACCURATE] == "undecided"
    many = Rows(table("network", arm="words", seed=np.arange(240), inside=1.0))
    (claim,) = (claim for claim in STUDY.claims if claim.id == ACCURATE)
    (verdict,) = evaluate([claim], Evidence(rows=many, config={"seeds": range(240)}, preset="default"))
    assert verdict.answer == "holds"


def test_a_network_yields_both_accuracies_and_violations() -> None:
    (row,) = STUDY.parts(PRESETS["smoke"])[0].rows(Path())
    assert (row["kind"], row["arm"], row["seed"]) == ("network", "words", 0)
    assert 0 <= row["outside_confident"] <= row["outside"] < 1
    assert row["balance"] > 0
    assert row["balance_released"] > 0
