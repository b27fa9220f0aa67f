"""Next-token distributions with logits of rank d, the best that a network of width d can represent.

An encoder assigns a vector E(t) of d numbers, called a state, to each of T contexts t. The logits of the N
tokens are W E(t) with an unembedding W (N, d). Source: document on memorization in attention-only
transformers, Definitions 1 and 2, Propositions 1 to 3, Theorem 2 and Lemma 4.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
import torch
from annotated_types import Ge, Interval
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, brentq, minimize
from torch import Tensor

from trialogue.arrays import Integers
from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue.validation import Count, InstanceOf, validated
from trialogue_lab.theory.memorization.targets import check_log_probs, check_prior, compute_divergence

_ITERATIONS = 1000
_TOLERANCE = 1e-9
_EXACT = 1e-7
_CERTAIN = 30.0


class Encoder(NamedTuple):
    """Table of next-token distributions with logits `states` @ `unembedding`.T (T, N) of rank d, and its error.

    Attributes:
        unembedding: Matrix W (N, d) float64, one row per token.
        states: Vectors E(t) (T, d) float64, one row per context.
        kl: Mean KL(target || softmax of the logits) over contexts, in nats.
    """

    unembedding: Tensor
    states: Tensor
    kl: float

    @property
    def log_probs(self) -> Tensor:
        """Log-probabilities (T, N) float64 of the tokens after each context."""
        return (self.states @ self.unembedding.T).log_softmax(-1)

    def orthogonal(self) -> Encoder:
        """Return an equal encoder whose `states` have orthogonal columns with mean square one.

        The logits do not change. The number of columns equals their rank.
        """
        left, scale, right = torch.linalg.svd(self.states @ self.unembedding.T, full_matrices=False)
        scale = scale[: self.states.shape[1]]
        rank = int((scale > max(self.states.shape) * torch.finfo(scale.dtype).eps * scale[0]).sum())
        size = math.sqrt(len(left))
        unembedding = right[:rank].T * (scale[:rank] / size)
        return self._replace(states=left[:, :rank] * size, unembedding=unembedding)


@validated
def check_encoder(encoder: InstanceOf[Encoder], distributions: Tensor, width: Count) -> Encoder:
    """Check the shapes of an encoder, a table of logits of low rank, and return it.

    Args:
        encoder: Encoder to check.
        distributions: Target log-probabilities (T, N).
        width: Largest allowed width of the states.

    Raises:
        InputError: If the shapes do not match.
    """
    (total, vocab), rank = distributions.shape, min(encoder.states.shape[1], width)
    wanted = (total, rank), (vocab, rank)
    if (tuple(encoder.states.shape), tuple(encoder.unembedding.shape)) != wanted:
        hint = f"give an encoder for {total} contexts and {vocab} tokens with a width of at most {width}"
        raise InputError("encoder", tuple(encoder.states.shape), hint)
    return encoder


@validated
def truncated_encoder(log_probs: Tensor, width: Count, prior: Tensor | None = None) -> Encoder:
    """Approximate next-token distributions by logits of rank d, with a truncated singular value decomposition.

    It keeps the largest singular values of the row-centered matrix of log-probabilities. It is exact if the width is at
    least N - 1 (Proposition 2). Otherwise its error is an upper bound on the smallest error of any encoder.

    Args:
        log_probs: Target log-probabilities (T, N) without zeros.
        width: Number d of singular values to keep.
        prior: Probability of each context (T,) (default: uniform).
    """
    distributions = check_log_probs(log_probs)
    weights = check_prior(prior, len(distributions))
    left, scale, right = torch.linalg.svd(
        distributions - distributions.mean(1, keepdim=True), full_matrices=False
    )
    kept = min(width, len(scale))
    # Splitting the singular values equally gives the optimizer two factors of similar size.
    root = scale[:kept].sqrt()
    return _make_encoder(distributions, weights, (right[:kept].T * root), left[:, :kept] * root)


def nearest_encoder(log_probs: Tensor, width: int, prior: Tensor | None = None) -> Encoder:
    """Search for the logits of rank d with the smallest mean KL divergence from target distributions.

    L-BFGS starts from `truncated_encoder` and stops at a local minimum, after 1,000 iterations, or below a divergence
    of 1e-7. The resulting `kl` is an upper bound on the smallest divergence. The result is exact if the width is at
    least N - 1.

    Args:
        log_probs: Target log-probabilities (T, N) without zeros.
        width: Rank d of the logits.
        prior: Probability of each context (T,) (default: uniform).
    """
    start = truncated_encoder(log_probs, width, prior)
    distributions = check_log_probs(log_probs)
    if width >= distributions.shape[1] - 1:
        return start
    weights = check_prior(prior, len(distributions))
    probabilities = (distributions.exp() * weights[:, None]).numpy()
    masses = weights.numpy()[:, None]
    vocab, rank = start.unembedding.shape
    cut = vocab * rank

    def loss(packed: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        unembedding, states = packed[:cut].reshape(vocab, rank), packed[cut:].reshape(-1, rank)
        logits = states @ unembedding.T
        logits -= logits.max(1, keepdims=True)
        exponentials = np.exp(logits)
        sums = exponentials.sum(1, keepdims=True)
        value = float((masses * np.log(sums)).sum() - (probabilities * logits).sum())
        slope = masses * exponentials / sums - probabilities
        return value, np.concatenate(((slope.T @ states).ravel(), (slope @ unembedding).ravel()))

    packed = np.concatenate((start.unembedding.numpy().ravel(), start.states.numpy().ravel()))
    options = {"maxiter": _ITERATIONS, "maxfun": 2 * _ITERATIONS, "ftol": 1e-12, "gtol": _TOLERANCE}
    least = -float((probabilities * distributions.numpy()).sum())

    def near_enough(intermediate_result: OptimizeResult) -> None:
        if intermediate_result.fun - least < _EXACT:
            raise StopIteration

    found = minimize(loss, packed, jac=True, method="L-BFGS-B", callback=near_enough, options=options).x
    unembedding, states = (
        torch.from_numpy(found[:cut].reshape(vocab, rank)),
        torch.from_numpy(found[cut:].reshape(-1, rank)),
    )
    return min(
        start, _make_encoder(distributions, weights, unembedding, states), key=lambda encoder: encoder.kl
    )


@validated
def harmonic_vectors(vocab_size: Annotated[int, Ge(2)], width: Annotated[int, Ge(2)]) -> Tensor:
    """Return one vector per token such that the inner product of a vector with itself exceeds that with all others.

    The components of vector g are cosines and sines of multiples of 2 pi g / N. For d = 2, the vectors lie on
    a circle (Proposition 3). For odd d, the last column is zero.

    Args:
        vocab_size: Number of tokens N.
        width: Number of components d.

    Returns:
        Vectors (N, d) float64 of equal norm.
    """
    waves = torch.arange(1, min(width, vocab_size) // 2 + 1, dtype=torch.float64)
    angles = 2 * math.pi / vocab_size * torch.arange(vocab_size, dtype=torch.float64)[:, None] * waves
    vectors = torch.zeros(vocab_size, width, dtype=torch.float64)
    vectors[:, 0 : 2 * len(waves) : 2], vectors[:, 1 : 2 * len(waves) : 2] = angles.cos(), angles.sin()
    return vectors


@validated
def association_encoder(
    targets: Annotated[Tensor, Integers("contexts", least=0)],
    vocab_size: int,
    width: int,
    prior: Tensor | None = None,
) -> Encoder:
    """Return logits of rank d that predict one target token per context (Proposition 3).

    The state of a context is lambda times the vector of its target token (see `harmonic_vectors`). The scale lambda
    makes the logit of the target about 30 larger than all others. For d = 2, lambda grows with N^2. The `kl` is the
    mean of -log p(target).

    Args:
        targets: Target token of each context (T,) int64.
        vocab_size: Number of tokens N.
        width: Rank d of the logits.
        prior: Probability of each context (T,) (default: uniform).
    """
    vectors = harmonic_vectors(vocab_size, width)
    if int(targets.max()) >= vocab_size:
        raise InputError("targets", int(targets.max()), f"use tokens from 0 to {vocab_size - 1}")
    gaps = (vectors[0] * (vectors[0] - vectors[1:])).sum(1)
    states = (_CERTAIN / float(gaps.min())) * vectors[targets]
    logits = states @ vectors.T
    weights = check_prior(prior, len(targets))
    kl = -float(weights @ logits.log_softmax(-1).gather(1, targets[:, None])[:, 0])
    return Encoder(vectors, states, kl)


class LookUp(NamedTuple):
    """Approximation of next-token distributions that keeps their most likely tokens and entropies (Theorem 2).

    Attributes:
        encoder: The encoder, next-token distributions with logits of rank d.
        coherence: Largest absolute entry of W W^T - 1, where W is the unembedding with unit rows.
        bound: Upper bound in nats on the mean KL divergence from the targets; infinite if the coherence is at least
            1/2, where the theorem does not apply.
        simple_bound: Weaker bound in nats that uses the mean entropy.
    """

    encoder: Encoder
    coherence: float
    bound: float
    simple_bound: float


@validated
def look_up_encoder(log_probs: Tensor, width: Count, prior: Tensor | None = None, seed: int = 0) -> LookUp:
    """Approximate distributions by logits of rank d that keep the most likely token and the entropy (Theorem 2).

    The unembedding W has random unit vectors as rows. The state of a context is the row of its most likely
    token, multiplied by a scale that gives the approximation the entropy of the target.

    Args:
        log_probs: Target log-probabilities (T, N) without zeros.
        width: Rank d of the logits.
        prior: Probability of each context (T,) (default: uniform).
        seed: Seed of the random vectors.

    Returns:
        Encoder and the bounds of the theorem.
    """
    distributions = check_log_probs(log_probs)
    weights = check_prior(prior, len(distributions))
    vocab = distributions.shape[1]
    vectors = torch.eye(vocab, dtype=torch.float64)
    if width != vocab:
        drawn = torch.randn(vocab, width, generator=generator(seed, "look-up"), dtype=torch.float64)
        vectors = drawn / drawn.norm(dim=1, keepdim=True)
    products = vectors @ vectors.T
    coherence = float((products - torch.eye(vocab, dtype=torch.float64)).abs().max())
    entropy = -(distributions.exp() * distributions).sum(1)
    chosen = distributions.argmax(1)
    gaps = products[chosen] - products[chosen, chosen][:, None]
    scales = torch.tensor(
        [_solve_scale(gap.numpy(), float(target)) for gap, target in zip(gaps, entropy, strict=True)],
        dtype=torch.float64,
    )
    encoder = _make_encoder(distributions, weights, vectors, scales[:, None] * vectors[chosen])
    likeliest = distributions.gather(1, chosen[:, None])[:, 0].exp()
    others = (distributions.exp() / (1 - likeliest)[:, None].clamp_min(1e-300)).scatter(
        1, chosen[:, None], 0.0
    )
    away = (others - 1 / (vocab - 1)).scatter(1, chosen[:, None], 0.0).abs().sum(1) / 2
    if coherence >= 0.5:
        return LookUp(encoder, coherence, math.inf, math.inf)
    logs = torch.log((vocab - 1) / torch.expm1(entropy))
    factor = (1 + 2 * coherence + coherence * away) / (1 - 2 * coherence)
    bound = float(weights @ ((1 - likeliest) * factor * logs))
    mean = math.log((vocab - 1) / math.expm1(float(weights @ entropy)))
    simple = (1 + 4 * coherence) / (1 - 2 * coherence) * float(weights @ (1 - likeliest)) * mean
    return LookUp(encoder, coherence, bound, simple)


@validated
def smooth_log_probs(log_probs: Tensor, floor: Annotated[float, Interval(gt=0, le=1)]) -> Tensor:
    """Smooth distributions, so that tokens of probability zero receive a small positive probability.

    The result is log((pi + floor) / (1 + N floor)) for a distribution pi over N tokens (encoders f_delta of
    Definition 2). The logits then have a range of O(log 1 / floor) (Lemma 4).

    Args:
        log_probs: Log-probabilities (T, N), possibly -inf.
        floor: Smoothing above 0 and at most 1.

    Returns:
        Log-probabilities (T, N).
    """
    distributions = check_log_probs(log_probs, zeros=True)
    return torch.log(distributions.exp() + floor) - math.log1p(distributions.shape[1] * floor)


def _make_encoder(distributions: Tensor, weights: Tensor, unembedding: Tensor, states: Tensor) -> Encoder:
    logits = states @ unembedding.T
    return Encoder(unembedding, states, compute_divergence(distributions, logits.log_softmax(-1), weights))


def _solve_scale(gaps: NDArray[np.float64], entropy: float) -> float:
    """Return the scale lambda at which log sum_j exp(lambda gaps_j) = `entropy`, for gaps of at most 0."""

    def excess(scale: float) -> float:
        return float(np.log(np.exp(scale * gaps).sum())) - entropy

    if excess(0.0) <= 0:
        return 0.0
    above = 1.0
    while excess(above) > 0:
        above *= 2
        if above > 1e12:
            raise InputError("log_probs", entropy, "two tokens have the same vector: use a greater width")
    return float(brentq(excess, 0.0, above, xtol=1e-13))
