"""Information and covariance of pseudolikelihoods: printed values, the two theorems, and mutants they reject."""

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
    enumerated,
    fisher_information,
    masking_more,
    pseudolikelihood_information,
    pseudolikelihood_loss,
    sandwich_covariance,
)

# Trace of Gamma^k for k = 1 to 4 of the clique of four without a field: all parameters, couplings alone.
TRACES = {
    0.05: ([28.2609, 15.3355, 11.4463, 10.1116], [12.1282, 7.2826, 6.0784, 6.0784]),
    0.3: ([43.7325, 23.4621, 17.8210, 16.3272], [19.3806, 11.8230, 10.2487, 10.2487]),
}


@pytest.mark.parametrize("coupling", [0.05, 0.3])
def test_printed_traces(coupling):
    model = Ising.clique(4, 4, coupling=coupling, field=0.0)
    matrices = [asymptotic_covariance(model, block_size=k) for k in range(1, 5)]
    total, couplings = TRACES[coupling]
    assert [float(m.trace()) for m in matrices] == pytest.approx(total, abs=6e-5)
    assert [float(m.diagonal()[:6].sum()) for m in matrices] == pytest.approx(couplings, abs=6e-5)
    assert all(m.dtype == torch.float64 and m.shape == (10, 10) for m in matrices)


@pytest.mark.parametrize(("coupling", "expected"), [(0.05, [10.1116] * 4), (0.3, [16.3366] + [16.3272] * 3)])
def test_every_mask_averaged_leaves_no_gap(coupling, expected):
    model = Ising.clique(4, 4, coupling=coupling, field=0.0)
    traces = [float(asymptotic_covariance(model, k, masks_per_sample=math.inf).trace()) for k in range(1, 5)]
    assert traces == pytest.approx(expected, abs=6e-5)


def test_more_masks_per_sample_interpolate():
    model = random_ising(3)
    one, two, all_of_them = (asymptotic_covariance(model, 1, masks_per_sample=m) for m in (1, 2, math.inf))
    torch.testing.assert_close(two, (one + all_of_them) / 2)


def adaptive(sites, seed):
    blocks = [block for block in SIX_BLOCKS if max(block) < sites] + [tuple(range(sites))]
    return block_distribution(
        sites, 2, blocks=blocks, distribution=random_simplex(2**sites, len(blocks), names=("law", seed))
    )


LAWS = [
    (
        "cover",
        lambda: block_distribution(4, 2, blocks=[[0, 1], [1, 2, 3], [3], [0, 2]], weights=random_simplex(4)),
    ),
    ("size", lambda: block_distribution(4, 2, block_size=2)),
    ("adaptive", lambda: adaptive(4, 0)),
]


def hessian_and_information(model, law, shift=0.0):
    """Hessian of the loss at shifted parameters by autograd, and the information matrix."""
    probabilities, features = enumerated(model)
    hessian = torch.autograd.functional.hessian(
        lambda theta: pseudolikelihood_loss(probabilities, features @ theta, law), model.parameters + shift
    )
    return hessian, pseudolikelihood_information(probabilities, features, law)


@pytest.mark.parametrize("law", [make for _, make in LAWS], ids=[name for name, _ in LAWS])
def test_information_is_the_hessian_of_the_loss(law):
    hessian, information = hessian_and_information(random_ising(4), law())
    assert float((hessian - information).abs().max()) < 1e-13
    hessian, _ = hessian_and_information(random_ising(4), law(), shift=0.3)
    assert float((hessian - information).abs().max()) > 0.05


def test_the_loss_is_the_mean_of_minus_log_conditionals():
    p, r = random_simplex(8, names="p"), random_simplex(8, names="r")
    law = block_distribution(3, 2, blocks=[[0], [1, 2], [0, 1]], distribution=random_simplex(8, 3))
    expected = -(r[:, None] * law.given * conditionals(p, law).log()).sum()
    assert float(pseudolikelihood_loss(r, 3.0 + p.log(), law)) == pytest.approx(float(expected), rel=1e-14)


def test_losses_at_zeros():
    law = block_distribution(2, 2, blocks=[[0], [1]])
    p = torch.tensor([0.5, 0.5, 0.0, 0.0], dtype=torch.float64)
    assert float(pseudolikelihood_loss(p, p.log(), law)) == pytest.approx(math.log(2) / 2)
    assert float(pseudolikelihood_loss(torch.full((4,), 0.25), p.log(), law)) == math.inf


@pytest.mark.parametrize("seed", range(6))
def test_masking_more_is_no_worse(seed):
    model = random_family(4, 2, 6, seed) if seed % 2 else random_ising(4, seed)
    check = masking_more(model)
    assert float(check.smallest_eigenvalue.min()) > -1e-10
    assert float(check.identity_discrepancy.max()) < 1e-14


def test_masking_more_rejects_blocks_that_are_not_uniform():
    """Loewner order needs all blocks of a size: fewer blocks of a larger size can be worse."""
    model = random_ising(4)
    single = asymptotic_covariance(model, 1)
    uneven = asymptotic_covariance(model, blocks=[[0, 1], [2, 3]], weights=[0.97, 0.03])
    assert float(torch.linalg.eigvalsh(single - uneven)[0]) < -1.0


def test_features_of_single_precision():
    model, law = random_ising(4), block_distribution(4, 2, block_size=1)
    probabilities, features = enumerated(model)
    single = pseudolikelihood_information(probabilities, features.float(), law)
    assert torch.equal(single, pseudolikelihood_information(probabilities, features, law))


def test_larger_vocabularies():
    model = random_family(3, 3, 5)
    hessian, information = hessian_and_information(model, block_distribution(3, 3, block_size=2))
    assert float((hessian - information).abs().max()) < 1e-13
    assert float(masking_more(model).smallest_eigenvalue.min()) > -1e-10


def fitted(data, features, law):
    def loss(theta):
        at = torch.tensor(theta, requires_grad=True)
        value = pseudolikelihood_loss(data, features @ at, law)
        value.backward()
        return value.item(), at.grad.numpy()

    return torch.tensor(minimize(loss, np.zeros(features.shape[1]), jac=True, options={"gtol": 1e-10}).x)


def test_sandwich_where_no_parameter_is_the_truth():
    """Fields alone are fitted to coupled spins: H and V differ; both again by loops over states."""
    truth = random_ising(3, "misspecified", scale=0.5)
    data = truth.probabilities()
    features = truth.features(truth.states())[:, 3:]
    law = block_distribution(3, 2, block_size=2)
    best = fitted(data, features, law)
    gamma = sandwich_covariance(data, (features @ best).softmax(0), features, law)
    model = (features @ best).softmax(0)
    hessian = pseudolikelihood_information(model, features, law)
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


test_bad_input_is_refused = refusals(
    "^{}=",
    [
        (
            lambda m: sandwich_covariance(
                random_simplex(16), *enumerated(m), block_distribution(4, 2, block_size=1)
            ),
            "probabilities",
        ),
        (
            lambda m: pseudolikelihood_loss(
                torch.ones(16), torch.zeros(16), block_distribution(4, 2, block_size=1)
            ),
            "data",
        ),
        (lambda m: masking_more(Ising.clique(1, 1, 0.0, 0.1)), "model"),
        (lambda m: fisher_information(m.probabilities(), torch.zeros(8, 3)), "probabilities"),
    ],
    random_ising(4),
)


def test_parameters_that_are_not_identified_are_refused():
    family = random_family(3, 2, 3)
    table = torch.cat((family.table, family.table[:, :1]), 1)
    with pytest.raises(InputError, match="singular"):
        asymptotic_covariance(family._replace(table=table, parameters=torch.zeros(4, dtype=torch.float64)), 1)
