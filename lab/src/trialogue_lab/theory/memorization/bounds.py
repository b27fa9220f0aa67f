"""How many contexts a network of given dimensions is said to hold, and what accuracy that promises.

Corollaries 1 and 2 of the document on memorization in attention-only transformers, and the bound that it improves on.
"""

from typing import Annotated

from annotated_types import Ge

from trialogue.validation import Count, Natural, NonNegative, validated


@validated
def capacity(width: Count, head_width: Count, heads: Natural) -> int:
    """H d_h + d: how many associations or laws Theorem 1 stores."""
    return heads * head_width + width


@validated
def previous_capacity(head_width: Count, heads: Natural) -> int:
    """H (d_h - 1) + 1, of Mahdavi, Liao and Thrampoulidis 2024, who need contexts of at most d tokens."""
    return heads * (head_width - 1) + 1


@validated
def accuracy_bound(stored: NonNegative, contexts: Count, vocab_size: Annotated[int, Ge(2)]) -> float:
    """phi(X) = 1 / N + (1 - 1 / N) X / T: the accuracy of X of T equally likely contexts, and chance on the others.

    Corollary 2; one where X is T or more.
    """
    share = min(1.0, stored / contexts)
    chance = 1 / vocab_size
    return chance + (1 - chance) * share
