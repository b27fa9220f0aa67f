"""Fitting an Ising model by pseudolikelihood: blocks of k sites, weighted blocks, and masks that depend on the state.

Definitions 4.1.1 to 4.1.3 and 4.1.7 of the thesis: every sample x comes with one mask K, and the estimate minimises
the mean of -log p(x_K | x_-K, K) over the samples. Masks of all N sites make it the maximum likelihood. The loss is
convex (Proposition 4.3.6).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from torch import Tensor

from trialogue.data.ising import Ising
from trialogue.errors import InputError, whole_number
from trialogue.oracles import Blocks, block_masks
from trialogue.randomness import generator
from trialogue.training.block_conditionals import BlockConditionals, Floats, MaskLaw
from trialogue.training.masking import uniform_masks

_SITES = 100
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


def fit_pseudolikelihood(
    samples: Tensor,
    block_size: int | None = None,
    *,
    blocks: Blocks | None = None,
    weights: Tensor | Sequence[float] | None = None,
    law: Callable[[Tensor], Tensor] | None = None,
    masks: Tensor | None = None,
    seed: int = 0,
    tolerance: float = 1e-8,
    ridge: float = 0.0,
) -> PseudolikelihoodFit:
    """Fit an Ising model to `samples` (n, N) of tokens 0 (spin -1) and 1 (spin +1), one mask per sample.

    The masks are one of: `block_size` sites drawn uniformly; one of `blocks`, (blocks, N) bool or lists of sites, drawn
    uniformly, with `weights`, or from `law`, a known function from tokens (rows, N) to probabilities (rows, blocks),
    which then enters the conditionals (equation 4.1); or `masks` (n, N) bool, given. `seed` draws them.

    The gradient's norm falls to `tolerance` or below. `ridge` adds ridge / 2 times the squared norm of the parameters.
    Raises `InputError` for samples or masks of a wrong shape or value, where blocks leave a site out or have too many
    completions to list, and where there is no finite estimate: separable samples, whose loss falls for ever along a
    direction, and samples that leave a parameter undetermined.
    """
    tokens = torch.as_tensor(samples)
    if tokens.ndim != 2 or not tokens.numel() or tokens.shape[1] > _SITES:
        mend = f"give a matrix (n, N) of at least one sample of 1 to {_SITES} spins"
        raise InputError("samples", tuple(tokens.shape), mend)
    if not bool(((tokens == 0) | (tokens == 1)).all()):
        raise InputError("samples", tokens.unique().tolist()[:4], "spins are tokens 0 and 1")
    if not tolerance > 0:
        raise InputError("tolerance", tolerance, "use a positive number, such as 1e-8")
    if not ridge >= 0:
        raise InputError("ridge", ridge, "use zero or a positive number")
    drawn = _draw_masks(tokens.long(), block_size, blocks, weights, law, masks, seed)
    conditionals = BlockConditionals(tokens.bool().numpy(), drawn.masks.numpy(), drawn.law)
    return _minimised(conditionals, tokens.shape, tolerance, ridge)


class _Masks(NamedTuple):
    masks: Tensor  # (n, N) bool
    law: MaskLaw | None


def _draw_masks(
    tokens: Tensor,
    block_size: int | None,
    blocks: Blocks | None,
    weights: Tensor | Sequence[float] | None,
    law: Callable[[Tensor], Tensor] | None,
    masks: Tensor | None,
    seed: int,
) -> _Masks:
    n, sites = tokens.shape
    if sum(given is not None for given in (block_size, blocks, masks)) != 1:
        raise InputError("block_size", block_size, "give one of block_size, blocks and masks")
    if blocks is None and (weights is not None or law is not None):
        raise InputError("blocks", None, "weights and an adaptive law are about blocks: give them too")
    if weights is not None and law is not None:
        raise InputError("weights", weights, "give either weights or an adaptive law")
    random = generator(seed, "pseudolikelihood", "masks")
    if masks is not None:
        masks = torch.as_tensor(masks)
        if masks.shape != tokens.shape or masks.dtype != torch.bool:
            raise InputError("masks", (*masks.shape, masks.dtype), f"use bools of the shape {(n, sites)}")
        if not bool(masks.any(1).all()):
            raise InputError("masks", 0, "every sample needs at least one masked site")
        return _Masks(_covering("masks", masks), None)
    if block_size is not None:
        size = whole_number("block_size", block_size, 1)
        if size > sites:
            raise InputError("block_size", size, f"there are {sites} sites: use at most {sites}")
        return _Masks(uniform_masks(n, sites, size, seed, "pseudolikelihood", "masks"), None)
    assert blocks is not None
    choices = block_masks(blocks, sites)
    if law is None:
        given = torch.ones(len(choices)) if weights is None else torch.as_tensor(weights)
        given = _probabilities("weights", given.double()[None], (1, len(choices)))[0]
        _covering("blocks", choices[given > 0])
        return _Masks(choices[torch.multinomial(given, n, replacement=True, generator=random)], None)

    def probability(states: Tensor, own: Tensor) -> Tensor:
        of_blocks = _probabilities("law", law(states), (len(states), len(choices)))
        same = (own[:, None] == choices).all(2)
        return (of_blocks * same).sum(1)

    given = _probabilities("law", law(tokens), (n, len(choices)))
    _covering("blocks", choices[(given > 0).any(0)])
    return _Masks(choices[torch.multinomial(given, 1, generator=random)[:, 0]], probability)


def _probabilities(field: str, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Rows of probabilities, normalised."""
    values = torch.as_tensor(values).double()
    if values.shape != shape:
        raise InputError(field, tuple(values.shape), f"use the shape {shape}")
    sums = values.sum(1, keepdim=True)
    if not bool(((values >= 0) & torch.isfinite(sums) & (sums > 0)).all()):
        raise InputError(field, float(values.min()), "use finite probabilities that are not negative")
    return values / sums


def _covering(field: str, masks: Tensor) -> Tensor:
    never = (~masks.any(0)).nonzero()[:, 0].tolist()
    if never:
        raise InputError(field, never, "these sites are never masked: cover every site")
    return masks


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
    settings = {"gtol": max(tolerance, 1e-5)}
    found = minimize(loss, start, jac=True, hessp=product, method="trust-ncg", options=settings)
    parameters, iterations = np.asarray(found.x, dtype=np.float64), int(found.nit)
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
        if norm <= tolerance or step == _NEWTON_STEPS:
            break
        parameters = parameters - newton
        iterations += 1
    inverse = cho_solve(factor, np.eye(len(hessian)))
    # The Frobenius norm of the inverse bounds its largest eigenvalue, at no cost.
    curvature = 1 / float(np.linalg.norm(inverse))
    if norm > tolerance or not _has_minimum(conditionals, float(gradient @ newton), curvature):
        raise _no_estimate(shape)
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
    return max(decrement, 0.0) ** 0.5 * 2 * reach <= curvature**0.5


def _no_estimate(shape: tuple[int, ...]) -> InputError:
    mend = (
        "there is no finite estimate: the samples are separable under their masks, or leave a parameter undetermined; "
        "give more samples, larger blocks, or a positive ridge"
    )
    return InputError("samples", tuple(shape), mend)
