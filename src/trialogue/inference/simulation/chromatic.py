"""Heat bath of many chains by whole-tensor operations, on any device: all sites of one colour at a time.

Sites that do not look at each other may be drawn together (the chromatic sampler of Gonzalez, Low, Gretton and Guestrin
2011): a sweep goes through the colours, and each step is the exact conditional law of its sites, from the tables that
the compiled `HeatBath` reads. Chain c draws number n of its own SplitMix64 stream, in whole numbers alone, so that its
tokens depend neither on how many chains there are nor on the device, bit for bit.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trialogue.arrays import checked_device
from trialogue.data import Ising, PottsLaw
from trialogue.errors import whole_number
from trialogue.inference.simulation.contexts import ALIAS_BITS, Contexts, checked_start, contexts_of
from trialogue.randomness import Streams, numbers_of_64_bits, seed_of

_LOWER = 2**32 - 1


class Colour(NamedTuple):
    """Sites that are drawn together: `sites` (s,), and (s, D) their `neighbours`, `strides`, with `offsets` (s, 1)."""

    sites: Tensor
    neighbours: Tensor
    strides: Tensor
    offsets: Tensor


def colours_of(contexts: Contexts) -> list[list[int]]:
    """The sites of each colour: none looks at another of its own. Greedy, in the order of the sites."""
    looked_at: list[set[int]] = [set() for _ in range(contexts.sites)]
    for site, place in zip(*(contexts.strides > 0).nonzero(), strict=True):
        other = int(contexts.neighbours[site, place])
        looked_at[site].add(other)
        looked_at[other].add(int(site))
    colour: list[int] = []
    for site, others in enumerate(looked_at):
        taken = {colour[other] for other in others if other < site}
        colour.append(next(number for number in range(len(taken) + 1) if number not in taken))
    return [[site for site, own in enumerate(colour) if own == number] for number in range(max(colour) + 1)]


class Chromatic:
    """`chains` independent chains on one model, each with a stream of its own, moved by sweeps over its colours.

    `model` is one that `contexts_of` knows. Chains start at independent uniform tokens, or at `tokens`
    (chains, N), and live on `device`. Raises `InputError` where the table would be too large.
    """

    def __init__(
        self,
        model: Ising | PottsLaw | Contexts,
        chains: int,
        seed: int,
        tokens: Tensor | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        contexts, device = contexts_of(model), checked_device(device)
        chains = whole_number("chains", chains, 1)
        self._vocab, self._sites = contexts.vocab, contexts.sites
        self._entries = torch.from_numpy(contexts.entries.astype(np.int64)).to(device)
        self._colours = [_colour(contexts, sites, device) for sites in colours_of(contexts)]
        self._keys = Streams(seed_of(seed, "chromatic"), torch.arange(chains)).keys.to(device)
        self._used = 0
        if tokens is None:
            numbers = self._numbers(torch.arange(self._sites, device=device))
            self._tokens = ((numbers * self._vocab) >> 32).to(torch.uint8)
        else:
            tokens = checked_start("tokens", tokens, self._sites, self._vocab, chains)
            self._tokens = tokens.to(device, torch.uint8).T.contiguous()
        self._used = self._sites

    @property
    def tokens(self) -> Tensor:
        """Tokens (chains, N) int64, on the device."""
        return self._tokens.T.long()

    def advance(self, sweeps: int) -> None:
        """Update every site of every chain so many times, colour by colour."""
        for _ in range(whole_number("sweeps", sweeps, 0)):
            for colour in self._colours:
                contexts = colour.offsets.expand(-1, len(self._keys)).clone()
                for neighbours, strides in zip(colour.neighbours.T, colour.strides.T, strict=True):
                    contexts += self._tokens[neighbours] * strides[:, None]
                self._tokens[colour.sites] = self._drawn(contexts, self._numbers(colour.sites))
            self._used += self._sites

    def _numbers(self, sites: Tensor) -> Tensor:
        """A number of 32 bits (sites, chains) int64 for each of the `sites` in this sweep."""
        return (numbers_of_64_bits(self._keys, self._used + 1 + sites[:, None]) >> 32) & _LOWER

    def _drawn(self, contexts: Tensor, numbers: Tensor) -> Tensor:
        if self._vocab == 2:
            return (numbers < self._entries[contexts]).to(torch.uint8)
        product = numbers * self._vocab
        column = product >> 32
        entry = self._entries[contexts + column]
        keeps = ((product & _LOWER) >> ALIAS_BITS) < (entry >> ALIAS_BITS)
        return torch.where(keeps, column, entry & (2**ALIAS_BITS - 1)).to(torch.uint8)


def _colour(contexts: Contexts, sites: list[int], device: torch.device | str) -> Colour:
    columns = (
        contexts.neighbours[sites],
        contexts.strides[sites].astype(np.int64),
        contexts.offsets[sites, None].astype(np.int64),
    )
    return Colour(
        torch.tensor(sites).to(device), *(torch.from_numpy(column).to(device) for column in columns)
    )
