"""Weighted samples: effective sample size, accepted mass and resampling."""

import math
from dataclasses import replace

import pytest
import torch

from refusals import expect_error
from samplers.reference_distributions import restricted
from trialogue.data.table import Table
from trialogue.samplers import (
    MaskedDecoding,
    SequentialMonteCarlo,
    WeightedRejection,
    effective_sample_size,
    effective_sample_sizes,
    generate,
    log_accepted_masses,
    resampled,
)
from trialogue.testing.frequencies import l1_distance, weissman_radius
from trialogue.testing.trees import RandomTree, viable

TREE = viable(RandomTree(95, vocab=3, horizon=3, eos=1))


def weighted(log_weight, prompt, accepted=None):
    """Return samples with the given weights and prompts. The token of a sample is its place."""
    count = len(log_weight)
    table = Table(lambda prefix: [0.5, 0.5], 2, max_length=4)
    run = generate(table, num_samples=count)
    accepted = torch.ones(count, dtype=torch.bool) if accepted is None else torch.tensor(accepted)
    return replace(
        run,
        tokens=torch.arange(count)[:, None].repeat(1, 4),
        log_weight=torch.tensor(log_weight, dtype=torch.float64),
        prompt=torch.tensor(prompt),
        accepted=accepted,
    )


@pytest.mark.parametrize(
    ("weights", "size"),
    [([1, 1, 1], 3), ([5], 1), ([1, 0, 0], 1), ([0, 0], 0), ([], 0), ([1, 3], 16 / 10), ([2, 6], 16 / 10)],
)
def test_the_effective_sample_size_follows_kish(weights, size):
    log_weights = torch.tensor(weights, dtype=torch.float64).log()
    assert effective_sample_size(log_weights) == pytest.approx(size, rel=1e-12)
    assert effective_sample_size(log_weights - 1e5) == pytest.approx(size, rel=1e-9)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_weights_that_are_not_numbers_are_rejected(wrong):
    expect_error(f"log_weights={wrong}", effective_sample_size, torch.tensor([0.0, wrong]))


def test_each_prompt_has_its_own_effective_size_and_mass():
    samples = weighted(
        [0.0, math.log(3), 5.0, 0.0, -math.inf], [0, 0, 1, 1, 3], [True, True, False, True, True]
    )
    assert effective_sample_sizes(samples).tolist() == pytest.approx([1.6, 1, 0, 0])
    assert log_accepted_masses(samples).exp().tolist() == pytest.approx([2, 0.5, 0, 0])


def test_resampling_is_proportional_to_the_weights():
    samples = weighted([0.0, math.log(3), 0.0, 9.0, 0.0], [0, 0, 1, 1, 1], [True, True, True, False, True])
    count = 20_000
    drawn = resampled(samples, count, seed=1)
    assert drawn.prompt.tolist() == [0] * count + [1] * count
    radius = weissman_radius(cells=3, samples=count)
    for prompt, distribution in ((0, {(0,): 0.25, (1,): 0.75}), (1, {(2,): 0.5, (4,): 0.5})):
        names = [(int(token),) for token in drawn.tokens[drawn.prompt == prompt, 0]]
        assert l1_distance(names, distribution) < radius
    assert bool(drawn.accepted.all())
    assert (len(drawn.stopped), drawn.total, drawn.trace) == (2 * count, samples.total, None)
    # All weights equal the mean, so that the estimated mass does not change.
    assert log_accepted_masses(drawn).tolist() == pytest.approx(log_accepted_masses(samples).tolist())
    assert effective_sample_sizes(drawn).tolist() == pytest.approx([count, count])


def test_resampling_depends_on_the_seed_and_keeps_the_number_of_samples():
    samples = weighted([0.0] * 30, [0] * 10 + [1] * 20)
    first = resampled(samples, seed=4)
    assert torch.equal(first.prompt, samples.prompt)
    assert torch.equal(first.tokens, resampled(samples, seed=4).tokens)
    assert not torch.equal(first.tokens, resampled(samples, seed=5).tokens)
    assert first.prompt_lengths.shape == (30,)


def test_a_prompt_without_weight_keeps_the_other_prompts():
    samples = weighted([0.0, -math.inf, 0.0, 2.0], [0, 1, 1, 2], [True, True, False, True])
    drawn = resampled(samples, 3)
    assert drawn.prompt.tolist() == [0] * 3 + [1] * 3 + [2] * 3
    assert drawn.accepted.tolist() == [True] * 3 + [False] * 3 + [True] * 3
    assert drawn.log_weight.tolist() == pytest.approx([0.0] * 3 + [-math.inf] * 3 + [2.0] * 3)


def test_samples_without_any_weight_are_rejected():
    samples = weighted([-math.inf, 0.0], [0, 1], [True, False])
    expect_error("log_weight=-inf: all samples have weight zero", resampled, samples)
    expect_error("num=0", resampled, samples, 0)


SAMPLERS = [
    MaskedDecoding(),
    WeightedRejection(),
    SequentialMonteCarlo(4, proposal="mask"),
    SequentialMonteCarlo(4, proposal="rejection"),
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_resampled_sequences_have_the_restricted_distribution(sampler):
    target = restricted(TREE, TREE.allows)
    run = generate(TREE.table(), sampler=sampler, verifier=TREE.allows, num_samples=20_000, batch_size=8192)
    size = float(effective_sample_sizes(run)[0])
    assert size > 2000
    drawn = resampled(run)
    radius = weissman_radius(len(target) + 1, int(size)) + weissman_radius(len(target) + 1, 20_000)
    assert l1_distance(drawn.sequences(), target) < radius
    # The bound is Hoeffding's inequality for the mean of weights between 0 and 1.
    mass = math.fsum(p for x, p in TREE.distribution().items() if TREE.allows(x))
    assert float(log_accepted_masses(run).exp()) == pytest.approx(mass, abs=math.sqrt(math.log(2e9) / 40_000))
