"""A whole random transformer pruned to a small one: near it, of its own weights, and sharing any of them."""

import pytest
import torch
from torch import Tensor

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


def by_hand(weights: Weights, x: Tensor) -> Tensor:
    """Equation 2.42 for one sequence x (m, N), column by column."""
    for layer in weights:
        answers = []
        for place in range(x.shape[1]):
            seen = x[:, : place + 1]
            scores = (layer.key @ seen).T @ (layer.query @ x[:, place])
            attended = layer.value @ seen @ scores.softmax(0)
            centred = attended - attended.mean()
            hidden = centred / max(float(centred.norm()), FLOOR) + x[:, place]
            for number, weight in enumerate(layer.mlp):
                hidden = weight @ (hidden.relu() if number else hidden)
            answers.append(hidden)
        x = torch.stack(answers, 1)
    return x


def weights_of(layer: LayerWeights) -> tuple[Tensor, ...]:
    return (*layer[:3], *layer.mlp)


@torch.no_grad()
def apart(target: Weights, pruned: Weights) -> float:
    inputs = uniform_weights(30 * 6, 2, 9, "inputs").reshape(30, 6, 2) / 2**0.5
    answers = transformer(pruned, FLOOR)(torch.nn.functional.pad(inputs, (0, 22)))
    assert not answers[..., 2:].any()
    return float((answers[..., :2] - transformer(target, FLOOR)(inputs)).norm(dim=2).max())


def test_the_network_is_that_of_the_equation() -> None:
    weights = random_target(2, SMALL, 1)
    inputs = uniform_weights(2, 7, 2, "inputs")
    found = transformer(weights, FLOOR)(inputs.T[None])[0].detach()
    assert (found - by_hand(weights, inputs).T).abs().max() < 1e-12


@pytest.mark.parametrize("layers", [1, 2])
def test_the_pruned_transformer_is_the_target_of_the_random_weights(layers: int) -> None:
    target = random_target(layers, SMALL, 3)
    large = random_transformer(4 * layers, LARGE, 4, 3)
    pruned = prune_transformer(target, large)
    assert apart(target, pruned) < 0.01
    assert apart(random_target(layers, SMALL, 4), pruned) > 0.1
    for ours, theirs in zip(pruned, large, strict=True):
        for kept, drawn in zip(weights_of(ours), weights_of(theirs), strict=True):
            assert torch.equal(kept, drawn.where(kept != 0, 0))
    # Each part matters: without the attention of the layer that attends it is another function.
    broken = list(pruned)
    broken[1] = broken[1]._replace(value=torch.zeros_like(broken[1].value))
    assert apart(target, tuple(broken)) > 0.05
    assert apart(target, (*pruned[:1], *pruned[2:])) > 0.05


def test_two_targets_share_any_matrix() -> None:
    """Corollary 2.2.3: with the target in the first two layers the others are shared, and the other way round."""
    targets = [random_target(1, SMALL, seed) for seed in (5, 6)]
    large = random_transformer(4, LARGE, 4, 5)
    for first, shared in ((0, (2, 3)), (2, (0, 1))):
        pruned = [prune_transformer(target, large, first) for target in targets]
        for place in range(4):
            same = [
                torch.equal(*pair) for pair in zip(*(weights_of(each[place]) for each in pruned), strict=True)
            ]
            assert all(same) == (place in shared)
        assert max(apart(*pair) for pair in zip(targets, pruned, strict=True)) < 0.01
        assert apart(targets[0], pruned[1]) > 0.3


def test_what_is_too_small_says_what_it_would_have_to_be() -> None:
    target = random_target(1, SMALL, 1)

    def prune(size: LargeSize, layers: int = 4, first: int = 0) -> Weights:
        return prune_transformer(target, random_transformer(layers, size, 4, 1), first)

    with pytest.raises(InputError, match=r"^stream=6: use at least 8 for a target of width 2"):
        prune(LargeSize(6, 16, 16))
    with pytest.raises(InputError, match=r"^keys=3: use at least 4"):
        prune(LargeSize(8, 3, 16))
    with pytest.raises(
        InputError, match=r"^large='3 layers': give 4 random layers for each of the 1 target layers"
    ):
        prune(LARGE, layers=3)
    with pytest.raises(InputError, match=r"^first=3: use at most 2"):
        prune(LargeSize(8, 4, 16), first=3)
    heavy = (target[0]._replace(mlp=(target[0].mlp[0] * 3, target[0].mlp[1])),)
    with pytest.raises(InputError, match=r"^target=.*: give finite numbers from -1 to 1"):
        prune_transformer(heavy, random_transformer(4, LARGE, 4, 1))
