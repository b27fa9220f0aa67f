"""Random streams with names, the only source of random numbers in the package.

Every random decision of a sampler is a call `choose(log_weights, rows) -> index`. `Streams.choose` uses one
random stream per sample, so the result does not depend on the batch or the number of threads.
`Enumeration.choose` (`trialogue.enumeration`) visits all possible results instead.
"""

import hashlib
import math
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.compilation import compiled
from trialogue.errors import InputError
from trialogue.exponentials import BLOCK, exponentials_of_block, largest, sums_of_exponentials
from trialogue.indices import first_outside, require_floats, require_int64
from trialogue.validation import Natural, check

Choose = Callable[[Tensor, Tensor], Tensor]
"""Function from log-weights (n, k) and rows (n,) to one index (n,) of positive weight per row."""

GAMMA = np.uint64(0x9E3779B97F4A7C15)
_ROWS = "give row indices (n,) in int64"
_ONE_ROW_EACH = "give log-weights (n, k) in float32 or float64, one row for each draw"


def derive_seed(seed: int, *names: object) -> int:
    """Derive a 63-bit seed from a seed and names.

    Raises:
        InputError: If the seed is not an integer of at least 0.
    """
    text = "\x1f".join(map(str, (check("seed", seed, Natural), *names)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def generator(seed: int, *names: object, device: torch.device | str = "cpu") -> torch.Generator:
    """Return a torch random generator for a seed and names. Different names give independent streams."""
    return torch.Generator(device).manual_seed(derive_seed(seed, *names))


def numpy_generator(seed: int, *names: object) -> np.random.Generator:
    """Return a NumPy random generator for a seed and names. Different names give independent streams."""
    return np.random.default_rng(derive_seed(seed, *names))


@compiled
def mix(x: np.uint64) -> np.uint64:
    """Scramble 64 bits: the output function of the random generator SplitMix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


_WRAPPED = 2**64
"""Subtracting this from a 64-bit constant gives the int64 with the same bits."""


def random_bits(keys: Tensor, counters: Tensor) -> Tensor:
    """Return 64 random bits for each pair of a key and a counter, by integer arithmetic on any device.

    Args:
        keys: Keys of `Streams`, int64.
        counters: Index of the number in each stream, int64, broadcast against `keys`.

    Returns:
        The bits of uint64 numbers as int64.
    """
    x = keys + counters * (int(GAMMA) - _WRAPPED)
    x = (x ^ ((x >> 30) & (2**34 - 1))) * (0xBF58476D1CE4E5B9 - _WRAPPED)
    x = (x ^ ((x >> 27) & (2**37 - 1))) * (0x94D049BB133111EB - _WRAPPED)
    return x ^ ((x >> 31) & (2**33 - 1))


@compiled
def stream_key(seed: np.uint64, number: np.uint64) -> np.uint64:
    """Return the key of random stream `number` under `seed`.

    Number t of the stream is `mix(key + t * GAMMA)`.
    """
    return mix(mix(number + np.uint64(1)) * GAMMA + seed)


@compiled
def _spread(seed: np.uint64, keys: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    for index in range(len(keys)):
        out[index] = np.int64(stream_key(seed, np.uint64(keys[index])))


@compiled
def invert(uniform: float, weights: NDArray[np.floating[Any]]) -> int:
    """Return the first index whose cumulative weight exceeds `uniform` times the total.

    The index has positive weight, even if rounding increases the target to the total. It is -1 if the total is not
    positive.
    """
    blocks = (len(weights) + BLOCK - 1) // BLOCK
    sums = np.zeros(blocks)
    total = 0.0
    for block in range(blocks):
        for index in range(block * BLOCK, min((block + 1) * BLOCK, len(weights))):
            sums[block] += weights[index]
        total += sums[block]
    if not total > 0:
        return -1
    target, below, block = uniform * total, 0.0, 0
    while block < blocks - 1 and below + sums[block] <= target:
        below += sums[block]
        block += 1
    for index in range(block * BLOCK, len(weights)):
        below += weights[index]
        if below > target and weights[index] > 0:
            return index
    last = len(weights) - 1
    while weights[last] == 0:
        last -= 1
    return last


@compiled
def _invert_exponentials(uniform: float, log_weights: NDArray[np.float32]) -> int:
    """Return the same as `invert` for the exponentials of log-weights, without storing all of them."""
    blocks = (len(log_weights) + BLOCK - 1) // BLOCK
    sums, maximum = np.empty(blocks), largest(log_weights)
    total = sums_of_exponentials(log_weights, maximum, sums)
    if not total > 0:
        return -1
    target, below, block, last = uniform * total, 0.0, 0, -1
    while block < blocks - 1 and below + sums[block] <= target:
        below += sums[block]
        block += 1
    weights, powers = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.int32)
    for further in range(block, blocks):
        exponentials_of_block(log_weights, maximum, further, powers, weights)
        for index in range(BLOCK):
            below += weights[index]
            if weights[index] > 0:
                last = further * BLOCK + index
                if below > target:
                    return last
    while last < 0:
        block -= 1
        exponentials_of_block(log_weights, maximum, block, powers, weights)
        for index in range(BLOCK):
            if weights[index] > 0:
                last = block * BLOCK + index
    return last


@compiled
def _invert_rows(
    uniforms: NDArray[np.float64], weights: NDArray[np.floating[Any]], out: NDArray[np.int64]
) -> int:
    """Write the selected index of each row to `out`. Return -1 if all weights of a row are zero, otherwise 0."""
    smallest = 0
    for row in range(len(uniforms)):
        out[row] = invert(uniforms[row], weights[row])
        smallest = min(smallest, out[row])
    return smallest


@compiled
def _invert_exponential_rows(
    uniforms: NDArray[np.float64], log_weights: NDArray[np.float32], out: NDArray[np.int64]
) -> int:
    """Do the same as `_invert_rows`, given log-weights."""
    smallest = 0
    for row in range(len(uniforms)):
        out[row] = _invert_exponentials(uniforms[row], log_weights[row])
        smallest = min(smallest, out[row])
    return smallest


def invert_rows(uniform: Tensor, weights: Tensor) -> Tensor:
    """Select indices by inverting the cumulative distribution function, by tensor operations on any device.

    The result is the same as for `select_index`, up to rounding errors of sums.

    Args:
        uniform: Numbers (n,) from 0 to 1.
        weights: Weights (n, k).

    Returns:
        Indices (n,) int64.

    Raises:
        InputError: If all weights of a row are zero.
    """
    below = weights.double().cumsum(-1)
    if not bool((below[:, -1] > 0).all()):
        raise no_choice()
    possible = weights > 0
    beyond = possible & (below > (uniform * below[:, -1])[:, None])
    # `argmax` returns the first of equal values. If rounding increases the target to the total, no index is beyond it.
    last = weights.shape[-1] - 1 - possible.flip(-1).byte().argmax(-1)
    return torch.where(beyond.any(-1), beyond.byte().argmax(-1), last)


def _select(uniform: Tensor, log_weights: Tensor) -> Tensor:
    """Return the same as `select_index`, without checking the arguments."""
    if log_weights.device.type != "cpu":
        return invert_rows(uniform, log_weights.softmax(-1))
    index = torch.empty(len(uniform), dtype=torch.int64)
    if log_weights.dtype == torch.float32:
        wrong = _invert_exponential_rows(uniform.numpy(), log_weights.numpy(), index.numpy())
    else:
        # `softmax` is a single pass. `exp` takes six times as long if weights are zero.
        wrong = _invert_rows(uniform.numpy(), log_weights.softmax(-1).numpy(), index.numpy())
    if wrong:
        raise no_choice()
    return index


def select_index(uniform: Tensor, log_weights: Tensor) -> Tensor:
    """Select indices by inverting the cumulative distribution function.

    Args:
        uniform: Numbers (n,) from 0 to 1.
        log_weights: Log-weights (n, k).

    Returns:
        Indices (n,) int64 of positive weight.

    Raises:
        InputError: If all weights of a row are zero, a number is not from 0 to 1, or a shape or dtype is wrong.
    """
    require_floats("uniform", uniform, (None,), "give one number from 0 to 1 for each row")
    require_floats("log_weights", log_weights, (len(uniform), None), _ONE_ROW_EACH)
    outside = uniform[~((uniform >= 0) & (uniform <= 1))]
    if len(outside):
        raise InputError("uniform", float(outside[0]), "give one number from 0 to 1 for each row")
    return _select(uniform, log_weights)


def no_choice() -> InputError:
    """Return the error for a row in which every option has weight zero."""
    return InputError(
        "log_weights",
        -math.inf,
        "every option has probability zero, or one is NaN; give at least one a positive weight",
    )


@compiled
def next_uniform(keys: NDArray[np.int64], counters: NDArray[np.int64], row: int) -> float:
    """Return the next number in [0, 1) of stream `row`, for compiled loops, and increment its counter."""
    counters[row] += 1
    bits = mix(np.uint64(keys[row]) + np.uint64(counters[row]) * GAMMA)
    return np.float64(bits >> np.uint64(11)) * 2.0**-53


@compiled
def _no_such_row(rows: NDArray[np.int64], streams: int) -> bool:
    """Return whether one of `rows` does not exist."""
    outside = False
    for index in range(len(rows)):
        outside |= (rows[index] < 0) | (rows[index] >= streams)
    return outside


@compiled
def _uniforms(
    keys: NDArray[np.int64], counters: NDArray[np.int64], rows: NDArray[np.int64], out: NDArray[np.float64]
) -> int:
    """Write the next number of the stream of each row to `out`. Returns 0, or -2 if a row does not exist."""
    if _no_such_row(rows, len(keys)):
        return -2
    for index in range(len(rows)):
        out[index] = next_uniform(keys, counters, rows[index])
    return 0


class Streams:
    """Independent random streams, one for each row of a batch.

    The key of a stream depends on the sample and not on the batch. Streams draw the same uniform numbers on every
    device. On devices other than the CPU, the rows of one call must differ.

    Args:
        seed: Seed of the streams.
        keys: Key (rows,) int64 of each stream, on the device of the streams.

    Attributes:
        keys: Internal keys (rows,) int64.
        counters: Number (rows,) int64 of random numbers drawn from each stream.
    """

    def __init__(self, seed: int, keys: Tensor) -> None:
        require_int64("keys", keys, (None,), "give one number in int64 for each row")
        own = torch.empty_like(keys, device="cpu")
        _spread(np.uint64(derive_seed(seed, "streams")), keys.cpu().numpy(), own.numpy())
        self.keys = own.to(keys.device)
        self.counters = torch.zeros_like(keys)

    def of(self, rows: Tensor) -> "Streams":
        """Return copies of the streams of the rows `rows` (n,), in this order."""
        chosen = copy(self)
        chosen.keys, chosen.counters = self.keys[rows], self.counters[rows]
        return chosen

    def uniform(self, rows: Tensor) -> Tensor:
        """Draw the next number in [0, 1) of some streams.

        Args:
            rows: Rows (n,) int64.

        Returns:
            Numbers (n,) float64.

        Raises:
            InputError: If a row does not exist.
        """
        require_int64("rows", rows, (None,), _ROWS)
        if self.keys.device.type != "cpu":
            self.counters[rows] += 1
            bits = random_bits(self.keys[rows], self.counters[rows])
            return ((bits >> 11) & (2**53 - 1)).double() * 2.0**-53
        uniform = torch.empty(len(rows), dtype=torch.float64)
        if _uniforms(self.keys.numpy(), self.counters.numpy(), rows.numpy(), uniform.numpy()):
            raise self._no_stream(rows)
        return uniform

    def choose(self, log_weights: Tensor, rows: Tensor) -> Tensor:
        """Draw one index per row in proportion to weights, with the next uniform random number of each stream.

        Args:
            log_weights: Log-weights (n, k).
            rows: Rows (n,) int64.

        Returns:
            Indices (n,) int64.

        Raises:
            InputError: If all weights of a row are zero, a row does not exist, or a shape or dtype is wrong.
        """
        require_int64("rows", rows, (None,), _ROWS)
        require_floats("log_weights", log_weights, (len(rows), None), _ONE_ROW_EACH)
        return _select(self.uniform(rows), log_weights)

    def _no_stream(self, rows: Tensor) -> InputError:
        """Return the error for the first of `rows` that does not exist."""
        return InputError(
            "rows",
            first_outside(rows, len(self.keys)),
            f"use rows below {len(self.keys)}, the number of streams",
        )

    def select(self, rows: Tensor) -> None:
        """Keep only the streams of `rows` (n,), in this order."""
        self.keys, self.counters = self.keys[rows], self.counters[rows]

    def extend(self, other: "Streams") -> None:
        """Append the streams of `other`."""
        self.keys = torch.cat((self.keys, other.keys))
        self.counters = torch.cat((self.counters, other.counters))
