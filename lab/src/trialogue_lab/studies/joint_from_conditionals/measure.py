"""Tasks of a run: they test bounds on fitted Ising models, and properties of random Ising models."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import rel_entr
from torch import Tensor
from torch.autograd.functional import hessian

from trialogue.data import Ising
from trialogue.randomness import numpy_generator
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.joint_from_conditionals.clique_family import compute_total_variation
from trialogue_lab.studies.joint_from_conditionals.config import Config, FitProblem
from trialogue_lab.theory.masking import sample_bound
from trialogue_lab.theory.masking.block_laws import BlockDistribution, block_distribution, block_dynamics
from trialogue_lab.theory.masking.mixing import chi_square_decay
from trialogue_lab.theory.masking.pseudolikelihood import pseudolikelihood_loss
from trialogue_lab.theory.masking.tensorization import tensorization_upper_bound

SPLITS = (0.1, 0.5, 0.9)
"""Shares of the failure probability of Lemma 4.3.5 that are assigned to the masks. The rest is for the samples."""


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, which test bounds on Ising models that are fitted by predicting masked spins.

    The first task computes how slowly a sampler approaches its target from a rare state. Every other task has one seed.
    It fits models to data sets, compares their errors with bounds, and measures properties of random Ising models.

    Args:
        config: Settings of the run.
    """
    return [
        Part("slow", lambda _: measure_slow_decay(config)),
        *(Part(f"seed-{seed}", partial(_measure, config, seed)) for seed in config.seeds),
    ]


def _measure(config: Config, seed: int, _: Path) -> MeasuredRows:
    for place, sizes in enumerate(config.sizes):
        yield {"kind": "bound", "seed": seed, **compare_bounds(config, sizes, seed, place)}
    for place in range(config.models):
        draws = numpy_generator(seed, "joint-from-conditionals", "model", place)
        model = sample_model(config.spins, config.deviation, draws)
        for size in range(1, config.spins + 1):
            masks = block_distribution(config.spins, 2, block_size=size)
            for row in measure_decay(config, model, masks, draws):
                yield {"kind": "decay", "seed": seed, "masked": size, **row}
        yield {"kind": "convexity", "seed": seed, **measure_convexity(config, draws)}


def compare_bounds(config: Config, sizes: FitProblem, seed: int, place: int) -> dict[str, Any]:
    """Compare theoretical bounds on the error of a fitted Ising model with its measured error.

    A data set consists of samples and random masks. A model is fitted by predicting masked spins from the others. There
    are five bounds:

    - "stated": Theorem 4.1.4.
    - "proved": the form of this theorem that its proof shows.
    - "average": Corollary 4.3.1.
    - "lemma": Lemma 4.3.5.
    - "empirical": Lemma 4.3.6.

    Args:
        config: Settings of the run.
        sizes: Size of the data sets and the true model.
        seed: Seed of the data sets.
        place: Index of `sizes` in the config.

    Returns:
        Means over data sets.

        - `b_within`: share of data sets that satisfy the bound b.
        - `b_bound`: value of the bound b.
        - `log_looseness_b`: log(bound b / bounded error).
        - `variation`: total variation distance between the fitted and the true distribution.
        - `loss`: loss of the fitted model.
        - `tensorization`: constant of approximate tensorization of entropy of the fitted model.
    """
    family = sizes.family
    size = {"sites": sizes.sites, "vocab_size": 2, "samples": sizes.samples}
    counts = {**size, "masks": sizes.masks}
    theta, beta, cells = np.array([sizes.coupling, sizes.field]), family.beta, family.cells(config.eps)
    truth = family.probabilities(sizes.coupling, sizes.field)
    average = sample_bound.mask_average_bound(**counts, beta=beta, delta=config.delta)
    empirical = sample_bound.empirical_distribution_bound(**size, delta=config.delta)
    nearest = min(compute_lemma_bounds(config, sizes, beta))
    risks: dict[str, Any] = {"eps": config.eps, "delta": config.delta}
    bound_of = partial(sample_bound.sample_bound, **counts, **risks, beta=beta, cells=cells)
    found: list[dict[str, float]] = []
    for data_set in range(config.data_sets):
        draws = numpy_generator(seed, "joint-from-conditionals", "data", place, data_set)
        data = family.draw(sizes.coupling, sizes.field, sizes.samples, sizes.masks, draws)
        fitted = family.fit(data)
        variation = compute_total_variation(family.probabilities(*fitted.tolist()), truth)
        loss, constant = family.empirical_loss(data, fitted), family.tensorization(fitted)
        gap = abs(family.empirical_loss(data, theta) - family.averaged_loss(data, theta))
        distance = compute_total_variation(torch.from_numpy(data.samples / sizes.samples), truth)
        stated = bound_of(tensorization=constant, loss=loss).bound
        relative = max(0.0, loss - family.conditional_entropy(data))
        proved = bound_of(tensorization=constant, loss=relative).bound
        bounded = {
            "average": (gap, average),
            "empirical": (distance, empirical),
            "stated": (variation, stated),
            "proved": (variation, proved),
        }
        one = {"variation": variation, "loss": loss, "tensorization": constant, "lemma_within": gap < nearest}
        for name, (value, bound) in bounded.items():
            one[f"{name}_within"], one[f"{name}_bound"] = value < bound, bound
            one[f"log_looseness_{name}"] = math.log(bound / max(value, 1e-300))
        found.append(one)
    return {
        "sizes": sizes.label,
        **{name: float(np.mean([one[name] for one in found])) for name in found[0]},
        "stated_bound_most": max(one["stated_bound"] for one in found),
        "beta": beta,
        "cells": cells,
    }


def compute_lemma_bounds(config: Config, sizes: FitProblem, beta: float) -> list[float]:
    """Return upper bounds on how much the loss of a fit depends on the random choice of masked spins (Lemma 4.3.5).

    The lemma bounds |loss with the sampled masks - expected loss over masks|. Each bound holds with probability 1 -
    delta. Bounds differ in the share of delta that is assigned to the masks.

    Args:
        config: Settings with the failure probability delta.
        sizes: Size of the data sets.
        beta: Smallest conditional probability of a spin.

    Returns:
        One bound for each share in `SPLITS`.
    """
    counts = {"sites": sizes.sites, "vocab_size": 2, "samples": sizes.samples, "masks": sizes.masks}
    distances = []
    for share in SPLITS:
        eps = math.sqrt(2.0 ** (2 * sizes.sites - 2) / (sizes.masks * share * config.delta))
        t = math.log(1 / beta) * math.sqrt(sizes.samples / 2 * math.log(2 / ((1 - share) * config.delta)))
        distances.append(sample_bound.mask_average_deviation(**counts, beta=beta, eps=eps, t=t).distance)
    return distances


def sample_model(spins: int, deviation: float, draws: np.random.Generator) -> Ising:
    """Sample an Ising model with normal couplings between all pairs of spins, and normal fields.

    Args:
        spins: Number of spins.
        deviation: Standard deviation of the couplings and fields, whose mean is zero.
        draws: Random number generator.
    """
    parameters = deviation * draws.standard_normal(spins * (spins + 1) // 2)
    return Ising.from_parameters(torch.from_numpy(parameters), spins)


def measure_decay(
    config: Config, model: Ising, masks: BlockDistribution, draws: np.random.Generator
) -> MeasuredRows:
    """Test two upper bounds on the distance of a Gibbs sampler from its target, as a function of time.

    The sampler runs in continuous time. The target is an Ising model, and p_t is the distribution of the sampler at
    time t.

    Args:
        config: Times at which the distance is measured.
        model: The model, which is the stationary distribution.
        masks: Distribution of the set of spins that is resampled in a step.
        draws: Random number generator of the starting distribution.

    Yields:
        One row for a random distribution p_0, and one if p_0 is the least likely state. Each number is the maximum over
        t of log(distance / bound), and is at most zero if the bound holds.

        - `chi_square`: the bound chi^2(p_t) <= exp(-2 t / C) chi^2(p_0), where C is the Poincaré constant of the
          sampler.
        - `entropy`: the bound KL(p_t) <= exp(-t / c) KL(p_0), where c is an upper bound on the constant of approximate
          tensorization of entropy.
    """
    p = model.probabilities()
    matrix = block_dynamics(p, masks)
    starts = {
        "random": torch.from_numpy(draws.dirichlet(np.ones(len(p)))),
        "least likely": torch.eye(len(p), dtype=torch.float64)[int(p.argmin())],
    }
    constant = tensorization_upper_bound(p, masks)
    for name, start in starts.items():
        decay = chi_square_decay(matrix, start, config.times)
        entropy = [_compute_kl(evolve_distribution(matrix, start, time), p) for time in config.times]
        yield {
            "start": name,
            "chi_square": float((decay.values.log() - decay.bounds.log()).max()),
            "entropy": max(
                math.log(max(later, 1e-300) / _compute_kl(start, p)) + time / constant
                for later, time in zip(entropy, config.times, strict=True)
            ),
        }


def measure_slow_decay(config: Config) -> MeasuredRows:
    """Compute how slowly a sampler approaches its target if it starts from a rare state.

    The distance from the target q is the KL divergence. The sampler resamples all spins at once, so that p_t = e^-t p_0
    + (1 - e^-t) q at time t, where p_0 is the rare state.

    Args:
        config: Times at which the divergence is computed.

    Yields:
        One row per probability of the rare state and time. `log_ratio` is log KL(p_t, q) - log KL(p_0, q).
        The published upper bound on it is -2 t, and the corrected one is -t.
    """
    for rare in (1e-2, 1e-4, 1e-8):
        q = torch.full((8,), (1 - rare) / 7, dtype=torch.float64)
        q[0] = rare
        start = torch.eye(8, dtype=torch.float64)[0]
        for time in config.times:
            later = math.exp(-time) * start + (1 - math.exp(-time)) * q
            ratio = math.log(_compute_kl(later, q) / _compute_kl(start, q))
            yield {"kind": "slow", "rare": rare, "time": time, "log_ratio": ratio}


def evolve_distribution(matrix: Tensor, start: Tensor, time: float) -> Tensor:
    """Return the distribution of a continuous-time Markov chain at one time.

    The chain makes one step per unit of time on average.

    Args:
        matrix: Transition matrix (states, states) of a step.
        start: Distribution (states,) at time 0.
        time: Time since the start.

    Returns:
        Distribution (states,) at this time.
    """
    identity = torch.eye(len(matrix), dtype=torch.float64)
    return start @ torch.linalg.matrix_exp(time * (matrix - identity))


def measure_convexity(config: Config, draws: np.random.Generator) -> dict[str, float]:
    """Test on random examples whether the loss of predicting masked spins is a convex function of the parameters.

    The loss is the mean negative log-probability of masked spins given the others, under an Ising model. The
    distribution of the data, the parameters and the weights of three sets of masked spins are random.

    Args:
        config: Number of spins and of random parameters.
        draws: Random number generator.

    Returns:
        The "smallest" and the "largest" eigenvalue of the Hessian of the loss over all examples. The loss is convex if
        the smallest one is not negative.
    """
    spins = config.spins
    data = torch.from_numpy(draws.dirichlet(np.ones(2**spins)))
    blocks = [[0], list(range(1, spins)), sorted(draws.choice(spins, 2, replace=False).tolist())]
    masks = block_distribution(spins, 2, blocks=blocks, weights=torch.from_numpy(draws.dirichlet(np.ones(3))))
    model = sample_model(spins, config.deviation, draws)
    features = model.features(model.states())

    def loss(theta: Tensor) -> Tensor:
        return pseudolikelihood_loss(data, features @ theta, masks)

    smallest, largest = math.inf, 0.0
    for _ in range(config.thetas):
        theta = torch.from_numpy(3 * config.deviation * draws.standard_normal(features.shape[1]))
        eigenvalues = torch.linalg.eigvalsh(hessian(loss, theta))
        smallest, largest = min(smallest, float(eigenvalues[0])), max(largest, float(eigenvalues[-1]))
    return {"smallest": smallest, "largest": largest}


def _compute_kl(first: Tensor, second: Tensor) -> float:
    return float(rel_entr(first.numpy(), second.numpy()).sum())
