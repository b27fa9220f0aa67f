"""Tests of the upper bound of the tensorization constant against exact ratios and closed forms."""

import math

import pytest
import torch
from torch import Tensor

from theory.random_models import random_ising, random_simplex
from trialogue.data.ising.model import Ising
from trialogue.errors import InputError
from trialogue_lab.theory.masking.block_laws import BlockDistribution, block_distribution, block_dynamics
from trialogue_lab.theory.masking.mixing import poincare_constant
from trialogue_lab.theory.masking.pseudolikelihood import pseudolikelihood_loss
from trialogue_lab.theory.masking.tensorization import smallest_conditional, tensorization_upper_bound


def kl(r: Tensor, q: Tensor) -> float:
    return float(torch.where(r > 0, r * (r.clamp_min(1e-300) / q).log(), 0.0).sum())


def conditional_divergences(
    r: Tensor, q: Tensor, block_weights: BlockDistribution
) -> list[tuple[float, float]]:
    """Return the probability of each block and context under r, and the KL divergence of its conditionals."""
    found = []
    for k, weight in enumerate(block_weights.given[0].tolist()):
        for fiber in block_weights.completions(k):
            mass = float(r[fiber].sum())
            if mass > 0:
                found.append((weight * mass, kl(r[fiber] / mass, q[fiber] / q[fiber].sum())))
    return found


def entropy_ratio(r: Tensor, q: Tensor, block_weights: BlockDistribution) -> float:
    """Return the ratio of Definition 4.1.9 at r, which is a lower bound of the constant."""
    return kl(r, q) / sum(weight * each for weight, each in conditional_divergences(r, q, block_weights))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [1, 2])
def test_upper_bound_exceeds_entropy_ratios_and_poincare_constant(seed: int, size: int) -> None:
    q = random_ising(3, seed, scale=0.4).probabilities()
    block_weights = block_distribution(3, 2, block_size=size)
    bound = tensorization_upper_bound(q, block_weights)
    assert bound >= poincare_constant(block_dynamics(q, block_weights)) * (1 - 1e-9)
    for r in (*torch.eye(8, dtype=torch.float64), *random_simplex(20, 8, names=seed)):
        assert bound >= entropy_ratio(r, q, block_weights)


def test_divergence_is_within_the_constant_times_the_loss() -> None:
    """Proposition 4.3.1. Its proof has an equality for the loss, which is larger by the entropy of the conditionals."""
    q = random_ising(3, scale=0.4).probabilities()
    block_weights = block_distribution(3, 2, block_size=1)
    bound = tensorization_upper_bound(q, block_weights)
    for r in random_simplex(20, 8):
        mean = sum(weight * each for weight, each in conditional_divergences(r, q, block_weights))
        loss = float(pseudolikelihood_loss(r, q.log(), block_weights))
        assert kl(r, q) <= bound * mean < bound * loss
        entropy = float(pseudolikelihood_loss(r, r.log(), block_weights))
        assert loss == pytest.approx(mean + entropy)


def test_conditional_divergences_are_at_most_the_log_of_the_smallest_conditional() -> None:
    """Proposition 4.3.2, attained by a sequence whose masked tokens are the least likely ones."""
    q = random_ising(3, scale=0.4).probabilities()
    block_weights = block_distribution(3, 2, block_size=2)
    bound = -math.log(smallest_conditional(q, block_weights))
    found = [
        each
        for r in (*torch.eye(8, dtype=torch.float64), *random_simplex(20, 8))
        for _, each in conditional_divergences(r, q, block_weights)
    ]
    assert min(found) >= -1e-15
    assert max(found) == pytest.approx(bound)


def test_upper_bound_is_exact_for_product_distributions() -> None:
    product = Ising.clique(3, 3, coupling=0.0, field=0.4).probabilities()
    for size in (1, 2, 3):
        assert tensorization_upper_bound(product, block_distribution(3, 2, block_size=size)) == pytest.approx(
            3 / size
        )
    weighted = block_distribution(3, 2, blocks=[[0, 1], [2]], weights=[0.3, 0.7])
    assert tensorization_upper_bound(product, weighted) == pytest.approx(1 / 0.3)
    # No product distribution approximates two coupled spins better than one without coupling: exp(2 J).
    coupled = Ising.clique(2, 2, coupling=0.3, field=0.2).probabilities()
    bound = tensorization_upper_bound(coupled, block_distribution(2, 2, block_size=1))
    assert bound == pytest.approx(2 * math.exp(0.6), rel=1e-7)


def test_adaptive_and_zero_distributions_are_rejected() -> None:
    adaptive = block_distribution(2, 2, blocks=[[0], [1]], distribution=random_simplex(4, 2))
    with pytest.raises(InputError, match=r"^distribution='adaptive'"):
        tensorization_upper_bound(random_simplex(4), adaptive)
    with pytest.raises(InputError, match="positive everywhere"):
        tensorization_upper_bound(torch.tensor([0.5, 0.5, 0.0, 0.0]), block_distribution(2, 2, block_size=1))
