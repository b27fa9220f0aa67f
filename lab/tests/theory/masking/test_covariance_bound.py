"""Tests of Theorems 4.1.2 and 4.1.3 for random models and distributions of blocks, and of smaller constants."""

import pytest
import torch

from theory.random_models import SIX_BLOCKS, random_family, random_ising, random_simplex
from trialogue_lab.theory.masking.block_laws import block_distribution
from trialogue_lab.theory.masking.covariance_bound import bound_covariance
from trialogue_lab.theory.masking.pseudolikelihood import (
    asymptotic_covariance,
    enumerate_family,
    fisher_information,
)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_covariance_bound_holds_and_is_tight_for_random_models(seed, adaptive):
    model = random_ising(4, seed) if seed % 3 else random_family(4, 2, 6, seed)
    name, shape = ("distribution", (16, 6)) if adaptive else ("weights", (6,))
    given = {name: random_simplex(*shape, names=seed)}
    bound = bound_covariance(*enumerate_family(model), block_distribution(4, 2, blocks=SIX_BLOCKS, **given))
    assert bound.information_slack > -1e-10
    assert bound.slack > -1e-9 * bound.constant
    assert bound.best <= bound.constant * (1 + 1e-10)
    if seed % 3:
        assert bound.best > 0.9 * bound.constant  # so that a constant 10 % smaller is rejected


def test_slack_and_best_agree_with_eigenvalues():
    model, block_weights = random_ising(3), block_distribution(3, 2, block_size=1)
    p, features = enumerate_family(model)
    bound = bound_covariance(p, features, block_weights)
    inverse = torch.linalg.inv(fisher_information(p, features))
    gamma = asymptotic_covariance(model, 1)

    def slack(constant):
        return float(torch.linalg.eigvalsh(constant * inverse - gamma)[0])

    assert slack(bound.constant) == pytest.approx(bound.slack, abs=1e-10)
    assert slack(bound.best) == pytest.approx(0, abs=1e-10)
    assert slack(0.99 * bound.best) < -1e-3
