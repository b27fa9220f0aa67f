"""Fitting an Ising model by pseudolikelihood: blocks of k sites, or any masks that are given.

Definitions 4.1.1 and 4.1.2 of the thesis: every sample x comes with one mask K, and the estimate minimises
the mean of -log p(x_K | x_-K, K) over the samples. Masks of all N sites make it the maximum likelihood. The loss is
convex (Proposition 4.3.6).
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from torch import Tensor

from trialogue.arrays import Integers, require_bools
from trialogue.blocks import checked_block_size, require_covered
from trialogue.data.ising.model import Ising
from trialogue.errors import InputError
from trialogue.training.masking import uniform_masks
from trialogue.validation import Count, Natural, Positive, validated
from trialogue_lab.training.block_conditionals import BlockConditionals

_SITES = 100
_DESCENT = 1e-5  # norm of the gradient from which on Newton steps are taken
_NEWTON_STEPS = 20


@dataclass(frozen=True, eq=False)
class PseudolikelihoodFit:
    """The minimiser and how it was reached.

    `loss` is the mean of -log p(x_K | x_-K, K) at the estimate, in nats per sample, and `gradient_norm` the Euclidean
    norm of its gradient there. `covariance` (d, d) float64 estimates that of
    the parameters (pairs i<j in lexicographic order, then fields): H^-1 Cov(gradient) H^-1 / n, as in Lemma 4.1.1,
    which holds whether or not the samples come from an Ising model.
    """

    model: Ising
    loss: float
    gradient_norm: float
    covariance: Tensor

    @property
    def standard_errors(self) -> Tensor:
        """Standard errors (d,) float64 of the parameters."""
        return self.covariance.diagonal().sqrt()


@validated
def fit_pseudolikelihood(
    samples: Annotated[Tensor, Integers("n sites", least=0, most=1)],
    block_size: Count | None = None,
    *,
    masks: Tensor | None = None,
    seed: Natural = 0,
    tolerance: Positive = 1e-8,
) -> PseudolikelihoodFit:
    """Fit an Ising model to `samples` (n, N) of tokens 0 (spin -1) and 1 (spin +1), one mask per sample.

    Either `block_size` sites are masked, chosen uniformly with `seed`, or the sites `masks` (n, N) bool. The norm of
    the gradient falls to `tolerance` or below.

    Raises:
        InputError: If masks have too many completions to list, if `tolerance` is below rounding, or if there is no
            finite estimate, because samples are separable (the loss falls forever along a direction) or leave a
            parameter undetermined.
    """
    if samples.shape[1] > _SITES:
        raise InputError("samples", tuple(samples.shape), f"use at most {_SITES} spins")
    if (block_size is None) == (masks is None):
        raise InputError("block_size", block_size, "give either block_size or masks")
    if masks is None:
        size = checked_block_size(block_size, samples.shape[1])
        masks = uniform_masks(*samples.shape, size, seed, "pseudolikelihood", "masks")
    else:
        require_bools("masks", masks, tuple(samples.shape), f"use bools of the shape {tuple(samples.shape)}")
        if not bool(masks.any(1).all()):
            raise InputError("masks", 0, "every sample needs at least one masked site")
        require_covered("masks", masks)
    return _minimised(BlockConditionals(samples.bool().numpy(), masks.numpy()), samples.shape, tolerance)


def _minimised(
    conditionals: BlockConditionals, shape: tuple[int, ...], tolerance: float
) -> PseudolikelihoodFit:
    # Near the minimum the differences that a trust region compares drown in rounding: Newton steps end the descent.
    start = np.zeros(conditionals.parameters)
    descent = minimize(
        conditionals.loss,
        start,
        jac=True,
        hessp=conditionals.hessian_product,
        method="trust-ncg",
        options={"gtol": _DESCENT},
    )
    parameters = np.asarray(descent.x, dtype=np.float64)
    for step in range(_NEWTON_STEPS + 1):
        value, gradient = conditionals.loss(parameters)
        hessian, scores = conditionals.curvature(parameters)
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
    if not proven:
        raise _no_estimate(shape)
    if norm > tolerance:
        raise InputError("tolerance", tolerance, f"rounding leaves a gradient of norm {norm:.1e}: use more")
    covariance = torch.from_numpy(inverse @ scores @ inverse / shape[0])
    model = Ising.from_parameters(torch.from_numpy(parameters), conditionals.sites)
    return PseudolikelihoodFit(model, value, norm, covariance)


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
        "give more samples or larger blocks"
    )
    return InputError("samples", tuple(shape), hint)
