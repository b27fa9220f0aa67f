"""How many contexts a network of given dimensions is said to hold, and what accuracy that promises.

Corollaries 1 and 2 of the document on memorization in attention-only transformers, and the bound that it improves on.
"""

from trialogue.errors import non_negative_number, whole_number


def capacity(width: int, head_width: int, heads: int) -> int:
    """H d_h + d: how many associations or laws Theorem 1 stores."""
    return whole_number("heads", heads, 0) * whole_number("head_width", head_width, 1) + whole_number(
        "width", width, 1
    )


def previous_capacity(head_width: int, heads: int) -> int:
    """H (d_h - 1) + 1, of Mahdavi, Liao and Thrampoulidis 2024, who need contexts of at most d tokens."""
    return whole_number("heads", heads, 0) * (whole_number("head_width", head_width, 1) - 1) + 1


def accuracy_bound(stored: float, contexts: int, vocab_size: int) -> float:
    """phi(X) = 1 / N + (1 - 1 / N) X / T: the accuracy of X of T equally likely contexts, and chance on the others.

    Corollary 2; one where X is T or more.
    """
    share = min(1.0, non_negative_number("stored", stored) / whole_number("contexts", contexts, 1))
    chance = 1 / whole_number("vocab_size", vocab_size, 2)
    return chance + (1 - chance) * share
