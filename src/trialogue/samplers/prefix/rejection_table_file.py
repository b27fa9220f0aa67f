"""Conversion of rejection tables to tensors, which can be stored in a file, and back."""

import math

import torch
from torch import Tensor

from trialogue.samplers.prefix.rejection_table import ACCEPTED, REJECTED, Child, RejectionTable

_OUTPUT = -1
"""Number of continuations that marks a complete output."""


def table_to_tensors(table: RejectionTable | None) -> dict[str, Tensor]:
    """Convert a table to tensors, with one entry for each of its n prefixes in depth-first order.

    Args:
        table: A table, or None if no prefix was visited.

    Returns:
        Four tensors by name. "token" (n,) int32 is the last token of each prefix, and "log_prob" (n,) float64 is its
        log-probability. They are -1 and 0 for the first prefix. "num_children" (n,) int32 is the number of visited
        continuations, or -1 for a complete output. "log_unvisited" (n,) float64 is the log-probability of all
        continuations by a token that was not visited, or an upper bound of it.
    """
    tokens, log_probs, counts, unvisited = list[int](), list[float](), list[int](), list[float]()
    stack = [] if table is None else [(-1, Child(0.0, table))]
    while stack:
        token, (log_prob, table) = stack.pop()
        tokens.append(token)
        log_probs.append(log_prob)
        counts.append(_OUTPUT if table is ACCEPTED else len(table.children))
        unvisited.append(table.log_unvisited)
        stack += reversed(table.children.items())
    return {
        "token": torch.tensor(tokens, dtype=torch.int32),
        "log_prob": torch.tensor(log_probs, dtype=torch.float64),
        "num_children": torch.tensor(counts, dtype=torch.int32),
        "log_unvisited": torch.tensor(unvisited, dtype=torch.float64),
    }


def table_from_tensors(tensors: dict[str, Tensor]) -> RejectionTable | None:
    """Restore a table from the tensors that `table_to_tensors` has returned."""
    names = ("token", "log_prob", "num_children", "log_unvisited")
    finished: list[tuple[int, Child]] = []
    # In reverse order, all continuations of a prefix come before the prefix.
    for token, log_prob, count, log_unvisited in zip(
        *(tensors[name].flip(0).tolist() for name in names), strict=True
    ):
        if count == _OUTPUT:
            table = ACCEPTED
        elif not count and log_unvisited == -math.inf:
            table = REJECTED
        else:
            table = RejectionTable(log_unvisited, dict(finished[len(finished) - count :]))
            del finished[len(finished) - count :]
        finished.append((token, Child(log_prob, table)))
    return finished[0][1].table if finished else None


def num_new_prefixes(before: RejectionTable | None, after: RejectionTable | None) -> int:
    """Count the prefixes that have been added to a table since an earlier version of it.

    Parts that both tables share are skipped, so this is fast.

    Args:
        before: The earlier table of a prefix, or None.
        after: The later table, or None.
    """
    new = 0
    stack = [(before, after)]
    while stack:
        first, second = stack.pop()
        if first is second:
            continue
        new += (second is not None) - (first is not None)
        known = {} if first is None else first.children
        others = {} if second is None else second.children
        for token in known.keys() | others.keys():
            before_child, after_child = known.get(token), others.get(token)
            stack.append(
                (
                    None if before_child is None else before_child.table,
                    None if after_child is None else after_child.table,
                )
            )
    return new
