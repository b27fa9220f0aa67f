"""Tests of the value-guided walk on small trees: closed forms, transition matrices and exact distributions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from one_line_errors import refusals
from refusals import expect_error
from samplers.rational_references import ExtremeTree, expected
from trialogue.data import Dyck, Table
from trialogue.errors import InputError
from trialogue.randomness import numpy_generator
from trialogue.samplers import ActionLevel, MaskedDecoding, ValueGuided
from trialogue.samplers.exact import (
    Conductances,
    exact_distribution,
    exact_values,
    prefix_tree,
    target_distribution,
    total_variation,
    walk_conductances,
)
from trialogue.testing.trees import TREES, VIABLE, RandomTree
from trialogue.verifiers import TableValues
from trialogue_lab.theory.value_guided import (
    ValueGuidedChain,
    action_level_distribution,
    first_leaf,
    leaf_mass,
    stationary_probabilities,
    value_guided_chain,
)


def random_table(horizon: int, vocab: int = 2) -> Table:
    def distribution(prefix):
        return numpy_generator(0, "law", prefix).dirichlet(np.ones(vocab)).tolist()

    return Table(distribution, vocab, max_length=horizon)


def outcome(sequence) -> float:
    return float(numpy_generator(0, "outcome", sequence).random())


def altered_values(tree: RandomTree) -> TableValues:
    """Return exact values of leaves and arbitrary positive values of inner nodes."""
    return TableValues({prefix: tree.value(prefix) for prefix in tree.nodes()})


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_exact_values_are_the_mean_outcomes(tree):
    values = exact_values(tree.table(), tree.value)
    for prefix in tree.nodes():
        below = tree.distribution(prefix)
        mean = math.fsum(p * tree.value(x) for x, p in below.items())
        assert values(prefix) == pytest.approx(mean, abs=1e-14)
    assert isinstance(values(()), float)


def test_exact_values_continue_a_prompt():
    tree = TREES[1]
    full_values, below = (exact_values(tree.table(), tree.value, prompt=start) for start in ((), (1, 0)))
    assert below((1, 0, 1)) == pytest.approx(full_values((1, 0, 1)), abs=1e-15)
    expect_error("prefix=", below, (0, 1))


@pytest.mark.parametrize(("horizon", "vocab"), [(2, 2), (5, 2), (4, 3)])
def test_exact_values_make_the_depth_a_reflecting_random_walk(horizon, vocab):
    oracle = random_table(horizon, vocab)
    values = exact_values(oracle, outcome)
    assert leaf_mass(oracle, values) == pytest.approx(1 / (2 * horizon), abs=1e-12)
    found = first_leaf(oracle, values)
    assert found.steps == pytest.approx(2 * horizon**2, abs=1e-10)
    assert total_variation(found.distribution, target_distribution(oracle, outcome)) < 1e-12
    chain = value_guided_chain(oracle, values)
    assert chain.steps_to_leaf == pytest.approx(2 * horizon**2, abs=1e-9)
    assert chain.spectral_gap == pytest.approx((1 - math.cos(math.pi / (2 * horizon))) / 2, abs=1e-12)


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_closed_forms_agree_with_the_exact_distribution_of_the_walk(tree):
    oracle, values = tree.table(), altered_values(tree)
    chain, found = value_guided_chain(oracle, values), first_leaf(oracle, values)
    walk = exact_distribution(ValueGuided(), oracle, values)
    assert chain.reversibility_residual < 1e-12
    assert total_variation(found.distribution, walk.probabilities) < 1e-12
    assert found.moves == pytest.approx(walk.expected_calls, rel=1e-12)
    assert found.nodes == pytest.approx(math.fsum(chain.visited_before_leaf().values()), rel=1e-12)
    assert found.nodes < found.moves
    # For any inner values, leaves of the stationary walk have the restricted distribution.
    target = target_distribution(oracle, tree.value)
    assert total_variation(chain.leaf_distribution(chain.stationary), target) < 1e-12
    assert total_variation(found.distribution, target) > 1e-3


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_exact_values_make_the_first_leaf_exact_if_all_leaves_have_one_depth(tree):
    oracle, values = tree.table(), exact_values(tree.table(), tree.value)
    target = target_distribution(oracle, tree.value)
    distance = total_variation(first_leaf(oracle, values).distribution, target)
    assert distance < 1e-12 if tree.eos is None else distance > 1e-3
    chain = value_guided_chain(oracle, values)
    assert total_variation(chain.leaf_distribution(chain.stationary), target) < 1e-12


@pytest.mark.parametrize("tree", VIABLE, ids=str)
def test_action_level_distribution_agrees_with_masked_and_action_level_samplers(tree):
    distribution = exact_distribution(MaskedDecoding(), tree.table(), tree.allows).probabilities
    assert total_variation(action_level_distribution(tree.table(), tree.allows), distribution) < 1e-12
    distribution = exact_distribution(ActionLevel(), tree.table(), tree.value).probabilities
    assert total_variation(action_level_distribution(tree.table(), tree.value), distribution) < 1e-12


def test_mixing_times_are_minimal():
    oracle = random_table(4)
    values = exact_values(oracle, outcome)
    chain, target = value_guided_chain(oracle, values), target_distribution(oracle, outcome)
    steps = chain.mixing_time(0.1)
    transitions = chain.transitions.toarray()

    def distribution_after(number):
        return np.linalg.matrix_power(transitions, number)[0]

    distances = [
        abs(distribution_after(number) - chain.stationary).sum() / 2 for number in (steps - 1, steps)
    ]
    assert distances[1] <= 0.1 < distances[0]
    leaf_steps = chain.leaf_mixing_time(target, 0.05)
    assert total_variation(chain.leaf_distribution(distribution_after(leaf_steps)), target) <= 0.05
    expect_error("allow more steps", chain.mixing_time, 0.1, max_steps=2)


def test_error_about_large_trees_has_the_size_and_a_hint():
    uniform = Table(lambda _: (0.5, 0.5), 2)
    message = r"max_new_tokens=39: .*max_nodes=1000 .* 1,099,511,627,775 prefixes.*generate"
    expect_error(message, prefix_tree, uniform, max_new_tokens=39, max_nodes=1000)
    with pytest.raises(InputError, match=r"about 10\^301 prefixes"):
        exact_values(uniform, lambda _: True, max_new_tokens=999, max_nodes=100)
    # Impossible prefixes are not counted: one in twelve thousand strings of eight brackets is balanced.
    assert prefix_tree(Dyck(8)).leaf.sum() == 224


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (lambda x: float(len(x) != 1), "give a positive value to at least one continuation"),
        (lambda x: float(len(x) < 3), "give positive values along a path to a leaf"),
        (lambda x: math.nan, "return a finite non-negative number"),
        (lambda x: -1.0, "return a finite non-negative number"),
    ],
)
def test_invalid_values_raise_a_one_line_error(values, message):
    expect_error(message, first_leaf, random_table(3), values)
    expect_error("accept at least one sequence", exact_values, random_table(3), lambda x: float(len(x) < 3))


def approx_relative(expected):
    """Compare with a relative tolerance only, because `approx` accepts any difference below 1e-12 by default."""
    return pytest.approx(expected, rel=1e-12, abs=0)


def even_parity(prefix):
    return float(sum(prefix) % 2 == 0)


def test_unreachable_prefixes_have_no_stationary_probability():
    uniform = Table(lambda _: (0.5, 0.5), 2, max_length=3)
    chain = value_guided_chain(uniform, even_parity)
    stationary = stationary_probabilities(uniform, even_parity)
    assert leaf_mass(uniform, even_parity) == approx_relative(1 / 14)
    assert chain.leaf_mass == approx_relative(1 / 14)
    assert stationary == approx_relative(dict(zip(chain.states, chain.stationary, strict=True)))
    network = walk_conductances(prefix_tree(uniform), even_parity)
    assert network.reached.sum() == len(chain.states) == 4


def extreme_trees(seeds):
    """Yield trees with a reachable leaf, and their chains."""
    for seed in seeds:
        tree = ExtremeTree(seed, horizon=3)
        if not any(tree.value(child) for child, _ in tree.children(())):
            continue
        chain = value_guided_chain(tree.table(), tree.value)
        if chain.leaf.any():
            yield tree, chain


def exact_stationary(tree: ExtremeTree) -> dict[tuple[int, ...], Fraction]:
    """Return c(y) plus the sum of c over the children of y, normalized, for all prefixes that the walk reaches."""
    mass = {(): Fraction(0)}
    below = [((), Fraction(1))]
    while below:
        prefix, path = below.pop()
        for child, p in [] if tree.complete(prefix) else tree.children(prefix):
            if edge := path * p * tree.exact_value(child):
                mass[prefix] += edge
                mass[child] = edge
                below.append((child, path * p))
    total = sum(mass.values())
    return {prefix: weight / total for prefix, weight in mass.items()}


def test_chain_and_closed_forms_agree_with_rational_arithmetic():
    compared = 0
    for tree, chain in extreme_trees(range(20)):
        oracle, walk = tree.table(), ValueGuided()
        truth, stationary = expected(walk, tree), exact_stationary(tree)
        found = first_leaf(oracle, tree.value)
        distribution = {x: float(p) for x, p in truth.distribution.items() if p}
        assert found.distribution == approx_relative(distribution)
        assert {x: p for x, p in chain.first_leaf_distribution().items() if p} == approx_relative(
            distribution
        )
        assert found.moves == approx_relative(float(truth.calls))
        assert chain.steps_to_leaf == approx_relative(2 * float(truth.calls))
        exact = {x: float(p) for x, p in stationary.items()}
        assert stationary_probabilities(oracle, tree.value) == approx_relative(exact)
        found_stationary = dict(zip(chain.states, chain.stationary.tolist(), strict=True))
        assert found_stationary == approx_relative(exact)
        leaves = float(sum(p for x, p in stationary.items() if tree.complete(x)))
        assert leaf_mass(oracle, tree.value) == approx_relative(leaves)
        assert chain.leaf_mass == approx_relative(leaves)
        # Visits by conductances on both sides of a node agree with expected visits of the chain.
        listed = prefix_tree(oracle)
        shares = dict(
            zip(listed.prefixes, walk_conductances(listed, tree.value).visited.tolist(), strict=True)
        )
        visited = chain.visited_before_leaf()
        assert visited == approx_relative({x: shares[x] for x in visited})
        compared += 1
    assert compared > 9


def test_conductances_of_siblings_are_precise():
    """The path through the sibling has 1e-18 of the conductance of the child."""
    network = Conductances(
        np.array([-1, 0, 0, 1, 2]), np.array([0, 1, 1e-18, 1, 1]), np.array([False, False, False, True, True])
    )
    assert network.above[1] == approx_relative(1e-18)
    assert network.above[2] == approx_relative(1e-18)


def test_action_level_distribution_does_not_underflow_on_long_paths():
    long = Table(lambda y: (1e-200, 1.0) if len(y) < 3 else (0.5, 0.5), 2, max_length=4)
    distribution = action_level_distribution(long, lambda y: float(1 not in y[:3]))
    assert distribution == approx_relative({(0, 0, 0, 0): 0.5, (0, 0, 0, 1): 0.5})


def test_complete_prompt_is_the_only_state():
    done = Table(lambda _: (0.5, 0.5), 2, max_length=0)
    assert stationary_probabilities(done, even_parity) == {(): 1.0}
    assert leaf_mass(done, even_parity) == 1.0


HALF = np.array([False, True])
FLIP = csr_array(np.array([[0.5, 0.5], [0.5, 0.5]]))


test_invalid_input_raises_a_one_line_error = refusals(
    "^{}",
    [
        (lambda: Conductances(np.array([-1, -1]), np.ones(2), HALF), "parent=.*root first"),
        (lambda: Conductances(np.array([-1, 0]), np.ones(3), HALF), "edge=.*one for each node"),
        (lambda: Conductances(np.array([-1, 0]), np.array([0, np.nan]), HALF), "edge=.*finite conductances"),
        (lambda: Conductances(np.array([-1, 0]), np.ones(2), np.ones(2)), "leaf=.*True or False"),
        (
            lambda: ValueGuidedChain([(), (0,)], FLIP, HALF).leaf_distribution(np.ones(3)),
            r"distribution=\(3,\): give non-negative",
        ),
        (
            lambda: ValueGuidedChain([(), (0,)], csr_array(np.eye(2)), HALF).first_leaf_distribution(),
            "never_ends=1.0: must be 0: the walk may never reach a leaf",
        ),
        (
            lambda: first_leaf(Table(lambda _: (1.0, 1e-160), 2, max_length=2), lambda y: float(0 not in y)),
            "values=.*along a path to a leaf.* at least 1e-300",
        ),
    ],
)
