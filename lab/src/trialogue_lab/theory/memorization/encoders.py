"""Sequence encoders: logits W E(t) of rank d, with any embedding E(t) of a context, and how near they come to a law.

Definition 1, Propositions 1 to 3, Theorem 2, Definition 2 and Lemma 4 of the document on memorization in attention-only
transformers: what any network of embedding width d can reach at best. Contexts are rows, N tokens columns.
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
    """Logits `states` @ `unembedding`.T (T, N), and their distance from the laws that they encode."""

    unembedding: Tensor
    """(N, d) float64: W"""
    states: Tensor
    """(T, d) float64: E(t)"""
    kl: float
    """nats: the mean over contexts of KL(law || softmax of the logits)"""

    @property
    def log_probs(self) -> Tensor:
        """(T, N) float64"""
        return (self.states @ self.unembedding.T).log_softmax(-1)

    def orthogonal(self) -> Encoder:
        """The same logits with states whose columns are orthogonal and of mean square one, as many as their rank."""
        left, scale, right = torch.linalg.svd(self.states @ self.unembedding.T, full_matrices=False)
        scale = scale[: self.states.shape[1]]
        rank = int((scale > max(self.states.shape) * torch.finfo(scale.dtype).eps * scale[0]).sum())
        size = math.sqrt(len(left))
        unembedding = right[:rank].T * (scale[:rank] / size)
        return self._replace(states=left[:, :rank] * size, unembedding=unembedding)


@validated
def checked_encoder(encoder: InstanceOf[Encoder], laws: Tensor, width: Count) -> Encoder:
    """Return `encoder`; raises `InputError` where it is none of `laws` (T, N) with at most `width` numbers a state."""
    (total, vocab), rank = laws.shape, min(encoder.states.shape[1], width)
    wanted = (total, rank), (vocab, rank)
    if (tuple(encoder.states.shape), tuple(encoder.unembedding.shape)) != wanted:
        hint = f"give one of {total} contexts and {vocab} tokens, of width {width} at most"
        raise InputError("encoder", tuple(encoder.states.shape), hint)
    return encoder


@validated
def truncated_encoder(log_probs: Tensor, width: Count, prior: Tensor | None = None) -> Encoder:
    """The `width` largest singular vectors of `log_probs` (T, N), centred in every row.

    Exact for a width of at least N - 1 (Proposition 2), an upper bound on the distance below. Raises `InputError` for
    laws that are none, or have zeros.
    """
    laws = checked_log_probs(log_probs)
    weights = checked_prior(prior, len(laws))
    left, scale, right = torch.linalg.svd(laws - laws.mean(1, keepdim=True), full_matrices=False)
    kept = min(width, len(scale))
    # Both factors get the square root: of factors of one size the optimiser moves both alike.
    root = scale[:kept].sqrt()
    return _encoder(laws, weights, (right[:kept].T * root), left[:, :kept] * root)


def nearest_encoder(log_probs: Tensor, width: int, prior: Tensor | None = None) -> Encoder:
    """The encoder of `width` d nearest to `log_probs` (T, N) in mean divergence: L-BFGS from the truncated one.

    Its `kl` is an upper bound on d_KL(pi, L), of a local minimum or, after 1,000 iterations, near one; below 1e-7
    nothing more is sought. Zero where d is at least N - 1. Contexts are weighed by `prior` (T,).
    """
    start = truncated_encoder(log_probs, width, prior)
    laws = checked_log_probs(log_probs)
    if width >= laws.shape[1] - 1:
        return start
    weights = checked_prior(prior, len(laws))
    probabilities = (laws.exp() * weights[:, None]).numpy()
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
    least = -float((probabilities * laws.numpy()).sum())

    def near_enough(intermediate_result: OptimizeResult) -> None:
        if intermediate_result.fun - least < _EXACT:
            raise StopIteration

    found = minimize(loss, packed, jac=True, method="L-BFGS-B", callback=near_enough, options=options).x
    unembedding, states = (
        torch.from_numpy(found[:cut].reshape(vocab, rank)),
        torch.from_numpy(found[cut:].reshape(-1, rank)),
    )
    return min(start, _encoder(laws, weights, unembedding, states), key=lambda encoder: encoder.kl)


@validated
def harmonic_vectors(vocab_size: Annotated[int, Ge(2)], width: Annotated[int, Ge(2)]) -> Tensor:
    """Rows W_g (N, d) float64 of one length: cosines and sines of multiples of 2 pi g / N.

    Each has its largest product with itself. With d = 2 they lie on the circle of Proposition 3; more harmonics tell
    tokens apart by more. An odd last column is
    zero. Raises `InputError` for a width of one.
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
    """E(t) = lambda W_g(t) of the tokens g(t) = `targets` (T,) int64: every one the likeliest by some 30 nats.

    The encoders of Proposition 3; lambda grows with N^2 on the circle. The `kl` is mean -log p(g | t).
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
    """The encoder of Theorem 2, and what the theorem says of it."""

    encoder: Encoder
    coherence: float
    """the largest entry of |W W^T - 1|"""
    bound: float
    """nats; infinite where `coherence` is 1/2 or more, where the theorem says nothing"""
    simple_bound: float
    """nats: the weaker form, with the mean entropy"""


@validated
def look_up_encoder(log_probs: Tensor, width: Count, prior: Tensor | None = None, seed: int = 0) -> LookUp:
    """E(t) = lambda(t) W_g(t) with g(t) the likeliest token, and lambda(t) from the entropy of the law.

    The rows of W are unit vectors (Johnson-Lindenstrauss; the identity where `width` is N). The document's H is the
    negative entropy. lambda solves its condition on the row of the likeliest token.
    """
    laws = checked_log_probs(log_probs)
    weights = checked_prior(prior, len(laws))
    vocab = laws.shape[1]
    vectors = torch.eye(vocab, dtype=torch.float64)
    if width != vocab:
        drawn = torch.randn(vocab, width, generator=generator(seed, "look-up"), dtype=torch.float64)
        vectors = drawn / drawn.norm(dim=1, keepdim=True)
    products = vectors @ vectors.T
    coherence = float((products - torch.eye(vocab, dtype=torch.float64)).abs().max())
    entropy = -(laws.exp() * laws).sum(1)
    chosen = laws.argmax(1)
    gaps = products[chosen] - products[chosen, chosen][:, None]
    scales = torch.tensor(
        [_scale_of(gap.numpy(), float(target)) for gap, target in zip(gaps, entropy, strict=True)],
        dtype=torch.float64,
    )
    encoder = _encoder(laws, weights, vectors, scales[:, None] * vectors[chosen])
    likeliest = laws.gather(1, chosen[:, None])[:, 0].exp()
    others = (laws.exp() / (1 - likeliest)[:, None].clamp_min(1e-300)).scatter(1, chosen[:, None], 0.0)
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
    """log((pi + floor) / (1 + N floor)) (T, N) of laws (T, N) that may have zeros: what a network can be built for.

    The encoders f_delta of Definition 2, whose logits range over O(log 1 / floor) (Lemma 4).
    """
    laws = checked_log_probs(log_probs, zeros=True)
    return torch.log(laws.exp() + floor) - math.log1p(laws.shape[1] * floor)


def _encoder(laws: Tensor, weights: Tensor, unembedding: Tensor, states: Tensor) -> Encoder:
    logits = states @ unembedding.T
    return Encoder(unembedding, states, divergence(laws, logits.log_softmax(-1), weights))


def _scale_of(gaps: NDArray[np.float64], entropy: float) -> float:
    """The lambda of log sum over j of exp(lambda gaps_j) = entropy, gaps_j <= 0 with one of them zero."""

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
