"""Fitting an Ising model by predicting masked spins (pseudolikelihood).

In Definitions 4.1.1 and 4.1.2 of the thesis, every sample x has one set K of masked spins. The estimate minimizes the
mean of -log p(x_K | other spins) over the samples. If all spins are masked, it is the maximum likelihood estimate. The
loss is convex (Proposition 4.3.6).
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from torch import Tensor

from trialogue.arrays import Integers, require_bools
from trialogue.blocks import require_covered, validate_block_size
from trialogue.data.ising.model import Ising
from trialogue.errors import InputError
from trialogue.training.masking import uniform_masks
from trialogue.validation import Count, Natural, Positive, validated
from trialogue_lab.training.block_conditionals import BlockConditionals

_MAX_SITES = 100
_DESCENT = 1e-5  # largest entry of the gradient at which Newton steps begin
_NEWTON_STEPS = 20


@dataclass(frozen=True, eq=False)
class PseudolikelihoodFit:
    """Ising model fitted by predicting masked spins, with the accuracy of its parameters.

    Attributes:
        model: The estimated model.
        loss: Mean of -log p(x_K | other spins) over samples x with masked spins K, in nats.
        gradient_norm: Euclidean norm of the gradient at the estimate.
        covariance: Estimated covariance (d, d) of the parameters, float64. The parameters are the couplings of pairs i
            < j in lexicographic order, followed by the fields. The estimate is H^-1 Cov(gradient) H^-1 / n with the
            Hessian H (Lemma 4.1.1). It is valid even if the samples do not come from an Ising model.
    """

    model: Ising
    loss: float
    gradient_norm: float
    covariance: Tensor

    @property
    def standard_errors(self) -> Tensor:
        """Standard errors (d,) of the parameters, float64."""
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
    """Fit an Ising model by predicting masked spins, with one mask per sample.

    Args:
        samples: Samples (n, N) of the tokens 0 (spin -1) and 1 (spin +1).
        block_size: Number of masked spins, chosen uniformly for each sample. Give either this or `masks`.
        masks: Whether each spin is masked (n, N), bool. Every sample needs a masked spin, and every spin must
            be masked in some sample.
        seed: Seed of the random masks (default: 0).
        tolerance: Largest norm of the gradient at the estimate (default: 1e-8).

    Raises:
        InputError: If there are too many masked spins, if `tolerance` is smaller than rounding errors, or if
            no unique finite estimate exists.
    """
    if samples.shape[1] > _MAX_SITES:
        raise InputError("samples", tuple(samples.shape), f"use at most {_MAX_SITES} spins")
    if (block_size is None) == (masks is None):
        raise InputError("block_size", block_size, "give either block_size or masks")
    if masks is None:
        size = validate_block_size(block_size, samples.shape[1])
        masks = uniform_masks(*samples.shape, size, seed, "pseudolikelihood", "masks")
    else:
        require_bools("masks", masks, tuple(samples.shape), f"use bools of the shape {tuple(samples.shape)}")
        if not bool(masks.any(1).all()):
            raise InputError("masks", 0, "every sample needs at least one masked site")
        require_covered("masks", masks)
    return _minimize(BlockConditionals(samples.bool().numpy(), masks.numpy()), samples.shape, tolerance)


def _minimize(
    conditionals: BlockConditionals, shape: tuple[int, ...], tolerance: float
) -> PseudolikelihoodFit:
    # Near the minimum, rounding errors stop a line search. Newton steps then complete the descent.
    start = np.zeros(conditionals.parameters)
    options = {"gtol": _DESCENT, "ftol": 0.0}
    descent = minimize(conditionals.loss, start, jac=True, method="L-BFGS-B", options=options)
    parameters = np.asarray(descent.x, dtype=np.float64)
    for step in range(_NEWTON_STEPS + 1):
        value, gradient = conditionals.loss(parameters)
        hessian, scores = conditionals.curvature(parameters)
        try:
            factor = cho_factor(hessian)
        except LinAlgError:
            has_minimum = False
            break
        newton = cho_solve(factor, gradient)
        norm = float(np.linalg.norm(gradient))
        inverse = cho_solve(factor, np.eye(len(hessian)))
        # The Frobenius norm of the inverse is a cheap upper bound on its largest eigenvalue.
        curvature = 1 / float(np.linalg.norm(inverse))
        has_minimum = _has_minimum(conditionals, float(gradient @ newton), curvature)
        if (has_minimum and norm <= tolerance) or step == _NEWTON_STEPS:
            break
        parameters = parameters - newton
    if not has_minimum:
        hint = (
            "there is no finite estimate, because the samples are separable under their masks or do not determine a "
            "parameter: use more samples or larger blocks"
        )
        raise InputError("samples", tuple(shape), hint)
    if norm > tolerance:
        hint = f"rounding errors leave a gradient of norm {norm:.1e}: use a larger tolerance"
        raise InputError("tolerance", tolerance, hint)
    covariance = torch.from_numpy(inverse @ scores @ inverse / shape[0])
    model = Ising.from_parameters(torch.from_numpy(parameters), conditionals.sites)
    return PseudolikelihoodFit(model, value, norm, covariance)


def _has_minimum(conditionals: BlockConditionals, decrement: float, curvature: float) -> bool:
    """Return whether the loss is certain to have a unique minimizer, judging by its derivatives at one point.

    The criterion is sqrt(`decrement`) <= sqrt(`curvature`) / (2 R), where R bounds the norm of the gradient for one
    sample (Bach 2010, Self-concordant analysis for logistic regression, Proposition 2).

    Args:
        conditionals: The loss.
        decrement: Squared Newton decrement g' H^-1 g, for the gradient g and the Hessian H of the loss.
        curvature: Lower bound on the smallest eigenvalue of H.
    """
    reach = 2 * conditionals.touched**0.5
    return bool(max(decrement, 0.0) * (2 * reach) ** 2 <= curvature)
