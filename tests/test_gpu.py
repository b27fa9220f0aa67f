"""Models, training and chains have the same results on a device as on the CPU.

The environment variable TRIALOGUE_TEST_DEVICE names the device (default: cpu). `make gpu` runs these tests on a GPU.
"""

import os

import pytest
import torch

from trialogue import load_pretrained, run_chain, run_sweeps
from trialogue.data import Ising, ising_grid
from trialogue.models import Transformer, TransformerConfig, save_gpt2
from trialogue.oracles import next_log_probs
from trialogue.randomness import generator
from trialogue.samplers import Gibbs, IndependentParallel, Metropolis, generate
from trialogue.training import TrainingConfig, next_token_loss, train

DEVICE = torch.device(os.environ.get("TRIALOGUE_TEST_DEVICE", "cpu"))
pytestmark = pytest.mark.gpu


def network() -> Transformer:
    model = Transformer(TransformerConfig(vocab_size=4, max_length=24, width=32, mlp_width=64), seed=1)
    for number, parameter in enumerate(model.parameters()):
        parameter.data += torch.empty(parameter.shape).normal_(generator=generator(number, "noise")) / 2
    return model.eval()


def test_a_pretrained_model_has_the_same_probabilities_and_samples(tmp_path):
    folder = save_gpt2(network(), "abcd", tmp_path)
    expected, found = load_pretrained(folder, device="cpu"), load_pretrained(folder, device=DEVICE)
    assert next(found.model.parameters()).device.type == DEVICE.type
    tokens = torch.randint(4, (6, 10), generator=generator(0, "tokens"))
    lengths = torch.tensor([10, 7, 1, 2, 4, 9])
    log_probs = [next_log_probs(oracle, tokens, lengths).cpu() for oracle in (expected, found)]
    torch.testing.assert_close(*log_probs, rtol=0, atol=1e-3)
    samples = [generate(oracle, num_samples=64, max_new_tokens=12, seed=3) for oracle in (expected, found)]
    # A token differs only if its random number falls between the two cumulative probabilities.
    same = [one.tokens[:, :4].cpu() for one in samples]
    assert float((same[0] == same[1]).double().mean()) > 0.9


def test_a_training_learns_and_has_nearly_the_same_losses():
    batch = (torch.tensor([[0, 1, 2, 3] * 6] * 8), torch.full((8,), 24))
    config = TrainingConfig(steps=12, batch_size=8, learning_rate=1e-2, warmup_steps=2, bf16=False)
    losses = train(network(), lambda step: batch, config, loss=next_token_loss, progress=False).losses
    assert float(losses[-1]) < float(losses[0]) / 2
    logits = network()(torch.zeros(1, 3, dtype=torch.long))
    moved = network().to(DEVICE)(torch.zeros(1, 3, dtype=torch.long, device=DEVICE))
    torch.testing.assert_close(moved.cpu(), logits, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    "chain", [Gibbs(), Metropolis(), IndependentParallel()], ids=lambda chain: type(chain).__name__
)
def test_chains_visit_the_same_states(chain):
    model = Ising.clique(6, 4, 0.3, 0.1)
    start = torch.randint(2, (200, 6), generator=generator(1, "start"))
    settings = {"steps": 20, "seed": 3, "require_ergodic": False}
    expected = run_chain(chain, model, start=start, **settings).tokens
    found = run_chain(chain, model.to(DEVICE), start=start.to(DEVICE), **settings).tokens
    assert found.device.type == DEVICE.type
    assert torch.equal(found.cpu(), expected)


def test_sweeps_visit_the_same_states():
    model = ising_grid(6, 6, 0.4)
    expected = run_sweeps(model, chains=64, sweeps=10, seed=2, method="chromatic")
    found = run_sweeps(model, chains=64, sweeps=10, seed=2, method="chromatic", device=DEVICE)
    assert found.device.type == DEVICE.type
    assert torch.equal(found.cpu(), expected)
