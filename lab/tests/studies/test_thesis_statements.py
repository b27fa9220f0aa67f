"""Published claims about topics and brackets name their statement in the thesis."""

import re

import pytest

from trialogue_lab import studies

STUDIES = (
    "dyck-attention",
    "dyck-balance",
    "dyck-construction",
    "dyck-copying",
    "dyck-pruning",
    "topic-optima",
    "topic-pairs",
    "topic-pretrained",
    "topic-training",
    "topic-values",
)


@pytest.mark.parametrize("name", STUDIES)
def test_published_claims_name_a_statement_of_their_section(name: str) -> None:
    pattern = r"thesis:T-\S+" if name.startswith("topic") else r"thesis:D-\S+"
    study = studies.find(name)
    for claim in study.claims:
        expected = pattern if claim.origin == "published" else ""
        assert re.fullmatch(expected, claim.statement_id), claim.id
        assert not claim.setting or claim.setting.endswith("."), claim.id
