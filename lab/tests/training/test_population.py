"""Tests of the exact loss of a distribution against sums over sequences, and of training on it."""

import math

import pytest
import torch
import torch.nn.functional as F

from refusals import expect_error
from trialogue.data import ManyBody
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.training import TrainingConfig, train
from trialogue_lab.training.population import MaskedPopulation, population_loss

LAW = ManyBody.random(4, 3, order=2, scale=1.5, seed=0)


def population() -> MaskedPopulation:
    return MaskedPopulation(LAW.probabilities().view([3] * 4))


def test_the_loss_is_the_mean_over_sequences_and_sites() -> None:
    net = FactoredAttention(FactoredAttentionConfig(vocab_size=3, sites=4, layers=2), seed=1).double()
    states = LAW.states()
    surprise = -net.site_log_probs(states).gather(2, states[:, :, None])[:, :, 0].mean(1)
    loss = population_loss(net, *population()(0))
    assert float(loss.detach()) == pytest.approx(float(LAW.probabilities() @ surprise), rel=1e-12)
    assert loss.requires_grad


def test_the_minimum_loss_is_the_conditional_entropy() -> None:
    states = LAW.states()
    surprise = -LAW.site_log_probs(states).gather(2, states[:, :, None])[:, :, 0].mean(1)
    assert population().entropy == pytest.approx(float(LAW.probabilities() @ surprise), rel=1e-12)
    certain = torch.zeros(2, 2, dtype=torch.float64)
    certain[0, 1] = 1
    assert MaskedPopulation(certain).entropy == 0
    assert MaskedPopulation(torch.full((3,), 1 / 3, dtype=torch.float64)).entropy == pytest.approx(
        math.log(3)
    )


def test_every_site_is_masked_in_every_sequence() -> None:
    inputs, sites, joint = population()(0)
    assert len(population()) == len(inputs) == 4 * 27
    assert torch.equal((inputs == 3).long().argmax(1), sites)
    assert len(inputs.unique(dim=0)) == len(inputs)
    assert float(joint.sum()) == pytest.approx(1, abs=1e-12)
    one_hot = F.one_hot(LAW.states(), 3).double()
    expected = torch.einsum("s,sna->na", LAW.probabilities(), one_hot)
    found = torch.stack([joint[sites == site].sum(0) for site in range(4)])
    torch.testing.assert_close(found, expected / 4, rtol=0, atol=1e-12)


def test_training_reaches_the_minimum_loss() -> None:
    net = FactoredAttention(FactoredAttentionConfig(vocab_size=3, sites=4), seed=1)
    batches = population()
    config = TrainingConfig(
        steps=200, batch_size=len(batches), learning_rate=0.02, weight_decay=0.0, warmup_steps=10, bf16=False
    )
    losses = train(net, batches, config, loss=population_loss, progress=False).losses
    assert batches.entropy - 1e-4 < float(losses[-1]) < batches.entropy + 0.03


def test_invalid_input_is_rejected() -> None:
    wrong = (torch.full((2, 3), 1 / 6), torch.full((2, 2), 0.3), torch.tensor([1.5, -0.5]), torch.tensor(1.0))
    for distribution in wrong:
        expect_error("^probabilities=", MaskedPopulation, distribution)
