"""Tests of information and covariance of pseudolikelihoods: published values, two theorems, and wrong versions."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from one_line_errors import refusals
from theory.random_models import SIX_BLOCKS, random_family, random_ising, random_simplex
from trialogue.data.ising.model import Ising
from trialogue.errors import InputError
from trialogue_lab.theory.masking.block_laws import block_distribution, conditionals
from trialogue_lab.theory.masking.pseudolikelihood import (
    asymptotic_covariance,
    compare_mask_sizes,
    enumerate_family,
    fisher_information,
    pseudolikelihood_information,
    pseudolikelihood_loss,
    sandwich_covariance,
)

# Trace of Gamma^k for k = 1 to 4 of a clique of four sites without a field: all parameters, and couplings only.
TRACES = {
    0.05: ([28.2609, 15.3355, 11.4463, 10.1116], [12.1282, 7.2826, 6.0784, 6.0784]),
    0.3: ([43.7325, 23.4621, 17.8210, 16.3272], [19.3806, 11.8230, 10.2487, 10.2487]),
}


@pytest.mark.parametrize("coupling", [0.05, 0.3])
def test_covariance_traces_agree_with_published_values(coupling):
    model = Ising.clique(4, 4, coupling=coupling, field=0.0)
    matrices = [asymptotic_covariance(model, block_size=k) for k in range(1, 5)]
    total, couplings = TRACES[coupling]
    assert [float(m.trace()) for m in matrices] == pytest.approx(total, abs=6e-5)
    assert [float(m.diagonal()[:6].sum()) for m in matrices] == pytest.approx(couplings, abs=6e-5)
    assert all(m.dtype == torch.float64 and m.shape == (10, 10) for m in matrices)


@pytest.mark.parametrize(("coupling", "expected"), [(0.05, [10.1116] * 4), (0.3, [16.3366] + [16.3272] * 3)])
def test_averaging_over_all_masks_gives_the_published_traces(coupling, expected):
    model = Ising.clique(4, 4, coupling=coupling, field=0.0)
    traces = [float(asymptotic_covariance(model, k, masks_per_sample=math.inf).trace()) for k in range(1, 5)]
    assert traces == pytest.approx(expected, abs=6e-5)


def test_two_masks_per_sample_halve_the_excess_covariance():
    model = random_ising(3)
    one, two, all_of_them = (asymptotic_covariance(model, 1, masks_per_sample=m) for m in (1, 2, math.inf))
    torch.testing.assert_close(two, (one + all_of_them) / 2)


def adaptive_blocks(sites, seed):
    blocks = [block for block in SIX_BLOCKS if max(block) < sites] + [tuple(range(sites))]
    return block_distribution(
        sites, 2, blocks=blocks, distribution=random_simplex(2**sites, len(blocks), names=("law", seed))
    )


COVER = [[0, 1], [1, 2, 3], [3], [0, 2]]
SINGLE = block_distribution(4, 2, block_size=1)
BLOCK_DISTRIBUTIONS = {
    "cover": block_distribution(4, 2, blocks=COVER, weights=random_simplex(4)),
    "size": block_distribution(4, 2, block_size=2),
    "adaptive": adaptive_blocks(4, 0),
}


def hessian_and_information(model, block_weights, shift=0.0):
    """Return the Hessian of the loss at shifted parameters by autograd, and the information matrix."""
    probabilities, features = enumerate_family(model)
    hessian = torch.autograd.functional.hessian(
        lambda theta: pseudolikelihood_loss(probabilities, features @ theta, block_weights),
        model.parameters + shift,
    )
    return hessian, pseudolikelihood_information(probabilities, features, block_weights)


@pytest.mark.parametrize("block_weights", BLOCK_DISTRIBUTIONS.values(), ids=BLOCK_DISTRIBUTIONS)
def test_information_agrees_with_the_hessian_of_the_loss(block_weights):
    hessian, information = hessian_and_information(random_ising(4), block_weights)
    assert float((hessian - information).abs().max()) < 1e-13
    hessian, _ = hessian_and_information(random_ising(4), block_weights, shift=0.3)
    assert float((hessian - information).abs().max()) > 0.05


def test_the_loss_is_the_mean_of_minus_log_conditionals():
    p, r = random_simplex(8, names="p"), random_simplex(8, names="r")
    block_weights = block_distribution(3, 2, blocks=[[0], [1, 2], [0, 1]], distribution=random_simplex(8, 3))
    expected = -(r[:, None] * block_weights.given * conditionals(p, block_weights).log()).sum()
    assert float(pseudolikelihood_loss(r, 3.0 + p.log(), block_weights)) == pytest.approx(
        float(expected), rel=1e-14
    )


def test_loss_is_finite_only_if_data_have_positive_probability():
    block_weights = block_distribution(2, 2, blocks=[[0], [1]])
    p = torch.tensor([0.5, 0.5, 0.0, 0.0], dtype=torch.float64)
    assert float(pseudolikelihood_loss(p, p.log(), block_weights)) == pytest.approx(math.log(2) / 2)
    assert float(pseudolikelihood_loss(torch.full((4,), 0.25), p.log(), block_weights)) == math.inf


@pytest.mark.parametrize("seed", range(6))
def test_larger_blocks_have_no_larger_covariance(seed):
    model = random_family(4, 2, 6, seed) if seed % 2 else random_ising(4, seed)
    check = compare_mask_sizes(model)
    assert float(check.smallest_eigenvalue.min()) > -1e-10
    assert float(check.identity_discrepancy.max()) < 1e-14


def test_larger_blocks_can_be_worse_if_blocks_are_not_uniform():
    """The Loewner order requires all blocks of a size with equal weights."""
    model = random_ising(4)
    single = asymptotic_covariance(model, 1)
    uneven = asymptotic_covariance(model, blocks=[[0, 1], [2, 3]], weights=[0.97, 0.03])
    assert float(torch.linalg.eigvalsh(single - uneven)[0]) < -1.0


def test_single_precision_features_give_the_same_information():
    model, block_weights = random_ising(4), block_distribution(4, 2, block_size=1)
    probabilities, features = enumerate_family(model)
    single = pseudolikelihood_information(probabilities, features.float(), block_weights)
    assert torch.equal(single, pseudolikelihood_information(probabilities, features, block_weights))


def test_information_and_masking_more_hold_for_three_tokens():
    model = random_family(3, 3, 5)
    hessian, information = hessian_and_information(model, block_distribution(3, 3, block_size=2))
    assert float((hessian - information).abs().max()) < 1e-13
    assert float(compare_mask_sizes(model).smallest_eigenvalue.min()) > -1e-10


def fit_parameters(data, features, block_weights):
    def loss(theta):
        at = torch.tensor(theta, requires_grad=True)
        value = pseudolikelihood_loss(data, features @ at, block_weights)
        value.backward()
        return value.item(), at.grad.numpy()

    return torch.tensor(minimize(loss, np.zeros(features.shape[1]), jac=True, options={"gtol": 1e-10}).x)


def test_sandwich_covariance_of_a_misspecified_model_agrees_with_loops():
    """H and V differ because only fields are fitted to coupled spins. Loops over states compute both again."""
    truth = random_ising(3, "misspecified", scale=0.5)
    data = truth.probabilities()
    features = truth.features(truth.states())[:, 3:]
    block_weights = block_distribution(3, 2, block_size=2)
    best = fit_parameters(data, features, block_weights)
    gamma = sandwich_covariance(data, (features @ best).softmax(0), features, block_weights)
    model = (features @ best).softmax(0)
    hessian = pseudolikelihood_information(model, features, block_weights)
    realizable = torch.linalg.inv(hessian)
    expected_scores = torch.zeros(3, 3, dtype=torch.float64)
    curvature = torch.zeros(3, 3, dtype=torch.float64)
    for block in itertools.combinations(range(3), 2):
        (rest,) = set(range(3)) - set(block)
        for state in range(8):
            fibre = [s for s in range(8) if truth.states()[s, rest] == truth.states()[state, rest]]
            conditional = model[fibre] / model[fibre].sum()
            mean = conditional @ features[fibre]
            score = features[state] - mean
            expected_scores += data[state] / 3 * torch.outer(score, score)
            centred = features[fibre] - mean
            curvature += data[state] / 3 * (conditional[:, None] * centred).T @ centred
    inverse = torch.linalg.inv(curvature)
    torch.testing.assert_close(gamma, inverse @ expected_scores @ inverse, rtol=1e-9, atol=0)
    assert float((gamma - realizable).abs().max()) > 0.01


test_invalid_input_is_rejected = refusals(
    "^{}=",
    [
        (lambda m: asymptotic_covariance(m, 2, masks_per_sample=0), "masks_per_sample"),
        (lambda m: sandwich_covariance(random_simplex(16), *enumerate_family(m), SINGLE), "probabilities"),
        (lambda m: pseudolikelihood_loss(torch.ones(16), torch.zeros(16), SINGLE), "data"),
        (lambda m: compare_mask_sizes(Ising.clique(1, 1, 0.0, 0.1)), "model"),
        (lambda m: fisher_information(m.probabilities(), torch.zeros(8, 3)), "probabilities"),
    ],
    random_ising(4),
)


def test_unidentifiable_parameters_are_rejected():
    family = random_family(3, 2, 3)
    table = torch.cat((family.table, family.table[:, :1]), 1)
    with pytest.raises(InputError, match="singular"):
        asymptotic_covariance(family._replace(table=table, parameters=torch.zeros(4, dtype=torch.float64)), 1)
