"""Sequence encoders: logits W E(t) of rank d and their distance from a distribution.

Definition 1, Propositions 1 to 3, Theorem 2, Definition 2 and Lemma 4 of the document on memorization in
attention-only transformers. They give the best result that any network of width d can reach. Contexts are
rows, and the N tokens are columns.
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
from trialogue_lab.theory.memorization.targets import checked_log_probs, checked_prior, divergence

_ITERATIONS = 1000
_TOLERANCE = 1e-9
_EXACT = 1e-7
_CERTAIN = 30.0


class Encoder(NamedTuple):
    """Logits `states` @ `unembedding`.T (T, N) and their distance from the target distributions.

    Attributes:
        unembedding: W (N, d) float64.
        states: E(t) (T, d) float64.
        kl: Mean KL(target || softmax of the logits) over contexts, in nats.
    """

    unembedding: Tensor
    states: Tensor
    kl: float

    @property
    def log_probs(self) -> Tensor:
        """Log-probabilities (T, N) float64."""
        return (self.states @ self.unembedding.T).log_softmax(-1)

    def orthogonal(self) -> Encoder:
        """Return an encoder with the same logits and orthogonal states of mean square one.

        The number of states is their rank.
        """
        left, scale, right = torch.linalg.svd(self.states @ self.unembedding.T, full_matrices=False)
        scale = scale[: self.states.shape[1]]
        rank = int((scale > max(self.states.shape) * torch.finfo(scale.dtype).eps * scale[0]).sum())
        size = math.sqrt(len(left))
        unembedding = right[:rank].T * (scale[:rank] / size)
        return self._replace(states=left[:, :rank] * size, unembedding=unembedding)


@validated
def checked_encoder(encoder: InstanceOf[Encoder], distributions: Tensor, width: Count) -> Encoder:
    """Return `encoder` if it matches the distributions and the width.

    Raises:
        InputError: If the shapes do not match `distributions` (T, N) and `width`.
    """
    (total, vocab), rank = distributions.shape, min(encoder.states.shape[1], width)
    wanted = (total, rank), (vocab, rank)
    if (tuple(encoder.states.shape), tuple(encoder.unembedding.shape)) != wanted:
        hint = f"give one of {total} contexts and {vocab} tokens, of width {width} at most"
        raise InputError("encoder", tuple(encoder.states.shape), hint)
    return encoder


@validated
def truncated_encoder(log_probs: Tensor, width: Count, prior: Tensor | None = None) -> Encoder:
    """Return the encoder of the `width` largest singular vectors of the row-centered log-probabilities.

    It is exact if the width is at least N - 1 (Proposition 2), and otherwise bounds the distance from above.

    Args:
        log_probs: Log-probabilities (T, N) without zeros.
        width: Width d.
        prior: Probability of each context (default: uniform).
    """
    distributions = checked_log_probs(log_probs)
    weights = checked_prior(prior, len(distributions))
    left, scale, right = torch.linalg.svd(
        distributions - distributions.mean(1, keepdim=True), full_matrices=False
    )
    kept = min(width, len(scale))
    # Both factors get the square root: of factors of one size the optimiser moves both alike.
    root = scale[:kept].sqrt()
    return _encoder(distributions, weights, (right[:kept].T * root), left[:, :kept] * root)


def nearest_encoder(log_probs: Tensor, width: int, prior: Tensor | None = None) -> Encoder:
    """Minimize the mean divergence with L-BFGS, starting from the truncated encoder.

    The resulting `kl` is an upper bound on d_KL(pi, L): a local minimum, or close to one after 1,000
    iterations. The search stops below 1e-7. The result is exact if the width is at least N - 1.

    Args:
        log_probs: Log-probabilities (T, N) without zeros.
        width: Width d.
        prior: Probability of each context (default: uniform).
    """
    start = truncated_encoder(log_probs, width, prior)
    distributions = checked_log_probs(log_probs)
    if width >= distributions.shape[1] - 1:
        return start
    weights = checked_prior(prior, len(distributions))
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
    return min(start, _encoder(distributions, weights, unembedding, states), key=lambda encoder: encoder.kl)


@validated
def harmonic_vectors(vocab_size: Annotated[int, Ge(2)], width: Annotated[int, Ge(2)]) -> Tensor:
    """Return vectors W_g (N, d) of equal norm: cosines and sines of multiples of 2 pi g / N.

    Each vector has its largest inner product with itself. For d = 2, they lie on the circle of Proposition 3.
    More harmonics increase the gap between tokens. For odd d, the last column is zero.
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
    """Return the encoder of Proposition 3 for associations: E(t) = lambda W_g(t) with g(t) the target token.

    Each target is the most likely token by about 30 nats. On the circle, lambda grows with N^2. The `kl` is
    the mean of -log p(g | t).

    Args:
        targets: Tokens g(t) (T,) int64.
        vocab_size: Number of tokens N.
        width: Width d.
        prior: Probability of each context (default: uniform).
    """
    vectors = harmonic_vectors(vocab_size, width)
    if int(targets.max()) >= vocab_size:
        raise InputError("targets", int(targets.max()), f"use tokens from 0 to {vocab_size - 1}")
    gaps = (vectors[0] * (vectors[0] - vectors[1:])).sum(1)
    states = (_CERTAIN / float(gaps.min())) * vectors[targets]
    logits = states @ vectors.T
    weights = checked_prior(prior, len(targets))
    kl = -float(weights @ logits.log_softmax(-1).gather(1, targets[:, None])[:, 0])
    return Encoder(vectors, states, kl)


class LookUp(NamedTuple):
    """The encoder of Theorem 2 and its bounds.

    Attributes:
        encoder: The encoder.
        coherence: Largest entry of |W W^T - 1|.
        bound: Bound in nats; infinite if the coherence is at least 1/2, where the theorem does not apply.
        simple_bound: Weaker bound in nats that uses the mean entropy.
    """

    encoder: Encoder
    coherence: float
    bound: float
    simple_bound: float


@validated
def look_up_encoder(log_probs: Tensor, width: Count, prior: Tensor | None = None, seed: int = 0) -> LookUp:
    """Return the encoder E(t) = lambda(t) W_g(t) of Theorem 2, with g(t) the most likely token.

    The rows of W are random unit vectors (Johnson-Lindenstrauss), or the identity if the width is N.
    lambda(t) solves the condition of the theorem on the row of the most likely token. The document's H is the
    negative entropy.
    """
    distributions = checked_log_probs(log_probs)
    weights = checked_prior(prior, len(distributions))
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
        [_scale_of(gap.numpy(), float(target)) for gap, target in zip(gaps, entropy, strict=True)],
        dtype=torch.float64,
    )
    encoder = _encoder(distributions, weights, vectors, scales[:, None] * vectors[chosen])
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
def softened(log_probs: Tensor, floor: Annotated[float, Interval(gt=0, le=1)]) -> Tensor:
    """Return log((pi + floor) / (1 + N floor)) (T, N), so that distributions with zeros can be stored.

    These are the encoders f_delta of Definition 2, whose logits have a range of O(log 1 / floor) (Lemma 4).

    Args:
        log_probs: Log-probabilities (T, N), possibly -inf.
        floor: Smoothing above 0 and at most 1.
    """
    distributions = checked_log_probs(log_probs, zeros=True)
    return torch.log(distributions.exp() + floor) - math.log1p(distributions.shape[1] * floor)


def _encoder(distributions: Tensor, weights: Tensor, unembedding: Tensor, states: Tensor) -> Encoder:
    logits = states @ unembedding.T
    return Encoder(unembedding, states, divergence(distributions, logits.log_softmax(-1), weights))


def _scale_of(gaps: NDArray[np.float64], entropy: float) -> float:
    """Return the lambda with log sum_j exp(lambda gaps_j) = entropy, where gaps_j <= 0 and one gap is zero."""

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
