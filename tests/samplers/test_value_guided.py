"""Value-guided sampling against the theory of reversible samplers on trees (thesis Algorithm 2)."""

import math

import numpy as np
import pytest

from mutants import samplers as mutants
from samplers.reference_laws import expected_value, largest_difference, restricted
from trialogue.samplers import ValueGuided
from trialogue.samplers.exact import exact_distribution, transition_matrix
from trialogue.testing.trees import TREES, VIABLE, RandomTree

FIXED = [tree for tree in VIABLE if tree.eos is None]


@pytest.mark.parametrize("tree", FIXED, ids=str)
def test_with_true_values_the_first_leaf_has_the_target_law(tree):
    for rule in (tree.allows, tree.value):
        value = expected_value(tree, rule)
        for lazy in (True, False):
            distribution = exact_distribution(ValueGuided(lazy=lazy), tree.table(), value)
            assert largest_difference(distribution.probabilities, restricted(tree, rule)) < 1e-12


@pytest.mark.parametrize("tree", FIXED, ids=str)
def test_with_true_values_the_first_leaf_costs_the_square_of_the_horizon(tree):
    value = expected_value(tree, tree.allows)
    for lazy in (True, False):
        distribution = exact_distribution(ValueGuided(lazy=lazy), tree.table(), value)
        assert distribution.expected_calls == pytest.approx(tree.horizon**2, rel=1e-11)


def stationary(sampler, tree, value) -> tuple[dict[tuple[int, ...], float], np.ndarray]:
    """The distribution pi~(y) = p(y) V(y) [y not the root] + sum over children of p V, and the transition matrix."""
    states, transitions = transition_matrix(sampler, tree.table(), value)
    mass = {(): 1.0}
    for node in tree.nodes():
        if not tree.complete(node):
            mass |= {child: mass[node] * p for child, p in tree.children(node)}
    edge = {node: p * value(node) if node else 0.0 for node, p in mass.items()}
    below = dict.fromkeys(edge, 0.0)
    for node, weight in edge.items():
        if node:
            below[node[:-1]] += weight
    total = math.fsum(edge.values()) + math.fsum(below.values())
    return {node: (edge[node] + below[node]) / total for node in states}, transitions.toarray()


def balance_error(sampler, tree, value) -> float:
    """Greatest violation of: rows sum to one, invariance of pi~, detailed balance."""
    distribution, matrix = stationary(sampler, tree, value)
    weights = np.array(list(distribution.values()))
    flow = weights[:, None] * matrix
    return max(
        np.abs(matrix.sum(1) - 1).max(), np.abs(weights @ matrix - weights).max(), np.abs(flow - flow.T).max()
    )


@pytest.mark.parametrize("tree", VIABLE, ids=str)
def test_the_walk_is_reversible(tree):
    for lazy in (True, False):
        assert balance_error(ValueGuided(lazy=lazy, stop_at_leaf=False), tree, tree.value) < 1e-12


@pytest.mark.parametrize(
    "mutant", [mutants.HalfParentGuided, mutants.BlindChildrenGuided, mutants.UniformGuided]
)
def test_an_irreversible_walk_is_told_apart(mutant):
    assert balance_error(mutant(stop_at_leaf=False), TREES[2], TREES[2].value) > 1e-3


@pytest.mark.parametrize("tree", VIABLE, ids=str)
def test_given_a_leaf_the_stationary_law_is_the_target_whatever_the_inner_values(tree):
    def value(prefix):
        return float(tree.allows(prefix)) if tree.complete(prefix) else tree.value(prefix)

    _, matrix = stationary(ValueGuided(stop_at_leaf=False), tree, value)
    states, _ = transition_matrix(ValueGuided(stop_at_leaf=False), tree.table(), value)
    # The stationary distribution from the matrix alone: the left eigenvector of eigenvalue one.
    eigenvalues, vectors = np.linalg.eig(matrix.T)
    pi = np.real(vectors[:, np.argmin(np.abs(eigenvalues - 1))])
    leaves = {x: p for x, p in zip(states, pi / pi.sum(), strict=True) if tree.complete(x)}
    total = math.fsum(leaves.values())
    conditional = {x: p / total for x, p in leaves.items()}
    assert largest_difference(conditional, restricted(tree, tree.allows)) < 1e-10


@pytest.mark.parametrize("horizon", [2, 4, 6])
def test_leaf_mass_and_spectral_gap_with_true_values(horizon):
    tree = RandomTree(51, horizon=horizon)
    value = expected_value(tree, tree.value)
    distribution, matrix = stationary(ValueGuided(stop_at_leaf=False), tree, value)
    leaf_mass = math.fsum(p for node, p in distribution.items() if tree.complete(node))
    assert leaf_mass == pytest.approx(1 / (2 * horizon), rel=1e-12)
    root = np.sqrt(list(distribution.values()))
    eigenvalues = np.linalg.eigvalsh(root[:, None] * matrix / root)
    assert 1 - eigenvalues[-2] == pytest.approx((1 - math.cos(math.pi / (2 * horizon))) / 2, rel=1e-9)


def test_errors_of_the_values_inside_bias_the_first_leaf_but_stay_bounded_below():
    tree = TREES[1]
    exact = expected_value(tree, tree.value)

    def value(prefix):
        return exact(prefix) * (1.5 if prefix and prefix[-1] == 0 and not tree.complete(prefix) else 1.0)

    distribution, _ = stationary(ValueGuided(stop_at_leaf=False), tree, value)
    leaf_mass = math.fsum(p for node, p in distribution.items() if tree.complete(node))
    assert leaf_mass >= 1 / (2 * 1.5 * tree.horizon)
    biased = exact_distribution(ValueGuided(), tree.table(), value).probabilities
    assert largest_difference(biased, restricted(tree, tree.value)) > 1e-3


@pytest.mark.parametrize("tree", [tree for tree in VIABLE if tree.eos is not None], ids=str)
def test_leaves_of_different_depth_bias_the_first_leaf_even_with_true_values(tree):
    value = expected_value(tree, tree.allows)
    distribution = exact_distribution(ValueGuided(), tree.table(), value).probabilities
    assert largest_difference(distribution, restricted(tree, tree.allows)) > 0.1


def test_a_root_without_a_way_on_fails():
    distribution = exact_distribution(ValueGuided(), TREES[0].table(), lambda prefix: 0.0)
    assert (distribution.failed, distribution.never_halts) == (1.0, 0.0)
