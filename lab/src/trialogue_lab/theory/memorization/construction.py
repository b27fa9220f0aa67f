"""Construction of attention-only transformers that store given next-token distributions (Theorem 1 for eps = 0).

The features of a context are the outputs of attention heads with random weights, and the embedding of its
last token, which reaches the output through the skip connection. They have full rank (Lemma 2), so that a
linear solve maps them to outputs with the required logits.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from scipy.linalg import lstsq
from torch import Tensor

from trialogue.arrays import integer_tensor
from trialogue.errors import InputError
from trialogue.models.networks.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue.validation import Count, InstanceOf, Natural, check, integer_range, validated
from trialogue_lab.theory.memorization.capacities import capacity
from trialogue_lab.theory.memorization.encoders import (
    Encoder,
    association_encoder,
    check_encoder,
    nearest_encoder,
)
from trialogue_lab.theory.memorization.folding import complete_map, fold_into_weights, pad_states
from trialogue_lab.theory.memorization.rank import generic_network, require_capacity
from trialogue_lab.theory.memorization.targets import (
    check_contexts,
    check_log_probs,
    check_prior,
    compute_divergence,
)

MAX_VOCABULARY = 65_536
"""Largest vocabulary, because distributions are stored as a float64 matrix (T, N)."""


class MemorizedNetwork(NamedTuple):
    """An attention-only network that stores given next-token distributions, and its errors.

    The encoder is the closest approximation of the target distributions pi by logits of rank d, the width of
    the network. The features of a context are the outputs of the attention heads and the embedding of its
    last token. Means are over the T contexts, weighted by their prior probabilities. Divergences are in nats.

    Attributes:
        model: The network, in float64.
        target_log_probs: Log-probabilities (T, N) float64 of the encoder, which the network reproduces. They
            equal log pi if the width d is at least N - 1.
        encoder_kl: Mean KL(pi || encoder), the divergence that remains because logits have rank d.
        kl: Mean KL(pi || network).
        rank: Rank of the features, which equals the number of contexts T.
        condition: Ratio of the largest to the smallest singular value of the features.
        skip_condition: Condition number of the d x d matrix folded into the embeddings.
        over_provision: Number of features H d_h + d divided by T, minus 1. Values of 0.05 to 0.1 give a
            well-conditioned solve.
        largest_error: Largest error of a log-probability in float64.
        largest_error_float32: Largest error of a log-probability in float32.
        largest_error_bfloat16: Largest error of a log-probability in bfloat16.
        accuracy: Prior probability of the contexts whose most likely token is correct.
    """

    model: AttentionOnly
    target_log_probs: Tensor
    encoder_kl: float
    kl: float
    rank: int
    condition: float
    skip_condition: float
    over_provision: float
    largest_error: float
    largest_error_float32: float
    largest_error_bfloat16: float
    accuracy: float


@validated
def memorize(
    targets: Tensor,
    contexts: Tensor,
    width: Count,
    heads: Natural,
    head_width: Count,
    seed: Natural = 0,
    *,
    prior: Tensor | None = None,
    query_width: Count | None = None,
    vocab_size: Count | None = None,
    encoder: InstanceOf[Encoder] | None = None,
) -> MemorizedNetwork:
    """Build an attention-only transformer that returns given next-token distributions after given contexts.

    The weights are computed, not trained. If the width d is below N - 1, the logits cannot have full rank. The network
    then stores the nearest distributions with logits of rank d, found by `nearest_encoder`.

    Args:
        targets: Log-probabilities (T, N) float64, or tokens (T,) int64 if each context has a single next token.
        contexts: Distinct contexts (T, S) int64.
        width: Width d of the embeddings.
        heads: Number of attention heads H.
        head_width: Width d_h of the values of a head.
        seed: Seed of the random weights of the heads.
        prior: Probability of each context (T,) (default: uniform).
        query_width: Rank of the query-key matrix (default: `head_width`). 1 gives the rank-one queries of Remark 2.
        vocab_size: Number of tokens N for token targets (default: the largest token plus one).
        encoder: Logits of rank d to store (default: computed from the targets).

    Raises:
        InputError: If a distribution has zeros (see `softened`), a context occurs twice, the prior is invalid, or the
            features cannot have rank T. The error states the required size.
    """
    distributions, encoder, tokens, weights = _prepare(targets, contexts, width, prior, vocab_size, encoder)
    config = AttentionOnlyConfig(
        vocab_size=distributions.shape[1],
        context=tokens.shape[1],
        width=width,
        heads=heads,
        head_width=head_width,
        query_width=query_width,
    )
    require_capacity(config, tokens)
    network = generic_network(config, seed)
    features = network.features(tokens)
    held = encoder.orthogonal()
    states = pad_states(held, features, width).numpy()
    found, _, rank, singular = lstsq(features.numpy(), states, lapack_driver="gelsd")
    solution = complete_map(found, features.numpy(), width)
    if rank < len(tokens):
        hint = f"the features of {len(tokens)} contexts have rank {rank}: use more heads, or another seed"
        raise InputError("seed", seed, hint)
    skip_condition = fold_into_weights(network, solution, held)
    network.remember(tokens)
    answers = network.context_log_probs(tokens)
    network.answered = network.unstored = 0
    return MemorizedNetwork(
        model=network,
        target_log_probs=encoder.log_probs,
        encoder_kl=encoder.kl,
        kl=compute_divergence(distributions, answers, weights),
        rank=int(rank),
        condition=float(singular[0] / singular[len(tokens) - 1]),
        skip_condition=skip_condition,
        over_provision=capacity(width, head_width, heads) / len(tokens) - 1,
        largest_error=float((answers - encoder.log_probs).abs().max()),
        largest_error_float32=_measure_error(torch.float32, network, encoder, tokens),
        largest_error_bfloat16=_measure_error(torch.bfloat16, network, encoder, tokens),
        accuracy=min(1.0, float(weights[answers.argmax(1) == distributions.argmax(1)].sum())),
    )


def _prepare(
    targets: Tensor,
    contexts: Tensor,
    width: int,
    prior: Tensor | None,
    vocab_size: int | None,
    encoder: Encoder | None,
) -> tuple[Tensor, Encoder, Tensor, Tensor]:
    """Validate the arguments of `memorize`, and fill in the defaults.

    Returns distributions (T, N), encoder, contexts (T, S) and prior (T,).
    """
    if isinstance(targets, Tensor) and targets.is_floating_point():
        distributions = check_log_probs(targets)
        if vocab_size is not None:
            hint = f"leave it out: the targets are distributions over {distributions.shape[1]} tokens"
            check(
                "vocab_size", vocab_size, integer_range(distributions.shape[1], distributions.shape[1]), hint
            )
        if distributions.shape[1] > MAX_VOCABULARY:
            raise InputError("vocab_size", distributions.shape[1], f"use at most {MAX_VOCABULARY} tokens")
        tokens = check_contexts(contexts, len(distributions), distributions.shape[1])
        weights = check_prior(prior, len(distributions))
        found = nearest_encoder(distributions, width, weights) if encoder is None else encoder
        return distributions, check_encoder(found, distributions, width), tokens, weights
    hint = "give token ids (T,), or log-probabilities (T, N)"
    chosen = integer_tensor("targets", targets, hint)
    if chosen.ndim != 1 or not len(chosen):
        raise InputError("targets", tuple(chosen.shape), hint)
    tokens = integer_tensor("contexts", contexts, "give token ids (T, S)")
    most = max(int(chosen.max()), int(tokens.max()) if tokens.numel() else 0)
    size = check(
        "vocab_size",
        most + 1 if vocab_size is None else vocab_size,
        integer_range(max(2, most + 1), MAX_VOCABULARY),
    )
    if int(chosen.min()) < 0:
        raise InputError("targets", int(chosen.min()), f"use tokens from 0 to {size - 1}")
    tokens = check_contexts(tokens, len(chosen), size)
    weights = check_prior(prior, len(chosen))
    distributions = torch.full((len(chosen), size), -torch.inf, dtype=torch.float64).scatter_(
        1, chosen[:, None], 0.0
    )
    found = association_encoder(chosen, size, width, weights) if encoder is None else encoder
    return distributions, check_encoder(found, distributions, width), tokens, weights


def _measure_error(dtype: torch.dtype, network: AttentionOnly, encoder: Encoder, contexts: Tensor) -> float:
    cast = AttentionOnly(network.config)
    cast.remember(network.contexts)
    cast.load_state_dict(network.state_dict())
    answers = cast.to(dtype).context_log_probs(contexts).double()
    return float((answers - encoder.log_probs).abs().max())
