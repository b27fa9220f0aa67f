"""Sequential Monte Carlo is properly weighted: E[exp(log_weight) 1(output = x)] = p(x) V(x), exactly."""

import math

import pytest
import torch

from mutants import samplers as mutants
from samplers.reference_laws import expected_value, largest_difference, restricted
from trialogue.errors import InputError
from trialogue.randomness import Streams
from trialogue.samplers import SequentialMonteCarlo
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import TREES, VIABLE, RandomTree

SMALL = RandomTree(41, vocab=2, horizon=2)
SPARSE = RandomTree(42, vocab=3, horizon=2, eos=1, sparse=True)
ENDING = RandomTree(43, vocab=2, horizon=3, eos=1)
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


def weight_error(sampler, tree, value, particles, threshold, *options) -> float:
    """Distance of the expected weights from p(x) V(x), where no prefix of x has value zero."""
    distribution = exact_distribution(sampler(particles, threshold, *options), tree.table(), value)
    proper = {
        x: p * value(x) * all(value(x[:length]) for length in range(1, len(x)))
        for x, p in tree.distribution().items()
    }
    total = math.fsum(distribution.probabilities.values()) + distribution.failed + distribution.never_halts
    return max(largest_difference(distribution.weights, proper), abs(total - 1))


@pytest.mark.parametrize(("particles", "threshold", "tree"), SETTINGS, ids=str)
def test_weights_are_proper(particles, threshold, tree):
    assert weight_error(SequentialMonteCarlo, tree, tree.value, particles, threshold) < 1e-12
    assert weight_error(SequentialMonteCarlo, tree, verdict(tree), particles, threshold) < 1e-12


@pytest.mark.parametrize("tree", [TREES[0], TREES[3]], ids=str)
def test_weights_are_proper_on_longer_sequences(tree):
    assert weight_error(SequentialMonteCarlo, tree, tree.value, 2, 1.0) < 1e-12
    assert weight_error(SequentialMonteCarlo, tree, tree.allows, 2, 0.6) < 1e-12


@pytest.mark.parametrize(
    ("proposal", "particles", "threshold", "tree"),
    [("mask", *setting) for setting in SETTINGS]
    + [("rejection", n, threshold, SMALL) for n in (1, 2) for threshold in (0.0, 0.5, 1.0)]
    + [("rejection", 1, 0.5, SPARSE), ("rejection", 2, 0.5, SPARSE)],
    ids=str,
)
def test_weights_are_proper_for_other_proposals(proposal, particles, threshold, tree):
    for value in (verdict(tree), lambda prefix: tree.value(prefix) * verdict(tree)(prefix)):
        assert weight_error(SequentialMonteCarlo, tree, value, particles, threshold, proposal) < 1e-12


@pytest.mark.parametrize("tree", [TREES[0], ENDING], ids=str)
@pytest.mark.parametrize("proposal", ["mask", "rejection"])
def test_other_proposals_are_proper_on_longer_sequences(tree, proposal):
    for value in (tree.value, tree.allows):
        assert weight_error(SequentialMonteCarlo, tree, value, 2, 1.0, proposal) < 1e-12


@pytest.mark.parametrize("particles", [2, 3])
@pytest.mark.parametrize("proposal", ["oracle", "mask"])
def test_systematic_resampling_is_proper(particles, proposal):
    for tree in (TREES[0], SPARSE) if particles == 2 else (SMALL,):
        for value in (tree.value, verdict(tree)):
            error = weight_error(SequentialMonteCarlo, tree, value, particles, 1.0, proposal, "systematic")
            assert error < 1e-12


def test_systematic_resampling_gives_each_particle_its_share_to_within_one():
    weights = torch.tensor([[0.5, 0.25, 0.2, 0.05], [0.0, 0.7, 0.3, 0.0]], dtype=torch.float64)
    streams = Streams(1, torch.arange(8))
    for _ in range(200):
        rows = torch.arange(8).view(2, 4)
        sampler = SequentialMonteCarlo(4, resampling="systematic")
        ancestors = sampler._ancestors(weights.log(), rows, streams.choose)
        for share, chosen in zip(4 * weights, ancestors, strict=True):
            counts = torch.bincount(chosen, minlength=4)
            assert bool(((counts - share).abs() < 1).all())


@pytest.mark.parametrize(
    ("mutant", "options"),
    [
        (mutants.ForgetfulMonteCarlo, ("oracle",)),
        (mutants.ForgetfulMonteCarlo, ("mask",)),
        (mutants.LosingMeanMonteCarlo, ("oracle",)),
        (mutants.LosingMeanMonteCarlo, ("rejection",)),
        (mutants.FirstParticleMonteCarlo, ("oracle",)),
        (mutants.SumWeightMonteCarlo, ("oracle",)),
        (mutants.DraggedMonteCarlo, ("mask",)),
        (mutants.DraggedMonteCarlo, ("rejection",)),
        (mutants.UnweighedDrawMonteCarlo, ("mask",)),
        (mutants.UnweighedDrawMonteCarlo, ("rejection",)),
        (mutants.OwnLawMonteCarlo, ("mask",)),
        (mutants.CountingMonteCarlo, ("rejection",)),
        (mutants.MiddleMonteCarlo, ("oracle", "systematic")),
    ],
)
def test_improper_weights_are_told_apart(mutant, options):
    tree = TREES[0]
    value = tree.value if options[0] != "rejection" else lambda y: tree.value(y) * verdict(tree)(y)
    assert weight_error(SequentialMonteCarlo, tree, value, 2, 1.0, *options) < 1e-12
    assert weight_error(mutant, tree, value, 2, 1.0, *options) > 1e-3


def test_a_mask_resamples_before_the_token_is_drawn():
    """With the true values inside the tree nothing is left to chance but the distribution itself: all weights are
    equal.
    """
    tree = VIABLE[0]
    value = expected_value(tree, tree.value)
    distribution = exact_distribution(SequentialMonteCarlo(2, 0.5, "mask"), tree.table(), value)
    assert largest_difference(distribution.probabilities, restricted(tree, tree.value)) < 1e-12
    assert distribution.expected_calls == pytest.approx(2 * tree.horizon, rel=1e-12)


def test_one_particle_is_ancestral_sampling_with_its_value_as_weight():
    tree = TREES[0]
    distribution = exact_distribution(SequentialMonteCarlo(1, 0.0), tree.table(), tree.value)
    assert largest_difference(distribution.probabilities, tree.distribution()) < 1e-12


def test_more_particles_come_closer_to_the_target():
    tree = VIABLE[0]
    target = restricted(tree, tree.value)
    distances = [
        largest_difference(
            exact_distribution(SequentialMonteCarlo(n), tree.table(), tree.value).probabilities, target
        )
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
    distribution = exact_distribution(
        SequentialMonteCarlo(n, 0.0), tree.table(), lambda prefix: prefix[0] == 0
    )
    alive = tree.conditional(())[0]
    assert distribution.expected_calls == pytest.approx(n * (1 + alive * (tree.horizon - 1)), rel=1e-12)


def test_where_all_particles_die_the_weight_is_zero():
    distribution = exact_distribution(
        SequentialMonteCarlo(2), TREES[0].table(), lambda prefix: len(prefix) < 2
    )
    assert distribution.failed == pytest.approx(1.0)
    assert not any(distribution.weights.values())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ((0, 0.5), "particles=0"),
        ((2, 1.5), "ess_threshold=1.5"),
        ((2, 0.5, "best"), "proposal='best'"),
        ((2, 0.5, "mask", "residual"), "resampling='residual'"),
    ],
    ids=str,
)
def test_settings_out_of_range_are_named(settings, message):
    with pytest.raises(InputError, match=message):
        SequentialMonteCarlo(*settings)
