"""Named streams of random numbers: the only place where generators are made.

Every random decision of a sampler is one word, `choose(log_weights, rows) -> index`. Given `Streams` it samples:
counter-based (SplitMix64, Steele, Lea and Flood 2014), one stream per sample, so that a result depends neither on
the batch nor on the number of threads. Given an `Enumeration` the same code visits every branch.
"""

import hashlib
import math
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

Choose = Callable[[Tensor, Tensor], Tensor]
"""`choose(log_weights (n, k), rows (n,)) -> index (n,)`, never an index whose weight is zero."""

_GAMMA = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX_1 = 0xBF58476D1CE4E5B9 - (1 << 64)
_MIX_2 = 0x94D049BB133111EB - (1 << 64)

Result = TypeVar("Result")


def seed_of(seed: int, *names: object) -> int:
    """A 63-bit seed for the stream `names` under `seed`: another name, another independent stream."""
    text = "\x1f".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def generator(seed: int, *names: object, device: torch.device | str = "cpu") -> torch.Generator:
    """Return the torch generator of the stream `names`."""
    return torch.Generator(device).manual_seed(seed_of(seed, *names))


def numpy_generator(seed: int, *names: object) -> np.random.Generator:
    """Return the numpy generator of the stream `names`."""
    return np.random.default_rng(seed_of(seed, *names))


def _mix(x: Tensor) -> Tensor:
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * _MIX_1
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * _MIX_2
    return x ^ ((x >> 31) & 0x1FFFFFFFF)


def index_of(uniform: Tensor, log_weights: Tensor) -> Tensor:
    """The index (n,) that `uniform` (n,) in [0, 1) picks from `log_weights` (n, k) by inverting the CDF.

    An index of weight zero is never picked. Raises `ZeroDivisionError` where all weights of a row are zero.
    """
    top = log_weights.max(-1, keepdim=True).values
    if not bool(torch.isfinite(top).all()):
        raise ZeroDivisionError("every choice has weight zero")
    cumulative = (log_weights - top).double().exp().cumsum(-1)
    total = cumulative[:, -1:]
    # Rounding can lift uniform * total to total itself, past the last index of positive weight.
    target = (uniform[:, None] * total).clamp_max(torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, target, right=True)[:, 0]


class Streams:
    """One stream per row, keyed by what the row samples and not by where it lies in the batch.

    `keys` (rows,) int64 name the samples; `counters` (rows,) say how many numbers each has used.
    """

    def __init__(self, seed: int, keys: Tensor) -> None:
        self._seed = seed_of(seed, "streams")
        self.keys = _mix(_mix(keys + 1) * _GAMMA + self._seed)
        self.counters = torch.zeros_like(keys)

    def uniform(self, rows: Tensor) -> Tensor:
        """The next number in [0, 1) of each row in `rows` (n,), float64."""
        counters = self.counters[rows] + 1
        self.counters[rows] = counters
        bits = _mix(self.keys[rows] + counters * _GAMMA)
        return ((bits >> 11) & ((1 << 53) - 1)).double() * 2.0**-53

    def choose(self, log_weights: Tensor, rows: Tensor) -> Tensor:
        """Draw one index per row (`Choose`)."""
        return index_of(self.uniform(rows), log_weights)

    def select(self, rows: Tensor) -> None:
        """Keep the streams of `rows`, in that order."""
        self.keys, self.counters = self.keys[rows], self.counters[rows]

    def extend(self, other: "Streams") -> None:
        """Append the streams of `other`."""
        self.keys = torch.cat((self.keys, other.keys))
        self.counters = torch.cat((self.counters, other.counters))


class Enumeration:
    """A `choose` that visits every branch: all groups of rows as one batch along one tape of choices at a time.

    Rows come in groups of `members`; each group is one state whose branches are wanted. At each call of `choose`
    the tape holds one digit per member, and the weight of a branch is the product of what its digits weigh.
    """

    def __init__(self, groups: int, members: int) -> None:
        self._groups, self._members = groups, members
        self._tape: list[tuple[list[int], int]] = []  # digits of one call, and their radix
        self._call = 0
        self._dead: int | None = None
        self._log_weight = torch.zeros(groups, dtype=torch.float64)

    def choose(self, log_weights: Tensor, rows: Tensor) -> Tensor:
        """Pick the digits of the tape (`Choose`) and multiply their probabilities into the branch's weight."""
        options = log_weights.shape[-1]
        if self._call == len(self._tape):
            self._tape.append(([0] * self._members, options))
        digits = torch.tensor(self._tape[self._call][0])
        group, member = rows // self._members, rows % self._members
        law = log_weights.double().log_softmax(-1)
        if bool(torch.isnan(law).any()):
            raise ZeroDivisionError("every choice has weight zero")
        index = digits[member]
        log_p = law.gather(1, index[:, None])[:, 0]
        self._log_weight.index_add_(0, group, log_p)
        absent = torch.ones(self._groups, self._members, dtype=torch.bool)
        absent[group, member] = False
        # A member that chooses nothing has one branch, not one per digit.
        self._log_weight[(absent & (digits != 0)).any(1)] = -math.inf
        if self._dead is None and not bool((self._log_weight > -math.inf).any()):
            self._dead = self._call
        self._call += 1
        return torch.where(log_p > -math.inf, index, law.argmax(-1))

    def branches(self, run: Callable[[], Result]) -> Iterator[tuple[Tensor, Result]]:
        """Run `run` once per tape; yield the weights (groups,) float64 of its branch and what it returned."""
        while True:
            self._call, self._dead = 0, None
            self._log_weight = torch.zeros(self._groups, dtype=torch.float64)
            result = run()
            if self._dead is None:
                yield self._log_weight.exp(), result
            else:
                del self._tape[self._dead + 1 :]
            if not self._advance():
                return

    def _advance(self) -> bool:
        while self._tape:
            digits, radix = self._tape[-1]
            for member in range(self._members):
                digits[member] += 1
                if digits[member] < radix:
                    return True
                digits[member] = 0
            self._tape.pop()
        return False
