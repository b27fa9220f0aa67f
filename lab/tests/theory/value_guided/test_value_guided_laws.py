"""The value-guided walk on small trees: closed forms, the walk's own transitions, and the walk as it runs, agree."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from one_line_errors import refusals
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
    def law(prefix):
        return numpy_generator(0, "law", prefix).dirichlet(np.ones(vocab)).tolist()

    return Table(law, vocab, max_length=horizon)


def outcome(sequence) -> float:
    return float(numpy_generator(0, "outcome", sequence).random())


def altered(tree: RandomTree) -> TableValues:
    """Exact outcomes, and anything positive inside."""
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
    whole, below = (
        exact_values(tree.table(), tree.value),
        exact_values(tree.table(), tree.value, prompt=(1, 0)),
    )
    assert below((1, 0, 1)) == pytest.approx(whole((1, 0, 1)), abs=1e-15)
    with pytest.raises(InputError, match="prefix="):
        below((0, 1))


@pytest.mark.parametrize(("horizon", "vocab"), [(2, 2), (5, 2), (4, 3)])
def test_exact_values_make_the_depth_a_reflecting_walk(horizon, vocab):
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
def test_closed_forms_are_those_of_the_walk_itself(tree):
    oracle, values = tree.table(), altered(tree)
    chain, found = value_guided_chain(oracle, values), first_leaf(oracle, values)
    walk = exact_distribution(ValueGuided(), oracle, values)
    assert chain.reversibility_residual < 1e-12
    assert total_variation(found.distribution, walk.probabilities) < 1e-12
    assert found.moves == pytest.approx(walk.expected_calls, rel=1e-12)
    assert found.nodes == pytest.approx(math.fsum(chain.visited_before_leaf().values()), rel=1e-12)
    assert found.nodes < found.moves
    # Whatever the values inside, a leaf of the walk that goes on has the restricted law.
    target = target_distribution(oracle, tree.value)
    assert total_variation(chain.leaf_distribution(chain.stationary), target) < 1e-12
    assert total_variation(found.distribution, target) > 1e-3


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_exact_values_make_the_first_leaf_exact_where_leaves_are_equally_deep(tree):
    oracle, values = tree.table(), exact_values(tree.table(), tree.value)
    target = target_distribution(oracle, tree.value)
    far = total_variation(first_leaf(oracle, values).distribution, target)
    assert far < 1e-12 if tree.eos is None else far > 1e-3
    chain = value_guided_chain(oracle, values)
    assert total_variation(chain.leaf_distribution(chain.stationary), target) < 1e-12


@pytest.mark.parametrize("tree", VIABLE, ids=str)
def test_with_verdicts_for_values_going_down_only_is_tokenwise_rejection(tree):
    law = exact_distribution(MaskedDecoding(), tree.table(), tree.allows).probabilities
    assert total_variation(action_level_distribution(tree.table(), tree.allows), law) < 1e-12
    law = exact_distribution(ActionLevel(), tree.table(), tree.value).probabilities
    assert total_variation(action_level_distribution(tree.table(), tree.value), law) < 1e-12


def test_a_law_is_mixed_when_it_is_said_to_be():
    oracle = random_table(4)
    values = exact_values(oracle, outcome)
    chain, target = value_guided_chain(oracle, values), target_distribution(oracle, outcome)
    steps = chain.mixing_time(0.1)
    transitions = chain.transitions.toarray()

    def law_after(number):
        return np.linalg.matrix_power(transitions, number)[0]

    far = [abs(law_after(number) - chain.stationary).sum() / 2 for number in (steps - 1, steps)]
    assert far[1] <= 0.1 < far[0]
    leaf_steps = chain.leaf_mixing_time(target, 0.05)
    assert total_variation(chain.leaf_distribution(law_after(leaf_steps)), target) <= 0.05
    with pytest.raises(InputError, match="allow more steps"):
        chain.mixing_time(0.1, max_steps=2)


def test_trees_that_are_too_large_say_how_large_and_what_to_do():
    uniform = Table(lambda _: (0.5, 0.5), 2)
    told = r"max_new_tokens=39: .*max_nodes=1000 .* 1,099,511,627,775 prefixes.*generate"
    with pytest.raises(InputError, match=told):
        prefix_tree(uniform, max_new_tokens=39, max_nodes=1000)
    with pytest.raises(InputError, match=r"about 10\^301 prefixes"):
        exact_values(uniform, lambda _: True, max_new_tokens=999, max_nodes=100)
    # What cannot occur is not counted: one string of eight brackets in twelve thousand is balanced.
    assert prefix_tree(Dyck(8)).leaf.sum() == 224


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (lambda x: float(len(x) != 1), "give a positive value to at least one continuation"),
        (lambda x: float(len(x) < 3), "give positive values along a path to a leaf"),
        (lambda x: math.nan, "return a finite non-negative number"),
        (lambda x: -1.0, "return a finite non-negative number"),
    ],
)
def test_useless_values_are_one_line(values, told):
    with pytest.raises(InputError, match=told):
        first_leaf(random_table(3), values)
    with pytest.raises(InputError, match="accept at least one sequence"):
        exact_values(random_table(3), lambda x: float(len(x) < 3))


def close(expected):
    """Within 1e-12 of its own size, however small: `approx` alone accepts any difference below 1e-12."""
    return pytest.approx(expected, rel=1e-12, abs=0)


def even_parity(prefix):
    return float(sum(prefix) % 2 == 0)


def test_prefixes_that_the_walk_never_reaches_have_no_mass():
    fair = Table(lambda _: (0.5, 0.5), 2, max_length=3)
    chain, stationary = value_guided_chain(fair, even_parity), stationary_probabilities(fair, even_parity)
    assert leaf_mass(fair, even_parity) == close(1 / 14)
    assert chain.leaf_mass == close(1 / 14)
    assert stationary == close(dict(zip(chain.states, chain.stationary, strict=True)))
    network = walk_conductances(prefix_tree(fair), even_parity)
    assert network.reached.sum() == len(chain.states) == 4


def extreme(seeds):
    """Trees of which some leaf can be reached, and their chains."""
    for seed in seeds:
        tree = ExtremeTree(seed, horizon=3)
        if not any(tree.value(child) for child, _ in tree.children(())):
            continue
        chain = value_guided_chain(tree.table(), tree.value)
        if chain.leaf.any():
            yield tree, chain


def exact_stationary(tree: ExtremeTree) -> dict[tuple[int, ...], Fraction]:
    """c(y) + the sum of c over the children of y, over the prefixes that the walk reaches."""
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


def test_the_chain_and_closed_forms_in_rational_arithmetic():
    compared = 0
    for tree, chain in extreme(range(20)):
        oracle, walk = tree.table(), ValueGuided()
        truth, stationary = expected(walk, tree), exact_stationary(tree)
        found = first_leaf(oracle, tree.value)
        law = {x: float(p) for x, p in truth.distribution.items() if p}
        assert found.distribution == close(law)
        assert {x: p for x, p in chain.first_leaf_distribution().items() if p} == close(law)
        assert found.moves == close(float(truth.calls))
        assert chain.steps_to_leaf == close(2 * float(truth.calls))
        exact = {x: float(p) for x, p in stationary.items()}
        assert stationary_probabilities(oracle, tree.value) == close(exact)
        own = dict(zip(chain.states, chain.stationary.tolist(), strict=True))
        assert own == close(exact)
        leaves = float(sum(p for x, p in stationary.items() if tree.complete(x)))
        assert leaf_mass(oracle, tree.value) == close(leaves)
        assert chain.leaf_mass == close(leaves)
        # By conductances to either side of a node, and by expected visits.
        listed = prefix_tree(oracle)
        shares = dict(
            zip(listed.prefixes, walk_conductances(listed, tree.value).visited.tolist(), strict=True)
        )
        visited = chain.visited_before_leaf()
        assert visited == close({x: shares[x] for x in visited})
        compared += 1
    assert compared > 9


def test_siblings_are_summed_without_subtraction():
    """The way from one child to the leaves below the other conducts 1e-18 of what the first one does itself."""
    network = Conductances(
        np.array([-1, 0, 0, 1, 2]), np.array([0, 1, 1e-18, 1, 1]), np.array([False, False, False, True, True])
    )
    assert network.above[1] == close(1e-18)
    assert network.above[2] == close(1e-18)


def test_going_down_only_does_not_lose_long_paths():
    long = Table(lambda y: (1e-200, 1.0) if len(y) < 3 else (0.5, 0.5), 2, max_length=4)
    law = action_level_distribution(long, lambda y: float(1 not in y[:3]))
    assert law == close({(0, 0, 0, 0): 0.5, (0, 0, 0, 1): 0.5})


def test_a_prompt_that_is_complete_is_the_only_state():
    done = Table(lambda _: (0.5, 0.5), 2, max_length=0)
    assert stationary_probabilities(done, even_parity) == {(): 1.0}
    assert leaf_mass(done, even_parity) == 1.0


HALF = np.array([False, True])
FLIP = csr_array(np.array([[0.5, 0.5], [0.5, 0.5]]))


test_bad_input_is_one_line = refusals(
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
