"""Multispin coding: heat bath of Ising models with 64 chains per word of 64 bits, all by Boolean algebra.

For models whose sites each have equal couplings (rings, lattices, regular graphs, cliques; any fields), so that the
distribution of a site is a threshold by how many neighbours are up. A random number u of 52 bits per chain arrives bit
by bit, the most significant first, one random word for 64 chains, and u < t is decided by AND and OR of such words. No
more bits are drawn once all chains of a block are decided, about 16 of the 52.

Chains lie in blocks of `WORDS` words. Word w draws from a xoshiro256++ generator (Blackman and Vigna 2021) keyed by the
seed and w, and blocks are always computed whole: how many bits are drawn depends on the block's random words alone.
Chain c is therefore the same whatever the number of chains and threads.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from trialogue.compilation import over_rows
from trialogue.data import Ising
from trialogue.data.ising.neighbourhoods import SiteClass, neighbourhoods
from trialogue.data.site_tables import checked_start
from trialogue.errors import InputError
from trialogue.randomness import Streams, seed_of
from trialogue.samplers.chains.simulation.heat_bath import spread
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


def class_columns(kind: SiteClass) -> tuple[list[int], list[int], list[bool]]:
    """Thresholds of 52 bits that a class needs; which one each number of neighbours up reads, and whether flipped.

    Probabilities p and 1 - p share a threshold, the greater of the two in units of 2^-52: only one is used at a time.
    """
    column_of: dict[int, int] = {}
    column, flip = [], []
    for odds in kind.log_odds().ravel().tolist():
        threshold = round(float(expit(abs(odds))) * 2**BITS)
        # Certainty does not fit: it is that nothing is below zero.
        certain = threshold == 2**BITS
        column.append(column_of.setdefault(0 if certain else threshold, len(column_of)))
        flip.append((odds < 0) != certain)
    return list(column_of), column, flip


class Multispin:
    """`chains` independent chains on an Ising model whose sites each have equal couplings, 64 to a word.

    Chains start at independent uniform spins, or at `tokens` (chains, N). Raises `InputError` for a model some site of
    which has two different couplings.
    """

    @validated
    def __init__(self, model: Ising, chains: Count, seed: Natural, tokens: Tensor | None = None) -> None:
        if not isinstance(model, Ising):
            raise InputError("method", "multispin", 'needs an Ising model: use "heat-bath"')
        near = neighbourhoods(model.coupling, model.field)
        if any(len(kind.values) > 1 for kind in near.classes):
            raise InputError(
                "method", "multispin", 'needs the couplings of each site to be equal: use "heat-bath"'
            )
        self._chains, self._sites = chains, model.sites
        degrees = (near.group >= 0).sum(1)
        self._table = (near.neighbours.astype(np.uint64), degrees, near.of_site, *_packed(near.classes))
        blocks = -(-chains // (64 * WORDS))
        self._states = word_states(seed, blocks)
        self._spins = np.zeros((blocks, self._sites, WORDS), np.uint64)
        if tokens is None:
            free = SiteClass((), (), 0.0)
            nowhere = (self._table[0][:, :0], np.zeros_like(degrees), np.zeros_like(degrees))
            self._sweep((*nowhere, *_packed([free])), 1)
        else:
            start = checked_start("tokens", tokens, self._sites, model.vocab_size, chains)
            self._spins[:] = _words(start, blocks)

    @validated
    def advance(self, sweeps: Natural) -> None:
        """Update every site of every chain so many times, in the order of the sites."""
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
        over_rows(sweep_words, len(self._spins), width, spins, self._states, *table, sweeps)


def word_states(seed: int, blocks: int) -> Words:
    """States (blocks * 4 * WORDS,) of the generators of the first words; a word's depends on its number alone."""
    numbers = np.empty((blocks * WORDS, 4), np.uint64)
    spread(Streams(seed_of(seed, "multispin"), torch.arange(len(numbers))).keys.numpy(), numbers)
    words = numbers.reshape(blocks, WORDS, 4)
    return np.ascontiguousarray(words.transpose(0, 2, 1)).reshape(-1)


def _words(tokens: Tensor, blocks: int) -> Words:
    """Words (blocks, sites, WORDS) of `tokens` (chains, sites): chain c is bit c mod 64 of word c div 64."""
    chains = np.zeros((blocks * WORDS * 64, tokens.shape[1]), np.uint8)
    chains[: len(tokens)] = tokens.numpy()
    rows = np.packbits(chains.reshape(blocks, WORDS, 64, -1).transpose(0, 3, 1, 2), axis=3, bitorder="little")
    return np.ascontiguousarray(rows).view("<u8")[..., 0].astype(np.uint64)


def _packed(classes: list[SiteClass]) -> tuple[NDArray[np.generic], ...]:
    """Classes as the arrays of `sweep_words`: thresholds, lengths, columns, drawn, flip."""
    columns, thresholds = [0], []
    widest = max(sum(kind.counts) for kind in classes) + 1
    drawn, flip = np.zeros((2, len(classes), widest), np.uint64)
    for number, kind in enumerate(classes):
        thresholds_of_class, which, flipped = class_columns(kind)
        thresholds += thresholds_of_class
        columns.append(len(thresholds))
        drawn[number, : len(which)] = BELOW + np.array(which, np.uint64) * COLUMN
        flip[number, : len(which)] = np.where(flipped, ALL, NONE)
    masks = [[ALL if t >> (BITS - 1 - place) & 1 else NONE for place in range(BITS)] for t in thresholds]
    # A threshold of zero is still compared with, once, to say that nothing is below it.
    lengths = [BITS + 1 - (t & -t).bit_length() if t else 1 for t in thresholds]
    return np.array(masks), np.array(lengths), np.array(columns), drawn, flip
