"""Published capacities of attention-only transformers and the accuracy that they imply.

Corollaries 1 and 2 of the document on memorization in attention-only transformers, and the bound that it
improves.
"""

from typing import Annotated

from annotated_types import Ge

from trialogue.validation import Count, Natural, NonNegative, validated


@validated
def capacity(width: Count, head_width: Count, heads: Natural) -> int:
    """Return H d_h + d, the number of associations or distributions that Theorem 1 stores."""
    return heads * head_width + width


@validated
def previous_capacity(head_width: Count, heads: Natural) -> int:
    """Return H (d_h - 1) + 1 of Mahdavi, Liao and Thrampoulidis 2024, for contexts of at most d tokens."""
    return heads * (head_width - 1) + 1


@validated
def accuracy_bound(stored: NonNegative, contexts: Count, vocab_size: Annotated[int, Ge(2)]) -> float:
    """Return phi(X) = 1 / N + (1 - 1 / N) X / T (Corollary 2), or 1 if X >= T.

    It is the accuracy on T equally likely contexts if X are stored and the others are answered by chance.

    Args:
        stored: Number X of stored contexts.
        contexts: Number T of contexts.
        vocab_size: Number N of tokens.
    """
    share = min(1.0, stored / contexts)
    chance = 1 / vocab_size
    return chance + (1 - chance) * share
