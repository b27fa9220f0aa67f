"""Value-guided samplers by blocks: their transitions by enumeration, and what they tend to."""

import math

import pytest

from samplers.rational import ValuedTree, expected
from samplers.reference_laws import expected_value, largest_difference, normalised, restricted
from trialogue.samplers import BlockValueGuided, generate
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.distributions import ruled
from trialogue.testing.trees import TREES, VIABLE


def test_more_candidates_come_nearer_to_the_law_of_the_tree():
    tree = TREES[0]
    valued = ValuedTree(tree, expected_value(tree, tree.value))
    errors = [
        largest_difference(
            expected(BlockValueGuided(k, 1), valued).distribution, restricted(tree, tree.value)
        )
        for k in (1, 3, 6)
    ]
    assert errors[0] > 2 * errors[1] > 3 * errors[2]


def test_one_block_of_one_candidate_is_rejection():
    tree = VIABLE[0]
    distribution = exact_distribution(BlockValueGuided(1, tree.horizon), tree.table(), ruled(tree))
    due = normalised({x: p * tree.allows(x) for x, p in tree.distribution().items()})
    assert largest_difference(distribution.probabilities, due) < 1e-12
    assert distribution.expected_calls == pytest.approx(
        tree.horizon / math.fsum(p for x, p in tree.distribution().items() if tree.allows(x))
    )


def test_what_never_has_a_candidate_ends_by_its_budget():
    run = generate(TREES[0].table(), sampler=BlockValueGuided(), verifier=lambda x: 0.0, max_queries=100)
    assert (run.stopped, run.accepted.tolist()) == (["max_queries"], [False])
