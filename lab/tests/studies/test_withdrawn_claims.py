"""Registered claims do not vanish: each is still made, or its study lists it as withdrawn with its last verdict."""

from datetime import date

import pytest

from trialogue_lab import studies
from trialogue_lab.ledger.runs.results import COMMITTED, open_result
from trialogue_lab.ledger.study import Study

STUDIES = sorted(name for name, module in studies.modules().items() if module.startswith("trialogue_lab."))


def registered_origins(study: Study) -> set[tuple[str, str | None]]:
    """Claims of the committed results by their id and the origin that they were registered with, None if unknown."""
    found = set()
    for done in COMMITTED.glob(f"{study.name}/*/DONE"):
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
def test_published_claims_and_only_those_name_a_statement(name: str) -> None:
    study = studies.find(name)
    for claim in (*study.claims, *study.withdrawn):
        assert bool(claim.statement_id) == (claim.origin == "published"), claim.id


@pytest.mark.parametrize("name", STUDIES)
def test_withdrawn_claims_have_a_verdict_a_date_and_a_reason(name: str) -> None:
    for claim in studies.find(name).withdrawn:
        assert claim.reason.endswith("."), claim.id
        assert date.fromisoformat(claim.withdrawn_on).isoformat() == claim.withdrawn_on, claim.id
        if claim.last_verdict in ("holds", "refuted"):
            assert claim.low <= claim.estimate <= claim.high, claim.id
