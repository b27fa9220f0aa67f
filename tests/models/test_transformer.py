"""The transformer, and the registration of networks."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from models.random_transformer import small
from refusals import expect_error
from trialogue.errors import InputError
from trialogue.models import Transformer, TransformerConfig, register_network
from trialogue.models.networks import registry
from trialogue.models.networks.registry import get_class_registration, get_registration
from trialogue.oracles import Autoregressive
from trialogue.randomness import generator
from trialogue.registry import Registry

POSITIONS = ["learned", "linear", "none"]


def random_ids(model: Transformer, n: int, length: int, seed: int = 1) -> torch.Tensor:
    ids = torch.randint(0, model.vocab_size, (n, length), generator=generator(seed))
    ids[:, 0] = model.bos
    return ids


def dependencies(model: Transformer, length: int = 10) -> list[list[bool]]:
    """Return which positions the logits at each position depend on, computed from gradients."""
    ids = random_ids(model, 1, length)
    embedded: list[torch.Tensor] = []

    def embed(tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        embedded.append(Transformer.embed(model, tokens, positions).detach().requires_grad_())
        return embedded[-1]

    model.embed = embed  # type: ignore[method-assign]
    logits = model(ids)
    found = []
    for position in range(length):
        (gradient,) = torch.autograd.grad(logits[0, position].square().sum(), embedded, retain_graph=True)
        found.append((gradient[0].abs().sum(-1) > 0).tolist())
    return found


@pytest.mark.parametrize(("layers", "window"), [(1, 1), (1, 3), (2, 1), (2, 2), (2, 4), (3, 3)])
def test_logits_depend_on_the_receptive_field_only(layers, window):
    model = small(layers=layers, attention_window=window)
    field = model.config.receptive_field
    assert field == 1 + layers * (window - 1)
    expected = [[position - field < other <= position for other in range(10)] for position in range(10)]
    assert dependencies(model) == expected
    assert dependencies(small(layers=layers, attention_window=window + 1)) != expected


@pytest.mark.parametrize("positions", POSITIONS)
def test_without_a_window_logits_depend_on_all_previous_positions(positions):
    model = small(positions=positions)
    assert model.config.receptive_field is None
    assert dependencies(model) == [[other <= position for other in range(10)] for position in range(10)]
    ids = random_ids(model, 2, 9)
    torch.testing.assert_close(
        small(attention_window=9, positions=positions)(ids), model(ids), atol=1e-5, rtol=1e-5
    )


def test_a_bidirectional_model_attends_to_all_tokens_except_padding():
    model = small(causal=False)
    ids, lengths = random_ids(model, 3, 9), torch.tensor([4, 9, 6])
    logits = model(ids, lengths)
    for row, length in enumerate(lengths.tolist()):
        single_row = model(ids[row : row + 1, :length])
        torch.testing.assert_close(logits[row : row + 1, :length], single_row, atol=1e-5, rtol=1e-5)
    changed = ids.clone()
    changed[0, 3] = (changed[0, 3] + 1) % 3
    assert (model(changed, lengths)[0, 0] - logits[0, 0]).abs().max() > 1e-4
    # Without lengths, padding changes the logits, so the check above can fail.
    assert (model(ids)[0, :4] - logits[0, :4]).abs().max() > 1e-4


def test_initialization_is_that_of_gpt2_and_depends_on_the_seed():
    config = TransformerConfig(vocab_size=100, layers=8, width=128, mlp_width=512)
    first, again, other = Transformer(config, 3), Transformer(config, 3), Transformer(config, 4)
    for name, parameter in first.named_parameters():
        assert torch.equal(parameter, again.get_parameter(name))
        if parameter.ndim == 2:
            assert not torch.equal(parameter, other.get_parameter(name))
            residual = name.endswith(("projection.weight", "down.weight"))
            assert parameter.std().item() == pytest.approx(0.005 if residual else 0.02, rel=0.06)
        else:
            assert torch.equal(parameter, torch.full_like(parameter, float(name.endswith("norm.weight"))))


def test_the_vocabulary_of_the_oracle_includes_the_end_of_sequence():
    model = small()
    assert isinstance(model, Autoregressive)
    assert (model.vocab_size, model.eos, model.bos, model.max_length) == (4, 3, 4, 11)
    assert model(random_ids(model, 1, 12)).shape == (1, 12, 4)
    assert small(positions="none").max_length is None


def test_invalid_input_is_rejected():
    model = small()
    expect_error("12 positions", model, random_ids(model, 1, 13))
    expect_error("at most 11 tokens", model.open, 1, 12)
    expect_error(r"use -1, or 0 to 2", model.open, 1, 5, layers=(3,))
    expect_error("bidirectional", small(causal=False).open, 1, 5)


@dataclass(frozen=True)
class ExampleConfig:
    width: int = 2


def test_registrations_are_found_by_name_and_by_class(monkeypatch):
    monkeypatch.setattr(
        registry, "MODELS", Registry("trialogue.models", "network", {"transformer": Transformer})
    )

    @register_network("example", ExampleConfig)
    class ExampleNetwork(nn.Module): ...

    assert (
        get_registration("example")
        == ("example", ExampleNetwork, ExampleConfig)
        == get_class_registration(ExampleNetwork)
    )

    class Subclass(ExampleNetwork): ...

    expect_error("@register_network", get_class_registration, Subclass)
    with pytest.raises(InputError, match=r"Transformer is already registered"):
        register_network("transformer", ExampleConfig)(Subclass)
    with pytest.raises(InputError, match=r"ExampleNetwork is already registered"):
        register_network("example", ExampleConfig)(Subclass)
    expect_error(r"unknown.*transformer, example", get_registration, "unknown")


def test_a_built_in_network_is_registered():
    """`test_imports.py` checks that its module is imported on demand."""
    assert get_registration("transformer") == ("transformer", Transformer, TransformerConfig)
