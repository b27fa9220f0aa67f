"""Tests of the study `topic-pairs`, which makes the claims of `topic-pretrained` with other seeds."""

from operator import attrgetter

import pytest
from known_rows import verdict_of
from test_topic_pretrained import rows

from trialogue_lab.ledger.settings import collect_seeds
from trialogue_lab.studies.topic_pairs import STUDY
from trialogue_lab.studies.topic_pretrained import STUDY as EARLIER


def test_claims_agree_with_the_first_study() -> None:
    first = {claim.id: claim for claim in EARLIER.claims}
    for claim in STUDY.claims:
        earlier = first[claim.id]
        for field in ("full_statement", "source", "published", "origin", "statistic.name"):
            assert attrgetter(field)(claim) == attrgetter(field)(earlier), (claim.id, field)
        assert claim.statistic.version == 1
    used = set().union(*(collect_seeds(config) for config in EARLIER.presets.values()))
    assert not collect_seeds(STUDY.presets["default"]) & used
    assert STUDY.pilot.rows_sha256 == EARLIER.pilot.rows_sha256
    assert all(EARLIER.pilot.estimates[name] == numbers for name, numbers in STUDY.pilot.estimates.items())


@pytest.mark.parametrize(("together", "answer"), [(0.9, "holds"), (0.01, "refuted")])
def test_attention_to_cooccurring_words_decides(together: float, answer: str) -> None:
    table = rows(together=together)
    for record in table.records:
        record["same"] *= 1 + 0.001 * record["seed"]  # equal numbers would have no interval
    assert verdict_of(STUDY, STUDY.claims[0].id, table, "default", seeds=(0, 1)).answer == answer
