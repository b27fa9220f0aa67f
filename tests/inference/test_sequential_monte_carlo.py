"""Sequential Monte Carlo is properly weighted: E[exp(log_weight) 1(output = x)] = p(x) V(x), exactly."""

import math

import pytest

from inference.random_trees import TREES, VIABLE, RandomTree
from inference.reference_laws import largest_difference, restricted
from mutants import walks as mutants
from trialogue.errors import InputError
from trialogue.inference import SequentialMonteCarlo
from trialogue.inference.laws import exact_law

SMALL = RandomTree(41, vocab=2, horizon=2)
SPARSE = RandomTree(42, vocab=3, horizon=2, eos=1, sparse=True)
SETTINGS = [
    (particles, threshold, tree)
    for tree in (SMALL, SPARSE)
    for particles in (1, 2, 3)
    for threshold in (0.0, 0.5, 1.0)
    if particles < 3 or tree is SMALL
]


def verdict(tree):
    """0/1 values inside the tree and at its leaves, of which some survive."""
    return lambda prefix: tree.judges(prefix) or sum(prefix) == 0


def weight_error(walk, tree, value, particles, threshold) -> float:
    """Distance of the expected weights from p(x) V(x), where no prefix of x has value zero."""
    law = exact_law(walk(particles, threshold), tree.table(), value)
    proper = {
        x: p * value(x) * all(value(x[:length]) for length in range(1, len(x))) for x, p in tree.law().items()
    }
    total = math.fsum(law.probabilities.values()) + law.failed + law.never_halts
    return max(largest_difference(law.weights, proper), abs(total - 1))


@pytest.mark.parametrize(("particles", "threshold", "tree"), SETTINGS, ids=str)
def test_weights_are_proper(particles, threshold, tree):
    assert weight_error(SequentialMonteCarlo, tree, tree.value, particles, threshold) < 1e-12
    assert weight_error(SequentialMonteCarlo, tree, verdict(tree), particles, threshold) < 1e-12


@pytest.mark.parametrize("tree", [TREES[0], TREES[3]], ids=str)
def test_weights_are_proper_on_longer_sequences(tree):
    assert weight_error(SequentialMonteCarlo, tree, tree.value, 2, 1.0) < 1e-12
    assert weight_error(SequentialMonteCarlo, tree, tree.allows, 2, 0.6) < 1e-12


@pytest.mark.parametrize(
    "mutant",
    [
        mutants.ForgetfulMonteCarlo,
        mutants.LosingMeanMonteCarlo,
        mutants.FirstParticleMonteCarlo,
        mutants.SumWeightMonteCarlo,
    ],
)
def test_improper_weights_are_told_apart(mutant):
    tree = TREES[0]
    assert weight_error(SequentialMonteCarlo, tree, tree.value, 2, 1.0) < 1e-12
    assert weight_error(mutant, tree, tree.value, 2, 1.0) > 1e-3


def test_one_particle_is_ancestral_sampling_with_its_value_as_weight():
    tree = TREES[0]
    law = exact_law(SequentialMonteCarlo(1, 0.0), tree.table(), tree.value)
    assert largest_difference(law.probabilities, tree.law()) < 1e-12


def test_more_particles_come_closer_to_the_target():
    tree = VIABLE[0]
    target = restricted(tree, tree.value)
    distances = [
        largest_difference(exact_law(SequentialMonteCarlo(n), tree.table(), tree.value).probabilities, target)
        for n in (1, 2, 3)
    ]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < distances[0] / 2


def test_the_value_of_the_prompt_does_not_matter():
    tree = TREES[0]

    def value(prefix):
        return tree.value(prefix) if prefix else 0.0

    assert weight_error(SequentialMonteCarlo, tree, value, 2, 0.5) < 1e-12


def test_dead_particles_ask_no_more():
    tree, n = TREES[0], 2
    law = exact_law(SequentialMonteCarlo(n, 0.0), tree.table(), lambda prefix: prefix[0] == 0)
    alive = tree.conditional(())[0]
    assert law.expected_queries == pytest.approx(n * (1 + alive * (tree.horizon - 1)), rel=1e-12)


def test_where_all_particles_die_the_weight_is_zero():
    law = exact_law(SequentialMonteCarlo(2), TREES[0].table(), lambda prefix: len(prefix) < 2)
    assert law.failed == pytest.approx(1.0)
    assert not any(law.weights.values())


@pytest.mark.parametrize(
    ("settings", "message"), [((0, 0.5), "particles=0"), ((2, 1.5), "ess_threshold=1.5")], ids=str
)
def test_settings_out_of_range_are_named(settings, message):
    with pytest.raises(InputError, match=message):
        SequentialMonteCarlo(*settings)
