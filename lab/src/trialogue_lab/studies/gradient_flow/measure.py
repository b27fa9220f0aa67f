"""Tasks of a run, which integrate gradient flows on random distributions and compare them with published formulas.

The network predicts the token x_0 from the other tokens x as A2 . (x + (A1 x)^2), where A1 is its first layer and A2
its last layer.
"""

import itertools
import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from trialogue.randomness import generator
from trialogue_lab.ledger import MeasuredRows, Part, parts_by_seed
from trialogue_lab.studies.gradient_flow.config import Config
from trialogue_lab.theory import gradient_flow as theory
from trialogue_lab.theory.gradient_flow import GaussianFlow, SampleFlow, Weights, growth_rate

MAX_NORM = 1e-3
"""Largest norm of the first layer while its growth rate is fitted."""
FOLDS, ROUNDS = 14.0, 3
"""Natural logarithm of the factor by which the first layer grows or shrinks in one round, and the number of rounds.

Each round starts from the direction in which the previous one ended.
"""
_TOLERANCE = 1e-9
_POINTS = 31


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, one for each random distribution of the tokens.

    Each task computes how the weights of a two-layer network change under gradient flow (gradient descent with
    infinitely small steps), and compares this with published formulas.

    Args:
        config: Settings of the run.
    """
    return parts_by_seed(config, config.seeds, law=_measure)


def _measure(config: Config, seed: int, _: Path) -> MeasuredRows:
    covariance, weights = sample_gaussian(config.size, seed)
    yield {"kind": "gradient", **compare_gradients(config, covariance, weights, seed)}
    yield {"kind": "two-body", **compare_two_body_flow(config, covariance, weights)}
    yield {"kind": "bound", **compare_added_error(covariance, weights)}
    yield from measure_decay(config, covariance, weights)
    flow, last = sample_three_body_flow(config, seed)
    yield from measure_growth(flow, last)
    yield from measure_example(config, seed)


def sample_gaussian(size: int, seed: int) -> tuple[Tensor, Weights]:
    """Sample a Gaussian distribution of L + 1 tokens, and initial weights of a network that predicts the first token.

    The network predicts the token x_0 from the L other tokens.

    Args:
        size: Number L of other tokens.
        seed: Seed of the distribution and the weights.

    Returns:
        Covariance (L + 1, L + 1) with x_0 first and eigenvalues above 0.3. Weights of both layers, with standard
        deviation 0.5.
    """
    root = _sample_normal(size + 1, size + 1, seed=seed, name="covariance")
    covariance = root @ root.T / (size + 1) + 0.3 * torch.eye(size + 1, dtype=torch.float64)
    last, first = (
        _sample_normal(size, seed=seed, name="last"),
        _sample_normal(size, size, seed=seed, name="first"),
    )
    return covariance, Weights(0.5 * last, 0.5 * first)


def sample_three_body_flow(config: Config, seed: int) -> tuple[SampleFlow, Tensor]:
    """Sample a distribution of tokens with three-body interactions, and return the gradient flow of a network on it.

        x_0 = w . x + x . Q x / 2 + noise

    The network predicts the token x_0 from the L other tokens x. w and Q are random.

    Args:
        config: Number of tokens and of samples.
        seed: Seed of the samples.

    Returns:
        The gradient flow, and the last layer (L,) of a network that minimizes the loss if the first layer is zero.
    """
    others = _sample_normal(config.samples, config.size, seed=seed, name="others")
    coupling = _sample_normal(config.size, config.size, seed=seed, name="coupling")
    linear = others @ _sample_normal(config.size, seed=seed, name="linear")
    noise = 0.5 * _sample_normal(config.samples, seed=seed, name="noise")
    target = linear + ((others @ coupling) * others).sum(1) / 2 + noise
    return SampleFlow(target, others), torch.linalg.lstsq(others, target[:, None]).solution[:, 0]


def compare_gradients(config: Config, covariance: Tensor, weights: Weights, seed: int) -> dict[str, float]:
    """Compare published formulas for a network's gradients (equations 8 to 11) with automatic differentiation.

    Args:
        config: Number of Monte Carlo samples.
        covariance: Covariance (L + 1, L + 1) of the Gaussian tokens, with the predicted token x_0 first.
        weights: Weights at which gradients are computed.
        seed: Seed of the samples.

    Returns:
        Dictionary with these entries:

        - "sample_error": largest difference of the gradients on samples.
        - "gaussian_error": largest difference of the expected gradients.
        - "z": largest deviation of the Monte Carlo mean from the formula, in standard errors.
    """
    points, mass = make_quadrature(covariance)
    closed, exact = GaussianFlow(covariance)(weights), compute_derivative(weights, points, mass)
    normal = _sample_normal(config.draws, len(covariance), seed=seed, name="draws")
    samples = normal @ torch.linalg.cholesky(covariance).T
    equal = torch.full((config.draws,), 1 / config.draws, dtype=torch.float64)
    flow = SampleFlow(samples[:, 0], samples[:, 1:])(weights)
    return {
        "sample_error": _largest_difference(flow, compute_derivative(weights, samples, equal)),
        "gaussian_error": _largest_difference(closed, exact),
        "z": compute_largest_z(closed, weights, samples),
    }


def compute_derivative(weights: Weights, points: Tensor, mass: Tensor) -> Weights:
    """Differentiate a network's loss automatically, and return its negative gradient.

        loss = mean((x_0 - A2 . (x + (A1 x)^2))^2) / 2

    A1 and A2 are the first and the last layer. The network predicts the token x_0 from the L other tokens x.

    Args:
        weights: Weights of the two layers at which the gradient is computed.
        points: Values of all tokens (n, L + 1), with the predicted token x_0 first.
        mass: Weights of the points in the mean (n,), which sum to one.

    Returns:
        The negative gradient for each layer.
    """
    leaves = Weights(*(part.clone().requires_grad_() for part in weights))
    return Weights(*torch.autograd.grad(-_squared_error(leaves, points, mass) / 2, leaves))


def _squared_error(weights: Weights, points: Tensor, mass: Tensor) -> Tensor:
    target, others = points[:, 0], points[:, 1:]
    prediction = (others + (others @ weights.first.T).square()) @ weights.last
    return mass @ (target - prediction).square()


def make_quadrature(covariance: Tensor, nodes: int = 4) -> tuple[Tensor, Tensor]:
    """Return a Gauss-Hermite quadrature of a Gaussian distribution with mean zero.

    It is exact for polynomials of degree up to 2 * nodes - 1 in each variable.

    Args:
        covariance: Covariance (L + 1, L + 1) of the distribution.
        nodes: Number of nodes per dimension (default: 4).

    Returns:
        Points (n, L + 1) and their weights (n,).
    """
    values, masses = np.polynomial.hermite_e.hermegauss(nodes)
    grid = torch.cartesian_prod(*[torch.from_numpy(values)] * len(covariance))
    mass = torch.cartesian_prod(*[torch.from_numpy(masses / masses.sum())] * len(covariance)).prod(1)
    return grid @ torch.linalg.cholesky(covariance).T, mass


def compute_largest_z(closed: Weights, weights: Weights, samples: Tensor) -> float:
    """Return the largest deviation of Monte Carlo gradients from a formula, in standard errors.

    Args:
        closed: Gradients by the formula.
        weights: Weights of the two layers at which gradients are computed.
        samples: Values of all tokens (n, L + 1), with the predicted token x_0 first.
    """
    target, others = samples[:, 0], samples[:, 1:]
    hidden = others @ weights.first.T
    features = others + hidden.square()
    residual = (target - features @ weights.last)[:, None]
    of_first = (2 * weights.last * residual * hidden)[:, :, None].mul(others[:, None]).flatten(1)
    terms = torch.cat((residual * features, of_first), 1)
    expected = torch.cat((closed.last, closed.first.flatten()))
    return float(((terms.mean(0) - expected) / (terms.std(0) / math.sqrt(len(terms)))).abs().max())


def compare_two_body_flow(config: Config, covariance: Tensor, weights: Weights) -> dict[str, float]:
    """Compare gradient flow with its exact solution, if the first layer of the network is zero at the start.

    The network predicts the token x_0 as A2 . (x + (A1 x)^2). A1 is the first layer, which remains zero, and A2 the
    last layer.

    Args:
        config: Number of tokens and duration of the flow.
        covariance: Covariance (L + 1, L + 1) of the Gaussian tokens, with x_0 first.
        weights: Initial weights, of which only the last layer is used.

    Returns:
        Dictionary with these entries:

        - "first_most": largest absolute entry of A1.
        - "last_moved": distance between the initial and the final A2.
        - "closed_error": largest difference of A2 from the exact solution.
        - "mean_error": largest difference between the limit of A2 and the coefficients of the conditional mean of x_0.
    """
    flow, size = GaussianFlow(covariance), config.size
    times = torch.linspace(0, config.time, _POINTS)
    start = Weights(weights.last, torch.zeros(size, size, dtype=torch.float64))
    ends = theory.integrate(flow, start, times, tolerance=_TOLERANCE)
    solved = [flow.two_body_solution(weights.last, float(time)) for time in times]
    errors = [(end.last - last).abs().max() for end, last in zip(ends, solved, strict=True)]
    precision = torch.linalg.inv(covariance)
    return {
        "first_most": max(float(end.first.abs().max()) for end in ends),
        "last_moved": float((ends[-1].last - weights.last).norm()),
        "closed_error": float(max(errors)),
        "mean_error": float((flow.fixed_point() + precision[0, 1:] / precision[0, 0]).abs().max()),
    }


def compare_added_error(covariance: Tensor, weights: Weights) -> dict[str, float]:
    """Test two formulas for the squared error that a network's first layer adds.

    The network predicts the Gaussian token x_0 as A2 . (x + (A1 x)^2), with first layer A1 and last layer A2. C is the
    covariance of the other tokens x.

    Args:
        covariance: Covariance (L + 1, L + 1) of the tokens, with x_0 first.
        weights: Weights of the two layers A1 and A2.

    Returns:
        Dictionary with these entries:

        - "added": the exact added error.
        - "excess" and "error": corrected formula, with A1 C A1^T, and its relative error.
        - "printed" and "printed_error": published formula, with A1 C A1, and its relative error.
    """
    flow, (points, mass) = GaussianFlow(covariance), make_quadrature(covariance)
    without = weights._replace(first=torch.zeros_like(weights.first))
    added = float(_squared_error(weights, points, mass) - _squared_error(without, points, mass))
    excess = float(flow.excess(weights))
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


def measure_decay(config: Config, covariance: Tensor, weights: Weights) -> MeasuredRows:
    """Integrate the gradient flow of a two-layer network on Gaussian tokens, with and without weight decay.

    The first layer has nothing to learn from Gaussian tokens, because only pairs of tokens interact.

    Args:
        config: Weight decay and duration of the flows.
        covariance: Covariance (L + 1, L + 1) of the tokens, with the predicted token x_0 first.
        weights: Initial weights of the two layers.

    Yields:
        One row per flow, with the final norm of the first layer, its ratio to the initial norm, and the error of the
        last layer. One row per flow and time, with the norm of the first layer.
    """
    flow = GaussianFlow(covariance)
    times = torch.linspace(0, config.time, _POINTS)
    for decay in (config.decay, 0.0):
        ends = theory.integrate(flow, weights, times, decay, _TOLERANCE)
        sizes = [float(end.first.norm()) for end in ends]
        settings = {"decay": decay, "decays": decay > 0}
        yield {
            "kind": "decay",
            **settings,
            "size": sizes[-1],
            "share": sizes[-1] / sizes[0],
            "last_error": float((ends[-1].last - flow.fixed_point(decay)).abs().max()),
            "step": max(after / before for before, after in itertools.pairwise(sizes)),
            "signs": int((ends[-1].last > 0).sum()) % config.size > 0,
        }
        for time, size in zip(times.tolist(), sizes, strict=True):
            yield {"kind": "curve", "data": "Gaussian", **settings, "time": time, "size": size}


def measure_growth(flow: SampleFlow, last: Tensor) -> MeasuredRows:
    """Fit the exponential growth rate of a small first layer under gradient flow, and compare it with a formula.

    Args:
        flow: Gradient flow of a two-layer network on samples of the tokens.
        last: Last layer (L,), which minimizes the loss if the first layer is zero.

    Yields:
        One row with these columns, and further rows with the norm of the first layer by time.

        - "rate" and "fitted": growth rate by equation 13, and fitted to the flow.
        - "error": their relative difference.
        - "diagonal": norm of the diagonal of the first layer's derivative, divided by its published value.
        - "off_diagonal": fraction of the derivative's norm that is off the diagonal.
    """
    stability = flow.stability_matrix(last)
    rate, size = growth_rate(last, stability), len(last)
    times = torch.linspace(0, FOLDS / abs(rate), _POINTS)
    small = MAX_NORM * (math.exp(-FOLDS) if rate > 0 else 1.0)
    first = torch.eye(size, dtype=torch.float64)
    moved = flow(Weights(last, small * first)).first / small
    printed = theory.printed_stability(last, stability)
    logarithms = [0.0]
    for _ in range(ROUNDS):
        start = Weights(last, small * first / first.norm())
        ends = theory.integrate(flow, start, times, tolerance=_TOLERANCE)
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
        "printed_rate": _compute_largest_eigenvalue(printed),
    }
    for place, logarithm in enumerate(logarithms[::2]):
        time = 2 * place * FOLDS / (_POINTS - 1)
        yield {"kind": "growing", "time": time, "log_size": logarithm, "unstable": rate > 0}


def measure_example(config: Config, seed: int) -> MeasuredRows:
    """Compute the growth rate of a network's first layer for independent skewed tokens.

    The paper gives this distribution as an example. The tokens are centered exponential variables or their negatives,
    so that their third moments are 2 or -2. The predicted token x_0 is independent of them.

    Args:
        config: Number of tokens and of samples.
        seed: Seed of the samples and of the last layer.

    Yields:
        One row per sign of the third moments, for a last layer with entries of one sign and of both signs. `rate` is
        the growth rate.
    """
    uniform = torch.rand(config.draws, config.size, generator=generator(seed, "gradient-flow", "skewed"))
    others, target = (
        -torch.log1p(-uniform.double()) - 1,
        _sample_normal(config.draws, seed=seed, name="target"),
    )
    sizes = _sample_normal(config.size, seed=seed, name="example").abs()
    signs = 1.0 - 2.0 * (torch.arange(config.size) % 2)
    for positive, both in itertools.product((True, False), repeat=2):
        last = sizes * signs if both else sizes
        stability = SampleFlow(target, others if positive else -others).stability_matrix(last)
        yield {
            "kind": "example",
            "positive": positive,
            "both_signs": both,
            "rate": growth_rate(last, stability),
            "printed_rate": _compute_largest_eigenvalue(theory.printed_stability(last, stability)),
        }


def _compute_largest_eigenvalue(printed: Tensor) -> float:
    """Return the greatest eigenvalue of the symmetric part of a matrix."""
    return float(torch.linalg.eigvalsh((printed + printed.T) / 2).max())


def _largest_difference(one: Weights, other: Weights) -> float:
    return max(float((mine - theirs).abs().max()) for mine, theirs in zip(one, other, strict=True))


def _sample_normal(*shape: int, seed: int, name: str) -> Tensor:
    return torch.randn(shape, generator=generator(seed, "gradient-flow", name), dtype=torch.float64)
