import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
from test_loop import RECIPE, batches, network, noisy_loss
from torch import Tensor

from refusals import expect_error
from training.tied_network import Tied, TiedConfig, tied_loss
from trialogue.models import Transformer, TransformerConfig
from trialogue.randomness import generator
from trialogue.training import (
    Recipe,
    StoppingRule,
    TrainingConfig,
    UniformMasks,
    Update,
    load_model,
    load_or_train,
    masked_batches,
    next_token_loss,
    train,
)

KILLED_AT: set[int] = set()


def repeats(first: int, seen: str, step: int) -> Tensor:
    """Return batches of `first` + step. The run is killed at the steps in `KILLED_AT`."""
    if step in KILLED_AT:
        raise SystemExit(9)
    assert seen
    return batches(first + step)


@dataclass(frozen=True)
class Text:
    first: int

    def batch(self, seen: str, step: int) -> Tensor:
        return repeats(self.first, seen, step)


@dataclass(frozen=True)
class AfterSteps(StoppingRule):
    steps: int

    def reached(self, update: Update) -> bool:
        return update.step >= self.steps


def recipe(**fields: Any) -> Recipe[Transformer]:
    values = {"data": partial(repeats, 5, "seen"), "loss": noisy_loss, "checkpoints": (1, 20)} | fields
    return Recipe(Transformer, network().config, training=RECIPE, **values)


def equal(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_cached_network_matches_training(tmp_path, monkeypatch):
    plain = train(network(), lambda step: batches(5 + step), RECIPE, loss=noisy_loss, progress=False)
    first = load_or_train(recipe(), tmp_path)
    monkeypatch.setitem(globals(), "KILLED_AT", set(range(20)))
    second = load_or_train(recipe(), tmp_path)
    for found in (first, second):
        assert equal(found.network, plain.model)
        assert torch.equal(found.losses, plain.losses)
        assert not found.network.training
        assert found.checkpoints.steps() == (1, 20)
        assert equal(found.checkpoints.load(20, Transformer), plain.model)
    (folder,) = tmp_path.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == [
        "checkpoints", "losses.safetensors", "network.safetensors", "recipe.json",
    ]  # fmt: skip
    assert isinstance(load_model(folder / "network.safetensors"), Transformer)
    with pytest.raises(SystemExit):
        load_or_train(recipe(seed=1), tmp_path)


def test_recipe_can_end_early(tmp_path):
    assert len(load_or_train(recipe(until=AfterSteps(5)), tmp_path).losses) == 5
    assert len(load_or_train(recipe(), tmp_path).losses) == 20


def test_killed_training_resumes(tmp_path, monkeypatch):
    checkpointed = recipe(checkpoints=(1, 10, 20))
    whole = load_or_train(checkpointed, tmp_path / "whole")
    monkeypatch.setitem(globals(), "KILLED_AT", {10})
    with pytest.raises(SystemExit):
        load_or_train(checkpointed, tmp_path / "killed")
    # A checkpoint after the last saved state, at step 9, is written again.
    (checkpointed.folder(tmp_path / "killed") / "checkpoints" / "step-10.safetensors").write_bytes(
        b"half of a fi"
    )
    # A run that started again from the beginning would be killed again.
    monkeypatch.setitem(globals(), "KILLED_AT", set(range(9)))
    resumed = load_or_train(checkpointed, tmp_path / "killed")
    assert equal(resumed.network, whole.network)
    assert torch.equal(resumed.losses, whole.losses)
    assert resumed.checkpoints.steps() == whole.checkpoints.steps() == (1, 10, 20)
    for step in (1, 10, 20):
        pair = (found.checkpoints.load(step, Transformer) for found in (resumed, whole))
        assert equal(*pair)


@pytest.mark.parametrize(
    "fields",
    [
        {"data": partial(repeats, 6, "seen")},
        {"data": partial(repeats, 5, seen="other")},
        {"data": Text(5).batch},
        {"data": partial(Text(5).batch, "seen")},
        {"data": partial(Text(6).batch, "seen")},
        {"loss": next_token_loss},
        {"optimizer": partial(torch.optim.SGD, lr=0.1)},
        {"optimizer": partial(torch.optim.SGD, lr=0.2)},
        {"seed": 3},
        {"checkpoints": (1, 2, 20)},
        {"until": AfterSteps(5)},
        {"until": AfterSteps(6)},
        {"initial": {"head.weight": torch.zeros(3, 16)}},
        {"initial": {"head.weight": torch.ones(3, 16)}},
    ],
)
def test_hash_depends_on_all_fields(fields):
    assert recipe().hash == recipe().hash == recipe(seed=RECIPE.seed, checkpoints=[20, 1]).hash
    assert recipe(**fields).hash == recipe(**fields).hash
    assert recipe(**fields).hash != recipe().hash


def test_initial_parameters_are_used_and_others_are_random(tmp_path):
    name, drawn = "blocks.0.up.weight", network().state_dict()
    given = {name: drawn[name] + 1}
    initial = recipe(initial=given).begun().state_dict()
    assert torch.equal(initial.pop(name), given[name])
    assert all(torch.equal(weights, drawn[each]) for each, weights in initial.items())
    other = load_or_train(recipe(initial=given), tmp_path).network
    assert not equal(other, load_or_train(recipe(), tmp_path).network)
    for wrong in ({"nothing.weight": drawn[name]}, {name: drawn[name][:1]}):
        expect_error("initial", load_or_train, recipe(initial=wrong), tmp_path)


def test_hash_depends_on_configs():
    def recipe_hash(shape: dict[str, Any], training: dict[str, Any]) -> str:
        config = dataclasses.replace(network().config, **shape)
        return Recipe(Transformer, config, batches, dataclasses.replace(RECIPE, **training)).hash

    changes: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}), ({"width": 32}, {}), ({}, {"seed": 1}), ({}, {"optimizer": "sgd"}), ({}, {"steps": 30}),
    ]  # fmt: skip
    assert len({recipe_hash(*change) for change in changes}) == len(changes)
    assert recipe_hash({}, {"checkpoint_every": 9, "log_every": 9}) == recipe_hash({}, {})
    tied = Recipe(Tied, TiedConfig(), batches, RECIPE, loss=tied_loss)
    assert tied.folder("a").name == f"tied-{tied.hash}"


def test_recipes_of_masked_batches_and_other_networks(tmp_path):
    sequences = torch.randint(0, 3, (30, 6), generator=generator(0, "sequences"))

    def masked(sequences: Tensor, count: int) -> Callable[..., Any]:
        config = TransformerConfig(vocab_size=3, causal=False)
        return masked_batches(sequences, Transformer(config), UniformMasks(count), batch_size=8)

    hashes = {
        recipe(data=data).hash
        for data in (masked(sequences, 1), masked(sequences, 2), masked(sequences.flip(0), 1))
    }
    assert len(hashes) == 3
    assert recipe(data=masked(sequences.clone(), 1)).hash in hashes
    tied = Recipe(Tied, TiedConfig(), batches, TrainingConfig(steps=3, batch_size=8), tied_loss, seed=4)
    assert load_or_train(tied, tmp_path).network.calls == load_or_train(tied, tmp_path).network.calls == 3


class Opaque:
    def __call__(self, step: int) -> Tensor:
        return batches(step)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"data": lambda step: batches(step)}, "data="),
        ({"data": Opaque()}, "data="),
        ({"data": Opaque().__call__}, "data="),
        ({"data": partial(repeats, Opaque())}, "data"),
        ({"loss": partial(noisy_loss, tokens={3: 4})}, "loss"),
        ({"config": TiedConfig()}, "use a TransformerConfig"),
        ({"network": torch.nn.Linear}, "register_network"),
    ],
)
def test_fields_without_description_are_rejected(fields, words):
    values = {"network": Transformer, "config": network().config, "data": batches, "training": RECIPE}
    expect_error(words, Recipe, **values | fields)


def test_damaged_file_is_rejected(tmp_path):
    folder = recipe().folder(tmp_path)
    load_or_train(recipe(), tmp_path)
    (folder / "losses.safetensors").write_bytes(b"")
    expect_error("delete the folder", load_or_train, recipe(), tmp_path)
    (folder / "network.safetensors").write_bytes(b"")
    expect_error(r"network\.safetensors", load_or_train, recipe(), tmp_path)
