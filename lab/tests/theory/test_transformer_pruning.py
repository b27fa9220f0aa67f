"""Tests of pruning a random transformer to a small target transformer."""

import pytest
import torch
from torch import Tensor

from refusals import expect_error
from trialogue.errors import InputError
from trialogue_lab.theory.pruning import uniform_weights
from trialogue_lab.theory.transformer_pruning import (
    LargeSize,
    LayerWeights,
    Weights,
    prune_transformer,
    random_target,
    random_transformer,
    transformer,
)

FLOOR = 0.5
SMALL, LARGE = LargeSize(2, 2, 4), LargeSize(24, 128, 256)


def forward_by_column(weights: Weights, x: Tensor) -> Tensor:
    """Evaluate equation 2.42 for one sequence x (m, N), column by column."""
    for layer in weights:
        outputs = []
        for place in range(x.shape[1]):
            context = x[:, : place + 1]
            scores = (layer.key @ context).T @ (layer.query @ x[:, place])
            attended = layer.value @ context @ scores.softmax(0)
            centred = attended - attended.mean()
            hidden = centred / max(float(centred.norm()), FLOOR) + x[:, place]
            for number, weight in enumerate(layer.mlp):
                hidden = weight @ (hidden.relu() if number else hidden)
            outputs.append(hidden)
        x = torch.stack(outputs, 1)
    return x


def weights_of(layer: LayerWeights) -> tuple[Tensor, ...]:
    return (*layer[:3], *layer.mlp)


@torch.no_grad()
def largest_difference(target: Weights, pruned: Weights) -> float:
    inputs = uniform_weights(30 * 6, 2, 9, "inputs").reshape(30, 6, 2) / 2**0.5
    outputs = transformer(pruned, FLOOR)(torch.nn.functional.pad(inputs, (0, 22)))
    assert not outputs[..., 2:].any()
    return float((outputs[..., :2] - transformer(target, FLOOR)(inputs)).norm(dim=2).max())


def test_transformer_agrees_with_the_equation() -> None:
    weights = random_target(2, SMALL, 1)
    inputs = uniform_weights(2, 7, 2, "inputs")
    found = transformer(weights, FLOOR)(inputs.T[None])[0].detach()
    assert (found - forward_by_column(weights, inputs).T).abs().max() < 1e-12


@pytest.mark.parametrize("layers", [1, 2])
def test_pruned_random_transformer_approximates_the_target(layers: int) -> None:
    target = random_target(layers, SMALL, 3)
    large = random_transformer(4 * layers, LARGE, 4, 3)
    pruned = prune_transformer(target, large)
    assert largest_difference(target, pruned) < 0.01
    assert largest_difference(random_target(layers, SMALL, 4), pruned) > 0.1
    for ours, theirs in zip(pruned, large, strict=True):
        for pruned_weight, random_weight in zip(weights_of(ours), weights_of(theirs), strict=True):
            assert torch.equal(pruned_weight, random_weight.where(pruned_weight != 0, 0))
    # Removing the attention or one layer changes the function.
    broken = list(pruned)
    broken[1] = broken[1]._replace(value=torch.zeros_like(broken[1].value))
    assert largest_difference(target, tuple(broken)) > 0.05
    assert largest_difference(target, (*pruned[:1], *pruned[2:])) > 0.05


def test_two_targets_can_share_any_layers() -> None:
    """Corollary 2.2.3: if the target uses two of four layers, two targets share the other two layers."""
    targets = [random_target(1, SMALL, seed) for seed in (5, 6)]
    large = random_transformer(4, LARGE, 4, 5)
    for first, shared in ((0, (2, 3)), (2, (0, 1))):
        pruned = [prune_transformer(target, large, first) for target in targets]
        for place in range(4):
            same = [
                torch.equal(*pair) for pair in zip(*(weights_of(each[place]) for each in pruned), strict=True)
            ]
            assert all(same) == (place in shared)
        assert max(largest_difference(*pair) for pair in zip(targets, pruned, strict=True)) < 0.01
        assert largest_difference(targets[0], pruned[1]) > 0.3


def test_errors_for_small_transformers_have_the_required_size() -> None:
    target = random_target(1, SMALL, 1)

    def prune(size: LargeSize, layers: int = 4, first: int = 0) -> Weights:
        return prune_transformer(target, random_transformer(layers, size, 4, 1), first)

    expect_error(r"^stream=6: use at least 8 for a target of width 2", prune, LargeSize(6, 16, 16))
    expect_error(r"^keys=3: use at least 4", prune, LargeSize(8, 3, 16))
    with pytest.raises(
        InputError, match=r"^large='3 layers': give 4 random layers for each of the 1 target layers"
    ):
        prune(LARGE, layers=3)
    expect_error(r"^first=3: use at most 2", prune, LargeSize(8, 4, 16), first=3)
    heavy = (target[0]._replace(mlp=(target[0].mlp[0] * 3, target[0].mlp[1])),)
    with pytest.raises(InputError, match=r"^target=.*: give finite numbers from -1 to 1"):
        prune_transformer(heavy, random_transformer(4, LARGE, 4, 1))
