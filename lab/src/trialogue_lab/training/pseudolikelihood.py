"""Fitting an Ising model by pseudolikelihood: blocks of k sites, weighted blocks, and masks that depend on the state.

Definitions 4.1.1 to 4.1.3 and 4.1.7 of the thesis: every sample x comes with one mask K, and the estimate minimises
the mean of -log p(x_K | x_-K, K) over the samples. Masks of all N sites make it the maximum likelihood. The loss is
convex (Proposition 4.3.6).
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.blocks import (
    Blocks,
    StateLaw,
    Weights,
    adaptive_law,
    block_masks,
    checked_block_size,
    require_covered,
    require_one_law,
    weighted_law,
)
from trialogue.data.ising.model import Ising
from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue.training.masking import uniform_masks
from trialogue.validation import Natural, NonNegative, Positive, validated
from trialogue_lab.training.block_conditionals import BlockConditionals
from trialogue_lab.training.block_moments import Floats

_SITES = 100
_DESCENT = 1e-5  # norm of the gradient from which on Newton steps are taken
_NEWTON_STEPS = 20


@dataclass(frozen=True, eq=False)
class PseudolikelihoodFit:
    """The minimiser and how it was reached.

    `loss` is the mean of -log p(x_K | x_-K, K) at the estimate, in nats per sample, and `gradient_norm` the Euclidean
    norm of its gradient there, both with the ridge where there is one. `covariance` (d, d) float64 estimates that of
    the parameters (pairs i<j in lexicographic order, then fields): H^-1 Cov(gradient) H^-1 / n, as in Lemma 4.1.1,
    which holds whether or not the samples come from an Ising model.
    """

    model: Ising
    loss: float
    gradient_norm: float
    iterations: int
    covariance: Tensor

    @property
    def standard_errors(self) -> Tensor:
        """Standard errors (d,) float64 of the parameters."""
        return self.covariance.diagonal().sqrt()


@validated
def fit_pseudolikelihood(
    samples: Tensor,
    block_size: int | None = None,
    *,
    blocks: Blocks | None = None,
    weights: Weights | None = None,
    distribution: StateLaw | None = None,
    masks: Tensor | None = None,
    seed: Natural = 0,
    tolerance: Positive = 1e-8,
    ridge: NonNegative = 0.0,
) -> PseudolikelihoodFit:
    """Fit an Ising model to `samples` (n, N) of tokens 0 (spin -1) and 1 (spin +1), one mask per sample.

    The masks are one of: `block_size` sites drawn uniformly; one of `blocks`, (blocks, N) bool or lists of sites, drawn
    uniformly, in proportion to `weights`, or from `distribution`, a known function from tokens (rows, N) to
    probabilities (rows, blocks), which then enters the conditionals (equation 4.1); or `masks` (n, N) bool, given.
    `seed` draws them.

    The gradient's norm falls to `tolerance` or below. `ridge` adds ridge / 2 times the
    squared norm of the parameters.
    Raises `InputError` for samples or masks of a wrong shape or value, where blocks leave a site out or have too many
    completions to list, and where there is no finite estimate: separable samples, whose loss falls for ever along a
    direction, and samples that leave a parameter undetermined; and for a tolerance below rounding.
    """
    hint = f"give a matrix (n, N) of at least one sample of 1 to {_SITES} spins"
    real_tensor("samples", samples, hint)
    tokens = torch.as_tensor(samples)
    if tokens.ndim != 2 or not tokens.numel() or tokens.shape[1] > _SITES:
        raise InputError("samples", tuple(tokens.shape), hint)
    if not bool(((tokens == 0) | (tokens == 1)).all()):
        raise InputError("samples", tokens.unique().tolist()[:4], "spins are tokens 0 and 1")
    conditionals = _masked(tokens.long(), block_size, blocks, weights, distribution, masks, seed)
    return _minimised(conditionals, tokens.shape, tolerance, ridge)


def _masked(
    tokens: Tensor,
    block_size: int | None,
    blocks: Blocks | None,
    weights: Weights | None,
    distribution: StateLaw | None,
    masks: Tensor | None,
    seed: int,
) -> BlockConditionals:
    """The loss of `tokens` (n, N) under masks that are given or drawn."""
    require_one_law(block_size, blocks, weights, distribution, masks=masks)
    if masks is not None:
        masks = torch.as_tensor(masks)
        if masks.shape != tokens.shape or masks.dtype != torch.bool:
            raise InputError(
                "masks", (*masks.shape, masks.dtype), f"use bools of the shape {tuple(tokens.shape)}"
            )
        if not bool(masks.any(1).all()):
            raise InputError("masks", 0, "every sample needs at least one masked site")
        require_covered("masks", masks)
        return BlockConditionals(tokens.bool().numpy(), masks.numpy())
    drawn, listed = draw_masks(
        tokens, block_size, blocks, weights, distribution, seed, "pseudolikelihood", "masks"
    )
    if distribution is None or listed is None:
        return BlockConditionals(tokens.bool().numpy(), drawn.numpy())

    def probability(states: Tensor, state_masks: Tensor) -> Tensor:
        same = (state_masks[:, None] == listed).all(2)
        return (adaptive_law(distribution, states, len(listed)) * same).sum(1)

    return BlockConditionals(tokens.bool().numpy(), drawn.numpy(), probability)


def draw_masks(
    tokens: Tensor,
    block_size: int | None,
    blocks: Blocks | None,
    weights: Weights | None,
    distribution: StateLaw | None,
    seed: int,
    *names: object,
) -> tuple[Tensor, Tensor | None]:
    """Return a random mask (n, N) bool for each of `tokens` (n, N), and the blocks (blocks, N) bool if they are listed.

    Definitions 4.1.2, 4.1.3 and 4.1.7 of the thesis: a mask is `block_size` sites, uniformly, or one of `blocks`:
    uniformly, in proportion to `weights` (blocks,), or by a `distribution` that depends on the state. The draws are
    named by `seed` and `names`, as in `generator`.

    Raises:
        InputError: If the description is not exactly one of these, or never covers a site.
    """
    n, sites = tokens.shape
    require_one_law(block_size, blocks, weights, distribution)
    if blocks is None:
        size = checked_block_size(block_size, sites)
        return uniform_masks(n, sites, size, seed, *names), None
    listed = block_masks(blocks, sites)
    random = generator(seed, *names)
    if distribution is not None:
        given = adaptive_law(distribution, tokens, len(listed))
        block = torch.multinomial(given, 1, generator=random)[:, 0]
    else:
        given = weighted_law(weights, len(listed))[None]
        block = torch.multinomial(given[0], n, replacement=True, generator=random)
    require_covered("blocks", listed[(given > 0).any(0)])
    return listed[block], listed


def _minimised(
    conditionals: BlockConditionals, shape: tuple[int, ...], tolerance: float, ridge: float
) -> PseudolikelihoodFit:
    def loss(parameters: Floats) -> tuple[float, Floats]:
        value, gradient = conditionals.loss(parameters)
        return value + ridge / 2 * float(parameters @ parameters), gradient + ridge * parameters

    def product(parameters: Floats, direction: Floats) -> Floats:
        return conditionals.hessian_product(parameters, direction) + ridge * direction

    # Near the minimum the differences that a trust region compares drown in rounding: Newton steps end the descent.
    start = np.zeros(conditionals.parameters)
    descent = minimize(loss, start, jac=True, hessp=product, method="trust-ncg", options={"gtol": _DESCENT})
    parameters, iterations = np.asarray(descent.x, dtype=np.float64), int(descent.nit)
    for step in range(_NEWTON_STEPS + 1):
        value, gradient = loss(parameters)
        hessian, scores = conditionals.curvature(parameters)
        hessian[np.diag_indices_from(hessian)] += ridge
        try:
            factor = cho_factor(hessian)
        except LinAlgError:
            raise _no_estimate(shape) from None
        newton = cho_solve(factor, gradient)
        norm = float(np.linalg.norm(gradient))
        inverse = cho_solve(factor, np.eye(len(hessian)))
        # The Frobenius norm of the inverse bounds its largest eigenvalue, at no cost.
        curvature = 1 / float(np.linalg.norm(inverse))
        proven = _has_minimum(conditionals, float(gradient @ newton), curvature)
        if (proven and norm <= tolerance) or step == _NEWTON_STEPS:
            break
        parameters = parameters - newton
        iterations += 1
    if not proven:
        raise _no_estimate(shape)
    if norm > tolerance:
        raise InputError("tolerance", tolerance, f"rounding leaves a gradient of norm {norm:.1e}: use more")
    covariance = torch.from_numpy(inverse @ scores @ inverse / shape[0])
    model = Ising.from_parameters(torch.from_numpy(parameters), conditionals.sites)
    return PseudolikelihoodFit(model, value, norm, iterations, covariance)


def _has_minimum(conditionals: BlockConditionals, decrement: float, curvature: float) -> bool:
    """Whether the squared Newton decrement at a point proves that the loss has a minimiser, and only one.

    The third derivative along u is at most R |u| times the second, where R bounds how far the statistics of a block
    lie from their mean; then a decrement of at most sqrt(`curvature`) / (2 R) is enough, where `curvature` is no more
    than the smallest eigenvalue of the Hessian (Bach 2010, Self-concordant analysis for logistic regression,
    Proposition 2). A loss that falls for ever has small gradients too, but its curvature vanishes with them.
    """
    reach = 2 * conditionals.touched**0.5
    return bool(max(decrement, 0.0) * (2 * reach) ** 2 <= curvature)


def _no_estimate(shape: tuple[int, ...]) -> InputError:
    hint = (
        "there is no finite estimate: the samples are separable under their masks, or leave a parameter undetermined; "
        "give more samples, larger blocks, or a positive ridge"
    )
    return InputError("samples", tuple(shape), hint)
