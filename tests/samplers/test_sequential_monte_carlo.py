"""Sequential Monte Carlo is properly weighted: E[exp(log_weight) 1(output = x)] = p(x) V(x), exactly."""

import pytest
import torch

from samplers.reference_laws import expected_value, largest_difference, restricted
from trialogue.randomness import Streams
from trialogue.samplers import SequentialMonteCarlo
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import TREES, VIABLE


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


def test_a_mask_resamples_before_the_token_is_drawn():
    """With the true values inside the tree nothing is left to chance but the distribution itself: all weights are
    equal.
    """
    tree = VIABLE[0]
    value = expected_value(tree, tree.value)
    distribution = exact_distribution(SequentialMonteCarlo(2, 0.5, "mask"), tree.table(), value)
    assert largest_difference(distribution.probabilities, restricted(tree, tree.value)) < 1e-12
    assert distribution.expected_calls == pytest.approx(2 * tree.horizon, rel=1e-12)


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
