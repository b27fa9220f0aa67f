"""Variants of the value-guided sampler and its controls, each with the distribution it is stated to sample, by
enumeration.
"""

import math

import numpy as np
import pytest

from mutants import samplers as mutants
from samplers.reference_laws import (
    expected_value,
    largest_difference,
    normalised,
    rejection_queries,
    restricted,
)
from trialogue.errors import InputError
from trialogue.samplers import (
    ActionLevel,
    OutcomeRejection,
    StationaryValueGuided,
    ValueGuided,
    generate,
    truncated,
)
from trialogue.samplers.exact import exact_distribution, transition_matrix
from trialogue.testing.distributions import ruled
from trialogue.testing.trees import TREES, VIABLE, RandomTree

WIDE = [RandomTree(21, vocab=4), RandomTree(22, vocab=4, horizon=4, eos=3), VIABLE[5], VIABLE[2]]
CUTS = [{"candidates": 1}, {"candidates": 2}, {"nucleus": 0.6}, {"candidates": 3, "nucleus": 0.8}]


def candidates_of(tree, value, prefix, candidates=None, nucleus=1.0):
    """The k most probable children of positive value, then the fewest of them that reach the share of their mass."""
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
    """Every node of the tree of candidates, with its probability under the whole oracle."""
    nodes = {prefix: p}
    if not tree.complete(prefix):
        for child, q in candidates_of(tree, value, prefix, **cut):
            nodes |= subtree(tree, value, cut, child, p * q)
    return nodes


def stationary_leaves(sampler, tree, value) -> dict:
    """The distribution of a leaf under the stationary distribution that the transitions of `sampler` have, its
    directions summed.
    """
    states, transitions = transition_matrix(sampler, tree.table(), value)
    matrix = transitions.toarray()
    # The left eigenvector of eigenvalue one, as the null space of (P - 1)'.
    _, _, vectors = np.linalg.svd(matrix.T - np.eye(len(matrix)))
    leaves: dict = {}
    for state, mass in zip(states, np.abs(vectors[-1]), strict=True):
        if tree.complete(state):
            leaves[state] = leaves.get(state, 0.0) + float(mass)
    return normalised(leaves)


def candidates_error(sampler, tree, value, cut) -> float:
    due = normalised({x: p * value(x) for x, p in subtree(tree, value, cut).items() if tree.complete(x)})
    return largest_difference(stationary_leaves(sampler(stop_at_leaf=False, **cut), tree, value), due)


@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("tree", WIDE, ids=str)
def test_a_leaf_of_candidates_has_the_law_of_the_oracle_on_sequences_of_candidates(tree, cut):
    for value in (tree.value, ruled(tree)):
        if any(tree.complete(x) for x in subtree(tree, value, cut)):
            assert candidates_error(ValueGuided, tree, value, cut) < 1e-12


@pytest.mark.parametrize("mutant", [mutants.RenormalisedCandidates, mutants.LateCandidates])
def test_other_candidates_are_told_apart(mutant):
    assert max(candidates_error(mutant, tree, ruled(tree), CUTS[1]) for tree in WIDE[:2]) > 1e-3


def test_truncating_the_oracle_is_another_law():
    tree, cut = WIDE[0], {"candidates": 2}
    states, transitions = transition_matrix(
        ValueGuided(stop_at_leaf=False), truncated(tree.table(), top_k=2), tree.value
    )
    due = subtree(tree, tree.value, cut)
    assert set(states) == set(due)
    kept = {x: math.fsum(p for _, p in candidates_of(tree, tree.value, x, **cut)) for x in due if len(x) < 3}
    renormalised = normalised(
        {
            x: p * tree.value(x) / math.prod(kept[x[:length]] for length in range(3))
            for x, p in due.items()
            if tree.complete(x)
        }
    )
    _, _, vectors = np.linalg.svd(transitions.toarray().T - np.eye(len(states)))
    found = normalised(
        {x: abs(float(v)) for x, v in zip(states, vectors[-1], strict=True) if tree.complete(x)}
    )
    assert largest_difference(found, renormalised) < 1e-12
    distribution = stationary_leaves(ValueGuided(stop_at_leaf=False, **cut), tree, tree.value)
    assert largest_difference(distribution, renormalised) > 1e-3


MOMENTA = [0.3, 1.0]


def momentum_error(sampler, tree, value, momentum) -> float:
    """Distance of the stationary distribution of leaves from the target; 1 where a chain has another than it is
    stated to.
    """
    if sum(map(tree.complete, tree.nodes())) < 2:
        return 0.0
    sampler = sampler(stop_at_leaf=False, momentum=momentum)
    return largest_difference(stationary_leaves(sampler, tree, value), restricted(tree, value))


@pytest.mark.parametrize("momentum", MOMENTA)
@pytest.mark.parametrize("tree", TREES, ids=str)
def test_momentum_leaves_the_stationary_law_as_it_is(tree, momentum):
    states, transitions = transition_matrix(
        ValueGuided(stop_at_leaf=False, momentum=momentum), tree.table(), tree.value
    )
    matrix = transitions.toarray()
    distribution = np.abs(np.linalg.svd(matrix.T - np.eye(len(matrix)))[2][-1])
    due = {}
    for node, p in subtree(tree, tree.value, {}).items():
        due[node] = due.get(node, 0.0) + (p * tree.value(node) if node else 0.0)
        if node:
            due[node[:-1]] = due.get(node[:-1], 0.0) + p * tree.value(node)
    found: dict = {}
    for state, mass in zip(states, distribution, strict=True):
        found[state] = found.get(state, 0.0) + float(mass)
    assert largest_difference(normalised(found), normalised(due)) < 1e-12
    assert momentum_error(ValueGuided, tree, tree.value, momentum) < 1e-12


@pytest.mark.parametrize(
    "mutant", [mutants.DoublingMomentum, mutants.OneWayMomentum, mutants.ForgetfulMomentum]
)
def test_another_momentum_is_told_apart(mutant):
    assert max(momentum_error(mutant, tree, tree.value, 1.0) for tree in TREES[:3]) > 1e-3


@pytest.mark.parametrize("tree", [tree for tree in VIABLE if tree.eos is None], ids=str)
def test_with_true_values_a_walk_of_full_momentum_goes_straight_to_a_leaf_of_the_target(tree):
    distribution = exact_distribution(
        ValueGuided(momentum=1.0), tree.table(), expected_value(tree, tree.allows)
    )
    assert largest_difference(distribution.probabilities, restricted(tree, tree.allows)) < 1e-12
    assert distribution.expected_calls == pytest.approx(tree.horizon, rel=1e-9)


def test_by_default_there_are_steps_enough_for_the_target():
    tree = VIABLE[0]
    value = expected_value(tree, tree.value)
    distribution = exact_distribution(StationaryValueGuided(node="last"), tree.table(), value)
    assert largest_difference(distribution.probabilities, restricted(tree, tree.value)) < 1e-3
    assert distribution == exact_distribution(
        StationaryValueGuided(node="last", steps=4 * tree.horizon**2), tree.table(), value
    )


def test_without_waiting_the_last_step_is_a_leaf_only_if_it_is_as_odd():
    tree = VIABLE[0]
    assert tree.horizon == 3
    for steps in (8, 9):
        sampler = StationaryValueGuided(lazy=False, node="last", steps=steps, tries=4)
        distribution = exact_distribution(sampler, tree.table(), tree.value)
        assert (distribution.failed > 1 - 1e-12) == (steps == 8)


def test_the_outcome_alone_decides_the_law_of_a_leaf():
    tree = VIABLE[0]

    def error(sampler):
        value = ruled(tree)
        return largest_difference(
            stationary_leaves(sampler(stop_at_leaf=False), tree, value), restricted(tree, value)
        )

    assert error(ValueGuided) < 1e-12
    assert error(mutants.OutcomelessGuided) > 1e-3


@pytest.mark.parametrize("most", [1.0, 4.0])
def test_what_outcomes_may_be_changes_the_cost_alone(most):
    tree = VIABLE[0]
    one, other = (exact_distribution(OutcomeRejection(m), tree.table(), tree.value) for m in (1.0, most))
    assert largest_difference(one.probabilities, other.probabilities) < 1e-12
    assert other.expected_calls == pytest.approx(most * one.expected_calls)


def test_an_outcome_above_the_greatest_is_named():
    with pytest.raises(InputError, match=r"most=1\.0: a complete sequence has the value 3: allow as much"):
        exact_distribution(OutcomeRejection(), TREES[0].table(), lambda x: 3.0)


GUIDED = [
    ValueGuided(),
    ValueGuided(momentum=1.0),
    ValueGuided(candidates=1),
    StationaryValueGuided(),
    ActionLevel(),
]


@pytest.mark.parametrize("sampler", GUIDED, ids=repr)
def test_worthless_children_of_the_root_are_a_failure(sampler):
    run = generate(
        TREES[0].table(), sampler=sampler, verifier=lambda prefix: float(not prefix), num_samples=3
    )
    assert run.stopped == ["failed"] * 3
    assert not run.accepted.any()
    distribution = exact_distribution(sampler, TREES[0].table(), lambda prefix: float(not prefix))
    assert (pytest.approx(distribution.failed, rel=1e-12), distribution.probabilities) == (1.0, {})


@pytest.mark.parametrize("tree", VIABLE, ids=str)
def test_with_full_momentum_the_first_leaf_of_viable_prefixes_has_the_target_law(tree):
    """Also where leaves are not equally deep: no value is below what its children weigh."""
    for sampler in (ValueGuided(momentum=1.0), ValueGuided(momentum=1.0, lazy=False)):
        distribution = exact_distribution(sampler, tree.table(), tree.allows)
        assert largest_difference(distribution.probabilities, restricted(tree, tree.allows)) < 1e-12
    plain = exact_distribution(ValueGuided(), tree.table(), tree.allows)
    assert largest_difference(plain.probabilities, restricted(tree, tree.allows)) > 1e-3
    assert distribution.expected_calls < plain.expected_calls
    assert distribution.expected_calls < 2 * rejection_queries(tree, tree.allows)
