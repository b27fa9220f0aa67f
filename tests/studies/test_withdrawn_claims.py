"""Registered claims do not vanish: each is still made, or its study lists it as withdrawn with its last verdict."""

import pytest

from trialogue import studies
from trialogue.ledger.runs.results import SHIPPED, open_result
from trialogue.ledger.study import Study

STUDIES = (
    "clones",
    "clones-gpt",
    "gradient-flow",
    "interaction-order",
    "memorization-construct",
    "memorization-text",
    "memorization-train",
    "potts-coherence",
    "potts-patterns",
    "solution-first",
    "type-signature",
    "window-coherence",
)


def registered_origins(study: Study) -> set[tuple[str, str | None]]:
    """Claims of the committed results by their id and the origin that they were registered with, None if unknown."""
    found = set()
    for done in SHIPPED.glob(f"{study.name}/*/DONE"):
        registration = open_result(done.parent).registration
        for identity, entry in (registration.claims or {}).items():
            found.add((identity, entry.get("origin", registration.origins.get(identity))))
    return found


@pytest.mark.parametrize("name", STUDIES)
def test_registered_claims_are_made_or_withdrawn(name: str) -> None:
    study = studies.find(name)
    origins = {claim.id: claim.origin for claim in study.claims}
    withdrawn = {(claim.id, claim.origin) for claim in study.withdrawn}
    for identity, origin in registered_origins(study):
        assert origins.get(identity) == (origin or origins.get(identity)) or (identity, origin) in withdrawn


@pytest.mark.parametrize("name", STUDIES)
def test_published_claims_name_their_statement(name: str) -> None:
    study = studies.find(name)
    assert [
        claim.id for claim in study.claims if claim.origin == "published" and not claim.statement_id
    ] == []
    assert all(claim.statement_id for claim in study.withdrawn if claim.origin == "published")


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("clones-gpt", 1),
        ("memorization-construct", 5),
        ("potts-coherence", 4),
        ("potts-patterns", 2),
        ("solution-first", 3),
        ("type-signature", 2),
    ],
)
def test_withdrawn_claims_keep_verdict_date_and_reason(name: str, count: int) -> None:
    withdrawn = studies.find(name).withdrawn
    assert len(withdrawn) == count
    for claim in withdrawn:
        assert claim.low <= claim.estimate <= claim.high, claim.id
        assert claim.reason.endswith("."), claim.id
        assert claim.withdrawn_on.startswith("2026-11-2"), claim.id
        assert claim.result, claim.id
