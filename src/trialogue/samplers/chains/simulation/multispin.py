"""Multispin coding: Gibbs sampling of Ising models with 64 chains per 64-bit word, by bitwise operations.

All couplings of a site must be equal, as on rings, lattices and cliques. The probability of spin up then
depends only on the number of neighbors that are up, and is stored as a threshold. Each chain compares a
random number with the threshold, bit by bit, until all chains are decided. Each word has its own random
generator, so the result of a chain does not depend on the number of chains or threads.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from trialogue.compilation import run_over_rows
from trialogue.data import Ising
from trialogue.data.ising.neighbourhoods import SiteClass, find_neighbourhoods
from trialogue.data.site_tables import validate_start
from trialogue.errors import InputError
from trialogue.randomness import Streams, derive_seed
from trialogue.samplers.chains.simulation.heat_bath import fill_splitmix64
from trialogue.samplers.chains.simulation.multispin_kernels import (
    ALL,
    BELOW,
    BITS,
    COLUMN,
    NONE,
    WORDS,
    Words,
    sweep_words,
)
from trialogue.validation import Count, Natural, validated


def spin_thresholds(kind: SiteClass) -> tuple[list[int], list[int], list[bool]]:
    """Return the thresholds with which random numbers are compared to draw the spins of a class of sites.

    A threshold is the probability of spin up in units of 2^-52, one for each number of neighbors that are up.
    The probabilities p and 1 - p share a threshold. If it belongs to 1 - p, the result of the comparison is
    negated.

    Args:
        kind: A class of sites that have the same couplings and field.

    Returns:
        The thresholds, and two lists with an entry for each number of neighbors that are up: the index of the
            threshold, and whether the result of the comparison is negated.
    """
    column_of: dict[int, int] = {}
    column, flip = [], []
    for odds in kind.log_odds().ravel().tolist():
        threshold = round(float(expit(abs(odds))) * 2**BITS)
        # Probability one does not fit into 52 bits. It is the negation of a comparison with zero.
        certain = threshold == 2**BITS
        column.append(column_of.setdefault(0 if certain else threshold, len(column_of)))
        flip.append((odds < 0) != certain)
    return list(column_of), column, flip


class Multispin:
    """Many independent Gibbs chains on an Ising model, computed as bits: 64 chains per machine word.

    A spin of a chain is one bit of a word, so one word operation updates 64 chains. All couplings of a site to its
    neighbours must be equal. A sweep visits every site once in order.

    Args:
        model: The model.
        chains: Number of chains.
        seed: Seed of the random streams.
        tokens: Start (chains, N) of each chain (default: independent uniform spins).

    Raises:
        InputError: If a site has two different couplings.
    """

    @validated
    def __init__(self, model: Ising, chains: Count, seed: Natural, tokens: Tensor | None = None) -> None:
        if not isinstance(model, Ising):
            raise InputError("method", "multispin", 'use "heat-bath" for models other than Ising')
        near = find_neighbourhoods(model.coupling, model.field)
        if any(len(kind.values) > 1 for kind in near.classes):
            hint = 'use "heat-bath" if the couplings of a site are not equal'
            raise InputError("method", "multispin", hint)
        self._chains, self._sites = chains, model.sites
        degrees = (near.group >= 0).sum(1)
        self._table = (near.neighbours.astype(np.uint64), degrees, near.of_site, *_pack_classes(near.classes))
        blocks = -(-chains // (64 * WORDS))
        self._states = word_states(seed, blocks)
        self._spins = np.zeros((blocks, self._sites, WORDS), np.uint64)
        if tokens is None:
            free = SiteClass((), (), 0.0)
            nowhere = (self._table[0][:, :0], np.zeros_like(degrees), np.zeros_like(degrees))
            self._sweep((*nowhere, *_pack_classes([free])), 1)
        else:
            start = validate_start("tokens", tokens, self._sites, model.vocab_size, chains)
            self._spins[:] = _pack_spins(start, blocks)

    @validated
    def advance(self, sweeps: Natural) -> None:
        """Update every site of every chain `sweeps` times, in the order of the sites."""
        self._sweep(self._table, sweeps)

    @property
    def tokens(self) -> Tensor:
        """Tokens (chains, N) int64."""
        rows = np.ascontiguousarray(self._spins.transpose(0, 2, 1)).reshape(-1, self._sites)
        rows = rows[: -(-self._chains // 64)].astype("<u8")
        bits = np.unpackbits(rows[:, :, None].view(np.uint8), axis=2, bitorder="little")
        chains = bits.transpose(0, 2, 1).reshape(-1, self._sites)[: self._chains]
        return torch.from_numpy(chains.astype(np.int64))

    def _sweep(self, table: tuple[NDArray[np.generic], ...], sweeps: int) -> None:
        width = self._sites * WORDS * sweeps
        spins = self._spins.reshape(-1)
        run_over_rows(sweep_words, len(self._spins), width, spins, self._states, *table, sweeps)


def word_states(seed: int, blocks: int) -> Words:
    """Return the initial states of the random generators, one generator for each 64-bit word.

    Args:
        seed: Seed of the run.
        blocks: Number of blocks of `WORDS` words.

    Returns:
        States (blocks * 4 * WORDS,) uint64. The state of a word depends only on the seed and the index of the word.
    """
    numbers = np.empty((blocks * WORDS, 4), np.uint64)
    fill_splitmix64(Streams(derive_seed(seed, "multispin"), torch.arange(len(numbers))).keys.numpy(), numbers)
    words = numbers.reshape(blocks, WORDS, 4)
    return np.ascontiguousarray(words.transpose(0, 2, 1)).reshape(-1)


def _pack_spins(tokens: Tensor, blocks: int) -> Words:
    """Pack `tokens` (chains, sites) into words (blocks, sites, WORDS). Chain c is bit c mod 64 of word c div 64."""
    chains = np.zeros((blocks * WORDS * 64, tokens.shape[1]), np.uint8)
    chains[: len(tokens)] = tokens.numpy()
    rows = np.packbits(chains.reshape(blocks, WORDS, 64, -1).transpose(0, 3, 1, 2), axis=3, bitorder="little")
    return np.ascontiguousarray(rows).view("<u8")[..., 0].astype(np.uint64)


def _pack_classes(classes: list[SiteClass]) -> tuple[NDArray[np.generic], ...]:
    """Convert classes of sites with equal couplings to the arrays that `sweep_words` needs."""
    columns, thresholds = [0], []
    widest = max(sum(kind.counts) for kind in classes) + 1
    drawn, flip = np.zeros((2, len(classes), widest), np.uint64)
    for number, kind in enumerate(classes):
        thresholds_of_class, which, flipped = spin_thresholds(kind)
        thresholds += thresholds_of_class
        columns.append(len(thresholds))
        drawn[number, : len(which)] = BELOW + np.array(which, np.uint64) * COLUMN
        flip[number, : len(which)] = np.where(flipped, ALL, NONE)
    masks = [[ALL if t >> (BITS - 1 - place) & 1 else NONE for place in range(BITS)] for t in thresholds]
    # A threshold of zero needs one comparison, whose result is always false.
    lengths = [BITS + 1 - (t & -t).bit_length() if t else 1 for t in thresholds]
    return np.array(masks), np.array(lengths), np.array(columns), drawn, flip
