"""Compiled Gibbs sampling (heat bath) that updates the same site of many chains at once.

Chains are stored in blocks of `LANES` chains, as tokens (sites, LANES). Each chain has its own xoshiro128+
random generator (Blackman and Vigna 2021), so its result does not depend on the number of chains or threads.
"""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.compilation import compiled, run_over_rows
from trialogue.data.site_tables import ALIAS_BITS, SiteTables, Tabulated, require_tabulated, validate_start
from trialogue.randomness import GAMMA, Streams, derive_seed, mix
from trialogue.validation import Count, Natural, validated

LANES = 128
"""Chains per block. Loops of constant length over arrays that do not alias are vectorised by the compiler."""

# Numba promotes uint32 with int64 to int64 and uint32 with uint32 to uint64, so every operand is converted.
_5, _9, _11, _21 = np.uint32(ALIAS_BITS), np.uint32(9), np.uint32(11), np.uint32(21)
_2, _32 = np.uint64(2), np.uint64(32)
_ALIAS = np.uint32((1 << ALIAS_BITS) - 1)


@compiled
def fill_splitmix64(keys: NDArray[np.int64], numbers: NDArray[np.uint64]) -> None:
    """Fill an array with random 64-bit numbers, one SplitMix64 stream per row.

    Args:
        keys: Key (n,) of the stream of each row.
        numbers: Output (n, k), the first k numbers of each stream.
    """
    for row in range(len(keys)):
        for place in range(numbers.shape[1]):
            numbers[row, place] = mix(np.uint64(keys[row]) + np.uint64(place + 1) * GAMMA)


def generator_states(seed: int, lanes: int) -> NDArray[np.uint32]:
    """Return the initial states of the random generators, one for each chain.

    Args:
        seed: Seed of the run.
        lanes: Number of chains, a multiple of `LANES`.

    Returns:
        States (lanes / LANES, 4 * LANES) uint32. The state of a chain depends only on the seed and the index of the
        chain.
    """
    numbers = np.empty((lanes, 2), np.uint64)
    fill_splitmix64(Streams(derive_seed(seed, "heat-bath"), torch.arange(lanes)).keys.numpy(), numbers)
    words = numbers.view(np.uint32).reshape(-1, LANES, 4)
    return np.ascontiguousarray(words.transpose(0, 2, 1)).reshape(-1, 4 * LANES)


@compiled
def draw_numbers(state: NDArray[np.uint32], numbers: NDArray[np.uint32]) -> None:
    """Draw one random 32-bit number for each chain of a block with xoshiro128+. Its lowest bits are not random enough.

    Args:
        state: States (4 * LANES,) of the generators. Modified in place.
        numbers: Output (LANES,).
    """
    for lane in range(LANES):
        a, b = state[lane], state[LANES + lane]
        c, d = state[2 * LANES + lane], state[3 * LANES + lane]
        numbers[lane] = np.uint32(a + d)
        shifted = np.uint32(b << _9)
        c = np.uint32(c ^ a)
        d = np.uint32(d ^ b)
        state[LANES + lane] = np.uint32(b ^ c)
        state[lane] = np.uint32(a ^ d)
        state[2 * LANES + lane] = np.uint32(c ^ shifted)
        state[3 * LANES + lane] = np.uint32(np.uint32(d << _11) | (d >> _21))


@compiled
def find_table_entries(
    tokens: NDArray[np.uint8],
    neighbours: NDArray[np.int64],
    strides: NDArray[np.uint32],
    offset: np.uint32,
    places: NDArray[np.uint32],
) -> None:
    """Find the table entry with the conditional distribution of one site, for each chain of a block.

    The entry is the offset of the site plus the sum, over its neighbours, of their stride times their token.

    Args:
        tokens: Current tokens (sites, LANES).
        neighbours: Neighbours (D,) of the site.
        strides: Strides (D,) of the neighbours in the table.
        offset: Offset of the site in the table.
        places: Output (LANES,), indices of the table entries.
    """
    places[:LANES] = offset
    for k in range(len(neighbours)):
        beside, stride = tokens[neighbours[k]], strides[k]
        for lane in range(LANES):
            places[lane] += np.uint32(stride * np.uint32(beside[lane]))


@compiled
def draw_binary_tokens(
    numbers: NDArray[np.uint32],
    places: NDArray[np.uint32],
    entries: NDArray[np.uint32],
    row: NDArray[np.uint8],
) -> None:
    """Draw new tokens of one site for a vocabulary of two tokens, in each chain of a block.

    Args:
        numbers: Random numbers (LANES,).
        places: Index (LANES,) of the distribution in the table.
        entries: The table. The token is 1 if the number is below the entry.
        row: Output: tokens (LANES,).
    """
    for lane in range(LANES):
        row[lane] = numbers[lane] < entries[places[lane]]


@compiled
def draw_alias_tokens(
    numbers: NDArray[np.uint32],
    places: NDArray[np.uint32],
    entries: NDArray[np.uint32],
    row: NDArray[np.uint8],
    vocab: np.uint64,
) -> None:
    """Draw new tokens of one site with an alias table, in each chain of a block of chains.

    The table stores the distributions of a token given its neighbors (see `trialogue.data.alias`). A distribution has
    one column per token, with a threshold and a second token, called its alias. A 32-bit random number u selects the
    column floor(u * vocab / 2^32). The next 27 bits of the product are compared with the threshold. If they are below
    it, the new token is that of the column, and otherwise the alias.

    Args:
        numbers: Random numbers (LANES,), one for each chain.
        places: Index (LANES,) in the table of the first column of each chain's distribution.
        entries: The table.
        row: Output: the new tokens (LANES,).
        vocab: Number of tokens.
    """
    for lane in range(LANES):
        product = np.uint64(numbers[lane]) * vocab
        column = np.uint32(product >> _32)
        entry = entries[np.uint32(places[lane] + column)]
        keeps = (np.uint32(product) >> _5) < (entry >> _5)
        row[lane] = np.uint8(column) if keeps else np.uint8(entry & _ALIAS)


@compiled
def sweep_blocks(
    first: int,
    last: int,
    tokens: NDArray[np.uint8],
    states: NDArray[np.uint32],
    neighbours: NDArray[np.int64],
    strides: NDArray[np.uint32],
    offsets: NDArray[np.uint32],
    entries: NDArray[np.uint32],
    vocab: np.uint64,
    sweeps: int,
) -> None:
    """Run Gibbs sweeps for some blocks of chains, updating all sites in order.

    Args:
        first: Index of the first block.
        last: Index after the last block.
        tokens: Tokens (blocks, sites, LANES). Modified in place.
        states: Generator states (blocks, 4 * LANES). Modified in place.
        neighbours: Neighbours (sites, D) of each site.
        strides: Strides (sites, D) of the neighbours in the table.
        offsets: Offsets (sites,) of the sites in the table.
        entries: Table of the conditional distributions.
        vocab: Number of tokens.
        sweeps: Number of sweeps.
    """
    places, numbers = np.empty(LANES, np.uint32), np.empty(LANES, np.uint32)
    for block in range(first, last):
        values, state = tokens[block], states[block]
        for _ in range(sweeps):
            for site in range(len(values)):
                find_table_entries(values, neighbours[site], strides[site], offsets[site], places)
                draw_numbers(state, numbers)
                if vocab == _2:
                    draw_binary_tokens(numbers, places, entries, values[site])
                else:
                    draw_alias_tokens(numbers, places, entries, values[site], vocab)


class HeatBath:
    """Many independent Gibbs chains on one model, run by compiled code on the CPU.

    A sweep visits every site (position) once in order, and replaces its token by a draw given the tokens of all other
    sites.

    Args:
        model: A model that provides its conditional distributions as tables.
        chains: Number of chains.
        seed: Seed of the random streams.
        tokens: Start (chains, N) of each chain (default: independent uniform tokens).

    Raises:
        InputError: If the table would be too large.
    """

    @validated
    def __init__(self, model: Tabulated, chains: Count, seed: Natural, tokens: Tensor | None = None) -> None:
        self._tables = require_tabulated(model).site_tables()
        self._chains, self._sites = chains, self._tables.sites
        blocks = -(-chains // LANES)
        self._states = generator_states(seed, blocks * LANES)
        self._tokens = np.zeros((blocks, self._sites, LANES), np.uint8)
        if tokens is None:
            self._sweep(_make_uniform_tables(self._tables), 1)
        else:
            tokens = validate_start("tokens", tokens, self._sites, self._tables.vocab_size, chains)
            lanes = np.zeros((blocks * LANES, self._sites), np.uint8)
            lanes[:chains] = tokens.numpy()
            self._tokens[:] = lanes.reshape(blocks, LANES, -1).transpose(0, 2, 1)

    @validated
    def advance(self, sweeps: Natural) -> None:
        """Update every site of every chain `sweeps` times, in the order of the sites."""
        self._sweep(self._tables, sweeps)

    @property
    def tokens(self) -> Tensor:
        """Tokens (chains, N) int64."""
        lanes = self._tokens.transpose(0, 2, 1).reshape(-1, self._sites)
        return torch.from_numpy(lanes[: self._chains].astype(np.int64))

    def _sweep(self, tables: SiteTables, sweeps: int) -> None:
        arrays = (tables.neighbours, tables.strides, tables.offsets, tables.entries)
        width = self._sites * LANES * sweeps
        distributions = (*arrays, np.uint64(tables.vocab_size), sweeps)
        run_over_rows(sweep_blocks, len(self._tokens), width, self._tokens, self._states, *distributions)


def _make_uniform_tables(tables: SiteTables) -> SiteTables:
    """Return tables of the same shape as `tables` in which all values are equally probable."""
    # A column whose alias is itself needs no threshold.
    entries = [2**31] if tables.vocab_size == 2 else range(tables.vocab_size)
    return replace(
        tables,
        neighbours=tables.neighbours[:, :0],
        strides=tables.strides[:, :0],
        offsets=np.zeros_like(tables.offsets),
        entries=np.array(entries, np.uint32),
    )
