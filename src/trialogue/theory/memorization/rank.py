"""How many contexts generic heads tell apart: the rank of their features, as printed, as measured, and where it fails.

Lemma 2 of the document on memorization in attention-only transformers says min(T, H d) of attention outputs; with values
of d_h and the skip connection it is used as min(T, H d_h + d). That holds for S of at least 2 and d of at most N.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trialogue.errors import InputError, whole_number
from trialogue.models.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue.oracles import whole_sequences
from trialogue.randomness import generator

_MOST_CONTEXTS = 20_000
_SPREAD = 5.0


def generic_network(config: AttentionOnlyConfig, seed: int = 0) -> AttentionOnly:
    """A network of `config` in float64 whose heads are generic: all its weights drawn from normal laws.

    W_QK is scaled so that attention neither is uniform nor sees one position alone, where features are almost dependent.
    """
    network = AttentionOnly(config, seed).double()
    asked = config.query_width or config.head_width
    with torch.no_grad():
        for name, weights in network.named_parameters():
            weights.normal_(generator=generator(seed, "generic network", name))
        network.query *= _SPREAD / config.width / asked**0.5
        network.value /= config.width**0.5
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
    """The rank of what generic heads and the skip connection make of `contexts` (T, S), by default all N^S.

    One draw of full rank proves it for almost every draw: minors are analytic in the weights. Singular values count
    from max(shape) * eps times the largest. Raises `InputError` where there are more than 20,000 contexts to list.
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
            mend = f"{vocab_size}^{context} contexts are more than {_MOST_CONTEXTS}: give some of them"
            raise InputError("contexts", None, mend)
        contexts = whole_sequences(vocab_size, context)
    return int(torch.linalg.matrix_rank(generic_network(config, seed).features(contexts)))


def printed_rank(contexts: int, width: int, head_width: int, heads: int) -> int:
    """min(T, H d_h + d): the rank that Lemma 2 and Theorem 1 count on."""
    return min(contexts, heads * head_width + width)


def expected_rank(
    vocab_size: int, context: int, width: int, head_width: int, heads: int, contexts: int | None = None
) -> int:
    """The rank that is measured, of so many `contexts` in general position (by default all N^S).

    Token embeddings and positions of a sequence have coefficients that sum to one each: x spans n = min(d, N + S - 1)
    dimensions, and where d is at least N + S - 1 a linear form is one on all of it, which all heads whose values span
    it share. The skip connection knows the last token alone, and adds min(d, N); it has that constant where d is at
    least N. With one token of context attention is the identity, and all that is known is the token.
    """
    size = whole_number("vocab_size", vocab_size, 2)
    length = whole_number("context", context, 1)
    total = size**length if contexts is None else whole_number("contexts", contexts, 1)
    skip = min(width, size)
    if length == 1:
        return min(total, skip)
    full = size + length - 1
    rank = heads * min(head_width, full) + skip
    if head_width >= full:
        # One constant in all, of which the skip connection has one too.
        rank -= heads
    return min(total, rank)


def require_capacity(config: AttentionOnlyConfig, contexts: Tensor) -> None:
    """Raise `InputError` where no weights of `config` give the features of `contexts` (T, S) full rank; says why not."""
    total, length = len(contexts), config.context
    last = len(contexts[:, -1].unique())
    if length == 1:
        # One context is one token: the features are those of the skip connection.
        rank = min(config.width, last)
    else:
        full = config.vocab_size + length - 1
        rank = config.heads * min(config.head_width, full) + min(config.width, last)
        if config.head_width >= full:
            rank -= config.heads
    if rank >= total:
        return
    if length == 1:
        mend = (
            f"with one token of context attention is the identity and heads add nothing: {total} contexts need a "
            f"width of {total}, or a longer context"
        )
        raise InputError("width", config.width, mend)
    each = min(config.head_width, config.vocab_size + length - 1)
    needed = -(-(total - min(config.width, last)) // max(1, each))
    mend = (
        f"{total} contexts need features of rank {total}; {config.heads} heads of {config.head_width} and the skip "
        f"connection ({min(config.width, last)}) have {rank}: use {needed} heads, and 5 % more for good numbers"
    )
    raise InputError("heads", config.heads, mend)
