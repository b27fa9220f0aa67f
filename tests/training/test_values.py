"""Compare trained value functions with the true values from enumeration."""

import itertools

import pytest

from trialogue.errors import InputError
from trialogue.models.networks.transformer import Transformer, TransformerConfig
from trialogue.samplers import Ancestral, values
from trialogue.samplers.exact import exact_distribution
from trialogue.training.probes.grid import ProbeConfig
from trialogue.training.probes.values import train_values

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
