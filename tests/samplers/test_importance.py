"""Weighted samples: effective sample size, accepted mass, resampling, and conversion to `InferenceData`."""

import math
import sys
from dataclasses import replace

import pytest
import torch

from refusals import expect_error
from samplers.chains.small_models import random_ising
from samplers.reference_distributions import restricted
from trialogue.data.potts.chain import PottsChain
from trialogue.data.table import Table
from trialogue.samplers import (
    Gibbs,
    MaskedDecoding,
    MaskedMetropolis,
    Metropolis,
    SequentialMonteCarlo,
    WeightedRejection,
    convergence,
    effective_sample_size,
    effective_sample_sizes,
    generate,
    log_accepted_masses,
    resampled,
    run_chain,
)
from trialogue.testing.frequencies import l1_distance, weissman_radius
from trialogue.testing.trees import RandomTree, viable
from trialogue.verifiers import FunctionVerifier

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


START = torch.zeros(3, 4, dtype=torch.int64)
MODEL = random_ising(1, 4)


def weighted_samples():
    """Return samples of masked decoding of two fair coins that must not both be 1. The prefix 1 has weight 1/2."""
    oracle = Table(torch.full((2, 2), 0.25))
    verifier = FunctionVerifier(lambda prefix: sum(prefix) < 2)
    return generate(oracle, sampler=MaskedDecoding(), verifier=verifier, num_samples=40, seed=1)


def test_samples_of_chains_are_converted():
    pytest.importorskip("arviz_base", reason="pip install 'trialogue[chains]'")
    run = run_chain(MaskedMetropolis(), MODEL, start=START, steps=20, thin=2)
    tree = run.to_inference_data()
    assert tree.posterior.tokens.dims == ("chain", "draw", "site")
    assert torch.equal(torch.from_numpy(tree.posterior.tokens.values), run.samples.transpose(0, 1))
    assert torch.equal(torch.from_numpy(tree.sample_stats.energy.values), run.energies.T)
    assert tree.posterior.attrs["acceptance"] == run.acceptance.tolist()
    metropolis = run_chain(Metropolis(), MODEL, start=START, steps=20, thin=2).to_inference_data()
    assert "tokens" in metropolis.posterior
    assert "sample_stats" not in run_chain(Gibbs(), MODEL, start=START, steps=2, thin=1).to_inference_data()


def test_weighted_samples_of_prefix_samplers_are_converted():
    pytest.importorskip("arviz_base", reason="pip install 'trialogue[chains]'")
    samples = weighted_samples()
    stats = samples.to_inference_data().sample_stats
    assert torch.equal(torch.from_numpy(stats.log_weight.values)[0], samples.log_weight)
    assert len(set(stats.log_weight.values[0].round(9).tolist())) == 2
    rejected = samples[:3]
    rejected.accepted[1] = False
    tree = rejected.to_inference_data()
    assert tree.sample_stats.log_weight.values[0].tolist()[1] == -float("inf")
    assert tree.posterior.tokens.dims == ("chain", "draw", "position")
    assert tree.posterior.sizes["draw"] == 3
    assert tree.posterior.length.values.tolist() == [rejected.lengths.tolist()]


def test_a_run_without_samples_cannot_be_converted():
    expect_error("pass `thin`", run_chain(Gibbs(), MODEL, start=START, steps=2).to_inference_data)


@pytest.mark.parametrize(
    ("module", "extra", "call"),
    [
        ("arviz_base", "chains", lambda: weighted_samples().to_inference_data()),
        ("arviz_stats.base", "chains", lambda: convergence(torch.rand(8, 2))),
        ("mpmath", "precise", lambda: PottsChain(1e3 * (1 - torch.eye(2))).correlation_length(30.0)),
    ],
)
def test_a_missing_extra_is_reported(module, extra, call, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    caught = expect_error("", call)
    hint = f"it is not installed: pip install 'trialogue[{extra}]'"
    assert (caught.field, caught.value, caught.hint) == ("package", module.split(".")[0], hint)
