"""Tests of the study `code-values`: accepted texts, the distance by enumeration, and statistics of known rows."""

import itertools
import math

import numpy as np
import pytest
from known_rows import table, verdict_of

from trialogue_lab.ledger import Rows
from trialogue_lab.studies.code_values import STUDY
from trialogue_lab.studies.code_values.measure import (
    METHODS,
    count_items,
    estimate_squared_distance,
    evaluate_sequence,
    is_accepted,
)
from trialogue_lab.studies.code_values.statistics import accepted, auc, cost, excess_items, share_distinct
from trialogue_lab.studies.test_cases.surrogate import PieceTokens

RIGHT = "assert abc([1, 2], 3) == [1, 2, 3]\n"
OTHER = "assert abc([], 7) == [7]\n"


@pytest.mark.parametrize(
    ("completion", "accepted_", "correct"),
    [
        (RIGHT + OTHER, True, 2),
        (RIGHT + RIGHT, False, 1),
        (RIGHT + OTHER.replace("== [7", "== [8"), False, 1),
        (RIGHT + OTHER.replace("abc", "abd"), False, 1),
        (RIGHT, False, 1),
        (RIGHT + OTHER + "def xyz()\n", False, 2),
    ],
)
def test_accepted_texts_consist_of_correct_and_distinct_cases(
    completion: str, accepted_: bool, correct: int
) -> None:
    tokens = tuple(PieceTokens().encode("abc\n" + completion))
    assert is_accepted(tokens, 2) == accepted_
    assert evaluate_sequence(tokens, 2).correct == correct


@pytest.mark.parametrize(("completion", "items"), [(RIGHT + OTHER, 2), (OTHER, 0), (RIGHT + RIGHT, 4)])
def test_appended_items_are_no_list_items(completion: str, items: int) -> None:
    tokens = tuple(PieceTokens().encode("abc\n" + completion))
    assert count_items(evaluate_sequence(tokens, 2)) == items


def test_the_estimated_distance_has_the_exact_mean() -> None:
    first, second, n, m = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.1, 0.8]), 3, 2
    mean = 0.0
    for draws in itertools.product(range(3), repeat=n + m):
        mine, theirs = draws[:n], draws[n:]
        probability = math.prod(first[list(mine)]) * math.prod(second[list(theirs)])
        counts = (np.bincount(part, minlength=3) for part in (mine, theirs))
        mean += probability * estimate_squared_distance(*counts)
    assert mean == pytest.approx(((first - second) ** 2).sum(), abs=1e-12)


def rows(distances: dict[str, float] | None = None) -> Rows:
    """Return rows of six trainings, with all methods alike except for their distances from the target."""
    seeds = np.arange(6)
    records = table("values", seed=np.repeat(seeds, 2), line=[1, 2] * 6, auc=[0.7, 0.9] * 6)
    for method in METHODS:
        records += table(
            "method",
            seed=seeds,
            method=method,
            outputs=10,
            accepted=5,
            distinct=12,
            queries=100,
            positions=400,
            items=1.5,
            reference_items=2.0,
            distance=(distances or {}).get(method, 0.0) * (1 + seeds / 100),
        )
    return Rows(records, config={"cases": 2, "seeds": list(range(6))})


def test_statistics_of_known_rows_have_the_expected_values() -> None:
    found = rows()
    assert accepted("first leaf")(found).tolist() == [0.5] * 6
    assert share_distinct("rejection")(found).tolist() == [0.6] * 6
    assert cost("first leaf")(found).tolist() == [20.0] * 6
    assert cost("first leaf", "positions")(found).tolist() == [80.0] * 6
    assert excess_items("blocks")(found).tolist() == [-0.5] * 6
    assert auc()(found).tolist() == pytest.approx([0.8] * 6)


@pytest.mark.parametrize(("method", "answer"), [("action level", "holds"), ("first leaf", "refuted")])
def test_the_published_comparison_with_action_level_can_fail(method: str, answer: str) -> None:
    found = rows({method: 0.1})
    verdict = verdict_of(STUDY, "closer-than-action-level", found, "default", seeds=range(6))
    assert verdict.answer == answer
