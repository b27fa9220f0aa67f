"""Objectives and value functions, compared with the true conditionals and values from enumeration."""

import itertools
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from weighted_strings import WEIGHTS, batch, conditionals

from trialogue.errors import InputError
from trialogue.models.networks.transformer import Transformer, TransformerConfig
from trialogue.oracles import pad_sequences
from trialogue.randomness import generator
from trialogue.samplers import Ancestral, values
from trialogue.samplers.exact import exact_distribution
from trialogue.training import TrainingConfig, next_token_loss, packed_token_loss, train
from trialogue.training.probes.grid import ProbeConfig
from trialogue.training.probes.values import train_values

Loss = Callable[[Transformer, Tensor, Tensor], Tensor]


def distance_of_minimiser(loss: Loss, steps: int = 250) -> float:
    """Return the largest error of the conditionals of a network trained on the exact distribution."""
    config = TransformerConfig(vocab_size=2, layers=1, heads=2, width=16, mlp_width=32, max_length=3)
    recipe = TrainingConfig(
        steps=steps, batch_size=sum(WEIGHTS.values()), learning_rate=1e-2, weight_decay=0.0, warmup_steps=10
    )
    model = train(Transformer(config), lambda step: batch(), recipe, loss=loss, progress=False).model
    truth = conditionals()
    tokens, lengths = pad_sequences(list(truth), 3)
    context = model.open(len(truth), 3)
    features = context.features(tokens, torch.zeros_like(lengths), lengths, torch.arange(len(truth)))
    predictions = context.log_probs(features).exp()
    return max(
        (predicted - exact).abs().max().item()
        for predicted, exact in zip(predictions, truth.values(), strict=True)
    )


def _without_end(model: Transformer, tokens: Tensor, lengths: Tensor) -> Tensor:
    inputs = torch.cat((torch.full((len(tokens), 1), model.bos), tokens), 1)
    targets = tokens.masked_fill(torch.arange(3) >= lengths[:, None], -100)
    return F.cross_entropy(model(inputs)[:, :-1].flatten(0, 1), targets.flatten())


def test_minimiser_has_the_true_conditionals():
    assert distance_of_minimiser(next_token_loss) < 0.01


def test_check_rejects_a_mutant():
    assert distance_of_minimiser(_without_end, 80) > 0.1


def test_packed_loss_predicts_every_token_and_no_end():
    model = Transformer(TransformerConfig(vocab_size=3, max_length=5), seed=1).eval()
    tokens = torch.randint(0, 3, (4, 5), generator=generator(0, "packed"))
    context, rows = model.open(4, 5), torch.arange(4)
    distributions = [
        context.features(tokens, torch.full((4,), i), torch.full((4,), i), rows) for i in range(5)
    ]
    log_probs = torch.stack(
        [context.log_probs(distribution)[rows, tokens[:, i]] for i, distribution in enumerate(distributions)]
    )
    assert packed_token_loss(model, tokens).item() == pytest.approx(-log_probs.mean().item(), abs=1e-6)
    assert next_token_loss(model, tokens).item() != pytest.approx(-log_probs.mean().item(), abs=1e-4)


HORIZON, PROMPT = 5, (0,)
CONFIG = ProbeConfig(depth=2, hidden=32, epochs=20, batch_size=128, learning_rate=3e-3, weight_decay=0.0)


def network() -> Transformer:
    model = Transformer(TransformerConfig(vocab_size=2, width=32, mlp_width=64, max_length=8), seed=5)
    model.eval().requires_grad_(False)
    # The network never predicts EOS.
    model.final_norm.bias.fill_(1.0)
    model.head.weight[model.eos] = -1.0
    return model


def outcome(prefix: tuple[int, ...]) -> float:
    return float(sum(prefix) >= 3)


def true_values(model) -> dict[tuple[int, ...], float]:
    """Compute V* of every prefix by enumerating completions."""
    distribution = exact_distribution(Ancestral(), model, prompt=PROMPT, max_new_tokens=HORIZON).probabilities
    found = {}
    for length in range(1, HORIZON + 1):
        for tail in itertools.product((0, 1), repeat=length - 1):
            prefix = (*PROMPT, *tail)
            below = {x: p for x, p in distribution.items() if x[:length] == prefix}
            if sum(below.values()) > 0.02:
                found[prefix] = sum(p * outcome(x) for x, p in below.items()) / sum(below.values())
    return found


def test_probe_learns_the_values_of_rollouts():
    model = network()
    trained = train_values(
        model, outcome, [PROMPT], num_samples=4000, max_new_tokens=HORIZON, config=CONFIG, seed=1
    )
    assert trained.queries == 4000 * HORIZON
    true = true_values(model)
    found = values(trained.verifier, model, list(true), prompt_lengths=1, max_length=HORIZON + 1).tolist()
    errors = [abs(value - expected) for value, expected in zip(found, true.values(), strict=True)]
    mean = sum(true.values()) / len(true)
    spread = sum(abs(value - mean) for value in true.values()) / len(true)
    assert sum(errors) / len(errors) < spread / 3


def test_outcomes_of_ragged_prompts_are_evaluated_on_complete_sequences():
    judged = []

    def whole(prefix: tuple[int, ...]) -> float:
        judged.append(prefix)
        return float(prefix[-1])

    train_values(network(), whole, [(0,), (0, 1)], num_samples=20, max_new_tokens=HORIZON, config=CONFIG)
    assert {len(prefix) for prefix in judged} == {6, 7}


def test_outcomes_other_than_0_and_1_are_rejected():
    with pytest.raises(InputError, match=r"outcome=0\.5: return 0 or 1"):
        train_values(network(), lambda x: 0.5, [PROMPT], num_samples=2, max_new_tokens=HORIZON)
    with pytest.raises(InputError, match="labels=0: give more"):
        train_values(network(), lambda x: 1.0, [PROMPT], num_samples=20, max_new_tokens=HORIZON)
