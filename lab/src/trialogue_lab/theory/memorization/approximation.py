"""Attention-only transformers that store more next-token distributions than they have room for.

The features of a context are the outputs of attention heads with random weights, and the embedding of the
last token. With fewer features than contexts, the network can store some distributions exactly (Theorem 1 of
the document on memorization in attention-only transformers), or all of them approximately by ridge
regression, which is more accurate.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import lstsq, svd
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.networks.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue_lab.theory.memorization.encoders import Encoder, check_encoder, nearest_encoder
from trialogue_lab.theory.memorization.folding import complete_map, fold_into_weights, pad_states
from trialogue_lab.theory.memorization.rank import generic_network
from trialogue_lab.theory.memorization.targets import (
    check_contexts,
    check_log_probs,
    check_prior,
    compute_divergence,
)

Method = Literal["likeliest", "ridge"]

_RIDGES = np.logspace(-14, 0, 29)
_DEPENDENT = 1e-9
"""Smallest share of a row's norm orthogonal to previous rows for which it counts as independent."""
_LOST = 1e-3
"""Largest relative increase of a divergence that is attributed to rounding."""


class ApproximateNetwork(NamedTuple):
    """An attention-only network that stores next-token distributions approximately, and its errors.

    The encoder is the closest approximation of the target distributions by logits of rank d, the width of the
    network. Means are over the T contexts, weighted by their prior probabilities. Divergences are in nats.

    Attributes:
        model: The network, in float64.
        kept: Whether each context (T,) is stored exactly; all False for ridge regression.
        left: Total prior probability eps of the contexts that are not stored exactly.
        encoder_kl: Mean KL(target || encoder), the part of the error that the width causes.
        kl: Mean KL(target || network), the total error.
        tight_bound: Upper bound (13) on |kl - encoder_kl|: twice the mean norm of the error of the logits.
        loose_bound: Bound (14), which is at least `tight_bound` and does not need the network. Infinite for
            ridge regression, and if the last tokens of the stored contexts do not span d dimensions.
    """

    model: AttentionOnly
    kept: Tensor
    left: float
    encoder_kl: float
    kl: float
    tight_bound: float
    loose_bound: float


class _FeatureRegression:
    """Linear regression from features of contexts to the outputs that a network should have.

    The features are the outputs of random attention heads.
    """

    def __init__(
        self,
        targets: Tensor,
        contexts: Tensor,
        width: int,
        heads: int,
        head_width: int,
        seed: int,
        prior: Tensor | None,
        encoder: Encoder | None,
    ) -> None:
        self.distributions = check_log_probs(targets)
        self.contexts = check_contexts(contexts, *self.distributions.shape)
        self.prior = check_prior(prior, len(self.distributions))
        self.config = AttentionOnlyConfig(
            vocab_size=self.distributions.shape[1],
            context=self.contexts.shape[1],
            width=width,
            heads=heads,
            head_width=head_width,
        )
        self.seed = seed
        found = nearest_encoder(self.distributions, width, self.prior) if encoder is None else encoder
        self.encoder: Encoder = check_encoder(found, self.distributions, width).orthogonal()
        features = generic_network(self.config, seed).features(self.contexts)
        self.features = features.numpy()
        self.states = pad_states(self.encoder, features, width).numpy()

    def divergence_by(self, solution: NDArray[np.float64]) -> float:
        """Return the mean KL(target || network) in nats of a network whose output is the features times `solution`."""
        read = self.encoder.unembedding.numpy()
        logits = torch.from_numpy(self.features @ solution[:, : read.shape[1]] @ read.T)
        return compute_divergence(self.distributions, logits.log_softmax(-1), self.prior)

    def build(self, solution: NDArray[np.float64], kept: Tensor, loose_bound: float) -> ApproximateNetwork:
        """Build the network whose output is the features times `solution` (H d_h + d, d), and measure its errors."""
        read = self.encoder.unembedding.numpy()
        missed = ((self.features @ solution - self.states)[:, : read.shape[1]]) @ read.T
        network = generic_network(self.config, self.seed)
        fold_into_weights(network, solution, self.encoder)
        kl = compute_divergence(self.distributions, network.context_log_probs(self.contexts), self.prior)
        network.remember(self.contexts[kept])
        network.answered = network.unstored = 0
        tight = 2 * float(self.prior.numpy() @ np.linalg.norm(missed, axis=1))
        left = float(self.prior[~kept].sum())
        return ApproximateNetwork(network, kept, left, self.encoder.kl, kl, tight, loose_bound)


def memorize_approximately(
    targets: Tensor,
    contexts: Tensor,
    width: int,
    heads: int,
    head_width: int,
    seed: int = 0,
    *,
    method: Method,
    prior: Tensor | None = None,
    encoder: Encoder | None = None,
) -> ApproximateNetwork:
    """Build an attention-only transformer that returns given next-token distributions approximately.

    It is too small to return all of them exactly. The features of a context are the outputs of attention heads with
    random weights and the embedding of the last token. There are fewer features than contexts.

    Args:
        targets: Log-probabilities (T, N) of the N tokens after each context, without zeros.
        contexts: Distinct contexts (T, S) int64.
        width: Width d of the embeddings.
        heads: Number of attention heads.
        head_width: Width of the values of a head.
        seed: Seed of the random weights of the heads.
        method: "likeliest" stores the most likely contexts exactly, as many as have linearly independent features. The
            predictions after other contexts are arbitrary. "ridge" is ridge regression on all contexts, weighted by
            `prior`, with the penalty from a grid that gives the smallest divergence.
        prior: Probability of each context (T,) (default: uniform).
        encoder: Logits of rank d to store (default: the result of `nearest_encoder`).

    Raises:
        InputError: As for `memorize`, or if rounding errors are too large.
    """
    problem = _FeatureRegression(targets, contexts, width, heads, head_width, seed, prior, encoder)
    return _store_likeliest(problem) if method == "likeliest" else _fit_ridge(problem)


def _store_likeliest(problem: _FeatureRegression) -> ApproximateNetwork:
    width = problem.config.width
    order = problem.prior.argsort(descending=True, stable=True).numpy()
    kept = torch.zeros(len(order), dtype=torch.bool)
    kept[order[_find_independent_rows(problem.features[order])]] = True
    count = int(kept.sum())
    exact, rest = problem.features[kept.numpy()], problem.features[~kept.numpy()]
    # The pseudo-inverse gives the states, and its product with the other features enters bound (14).
    right = np.concatenate((problem.states[kept.numpy()], np.eye(count)), 1) if len(rest) else None
    wanted = problem.states[kept.numpy()] if right is None else right
    found = lstsq(exact, wanted, lapack_driver="gelsd")[0]
    growth = float(np.linalg.norm(rest @ found[:, width:], 2)) if len(rest) else 0.0
    left = float(problem.prior[~kept].sum())
    logits = problem.encoder.states @ problem.encoder.unembedding.T
    spread = float(torch.linalg.matrix_norm(logits, 2))
    solution = complete_map(found[:, :width], exact, width)
    # The bound does not include the completion for directions that no stored context has.
    bounded = np.array_equal(solution, found[:, :width])
    bound = 2 * left * spread * math.sqrt(1 + growth**2) if bounded else math.inf
    return problem.build(solution, kept, bound)


def _find_independent_rows(rows: NDArray[np.float64]) -> list[int]:
    """Return the indices of rows that are linearly independent of all previous rows."""
    basis = np.empty((min(rows.shape), rows.shape[1]))
    places: list[int] = []
    for place, row in enumerate(rows):
        if len(places) == len(basis):
            break
        known, left = basis[: len(places)], row
        for _ in range(2):  # A second pass removes rounding errors.
            left = left - known.T @ (known @ left)
        size = float(np.linalg.norm(left))
        if size > _DEPENDENT * float(np.linalg.norm(row)):
            basis[len(places)] = left / size
            places.append(place)
    return places


def _fit_ridge(problem: _FeatureRegression) -> ApproximateNetwork:
    width = problem.config.width
    roots = problem.prior.sqrt().numpy()[:, None]
    left, singular, right = svd(roots * problem.features, full_matrices=False)
    turned = left.T @ (roots * problem.states)
    counted = problem.features[problem.prior.numpy() > 0]

    def solution(ridge: float) -> NDArray[np.float64]:
        scale = singular / (singular**2 + (ridge * singular[0]) ** 2)
        return complete_map(right.T @ (scale[:, None] * turned), counted, width)

    best = min((float(ridge) for ridge in _RIDGES), key=lambda ridge: problem.divergence_by(solution(ridge)))
    kept = torch.zeros(len(problem.contexts), dtype=torch.bool)
    found, due = problem.build(solution(best), kept, math.inf), problem.divergence_by(solution(best))
    if not abs(found.kl - due) <= _LOST * max(1.0, due):
        hint = (
            f"rounding changes the divergence from {due:.3g} to {found.kl:.3g} nats: remove unlikely contexts"
        )
        raise InputError("prior", float(problem.prior.min()), hint)
    return found
