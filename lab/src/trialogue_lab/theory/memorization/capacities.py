"""Published formulas for the number of contexts that an attention-only transformer can store.

A context is stored if the network predicts the right next token or distribution after it. The formulas are Corollaries
1 and 2 of the document on memorization in attention-only transformers, and the earlier bound that it improves.
"""

from typing import Annotated

from annotated_types import Ge

from trialogue.validation import Count, Natural, NonNegative, validated


@validated
def capacity(width: Count, head_width: Count, heads: Natural) -> int:
    """Return the number of contexts that a network can store with arbitrary distributions (Theorem 1).

    It is H d_h + d, for H heads of width d_h and embedding width d. A context is stored if the network returns any
    given next-token distribution after it.

    Args:
        width: Width d of the embeddings.
        head_width: Width d_h of the values of a head.
        heads: Number of attention heads H.
    """
    return heads * head_width + width


@validated
def previous_capacity(head_width: Count, heads: Natural) -> int:
    """Return the number of contexts that a network can store by an earlier bound.

    It is H (d_h - 1) + 1, for H heads of width d_h. A context is stored if the network predicts a given next token
    after it. The bound is from Mahdavi, Liao and Thrampoulidis (2024), for contexts of at most d tokens and embeddings
    of width d.

    Args:
        head_width: Width d_h of the values of a head.
        heads: Number of attention heads H.
    """
    return heads * (head_width - 1) + 1


@validated
def accuracy_bound(stored: NonNegative, contexts: Count, vocab_size: Annotated[int, Ge(2)]) -> float:
    """Return the accuracy of a network that stores some contexts and guesses the next token after all others.

    It is phi(X) = 1 / N + (1 - 1 / N) X / T (Corollary 2), or 1 if X >= T. The contexts are equally likely.

    Args:
        stored: Number X of stored contexts.
        contexts: Number T of contexts.
        vocab_size: Number N of tokens.
    """
    share = min(1.0, stored / contexts)
    chance = 1 / vocab_size
    return chance + (1 - chance) * share
