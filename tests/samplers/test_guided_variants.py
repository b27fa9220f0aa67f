"""Variants of the value-guided sampler by enumeration, and samplers that draw candidates."""

import math

import numpy as np
import pytest
import torch

from models.tiny_pretrained import tiny_oracle
from refusals import expect_error
from samplers.reference_distributions import largest_difference, normalised
from trialogue.errors import InputError
from trialogue.samplers import (
    ActionLevel,
    BestOfN,
    BlockBestOfN,
    OutcomeRejection,
    StationaryValueGuided,
    ValueGuided,
    generate,
)
from trialogue.samplers.exact import exact_distribution, transition_matrix
from trialogue.testing.distributions import verified_values
from trialogue.testing.trees import TREES, VIABLE, RandomTree

WIDE = [RandomTree(21, vocab=4), RandomTree(22, vocab=4, horizon=4, eos=3), VIABLE[5], VIABLE[2]]
CUTS = [{"candidates": 1}, {"candidates": 2}, {"nucleus": 0.6}, {"candidates": 3, "nucleus": 0.8}]


def candidates_of(tree, value, prefix, candidates=None, nucleus=1.0):
    """Return the k most probable children of positive value, reduced to the smallest set with the nucleus mass."""
    allowed = [(child, p) for child, p in tree.children(prefix) if value(child) > 0]
    ordered = sorted(allowed, key=lambda child: -child[1])[:candidates]
    total, reached, kept = math.fsum(p for _, p in ordered), 0.0, []
    for child, p in ordered:
        if reached >= nucleus * total:
            break
        kept.append((child, p))
        reached += p
    return kept


def subtree(tree, value, cut, prefix=(), p=1.0):
    """Return every node of the tree of candidates with its probability under the oracle."""
    nodes = {prefix: p}
    if not tree.complete(prefix):
        for child, q in candidates_of(tree, value, prefix, **cut):
            nodes |= subtree(tree, value, cut, child, p * q)
    return nodes


def stationary_leaves(sampler, tree, value) -> dict:
    """Return the distribution of leaves under the stationary distribution of the sampler's transitions."""
    states, transitions = transition_matrix(sampler, tree.table(), value)
    matrix = transitions.toarray()
    # The left eigenvector of eigenvalue one spans the null space of (P - 1)'.
    _, _, vectors = np.linalg.svd(matrix.T - np.eye(len(matrix)))
    leaves: dict = {}
    for state, mass in zip(states, np.abs(vectors[-1]), strict=True):
        if tree.complete(state):
            leaves[state] = leaves.get(state, 0.0) + float(mass)
    return normalised(leaves)


def candidates_error(sampler, tree, value, cut) -> float:
    expected = normalised({x: p * value(x) for x, p in subtree(tree, value, cut).items() if tree.complete(x)})
    return largest_difference(stationary_leaves(sampler(stop_at_leaf=False, **cut), tree, value), expected)


@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("tree", WIDE, ids=str)
def test_leaves_of_candidates_have_the_distribution_of_the_oracle_on_candidates(tree, cut):
    for value in (tree.value, verified_values(tree)):
        if any(tree.complete(x) for x in subtree(tree, value, cut)):
            assert candidates_error(ValueGuided, tree, value, cut) < 1e-12


def test_the_default_number_of_steps_is_four_times_the_squared_horizon():
    tree, steps = VIABLE[0], 4 * VIABLE[0].horizon ** 2
    default, stated = (StationaryValueGuided(node="last", **given) for given in ({}, {"steps": steps}))
    assert exact_distribution(default, tree.table(), tree.value) == exact_distribution(
        stated, tree.table(), tree.value
    )


def test_an_outcome_above_the_stated_maximum_is_rejected():
    with pytest.raises(InputError, match=r"most=1\.0: use at least 3, the value of a complete sequence"):
        exact_distribution(OutcomeRejection(), TREES[0].table(), lambda x: 3.0)


GUIDED = [
    ValueGuided(),
    ValueGuided(momentum=1.0),
    ValueGuided(candidates=1),
    StationaryValueGuided(),
    ActionLevel(),
]


@pytest.mark.parametrize("sampler", GUIDED, ids=repr)
def test_a_root_without_children_of_positive_value_fails(sampler):
    run = generate(
        TREES[0].table(), sampler=sampler, verifier=lambda prefix: float(not prefix), num_samples=3
    )
    assert run.stopped == ["failed"] * 3
    assert not run.accepted.any()
    distribution = exact_distribution(sampler, TREES[0].table(), lambda prefix: float(not prefix))
    assert (pytest.approx(distribution.failed, rel=1e-12), distribution.probabilities) == (1.0, {})


LINES = RandomTree(31, vocab=3, horizon=4, eos=1)


def takes_the_first_of_equals(sampler) -> bool:
    """Return whether each sample is its first candidate if all values are equal.

    The exact distribution does not depend on the choice among equals, because candidates are exchangeable.
    """
    chosen = generate(LINES.table(), sampler=sampler, verifier=lambda y: 1.0, num_samples=40)
    first = generate(LINES.table(), num_samples=40, sample_ids=range(0, 120, 3))
    return chosen.sequences() == first.sequences()


def test_the_first_of_equal_candidates_is_taken():
    assert takes_the_first_of_equals(BestOfN(3))
    assert takes_the_first_of_equals(BlockBestOfN(3, block_tokens=1))


def test_a_block_is_judged_once_at_its_end():
    judged = []

    def value(prefix):
        judged.append(prefix)
        return 1.0

    sampler = BlockBestOfN(3, delimiters=(0,))
    generate(LINES.table(), sampler=sampler, verifier=value, num_samples=30)
    assert len(set(judged)) == len(judged)
    assert all(LINES.complete(prefix) or prefix[-1] == 0 for prefix in judged)


def test_delimiters_may_be_a_tensor():
    sampler = BlockBestOfN(2, torch.tensor([2, 0, 2]))
    assert sampler == BlockBestOfN(2, (0, 2))
    assert hash(sampler) == hash(BlockBestOfN(2, (0, 2)))


def test_blocks_end_at_a_text_if_the_oracle_has_a_tokenization():
    oracle = tiny_oracle()
    settings = {"verifier": lambda prefix: len(set(prefix)), "max_new_tokens": 12, "num_samples": 3}
    for text, given in (("\n", None), ("e", "e")):
        tokens = tuple(oracle.tokenization.tokens_containing(text).tolist())
        runs = [
            generate(oracle, ["the cat"], sampler=sampler, **settings)
            for sampler in (BlockBestOfN(2, tokens), BlockBestOfN(2, block_delimiter=given))
        ]
        assert runs[0].sequences() == runs[1].sequences()
    with pytest.raises(InputError, match="block_delimiter='@@@': no token of the model contains this text"):
        generate(oracle, ["the cat"], sampler=BlockBestOfN(2, block_delimiter="@@@"), **settings)


def test_invalid_delimiters_are_rejected():
    table, value = LINES.table(), LINES.value
    with pytest.raises(InputError, match="delimiters=7: use token ids below 3"):
        generate(table, sampler=BlockBestOfN(2, (0, 7)), verifier=value)
    message = r"delimiters=\(\): the model has no tokenization"
    expect_error(message, generate, table, sampler=BlockBestOfN(2), verifier=value)
    expect_error(message, exact_distribution, BlockBestOfN(2), table, value)
