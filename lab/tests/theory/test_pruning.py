"""Pruning by subset sums against enumeration, its error bounds on inputs, and networks that are too small."""

from itertools import product

import pytest
import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue_lab.theory.pruning import (
    closest_subset,
    prune_linear,
    prune_network,
    prune_scores,
    uniform_weights,
)


def nearest(numbers: Tensor, target: float) -> float:
    sums = [float(numbers[list(bits)].sum()) for bits in product((False, True), repeat=len(numbers))]
    return min(abs(each - target) for each in sums)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 9])
def test_the_closest_subset_is_that_of_all(count: int) -> None:
    for seed, target in ((0, 0.3), (1, -0.9), (2, 5.0)):
        numbers = uniform_weights(1, count, seed, "numbers")[0]
        chosen, missed = closest_subset(numbers, target)
        assert missed == pytest.approx(nearest(numbers, target), abs=1e-12)
        assert float((numbers[chosen].sum() - target).abs()) == pytest.approx(missed)
        if count > 4:
            assert missed <= nearest(numbers[1:], target) + 1e-12
            assert missed != pytest.approx(nearest(numbers, target + 0.2), abs=1e-6)


def test_a_pruned_network_is_the_matrix_on_both_sides_of_zero() -> None:
    target = uniform_weights(3, 2, 1, "target")
    pruned = prune_linear(target, width=2 * 2 * 14, seed=1)
    inputs = uniform_weights(400, 2, 2, "inputs") * 10
    missed = (pruned(inputs) - inputs @ target.T).norm(dim=1) / inputs.norm(dim=1)
    assert float(missed.max()) <= pruned.error < 0.02
    assert float(missed.max()) > pruned.error / 30
    random = {
        name: uniform_weights(*shape, 1, name) for name, shape in (("first", (56, 2)), ("second", (3, 56)))
    }
    for weights, name in ((pruned.first, "first"), (pruned.second, "second")):
        kept = weights != 0
        assert torch.equal(weights[kept], random[name][kept])
        assert 0 < int(kept.sum()) < kept.numel()
    # Without the units that are open for negative inputs it is right for positive ones alone.
    broken = pruned._replace(first=pruned.first.clamp_min(0))
    assert float((broken(inputs.abs()) - inputs.abs() @ target.T).norm(dim=1).max()) < 1
    assert float((broken(-inputs.abs()) + inputs.abs() @ target.T).norm(dim=1).max()) > 1


def test_pruned_scores_are_the_matrix() -> None:
    target = uniform_weights(2, 2, 3, "target")
    pruned = prune_scores(target, width=4 * 18, seed=2)
    assert float((pruned.key.T @ pruned.query - target).norm()) == pytest.approx(pruned.error, abs=1e-12)
    assert pruned.error < 1e-2
    assert prune_scores(target, width=4 * 8, seed=2).error > pruned.error


def test_four_layers_are_pruned_to_two() -> None:
    first, second = uniform_weights(2, 2, 4, "target"), uniform_weights(1, 2, 5, "target")
    pruned = prune_network(first, second, (56, 56), seed=3)
    inputs = uniform_weights(400, 2, 6, "inputs")
    wanted = (inputs @ first.T).relu() @ second.T
    missed = (pruned(inputs) - wanted).norm(dim=1) / inputs.norm(dim=1)
    assert float(missed.max()) <= pruned.error < 0.1
    assert float(missed.max()) > pruned.error / 100


def test_weights_and_sizes_out_of_range_are_rejected() -> None:
    with pytest.raises(InputError, match=r"^target=2.0: give finite numbers from -1 to 1"):
        prune_linear(torch.full((2, 2), 2.0), width=12)
    with pytest.raises(InputError, match=r"^numbers=37: give at most 36"):
        closest_subset(torch.zeros(37), 0.0)
