"""Tests of the fit against brute force over all states, and of its errors against the asymptotic covariance."""

import math

import numpy as np
import pytest
import torch
from scipy.linalg import hadamard
from scipy.optimize import linprog
from torch import Tensor

from refusals import expect_error
from trialogue.data import Ising
from trialogue.errors import InputError
from trialogue.randomness import generator, numpy_generator
from trialogue_lab.training import block_conditionals, block_moments
from trialogue_lab.training.block_conditionals import BlockConditionals
from trialogue_lab.training.pseudolikelihood import fit_pseudolikelihood

TRACES = {1: 28.2609, 2: 15.3355, 3: 11.4463, 4: 10.1116}


def random_model(sites: int, seed: int, scale: float = 0.3) -> Ising:
    random = torch.randn(sites * (sites + 1) // 2, generator=generator(seed, "ising"), dtype=torch.float64)
    return Ising.from_parameters(scale * random, sites)


def any_masks(rows: int, sites: int, seed: int) -> Tensor:
    masks = torch.rand(rows, sites, generator=generator(seed, "masks")) < 0.5
    masks[~masks.any(1)] = True
    return masks


def brute_force(parameters: Tensor, samples: Tensor, masks: Tensor) -> float:
    """Return the mean of -log p(x_K | x_-K, K), summed over all states that agree with the sample outside its mask."""
    model = Ising.from_parameters(parameters, samples.shape[1])
    states = model.states()
    total = 0.0
    for sample, mask in zip(samples, masks, strict=True):
        agree = states[(states[:, ~mask] == sample[~mask]).all(1)]
        rows = torch.cat((sample[None], agree))
        log_weights = -model.energy(rows)
        total += float(log_weights[1:].logsumexp(0) - log_weights[0])
    return total / len(samples)


def worst_differences() -> dict[str, float]:
    """Return the largest errors of the loss, the gradient, the Hessian and the scores at random parameters."""
    errors = dict.fromkeys(("loss", "gradient", "hessian", "scores"), 0.0)
    for seed, sites in enumerate((1, 2, 3, 4, 4)):
        samples = torch.randint(0, 2, (40, sites), generator=generator(seed, "samples"))
        masks = any_masks(40, sites, seed)
        parameters = random_model(sites, seed, 0.7).parameters.numpy()
        function = BlockConditionals(samples.bool().numpy(), masks.numpy())
        value, gradient = function.loss(parameters)
        hessian, scores = function.curvature(parameters)
        expected = brute_force(torch.from_numpy(parameters), samples, masks)
        singles = [
            BlockConditionals(samples[i : i + 1].bool().numpy(), masks[i : i + 1].numpy()).loss(parameters)
            for i in range(40)
        ]
        outer = np.mean([np.outer(single, single) for _, single in singles], axis=0)
        errors["loss"] = max(errors["loss"], abs(value - expected))
        errors["scores"] = max(errors["scores"], float(abs(scores - outer).max()))
        step = 1e-5
        for index, unit in enumerate(np.eye(len(parameters))):
            after, before = (function.loss(parameters + sign * step * unit) for sign in (1, -1))
            slope = (after[0] - before[0]) / (2 * step)
            errors["gradient"] = max(errors["gradient"], abs(slope - gradient[index]))
            slopes = (after[1] - before[1]) / (2 * step)
            errors["hessian"] = max(errors["hessian"], float(abs(slopes - hessian[index]).max()))
    return errors


def test_loss_and_derivatives_agree_with_brute_force() -> None:
    errors = worst_differences()
    assert errors["loss"] < 1e-12
    assert errors["scores"] < 1e-12
    assert max(errors.values()) < 1e-8


def test_wrong_moments_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    spread = block_conditionals._sum_covariances

    def without_couplings(local: np.ndarray, weights: np.ndarray, outside: np.ndarray, k: int) -> np.ndarray:
        return spread(local, weights, abs(outside), k)

    monkeypatch.setattr(block_conditionals, "_sum_covariances", without_couplings)
    assert worst_differences()["hessian"] > 1e-2


@pytest.mark.parametrize("k", [0, 1, 5, 9])
@pytest.mark.parametrize("bits", [1, 2, 6])
def test_transform_agrees_with_the_hadamard_matrix(
    monkeypatch: pytest.MonkeyPatch, k: int, bits: int
) -> None:
    monkeypatch.setattr(block_moments, "_BITS_AT_ONCE", bits)
    values = torch.randn(3, 1 << k, generator=generator(k, "values"), dtype=torch.float64).numpy()
    np.testing.assert_allclose(
        block_moments.hadamard_transform(values), values @ hadamard(1 << k), atol=1e-10
    )


def test_context_with_more_completions_than_a_chunk_is_summed_exactly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = random_model(4, 2).sample(200, 0)
    expected = fit_pseudolikelihood(samples, 4)
    monkeypatch.setattr(block_conditionals, "_COMPLETIONS_AT_ONCE", 4)
    assert torch.equal(fit_pseudolikelihood(samples, 4).model.parameters, expected.model.parameters)


def test_masks_of_all_sites_match_the_moments_of_the_samples() -> None:
    samples = random_model(4, 2).sample(500, 0)
    fit = fit_pseudolikelihood(samples, 4)
    torch.testing.assert_close(fit.model.moments(), fit.model.features(samples).mean(0), atol=1e-8, rtol=0)
    # For samples from a model, here every state equally often, the covariance agrees with maximum likelihood.
    states = torch.repeat_interleave(fit.model.states(), 50, 0)
    uniform = fit_pseudolikelihood(states, 4)
    assert fit_pseudolikelihood(states, 4).model.parameters.abs().max() < 1e-8
    torch.testing.assert_close(
        uniform.covariance, torch.eye(10, dtype=torch.float64) / 800, atol=1e-8, rtol=0
    )


def errors_over_exact(k: int) -> tuple[float, float]:
    """Return the mean squared error times n and the estimated trace, both over the exact trace (n = 3000, 40 fits)."""
    model = Ising.clique(4, 4, 0.05, 0.0)
    squared, estimated = [], []
    for repetition in range(40):
        found = fit_pseudolikelihood(model.sample(3000, repetition), k, seed=repetition)
        squared.append(float((found.model.parameters - model.parameters).square().sum()) * 3000)
        estimated.append(float(found.covariance.trace()) * 3000)
    return sum(squared) / 40 / TRACES[k], sum(estimated) / 40 / TRACES[k]


@pytest.mark.parametrize("k", TRACES)
def test_errors_agree_with_the_exact_covariance(k: int) -> None:
    """Lemma 4.1.1 (claim M-F41).

    The ratio has a standard deviation of about sqrt(2 / 10 / 40) = 0.07 over seeds, and 0.25 is more than three
    standard deviations. The standard deviation of the estimated traces is below 0.01.
    """
    error, estimate = errors_over_exact(k)
    assert error == pytest.approx(1, abs=0.25)
    assert estimate == pytest.approx(1, abs=0.05)


def test_larger_models_are_fitted() -> None:
    """Fit a ring of 20 spins, which has about as many distinct contexts as samples."""
    sites, n = 20, 2000
    random = numpy_generator(0, "ring")
    # The bonds of a ring without field are independent, given that the number of flips is even.
    bonds = np.where(random.random((3 * n, sites)) < 1 / (1 + math.exp(-2 * 0.4)), 1, -1)
    bonds = bonds[bonds.prod(1) == 1][:n]
    spins = np.cumprod(np.column_stack((np.where(random.random(n) < 0.5, 1, -1), bonds[:, :-1])), axis=1)
    for k in (1, 3):
        fit = fit_pseudolikelihood(torch.from_numpy((spins + 1) // 2), k)
        truth = torch.zeros(sites, sites, dtype=torch.float64)
        ring = torch.arange(sites)
        truth[ring, (ring + 1) % sites] = truth[(ring + 1) % sites, ring] = 0.4
        scaled = (fit.model.parameters - Ising(truth, torch.zeros(sites)).parameters) / fit.standard_errors
        assert float(scaled.square().mean()) == pytest.approx(1, abs=0.25)
        assert fit.gradient_norm <= 1e-8


def test_separable_samples_are_rejected() -> None:
    samples = Ising.clique(4, 4, 0.3, 0.0).sample(40, 0)
    with pytest.raises(
        InputError, match=r"samples=\(40, 4\): there is no finite estimate, because the samples are separable"
    ):
        fit_pseudolikelihood(samples, 1)
    # A spin that is always up, and two spins that are always equal.
    for constant in (torch.ones(50, 1, dtype=torch.int64), torch.tensor([[0, 0], [1, 1]]).repeat(30, 1)):
        expect_error("no finite estimate", fit_pseudolikelihood, constant, 1)


@pytest.mark.parametrize(("k", "tolerance"), [(1, 1.0), (4, 0.1)])
def test_a_coarse_tolerance_is_accepted_and_one_below_rounding_is_rejected(k: int, tolerance: float) -> None:
    samples = Ising.clique(4, 4, 0.3, 0.2).sample(1000, 0)
    assert fit_pseudolikelihood(samples, k, tolerance=tolerance).gradient_norm <= tolerance
    expect_error("tolerance=1e-30: rounding errors leave", fit_pseudolikelihood, samples, 2, tolerance=1e-30)


def separable(samples: Tensor, masks: Tensor) -> bool:
    """Return whether the loss is non-increasing forever in some direction, by linear programming."""
    sites = samples.shape[1]
    model = Ising.from_parameters(torch.zeros(sites * (sites + 1) // 2), sites)
    states, features = model.states(), model.features
    rows = []
    for sample, mask in zip(samples, masks, strict=True):
        agree = states[(states[:, ~mask] == sample[~mask]).all(1)]
        rows.append(features(sample[None]) - features(agree))
    differences = torch.cat(rows).unique(dim=0).numpy()
    if np.linalg.matrix_rank(differences) < differences.shape[1]:
        return True
    bounds = [(-1, 1)] * differences.shape[1]
    found = linprog(-differences.sum(0), -differences, np.zeros(len(differences)), bounds=bounds)
    return bool(-found.fun > 1e-7)


def test_fits_without_an_estimate_are_rejected() -> None:
    model = Ising.clique(3, 3, 0.3, 0.0)
    refused = 0
    for seed in range(20):
        samples, masks = model.sample(14, seed), any_masks(14, 3, seed)
        expected = separable(samples, masks)
        refused += expected
        if expected:
            expect_error("no finite estimate", fit_pseudolikelihood, samples, masks=masks)
        else:
            assert fit_pseudolikelihood(samples, masks=masks).gradient_norm <= 1e-8
    assert 4 < refused < 16


def test_invalid_input_raises_a_one_line_error() -> None:
    samples = torch.randint(0, 2, (50, 3), generator=generator(0, "bad"))
    all_masked = torch.ones(50, 3, dtype=torch.bool)
    for given, arguments, message in (
        (samples, {}, "block_size=None: give either"),
        (samples, {"block_size": 1, "masks": all_masked}, "block_size=1: give either"),
        (samples, {"block_size": 4}, "block_size=4: use at most 3, the number of sites"),
        (samples, {"masks": all_masked[:2]}, "masks=.*use bools of the shape"),
        (samples, {"masks": ~all_masked}, "masks=0: every sample needs"),
        (samples, {"masks": all_masked & torch.tensor([True, True, False])}, r"masks=\[2\]: "),
        (samples[0], {"block_size": 1}, r"samples=\(3,\)"),
        (torch.zeros(1, 101).long(), {"block_size": 1}, r"samples=\(1, 101\): use at most 100 spins"),
        (samples.repeat(1, 14), {"block_size": 40}, "block_size=40: .*use smaller blocks"),
    ):
        with pytest.raises(InputError, match=message) as error:
            fit_pseudolikelihood(given, **arguments)  # type: ignore[arg-type]
        assert "\n" not in str(error.value)


def test_the_masks_depend_on_the_seed() -> None:
    samples = random_model(4, 0).sample(500, 0)
    first, again, other = (fit_pseudolikelihood(samples, 2, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first.model.parameters, again.model.parameters)
    assert not torch.equal(first.model.parameters, other.model.parameters)
