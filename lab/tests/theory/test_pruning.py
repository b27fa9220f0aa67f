"""Tests of pruning by subset sums against enumeration and error bounds, and of invalid sizes."""

from itertools import product

import pytest
import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue_lab.theory import pruning


def smallest_distance(numbers: Tensor, target: float) -> float:
    sums = [float(numbers[list(bits)].sum()) for bits in product((False, True), repeat=len(numbers))]
    return min(abs(each - target) for each in sums)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 9])
def test_closest_subset_agrees_with_enumeration(count: int) -> None:
    for seed, target in ((0, 0.3), (1, -0.9), (2, 5.0)):
        numbers = pruning.uniform_weights(1, count, seed, "numbers")[0]
        chosen, error = pruning.closest_subset(numbers, target)
        assert error == pytest.approx(smallest_distance(numbers, target), abs=1e-12)
        assert float((numbers[chosen].sum() - target).abs()) == pytest.approx(error)
        if count > 4:
            assert error <= smallest_distance(numbers[1:], target) + 1e-12
            assert error != pytest.approx(smallest_distance(numbers, target + 0.2), abs=1e-6)


def test_pruned_network_approximates_the_matrix_for_both_signs() -> None:
    target = pruning.uniform_weights(3, 2, 1, "target")
    pruned = pruning.prune_linear(target, width=2 * 2 * 14, seed=1)
    inputs = pruning.uniform_weights(400, 2, 2, "inputs") * 10
    error = (pruned(inputs) - inputs @ target.T).norm(dim=1) / inputs.norm(dim=1)
    assert float(error.max()) <= pruned.error < 0.02
    assert float(error.max()) > pruned.error / 30
    random = {
        name: pruning.uniform_weights(*shape, 1, name)
        for name, shape in (("first", (56, 2)), ("second", (3, 56)))
    }
    for weights, name in ((pruned.first, "first"), (pruned.second, "second")):
        remaining = weights != 0
        assert torch.equal(weights[remaining], random[name][remaining])
        assert 0 < int(remaining.sum()) < remaining.numel()
    # Without the units for negative inputs the network is right for positive inputs only.
    broken = pruned._replace(first=pruned.first.clamp_min(0))
    assert float((broken(inputs.abs()) - inputs.abs() @ target.T).norm(dim=1).max()) < 1
    assert float((broken(-inputs.abs()) + inputs.abs() @ target.T).norm(dim=1).max()) > 1


def test_pruned_scores_approximate_the_matrix() -> None:
    target = pruning.uniform_weights(2, 2, 3, "target")
    pruned = pruning.prune_scores(target, width=4 * 18, seed=2)
    assert float((pruned.key.T @ pruned.query - target).norm()) == pytest.approx(pruned.error, abs=1e-12)
    assert pruned.error < 1e-2
    assert pruning.prune_scores(target, width=4 * 8, seed=2).error > pruned.error


def test_four_random_layers_approximate_two_target_layers() -> None:
    first, second = pruning.uniform_weights(2, 2, 4, "target"), pruning.uniform_weights(1, 2, 5, "target")
    pruned = pruning.prune_network(first, second, (56, 56), seed=3)
    inputs = pruning.uniform_weights(400, 2, 6, "inputs")
    expected = (inputs @ first.T).relu() @ second.T
    error = (pruned(inputs) - expected).norm(dim=1) / inputs.norm(dim=1)
    assert float(error.max()) <= pruned.error < 0.1
    assert float(error.max()) > pruned.error / 100


def test_weights_and_sizes_out_of_range_are_rejected() -> None:
    with pytest.raises(InputError, match=r"^target=2.0: give finite numbers from -1 to 1"):
        pruning.prune_linear(torch.full((2, 2), 2.0), width=12)
    with pytest.raises(InputError, match=r"^numbers=37: give at most 36"):
        pruning.closest_subset(torch.zeros(37), 0.0)
