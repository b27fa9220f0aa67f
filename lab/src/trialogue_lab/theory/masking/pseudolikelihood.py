"""Accuracy of models fitted to randomly masked tokens: losses, information matrices and covariances.

The pseudolikelihood estimator fits a model p_theta by predicting masked tokens from the others. It minimizes
the mean of -log p_theta(x_K | x_{-K}, K) over sequences x and random sets K of masked positions (thesis,
Definitions 4.1.2, 4.1.3 and 4.1.7). All results are exact.

Some functions take three arguments:

- the probabilities p (states,) of all sequences in the order of `itertools.product`,
- the features F (states, parameters) of an exponential family p_theta ∝ exp(theta . F),
- a `BlockDistribution`, the distribution of the masked positions.

Other functions take an exponential family that is small enough to enumerate, for example
`trialogue.data.Ising`, and the arguments of `block_distribution`.
"""

import math
from itertools import combinations
from typing import Annotated, NamedTuple, Protocol, Unpack, runtime_checkable

import torch
from annotated_types import Ge
from torch import Tensor

from trialogue.arrays import Reals
from trialogue.errors import InputError
from trialogue.validation import InstanceOf, validated
from trialogue_lab.theory.masking.block_laws import (
    BlockDistribution,
    BlockOptions,
    block_distribution,
    check_state_distribution,
)

Features = Annotated[Tensor, Reals("states parameters")]
"""Features F of an exponential family p ∝ exp(theta . F), one row per sequence."""
Masks = Annotated[float, Ge(1)]
"""Number of masks per sample, or `math.inf` to average over all masks."""
_MOST_WORK = 1e12  # states * blocks * parameters ** 2


@runtime_checkable
class ExponentialFamily(Protocol):
    """A distribution p(x) ∝ exp(parameters . features(x)) on sequences, small enough to enumerate."""

    @property
    def sites(self) -> int:
        """Number of positions in a sequence."""
        ...

    @property
    def vocab_size(self) -> int:
        """Number of tokens per position."""
        ...

    @property
    def parameters(self) -> Tensor:
        """Parameters theta (parameters,) float64."""
        ...

    def states(self) -> Tensor:
        """Return all sequences (vocab_size ** sites, sites) int64 in the order of `itertools.product`."""
        ...

    def probabilities(self) -> Tensor:
        """Return the probabilities (states,) float64 of all sequences."""
        ...

    def features(self, tokens: Tensor) -> Tensor:
        """Return features (rows, parameters) float64 of `tokens` (rows, sites)."""
        ...


@validated
def pseudolikelihood_loss(
    data: Tensor,
    log_weights: Annotated[Tensor, Reals("states", infinite="negative")],
    distribution: InstanceOf[BlockDistribution],
) -> Tensor:
    """Return the expected negative log-likelihood of masked tokens in nats, differentiable in `log_weights`.

    The loss is the mean of -log p_theta(x_K | x_{-K}, K) over sequences x of the data and random sets K of
    masked positions. It is infinite if the model excludes masked tokens that occur in the data.

    Args:
        data: Distribution (states,) of the data, which may be empirical.
        log_weights: Log-probabilities (states,) of the model up to a constant.
        distribution: Distribution of K.

    Returns:
        Scalar tensor float64.
    """
    data = check_state_distribution(data, distribution.states, "data")
    if log_weights.shape != (distribution.states,):
        raise InputError("log_weights", tuple(log_weights.shape), f"use the shape ({distribution.states},)")
    log_weights = log_weights.double()
    given = distribution.each_state()
    loss = log_weights.new_zeros(())
    for block in range(len(distribution.blocks)):
        states = distribution.completions(block)
        joint = (log_weights + given[:, block].log())[states]
        # If all completions are impossible, the conditional is undefined and has no data.
        conditionals = joint.masked_fill((joint == -math.inf).all(1, keepdim=True), 0.0).log_softmax(1)
        weights = (data * given[:, block])[states]
        loss = loss - (weights * torch.where(weights > 0, conditionals, 0.0)).sum()
    return loss


@validated
def fisher_information(probabilities: Tensor, features: Features) -> Tensor:
    """Return the Fisher information of an exponential family, the covariance of its features (Definition 4.1.1).

    Args:
        probabilities: Probabilities (states,) of all sequences.
        features: Features (states, parameters).

    Returns:
        Matrix (parameters, parameters) float64.
    """
    features = features.double()
    probabilities = check_state_distribution(probabilities, len(features))
    centred = features - probabilities @ features
    return (probabilities[:, None] * centred).T @ centred


@validated
def pseudolikelihood_information(
    probabilities: Tensor, features: Features, distribution: InstanceOf[BlockDistribution]
) -> Tensor:
    """Return the information matrix of parameters that are estimated from masked tokens.

        I_PL = E[Cov(F | X_{-K}, K)]

    Its inverse is the asymptotic covariance of the estimate. It is the mean covariance of the features F given the
    tokens outside a random set K of masked positions (Lemmas 4.1.2 and 4.3.3). The data must have the distribution of
    the model.

    Args:
        probabilities: Probabilities (states,) of all sequences, for the model and the data.
        features: Features F (states, parameters) of an exponential family.
        distribution: Distribution of K.

    Returns:
        Matrix (parameters, parameters) float64.
    """
    features = features.double()
    probabilities = check_state_distribution(probabilities, distribution.states)
    _require_affordable(distribution, features)
    information = features.new_zeros(features.shape[1], features.shape[1])
    for states, weights, conditionals in distribution.fibers(probabilities):
        own = features[states]
        scores = (own - torch.einsum("rc,rcp->rp", conditionals, own)[:, None]).flatten(0, 1)
        information += (weights.reshape(-1, 1) * scores).T @ scores
    return information


@validated
def sandwich_covariance(
    data: Tensor,
    probabilities: Tensor,
    features: Features,
    distribution: InstanceOf[BlockDistribution],
    masks_per_sample: Masks = 1,
) -> Tensor:
    """Return the asymptotic covariance of parameters that are estimated from masked tokens.

    The model may be misspecified. The covariance is H^{-1} V H^{-1} (Lemmas 4.1.1 and 4.3.9), where H is the Hessian of
    the expected loss and V the covariance of the gradient of one sample.

    Args:
        data: Distribution of the data (states,).
        probabilities: Distribution (states,) of the model with the smallest expected loss.
        features: Features (states, parameters) of the exponential family.
        distribution: Distribution of the set of masked positions.
        masks_per_sample: Number of independent masks per sample; `math.inf` averages over all masks.

    Returns:
        Matrix (parameters, parameters) float64: the limit of n times the covariance for n samples.

    Raises:
        InputError: If H is singular, or `probabilities` do not minimize the loss.
    """
    data, features = check_state_distribution(data, distribution.states, "data"), features.double()
    probabilities = check_state_distribution(probabilities, distribution.states)
    hessian, once, averaged, gradient = _compute_gradient_moments(data, probabilities, features, distribution)
    if float(gradient.abs().max()) > 1e-6:
        hint = "the loss has a gradient of this size here: give the distribution that minimizes the loss"
        raise InputError("probabilities", float(gradient.abs().max()), hint)
    inverse = _invert_information(hessian)
    return inverse @ (averaged + (once - averaged) / masks_per_sample) @ inverse


@validated
def asymptotic_covariance(
    model: InstanceOf[ExponentialFamily],
    block_size: int | None = None,
    *,
    masks_per_sample: Masks = 1,
    **described: Unpack[BlockOptions],
) -> Tensor:
    """Return the asymptotic covariance of the pseudolikelihood estimate for data from the model itself.

    The estimate maximizes the mean log-probability of masked tokens given the others. The result is the limit
    of n times its covariance for n samples (Lemmas 4.1.1 and 4.1.2).

    Args:
        model: Exponential family that generates the data.
        block_size: Number k of masked positions, if all sets of this size are equally likely.
        masks_per_sample: Number of independent masks per sample; `math.inf` averages over all masks.
        described: Other arguments of `block_distribution`, instead of `block_size`.

    Returns:
        Matrix (parameters, parameters) float64. For an Ising model, the parameters are the couplings of pairs
        i < j in lexicographic order, followed by the fields.

    Raises:
        InputError: If the mask distribution is invalid, the model is too large to enumerate, or the
            parameters are not identified.
    """
    own = block_distribution(model.sites, model.vocab_size, block_size=block_size, **described)
    probabilities, features = enumerate_family(model)
    if masks_per_sample == 1:
        return _invert_information(pseudolikelihood_information(probabilities, features, own))
    return sandwich_covariance(probabilities, probabilities, features, own, masks_per_sample)


class MaskSizeComparison(NamedTuple):
    """Numerical check of Theorem 4.1.1: if more positions are masked, the estimate is at least as accurate.

    Gamma^k is the asymptotic covariance of the estimate with k masked positions. Both arrays have one entry
    for each k from 1 to N - 1, where N is the number of positions.

    Attributes:
        smallest_eigenvalue: Smallest eigenvalue of Gamma^k - Gamma^{k+1}, shape (N - 1,) float64. The theorem
            states that it is at least 0.
        identity_discrepancy: Largest absolute error of the identity in the proof (see `compare_mask_sizes`),
            shape (N - 1,) float64. It is zero up to rounding.
    """

    smallest_eigenvalue: Tensor
    identity_discrepancy: Tensor


@validated
def compare_mask_sizes(model: InstanceOf[ExponentialFamily]) -> MaskSizeComparison:
    """Check numerically that masking more positions does not make the estimate less accurate (Theorem 4.1.1).

    By the theorem, Gamma^k - Gamma^{k+1} is positive semidefinite, where Gamma^k is the asymptotic covariance
    of the estimate with k masked positions. Its proof uses the identity I^{k+1} = I^k + E[s s^T] for I^k, the
    inverse of Gamma^k. Here s is the change of the expected features if one more random position is masked.

    Args:
        model: Exponential family on sequences of at least two positions.

    Raises:
        InputError: If `asymptotic_covariance` rejects the model, or it has one position.
    """
    if model.sites < 2:
        raise InputError(
            "model", model.sites, "with a single site, no site remains unmasked: use two or more"
        )
    probabilities, features = enumerate_family(model)
    distributions = [
        block_distribution(model.sites, model.vocab_size, block_size=size + 1) for size in range(model.sites)
    ]
    information = [
        pseudolikelihood_information(probabilities, features, distribution) for distribution in distributions
    ]
    covariances = [_invert_information(matrix) for matrix in information]
    means = _compute_conditional_means(probabilities, features, distributions)
    eigenvalues, discrepancies = [], []
    for size in range(1, model.sites):
        eigenvalues.append(torch.linalg.eigvalsh(covariances[size - 1] - covariances[size])[0])
        gain = torch.zeros_like(information[0])
        pairs = [
            (inner, (*inner, site))
            for inner in combinations(range(model.sites), size)
            for site in range(model.sites)
            if site not in inner
        ]
        for inner, outer in pairs:
            score = means[frozenset(inner)] - means[frozenset(outer)]
            gain += (probabilities[:, None] * score).T @ score / len(pairs)
        discrepancies.append((information[size] - information[size - 1] - gain).abs().max())
    return MaskSizeComparison(torch.stack(eigenvalues), torch.stack(discrepancies))


def enumerate_family(model: ExponentialFamily) -> tuple[Tensor, Tensor]:
    """Return the probabilities and features of all sequences of a model.

    Returns:
        Probabilities (states,) and features (states, parameters), both float64, in the order of `itertools.product`.
    """
    states = model.states()
    return model.probabilities().double(), model.features(states).double()


def _compute_gradient_moments(
    data: Tensor, probabilities: Tensor, features: Tensor, distribution: BlockDistribution
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Compute the moments of the gradient of the loss of predicting masked tokens.

    Returns the Hessian, the gradient's covariance for one mask and for the average over masks, and the mean gradient.
    """
    _require_affordable(distribution, features)
    given = distribution.each_state()
    hessian = features.new_zeros(features.shape[1], features.shape[1])
    once = torch.zeros_like(hessian)
    averaged = torch.zeros_like(features)
    for block, (states, _, conditionals) in enumerate(distribution.fibers(probabilities)):
        own = features[states]
        scores = (own - torch.einsum("rc,rcp->rp", conditionals, own)[:, None]).flatten(0, 1)
        weights = (data * given[:, block])[states]
        predicted = (weights.sum(1, keepdim=True) * conditionals).reshape(-1, 1)
        hessian += (predicted * scores).T @ scores
        once += (weights.reshape(-1, 1) * scores).T @ scores
        averaged[states.flatten()] += given[:, block][states].reshape(-1, 1) * scores
    mean = data @ averaged
    outer = torch.outer(mean, mean)
    return hessian, once - outer, (data[:, None] * averaged).T @ averaged - outer, mean


def _compute_conditional_means(
    probabilities: Tensor, features: Tensor, distributions: list[BlockDistribution]
) -> dict[frozenset[int], Tensor]:
    """Return, for each set K of masked positions, the mean features E[F | x_{-K}] given the unmasked tokens.

    Each entry has the shape (states, parameters).
    """
    means = {}
    for distribution in distributions:
        for mask, (states, _, conditionals) in zip(
            distribution.blocks, distribution.fibers(probabilities), strict=True
        ):
            mean = torch.empty_like(features)
            mean[states] = torch.einsum("rc,rcp->rp", conditionals, features[states])[:, None]
            means[frozenset(torch.nonzero(mask)[:, 0].tolist())] = mean
    return means


def _invert_information(information: Tensor) -> Tensor:
    eigenvalues = torch.linalg.eigvalsh(information)
    if not float(eigenvalues[0]) > 1e-13 * float(eigenvalues[-1]):
        hint = "the information is singular in double precision: the blocks do not identify all parameters"
        raise InputError("features", float(eigenvalues[0]), hint)
    inverse: Tensor = torch.cholesky_inverse(torch.linalg.cholesky(information))
    return inverse


def _require_affordable(distribution: BlockDistribution, features: Tensor) -> None:
    if len(features) != distribution.states:
        hint = f"use the shape ({distribution.states}, parameters)"
        raise InputError("features", tuple(features.shape), hint)
    work = distribution.states * len(distribution.blocks) * features.shape[1] ** 2
    if work > _MOST_WORK:
        size = (
            f"{distribution.states} states, {len(distribution.blocks)} blocks, {features.shape[1]} parameters"
        )
        raise InputError("model", size, "too large to enumerate: use a smaller model")
