"""Rank of the features of attention heads with random weights: the published formula and the true one.

The features of a context are the outputs of H attention heads of width d_h, and the embedding of its last
token of width d. Their rank is the number of contexts that a network can store. The document on memorization
in attention-only transformers states the rank min(T, H d_h + d) for T contexts (Lemma 2), which requires
contexts of at least two tokens and d <= N, the size of the vocabulary.
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
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import generator
from trialogue.validation import Count, InstanceOf, Natural, validated
from trialogue_lab.theory.memorization.capacities import capacity

Contexts = Annotated[Tensor, Integers("contexts positions", least=0)]
"""Token ids (T, S) of T contexts of S tokens."""
_MOST_CONTEXTS = 20_000
_SPREAD = 5.0


@validated
def generic_network(config: InstanceOf[AttentionOnlyConfig], seed: Natural = 0) -> AttentionOnly:
    """Return an attention-only network with normally distributed random weights, in float64.

    The query-key weights are scaled so that attention is neither uniform nor concentrated on one position. In
    both cases the features would be nearly linearly dependent.

    Args:
        config: Shape of the network.
        seed: Seed of the weights.
    """
    network = AttentionOnly(config, seed).double()
    query_width = config.query_width or config.head_width
    with torch.no_grad():
        for name, weights in network.named_parameters():
            weights.normal_(generator=generator(seed, "generic network", name))
        network.query.mul_(_SPREAD / (config.width * query_width**0.5))
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
    """Compute the number of linearly independent features of a network with random weights (numerical rank).

    This is the number of contexts whose next-token distributions the network can store. The features of a
    context are the outputs of the attention heads and the embedding of the last token.

    Args:
        vocab_size: Number of tokens N.
        context: Context length S.
        width: Width d of the embeddings.
        head_width: Width d_h of the values of a head.
        heads: Number of heads H.
        seed: Seed of the weights.
        query_width: Rank of the query-key matrix (default: `head_width`).
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
            hint = (
                f"{vocab_size}^{context} contexts are more than {_MOST_CONTEXTS}: pass a subset as contexts"
            )
            raise InputError("contexts", None, hint)
        contexts = enumerate_sequences(vocab_size, context)
    return int(torch.linalg.matrix_rank(generic_network(config, seed).features(contexts)))


@validated
def printed_rank(contexts: Count, width: Count, head_width: Count, heads: Natural) -> int:
    """Return the number of linearly independent features of a network as published (Lemma 2 and Theorem 1).

    It is min(T, H d_h + d) for T contexts, H heads of width d_h and embedding width d. The features of a context are
    the outputs of the attention heads and the embedding of the last token. See `expected_rank` for the true rank.

    Args:
        contexts: Number of contexts T.
        width: Width d of the embeddings.
        head_width: Width d_h of the values of a head.
        heads: Number of heads H.
    """
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
    """Return the number of linearly independent features of an attention-only network, by a formula.

    The features of a context are the outputs of the heads and the embedding of the last token. Their rank
    limits the number of contexts that the network can store. Heads average the embeddings of tokens and
    positions with weights that sum to one, which makes some of their outputs dependent. With contexts of one
    token, the heads add nothing.

    Args:
        vocab_size: Number of tokens N.
        context: Context length S.
        width: Width d of the embeddings.
        head_width: Width d_h of the values of a head.
        heads: Number of heads H.
        contexts: Number of contexts, assumed to have no special structure (default: all N^S).
    """
    # The rank is at most H d_h + d. The power is truncated because computing it could take very long.
    enough = capacity(width, head_width, heads).bit_length()
    total = vocab_size ** min(context, enough) if contexts is None else contexts
    return _compute_rank(total, context, vocab_size + context - 1, vocab_size, width, head_width, heads)


@validated
def expected_rank_for(
    config: InstanceOf[AttentionOnlyConfig], contexts: Contexts, heads: Natural | None = None
) -> int:
    """Return the number of linearly independent features of an attention-only network for given contexts, by a formula.

    The result holds for almost all weights. It differs from `expected_rank` if some tokens do not occur at
    all positions.

    Args:
        config: Shape of the network.
        contexts: Distinct contexts (T, S).
        heads: Number of heads (default: from `config`).
    """
    total, length = contexts.shape
    tokens, place = contexts.unique(return_inverse=True)
    # Token and position coefficients satisfy one linear relation per connected component.
    links = (
        np.ones(contexts.numel()),
        (place.ravel().numpy(), len(tokens) + np.tile(np.arange(length), total)),
    )
    parts, _ = connected_components(coo_array(links, shape=(len(tokens) + length,) * 2), directed=False)
    spanned, last = len(tokens) + length - parts, len(contexts[:, -1].unique())
    count = config.heads if heads is None else heads
    return _compute_rank(total, length, spanned, last, config.width, config.head_width, count)


@validated
def require_capacity(config: InstanceOf[AttentionOnlyConfig], contexts: Contexts) -> None:
    """Raise `InputError` if a network is too small to store any given next-token distributions after the contexts.

    The features of a context are the outputs of the attention heads and the embedding of the last token. The network is
    large enough if the features of the T contexts are linearly independent for some weights (see `expected_rank_for`).

    Args:
        config: Shape of the network.
        contexts: Distinct contexts (T, S), each a sequence of S tokens.
    """
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
        f"connection {skip}; {needed} of {config.head_width}, and 5 % more for a well-conditioned solve"
    )
    raise InputError("heads", config.heads, hint)


def _compute_rank(
    total: int, length: int, spanned: int, last: int, width: int, head_width: int, heads: int
) -> int:
    """Return the rank of the features of `total` contexts.

    Args:
        total: Number of contexts.
        length: Length of a context.
        spanned: Number of dimensions spanned by the inputs of the heads.
        last: Number of dimensions spanned by the embeddings of the last tokens.
        width: Width d of the embeddings.
        head_width: Width of the values of a head.
        heads: Number of heads.
    """
    skip = min(width, last)
    if length == 1:
        return min(total, skip)
    shared = heads if head_width >= spanned else 0
    return min(total, heads * min(head_width, spanned) - shared + skip)
