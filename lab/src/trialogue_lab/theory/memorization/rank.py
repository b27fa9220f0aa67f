"""Rank of the features of generic heads, as published and as measured.

Lemma 2 of the document on memorization in attention-only transformers states min(T, H d) for attention
outputs. With values of width d_h and the skip connection, it is used as min(T, H d_h + d). It holds for S >=
2 and d <= N.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from trialogue.arrays import Integers
from trialogue.errors import InputError
from trialogue.models.networks.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue.oracles import whole_sequences
from trialogue.randomness import generator
from trialogue.validation import Count, InstanceOf, Natural, validated
from trialogue_lab.theory.memorization.capacities import capacity

Contexts = Annotated[Tensor, Integers("contexts positions", least=0)]
"""Token ids (T, S) of T contexts of S tokens."""
_MOST_CONTEXTS = 20_000
_SPREAD = 5.0


@validated
def generic_network(config: InstanceOf[AttentionOnlyConfig], seed: Natural = 0) -> AttentionOnly:
    """Return a float64 network whose weights are normal random numbers.

    W_QK is scaled so that attention is neither uniform nor concentrated on one position, where features would
    be almost dependent.
    """
    network = AttentionOnly(config, seed).double()
    asked = config.query_width or config.head_width
    with torch.no_grad():
        for name, weights in network.named_parameters():
            weights.normal_(generator=generator(seed, "generic network", name))
        network.query.mul_(_SPREAD / (config.width * asked**0.5))
        network.value.div_(config.width**0.5)
    return network.requires_grad_(False)


def feature_rank(
    vocab_size: int,
    context: int,
    width: int,
    head_width: int,
    heads: int,
    seed: int = 0,
    *,
    query_width: int | None = None,
    contexts: Tensor | None = None,
) -> int:
    """Return the rank of the features of generic heads and the skip connection.

    Full rank for one draw proves full rank for almost every draw, because minors are analytic in the weights.
    Singular values above max(shape) * eps times the largest count.

    Args:
        vocab_size: Number of tokens N.
        context: Context length S.
        width: Width d.
        head_width: Width d_h of the values.
        heads: Number of heads H.
        seed: Seed of the weights.
        query_width: Rank of W_QK.
        contexts: Contexts (T, S) (default: all N^S).

    Raises:
        InputError: If there are more than 20,000 contexts to list.
    """
    config = AttentionOnlyConfig(
        vocab_size=vocab_size,
        context=context,
        width=width,
        heads=heads,
        head_width=head_width,
        query_width=query_width,
    )
    if contexts is None:
        if vocab_size**context > _MOST_CONTEXTS:
            hint = f"{vocab_size}^{context} contexts are more than {_MOST_CONTEXTS}: give some of them"
            raise InputError("contexts", None, hint)
        contexts = whole_sequences(vocab_size, context)
    return int(torch.linalg.matrix_rank(generic_network(config, seed).features(contexts)))


@validated
def printed_rank(contexts: Count, width: Count, head_width: Count, heads: Natural) -> int:
    """Return min(T, H d_h + d), the rank in Lemma 2 and Theorem 1."""
    return min(contexts, capacity(width, head_width, heads))


@validated
def expected_rank(
    vocab_size: Annotated[int, Ge(2)],
    context: Count,
    width: Count,
    head_width: Count,
    heads: Natural,
    contexts: Count | None = None,
) -> int:
    """Return the actual rank for contexts in general position.

    The coefficients of token and position embeddings sum to one each, so x spans min(d, N + S - 1)
    dimensions. If d_h >= N + S - 1, the values of each head contain a constant that all heads and the skip
    connection share. The skip connection depends on the last token only and adds min(d, N). For S = 1,
    attention is the identity.

    Args:
        vocab_size: Number of tokens N.
        context: Context length S.
        width: Width d.
        head_width: Width d_h of the values.
        heads: Number of heads H.
        contexts: Number of contexts (default: all N^S).
    """
    # No rank is above H d_h + d: the power itself may take forever.
    enough = capacity(width, head_width, heads).bit_length()
    total = vocab_size ** min(context, enough) if contexts is None else contexts
    return _rank(total, context, vocab_size + context - 1, vocab_size, width, head_width, heads)


@validated
def expected_rank_for(
    config: InstanceOf[AttentionOnlyConfig], contexts: Contexts, heads: Natural | None = None
) -> int:
    """Return `expected_rank` for given distinct contexts (T, S), which depends on the tokens at each position.

    Args:
        config: Shape of the network.
        contexts: Contexts (T, S).
        heads: Number of heads (default: from `config`).
    """
    total, length = contexts.shape
    tokens, place = contexts.unique(return_inverse=True)
    # Coefficients of tokens and positions have one relation in each part that no context connects to another.
    links = (
        np.ones(contexts.numel()),
        (place.ravel().numpy(), len(tokens) + np.tile(np.arange(length), total)),
    )
    parts, _ = connected_components(coo_array(links, shape=(len(tokens) + length,) * 2), directed=False)
    spanned, last = len(tokens) + length - parts, len(contexts[:, -1].unique())
    count = config.heads if heads is None else heads
    return _rank(total, length, spanned, last, config.width, config.head_width, count)


@validated
def require_capacity(config: InstanceOf[AttentionOnlyConfig], contexts: Contexts) -> None:
    """Raise `InputError` if no weights of `config` give the features of `contexts` (T, S) full rank."""
    total, length = contexts.shape
    have, skip = expected_rank_for(config, contexts), expected_rank_for(config, contexts, 0)
    if have >= total:
        return
    if length == 1:
        hint = (
            f"with one token of context attention is the identity, heads add nothing, and {total} contexts need a "
            f"width of {total}: use it, or a longer context"
        )
        raise InputError("width", config.width, hint)
    each = expected_rank_for(config, contexts, 1) - skip
    needed = f"use {-(-(total - skip) // each)} heads" if each > 0 else "use wider heads"
    hint = (
        f"{total} contexts need features of rank {total}: the heads have {config.heads * each} and the skip "
        f"connection {skip}; {needed} of {config.head_width}, and 5 % more for good numbers"
    )
    raise InputError("heads", config.heads, hint)


def _rank(total: int, length: int, spanned: int, last: int, width: int, head_width: int, heads: int) -> int:
    """Return the rank of the features if x spans `spanned` dimensions and x_S spans `last`."""
    skip = min(width, last)
    if length == 1:
        return min(total, skip)
    shared = heads if head_width >= spanned else 0
    return min(total, heads * min(head_width, spanned) - shared + skip)
