"""Probabilities that a model continues a sequence with given byte strings, summed over their tokenizations."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Autoregressive, as_context
from trialogue.oracles.prefix_features import prefix_features
from trialogue.verifiers.languages.token_spellings import TokenSpellings, token_spellings

_ROWS = 16
_MAX_NODES = 2000


class _Node(NamedTuple):
    """Beginning of a tokenization of some byte strings."""

    path: tuple[int, ...]
    mass: float
    """Probability of `path`."""
    length: int
    """Number of bytes of `path`."""
    targets: list[int]
    """Indices of the byte strings that begin with `path`."""


class SpellingSum:
    """Probability that a model continues a sequence with each of several byte strings.

    The probability of a byte string is the sum over all token sequences whose bytes begin with it, and of which all
    shorter beginnings do not. First, the usual tokenization of each byte string is explored. The beginnings of other
    tokenizations follow in the order of their estimated contribution. The estimate assumes that the rest of a byte
    string is as probable as after its usual tokenization.

    Args:
        start: Number of tokens of the sequence that is continued.
        targets: The byte strings. None is the beginning of another one.
        ends: Whether an end-of-sequence token must follow each byte string directly.
        tolerance: Stop if the estimated contribution of unexplored token sequences is at most this share of the total.
        tokenization: Tokenization of the model.

    Attributes:
        start: Number of tokens of the sequence that is continued.
        longest: Length of the longest byte string.
        masses: Probability of each byte string, of the token sequences explored so far.
        usual: Usual tokenization of each byte string. Empty if it has none.
    """

    def __init__(
        self, start: int, targets: Sequence[bytes], ends: bool, tolerance: float, tokenization: Tokenization
    ) -> None:
        self.start, self.longest, self.masses = start, max(map(len, targets)), [0.0] * len(targets)
        self.usual = [_usual_tokens(tokenization, target) for target in targets]
        self._targets, self._ends, self._tolerance = targets, ends, tolerance
        self._waiting = dict[tuple[int, ...], _Node]()
        self._waiting[()] = _Node((), 1.0, 0, list(range(len(targets))))
        self._reached = [list[tuple[int, float]]() for _ in targets]
        self._queue = list[tuple[float, tuple[int, ...]]]()
        self._explored, self._is_ordered = 0, False

    def usual_prefixes(self, index: int) -> range:
        """Return the lengths of the beginnings of the usual tokenization that are explored first."""
        return range(len(self.usual[index]) + self._ends)

    def order(self) -> None:
        """Order the unexplored beginnings by their estimated contributions. All usual tokenizations are explored."""
        self._is_ordered = True
        self._shares = [
            # The probability of the rest is at most 1, if it is not known.
            [(length, mass / reached if mass else 1.0) for length, reached in places] or [(0, 1.0)]
            for mass, places in zip(self.masses, self._reached, strict=True)
        ]
        for node in self._waiting.values():
            self._enqueue(node)

    @property
    def is_finished(self) -> bool:
        """Whether the unexplored token sequences can be neglected."""
        unexplored = -math.fsum(negative for negative, _ in self._queue)
        return self._explored >= _MAX_NODES or unexplored <= self._tolerance * (sum(self.masses) + unexplored)

    def pop(self) -> tuple[int, ...] | None:
        """Return the unexplored beginning with the largest estimated contribution, or None."""
        return heappop(self._queue)[1] if self._queue else None

    def expand(
        self, path: tuple[int, ...], probabilities: Tensor, spellings: "TokenSpellings", eos: int | None
    ) -> None:
        """Extend a beginning by one token, unless it is explored already.

        Args:
            path: Tokens of the beginning.
            probabilities: Probabilities (vocab,) float64 of the next token.
            spellings: Bytes of the tokens.
            eos: End-of-sequence token of the model.
        """
        node = self._waiting.pop(path, None)
        if node is None:
            return
        self._explored += 1
        longer = defaultdict[tuple[int, int], list[int]](list)
        for index in node.targets:
            if self.usual[index][: len(path)] == path:
                self._reached[index].append((node.length, node.mass))
            rest = self._targets[index][node.length :]
            if self._ends:
                if not rest and eos is not None:
                    self.masses[index] += float(probabilities[eos]) * node.mass
                tokens = spellings.beginnings_of(rest)
            else:
                completing = spellings.continuations_of(rest)
                self.masses[index] += float(probabilities[completing].sum()) * node.mass
                tokens = spellings.beginnings_of(rest[:-1])
            for length, token in tokens:
                longer[token, length].append(index)
        for (token, length), targets in longer.items():
            mass = float(probabilities[token]) * node.mass
            if mass:
                following = _Node((*path, token), mass, node.length + length, targets)
                self._waiting[following.path] = following
                if self._is_ordered:
                    self._enqueue(following)

    def _enqueue(self, node: _Node) -> None:
        estimate = math.fsum(
            node.mass
            * next(share for length, share in reversed(self._shares[index]) if length <= node.length)
            for index in node.targets
        )
        heappush(self._queue, (-estimate, node.path))


def _usual_tokens(tokenization: Tokenization, target: bytes) -> tuple[int, ...]:
    try:
        return tuple(tokenization.encode_completion(target.decode()))
    except (InputError, UnicodeDecodeError):
        return ()


def explore_spellings(
    oracle: Autoregressive, tokenization: Tokenization, sequence: Sequence[int], sums: Sequence[SpellingSum]
) -> Iterator[None]:
    """Compute the probabilities of several sums that continue beginnings of the same sequence.

    Call this in `torch.inference_mode()`.

    Args:
        oracle: The model. Temperature and truncation are ignored.
        tokenization: Tokenization of the model.
        sequence: Token ids of prompt and completion.
        sums: The sums. They are modified.

    Yields:
        None after each forward pass.
    """
    spellings = token_spellings(tokenization)
    yield from _explore_usual(oracle, spellings, sequence, sums)
    capacity = max([len(sequence), *(one.start + one.longest for one in sums)])
    if oracle.max_length is not None:
        capacity = min(capacity, oracle.max_length)
    context = as_context(oracle.open(1 + _ROWS, capacity))
    tokens = torch.zeros(1 + _ROWS, capacity, dtype=torch.int64)
    tokens[:, : len(sequence)] = torch.tensor(sequence, dtype=torch.int64)
    first, last = min(one.start for one in sums), max(one.start for one in sums)
    others, is_filled = torch.arange(1, 1 + _ROWS), False
    while active := [one for one in sums if not one.is_finished]:
        if not is_filled:
            row_zero = torch.zeros(1, dtype=torch.int64)
            context.features(tokens[:1], row_zero + context.first, row_zero + last, row_zero)
            context.copy(torch.zeros_like(others), others, 0, last)
            is_filled = True
        paths = _choose_paths(active, capacity)
        if not paths:
            continue
        rows = others[: len(paths)]
        # Earlier paths have overwritten the cached positions after the first start.
        context.copy(torch.zeros_like(rows), rows, first, last)
        start = torch.tensor([one.start + bool(path) for one, path in paths])
        stop = torch.tensor([one.start + len(path) for one, path in paths])
        for row, (one, path) in enumerate(paths, 1):
            tokens[row, : one.start] = tokens[0, : one.start]
            tokens[row, one.start : one.start + len(path)] = torch.tensor(path)
        features = context.features(tokens[rows], start, stop, rows)
        found = context.distributions(features)[1].double().cpu().exp()
        for (one, path), probabilities in zip(paths, found, strict=True):
            one.expand(path, probabilities, spellings, oracle.eos)
        yield


def _explore_usual(
    oracle: Autoregressive, spellings: TokenSpellings, sequence: Sequence[int], sums: Sequence[SpellingSum]
) -> Iterator[None]:
    """Explore the usual tokenizations of all byte strings, each in a single forward pass."""
    usual = [
        (one, path, one.usual_prefixes(index))
        for one in sums
        for index, path in enumerate(one.usual)
        if oracle.max_length is None or one.start + len(path) <= oracle.max_length
    ]
    sequences = [[*sequence[: one.start], *path] for one, path, _ in usual]
    lengths = [range(one.start, one.start + len(prefixes)) for one, _, prefixes in usual]
    for part in prefix_features(oracle, sequences, lengths, batch_size=_ROWS):
        # Beginnings of a path precede its continuations in every part.
        for begin in range(0, len(part.prefixes), _ROWS):
            features = part.features[begin : begin + _ROWS]
            found = part.context.distributions(features)[1].double().cpu().exp()
            for (place, turn), probabilities in zip(part.prefixes[begin : begin + _ROWS], found, strict=True):
                one, path, _ = usual[place]
                one.expand(path[:turn], probabilities, spellings, oracle.eos)
        yield
    for one in sums:
        one.order()


def _choose_paths(active: Sequence[SpellingSum], capacity: int) -> list[tuple[SpellingSum, tuple[int, ...]]]:
    """Remove the first beginnings of all sums that are not finished, and return those that fit the context."""
    paths = list[tuple[SpellingSum, tuple[int, ...]]]()
    for _ in range(max(1, _ROWS // len(active))):
        for one in active[: _ROWS - len(paths)]:
            path = one.pop()
            if path is not None and one.start + len(path) <= capacity:
                paths.append((one, path))
    return paths
