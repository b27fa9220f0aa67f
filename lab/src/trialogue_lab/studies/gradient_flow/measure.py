"""The parts of a run: each random law, its flows, and what is said of them."""

import itertools
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trialogue.randomness import generator
from trialogue_lab.ledger import Part
from trialogue_lab.studies.gradient_flow.config import Config
from trialogue_lab.theory.gradient_flow import (
    GaussianFlow,
    SampleFlow,
    Weights,
    growth_rate,
    integrate,
    printed_stability,
)

LARGEST, FOLDS, ROUNDS = 1e-3, 14.0, 3
"""The first layer where it is largest while its growth is fitted, the factors of e by which it grows or dies in one
round, and how many rounds there are, each from the direction in which the one before ended."""
_TOLERANCE = 1e-9
_POINTS = 31


def parts(config: Config) -> list[Part]:
    """One part per law."""
    return [
        Part(f"law-{seed}", partial(_measured, config, seed), columns={"seed": seed}) for seed in config.seeds
    ]


def _measured(config: Config, seed: int, _: Path) -> Iterator[dict[str, Any]]:
    covariance, weights = gaussian(config.size, seed)
    yield {"kind": "gradient", **gradient_row(config, covariance, weights, seed)}
    yield {"kind": "two-body", **two_body_row(config, covariance, weights)}
    yield {"kind": "bound", **bound_row(covariance, weights)}
    yield from decay_rows(config, covariance, weights)
    flow, last = three_bodies(config, seed)
    yield from growth_rows(flow, last)
    yield from example_rows(config, seed)


def gaussian(size: int, seed: int) -> tuple[Tensor, Weights]:
    """A covariance (size + 1, size + 1) with eigenvalues above 0.3, and weights of deviation 0.5."""
    root = _drawn(size + 1, size + 1, seed=seed, name="covariance")
    covariance = root @ root.T / (size + 1) + 0.3 * torch.eye(size + 1, dtype=torch.float64)
    last, first = _drawn(size, seed=seed, name="last"), _drawn(size, size, seed=seed, name="first")
    return covariance, Weights(0.5 * last, 0.5 * first)


def three_bodies(config: Config, seed: int) -> tuple[SampleFlow, Tensor]:
    """The flow on samples of x_0 = w.x + x.Q x / 2 + noise, and the best last layer (L,) while the first is zero."""
    others = _drawn(config.samples, config.size, seed=seed, name="others")
    coupling = _drawn(config.size, config.size, seed=seed, name="coupling")
    linear = others @ _drawn(config.size, seed=seed, name="linear")
    noise = 0.5 * _drawn(config.samples, seed=seed, name="noise")
    target = linear + ((others @ coupling) * others).sum(1) / 2 + noise
    return SampleFlow(target, others), torch.linalg.lstsq(others, target[:, None]).solution[:, 0]


def gradient_row(config: Config, covariance: Tensor, weights: Weights, seed: int) -> dict[str, float]:
    """Equations 8 to 11: errors against automatic differentiation, on samples and on the Gaussian law itself.

    `z` is the largest deviation from the mean of so many Monte Carlo draws, in its standard errors.
    """
    points, mass = quadrature(covariance)
    closed, exact = GaussianFlow(covariance)(weights), derivative(weights, points, mass)
    normal = _drawn(config.draws, len(covariance), seed=seed, name="draws")
    samples = normal @ torch.linalg.cholesky(covariance).T
    equal = torch.full((config.draws,), 1 / config.draws, dtype=torch.float64)
    flow = SampleFlow(samples[:, 0], samples[:, 1:])(weights)
    return {
        "sample_error": _difference(flow, derivative(weights, samples, equal)),
        "gaussian_error": _difference(closed, exact),
        "z": largest_z(closed, weights, samples),
    }


def derivative(weights: Weights, points: Tensor, mass: Tensor) -> Weights:
    """Minus the gradient of the loss on `points` (n, L + 1) of so much `mass` (n,), by automatic differentiation."""
    last, first = (part.clone().requires_grad_() for part in weights)
    target, others = points[:, 0], points[:, 1:]
    prediction = (others + (others @ first.T).square()) @ last
    loss = ((target - prediction).square() * mass).sum() / 2
    return Weights(*(-part for part in torch.autograd.grad(loss, (last, first))))


def quadrature(covariance: Tensor, nodes: int = 4) -> tuple[Tensor, Tensor]:
    """Points (n, L + 1) and masses (n,) of a Gaussian law, exact for polynomials of degree 2 * nodes - 1."""
    values, masses = np.polynomial.hermite_e.hermegauss(nodes)
    size = len(covariance)
    grid = torch.tensor(list(itertools.product(values, repeat=size)), dtype=torch.float64)
    mass = torch.tensor(list(itertools.product(masses / math.sqrt(2 * math.pi), repeat=size))).prod(1)
    return grid @ torch.linalg.cholesky(covariance).T, mass


def largest_z(closed: Weights, weights: Weights, samples: Tensor) -> float:
    """The largest of all |mean over samples - closed form| / standard error, of the terms of equations 8 and 9."""
    target, others = samples[:, 0], samples[:, 1:]
    hidden = others @ weights.first.T
    features = others + hidden.square()
    residual = (target - features @ weights.last)[:, None]
    of_first = (2 * weights.last * residual * hidden)[:, :, None].mul(others[:, None]).flatten(1)
    terms = torch.cat((residual * features, of_first), 1)
    expected = torch.cat((closed.last, closed.first.flatten()))
    return float(((terms.mean(0) - expected) / (terms.std(0) / math.sqrt(len(terms)))).abs().max())


def two_body_row(config: Config, covariance: Tensor, weights: Weights) -> dict[str, float]:
    """A flow that begins without a first layer: whether it stays so, and its last layer beside the closed form.

    The conditional mean of x_0 comes from the inverse of the whole covariance.
    """
    flow, size = GaussianFlow(covariance), config.size
    times = torch.linspace(0, config.time, _POINTS)
    start = Weights(weights.last, torch.zeros(size, size, dtype=torch.float64))
    ends = integrate(flow, start, times, tolerance=_TOLERANCE)
    solved = [flow.two_body(weights.last, float(time)) for time in times]
    errors = [(end.last - last).abs().max() for end, last in zip(ends, solved, strict=True)]
    precision = torch.linalg.inv(covariance)
    return {
        "first_most": max(float(end.first.abs().max()) for end in ends),
        "last_moved": float((ends[-1].last - weights.last).norm()),
        "closed_error": float(max(errors)),
        "mean_error": float((flow.fixed_point() + precision[0, 1:] / precision[0, 0]).abs().max()),
    }


def bound_row(covariance: Tensor, weights: Weights) -> dict[str, float]:
    """What a first layer adds to the squared error, by A1 C A1^T and as printed, beside what it does add."""
    flow, (points, mass) = GaussianFlow(covariance), quadrature(covariance)
    target, others = points[:, 0], points[:, 1:]
    errors = [
        float(((target - (others + squares) @ weights.last).square() * mass).sum())
        for squares in ((others @ weights.first.T).square(), torch.zeros_like(others))
    ]
    added, excess = errors[0] - errors[1], float(flow.excess(weights))
    gram = weights.first @ flow.others @ weights.first
    squares = gram.diagonal()
    printed = float(weights.last @ (squares[:, None] * squares + 2 * gram.square()) @ weights.last)
    return {
        "added": added,
        "excess": excess,
        "error": abs(excess - added) / added,
        "printed": printed,
        "printed_error": abs(printed - added) / added,
    }


def decay_rows(config: Config, covariance: Tensor, weights: Weights) -> Iterator[dict[str, Any]]:
    """Flows on Gaussian tokens with and without a decay: the size of the first layer, and where the last one goes."""
    flow = GaussianFlow(covariance)
    times = torch.linspace(0, config.time, _POINTS)
    for decay in (config.decay, 0.0):
        ends = integrate(flow, weights, times, decay, _TOLERANCE)
        sizes = [float(end.first.norm()) for end in ends]
        run = {"decay": decay, "decays": decay > 0}
        yield {
            "kind": "decay",
            **run,
            "size": sizes[-1],
            "share": sizes[-1] / sizes[0],
            "last_error": float((ends[-1].last - flow.fixed_point(decay)).abs().max()),
            "step": max(after / before for before, after in itertools.pairwise(sizes)),
            "signs": int((ends[-1].last > 0).sum()) % config.size > 0,
        }
        for time, size in zip(times.tolist(), sizes, strict=True):
            yield {"kind": "curve", "data": "Gaussian", **run, "time": time, "size": size}


def growth_rows(flow: SampleFlow, last: Tensor) -> Iterator[dict[str, Any]]:
    """How fast the first layer grows from almost zero, fitted, beside equation 13 as corrected and as printed.

    `diagonal` is the derivative of the diagonal over what is printed, `off_diagonal` the norm of the rest of it.
    """
    stability = flow.stability_matrix(last)
    rate, size = growth_rate(last, stability), len(last)
    times = torch.linspace(0, FOLDS / abs(rate), _POINTS)
    small = LARGEST * (math.exp(-FOLDS) if rate > 0 else 1.0)
    first = torch.eye(size, dtype=torch.float64)
    moved, printed = flow(Weights(last, small * first)).first / small, printed_stability(last, stability)
    logarithms = [0.0]
    for _ in range(ROUNDS):
        ends = integrate(flow, Weights(last, small * first / first.norm()), times, tolerance=_TOLERANCE)
        logarithms += [logarithms[-1] + math.log(float(end.first.norm()) / small) for end in ends[1:]]
        first = ends[-1].first
    fitted = (logarithms[-1] - logarithms[-_POINTS]) / float(times[-1])
    yield {
        "kind": "growth",
        "rate": rate,
        "fitted": fitted,
        "error": abs(fitted / rate - 1),
        "diagonal": float(moved.diagonal().norm() / printed.diagonal().norm()),
        "off_diagonal": float((moved - moved.diagonal().diag()).norm() / moved.norm()),
        "printed_rate": _greatest(printed),
    }
    for place, logarithm in enumerate(logarithms[::2]):
        time = 2 * place * FOLDS / (_POINTS - 1)
        yield {"kind": "growing", "time": time, "log_size": logarithm, "unstable": rate > 0}


def example_rows(config: Config, seed: int) -> Iterator[dict[str, Any]]:
    """The printed example: independent tokens with a skew, nothing to be learned, and any last layer but zero.

    Tokens are exponential ones less their mean, or minus that: their third moments are 2 or -2 where all indices agree.
    The last layer has one sign, or both.
    """
    uniform = torch.rand(config.draws, config.size, generator=generator(seed, "gradient-flow", "skewed"))
    others, target = -torch.log1p(-uniform.double()) - 1, _drawn(config.draws, seed=seed, name="target")
    sizes = _drawn(config.size, seed=seed, name="example").abs()
    signs = 1.0 - 2.0 * (torch.arange(config.size) % 2)
    for positive, both in itertools.product((True, False), repeat=2):
        last = sizes * signs if both else sizes
        stability = SampleFlow(target, others if positive else -others).stability_matrix(last)
        yield {
            "kind": "example",
            "positive": positive,
            "both_signs": both,
            "rate": growth_rate(last, stability),
            "printed_rate": _greatest(printed_stability(last, stability)),
        }


def _greatest(printed: Tensor) -> float:
    """The greatest eigenvalue of the symmetric part of a printed matrix: below zero where it is negative definite."""
    return float(torch.linalg.eigvalsh((printed + printed.T) / 2).max())


def _difference(one: Weights, other: Weights) -> float:
    return max(float((mine - theirs).abs().max()) for mine, theirs in zip(one, other, strict=True))


def _drawn(*shape: int, seed: int, name: str) -> Tensor:
    return torch.randn(shape, generator=generator(seed, "gradient-flow", name), dtype=torch.float64)
