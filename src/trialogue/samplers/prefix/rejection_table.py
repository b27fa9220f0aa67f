"""Tables of rejected prefixes, with which `AdaptiveRejection` avoids drawing a rejected prefix again."""

import math
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Optional

import torch
from torch import Tensor


class Child(NamedTuple):
    """A visited one-token continuation of a prefix.

    Attributes:
        log_prob: Log-probability of the token given the prefix.
        table: The table of the continuation.
    """

    log_prob: float
    table: "RejectionTable"


def _log_sum(terms: Sequence[float]) -> float:
    """Return log(sum(exp(terms))). The addition rounds once, so the result does not depend on the order of terms."""
    most = max(terms)
    if most == -math.inf:
        return most
    return most + math.log(math.fsum([math.exp(term - most) for term in terms if term > -math.inf]))


class RejectionTable:
    """What `AdaptiveRejection` knows about the continuations of one prefix: drawn tokens and remaining probability.

    The open mass of a prefix is the probability, given the prefix, of all completions that are not known to
    be rejected. It is a sum of positive terms, because one minus the rejected mass would lose precision. The
    tables of all visited prefixes form a tree of immutable objects.

    Args:
        log_unvisited: Log-probability (or an upper bound of it) of all tokens that have not been drawn after
            the prefix and are not known to be rejected.
        children: The tokens drawn after the prefix, each with the table of the longer prefix.

    Attributes:
        log_open: Logarithm of the open mass of the prefix.
    """

    def __init__(self, log_unvisited: float, children: Mapping[int, Child]) -> None:
        self.log_unvisited = log_unvisited
        self.children = dict(sorted(children.items()))
        self._masses = [
            log_unvisited,
            *(log_prob + table.log_open for log_prob, table in self.children.values()),
        ]
        self.log_open: float = _log_sum(self._masses)
        tables = [child.table for child in self.children.values()]
        self._size: int = 1 + sum([table._size for table in tables])
        self._hash: int = hash((self.log_open, *self.children, *[table._hash for table in tables]))

    @property
    def _own(self) -> tuple[float, list[tuple[int, float]]]:
        """Return the two fields of this table, without the tables of longer prefixes."""
        return self.log_unvisited, [(token, log_prob) for token, (log_prob, _) in self.children.items()]

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RejectionTable):
            return NotImplemented
        # A stack instead of recursion, because outputs can be longer than Python's limit of nested calls.
        stack = [(self, other)]
        while stack:
            one, another = stack.pop()
            if one is another:
                continue
            if hash(one) != hash(another) or one._own != another._own:
                return False
            pairs = zip(one.children.values(), another.children.values(), strict=True)
            stack += [(child.table, other_child.table) for child, other_child in pairs]
        return True

    def child(self, token: int) -> Optional["RejectionTable"]:
        """Return the table of the prefix followed by `token`, or None if it has not been visited."""
        child = self.children.get(token)
        return None if child is None else child.table

    @cached_property
    def tokens(self) -> Tensor:
        """Tokens (k,) int64 of the visited continuations, in ascending order."""
        return torch.tensor(list(self.children), dtype=torch.int64)

    @cached_property
    def log_masses(self) -> Tensor:
        """Log-probabilities (1 + k,) float64, given this prefix, of completions that are not known to be rejected.

        The first entry is `log_unvisited`. The others are the completions that begin with each of the k
        visited `tokens`.
        """
        return torch.tensor(self._masses, dtype=torch.float64)

    def with_unvisited(self, log_unvisited: float) -> "RejectionTable":
        """Return a copy with another `log_unvisited`, or `REJECTED` if it excludes all completions."""
        return _table(log_unvisited, self.children)

    def __len__(self) -> int:
        """Number of prefixes in this table, including the prefix itself."""
        return self._size


_NOISE, _CERTAIN = 1e-4, 1e-2
"""Bound of the relative error of probabilities that a network computes in different batches, in single precision, and
smallest share of a probability for which a difference is used."""
_IMPRECISE = (
    f"the model's probabilities differ by more than {_NOISE:.2%} between batches, so samples that share rejection "
    "tables are only approximately exact; load the model in float32, or do not share tables"
)
REJECTED = RejectionTable(-math.inf, {})
"""Table of a prefix that the verifier rejects."""
ACCEPTED = RejectionTable(0.0, {})
"""Table of a complete output that the verifier accepts."""


class Visit(NamedTuple):
    """One token drawn by `AdaptiveRejection`. The visits of an attempt form a linked list.

    Attributes:
        before: Previous visit of the attempt, None at the prompt.
        table: Table of the prefix before the attempt, None if the prefix was new.
        token: The drawn token.
        log_prob: Log-probability of the token given the prefix.
        log_unvisited: Log-probability of the tokens that are still unvisited and not known to be rejected
            after this draw.
        is_allowed: Whether the verifier's mask allows the token, None if the verifier must be called for it.
    """

    before: Optional["Visit"]
    table: RejectionTable | None
    token: int
    log_prob: float
    log_unvisited: float
    is_allowed: bool | None


def update_root_table(last: Visit | None, end: RejectionTable | None) -> RejectionTable:
    """Return the table of the prompt, extended by the tokens drawn in one attempt.

    Args:
        last: Last drawn token of the attempt, or None if no token was drawn.
        end: Table of the sequence after the last token, or None if a mask excludes the token.

    Returns:
        The new table of the prompt. It is `end` if no token was drawn.
    """
    table = end
    while last is not None:
        children = {} if last.table is None else dict(last.table.children)
        if table is not None:
            children[last.token] = Child(last.log_prob, table)
        table = _table(last.log_unvisited, children)
        last = last.before
    assert table is not None
    return table


def merge_tables(first: RejectionTable | None, second: RejectionTable | None) -> RejectionTable | None:
    """Merge two tables of the same prefix. The result contains every prefix that one of them contains.

    Its `log_unvisited` is an upper bound of the unvisited probability. The next draw of an unvisited token at
    the prefix computes the exact value.

    Args:
        first: A table, or None if the prefix was not visited.
        second: A table, or None.

    Returns:
        A table with the entries of both.

    Warns:
        RuntimeWarning: If the two tables give the same token different probabilities (beyond float32
            rounding).
    """
    is_precise = _have_equal_probabilities(first, second)
    if not is_precise:
        warnings.warn(_IMPRECISE, RuntimeWarning, stacklevel=2)
    # A stack instead of recursion, because outputs can be longer than Python's limit of nested calls.
    finished = list[RejectionTable | None]()
    stack = [(first, second, False)]
    while stack:
        one, other, is_expanded = stack.pop()
        if one is None or other is None or one is other:
            finished.append(other if one is None else one)
        elif one is ACCEPTED or one is REJECTED or other is ACCEPTED or other is REJECTED:
            finished.append(one if one is ACCEPTED or one is REJECTED else other)
        elif not is_expanded:
            stack.append((one, other, True))
            # The tables of all tokens are finished in reverse order.
            stack += [(one.child(token), child.table, False) for token, child in other.children.items()]
        else:
            begin = len(finished) - len(other.children)
            tables = reversed(finished[begin:])
            del finished[begin:]
            children = dict(one.children)
            for (token, child), table in zip(other.children.items(), tables, strict=True):
                assert table is not None
                children[token] = Child(child.log_prob, table)
            # Both differences are upper bounds of the same probability.
            log_unvisited = min(
                (_bound_unvisited(one, other), _bound_unvisited(other, one))
                if is_precise
                else (one.log_unvisited, other.log_unvisited)
            )
            finished.append(_table(log_unvisited, children))
    return finished[0]


def _have_equal_probabilities(first: RejectionTable | None, second: RejectionTable | None) -> bool:
    """Return whether two tables assign the same probabilities to all tokens, up to `_NOISE`."""
    stack = [(first, second)]
    while stack:
        one, other = stack.pop()
        if one is None or other is None or one is other:
            continue
        for token in one.children.keys() & other.children.keys():
            child, another = one.children[token], other.children[token]
            if abs(child.log_prob - another.log_prob) > _NOISE:
                return False
            stack.append((child.table, another.table))
    return True


def _bound_unvisited(table: RejectionTable, other: RejectionTable) -> float:
    """Return an upper bound of the log-probability of the tokens that neither of two tables has visited."""
    new = [child.log_prob for token, child in other.children.items() if token not in table.children]
    if not new or table.log_unvisited == -math.inf:
        return table.log_unvisited
    rest = 1 - math.fsum(math.exp(log_prob - table.log_unvisited) for log_prob in new)
    # A small difference of noisy numbers has no certain digit.
    return table.log_unvisited + (math.log(min(rest + _NOISE, 1.0)) if rest > _CERTAIN else 0.0)


def _table(log_unvisited: float, children: Mapping[int, Child]) -> RejectionTable:
    """Create a table from its two fields, or return `REJECTED` if it excludes all completions."""
    table = RejectionTable(log_unvisited, children)
    return REJECTED if table.log_open == -math.inf else table
