"""Heat bath of many chains by whole-tensor operations, on any device: all sites of one colour at a time.

Sites that do not look at each other may be drawn together (the chromatic sampler of Gonzalez, Low, Gretton and Guestrin
2011): a sweep goes through the colours, and each step is the exact conditional distribution of its sites, from the
tables that the compiled `HeatBath` reads. Chain c draws number n of its own SplitMix64 stream, in whole numbers alone,
so that its tokens depend neither on how many chains there are nor on the device, bit for bit.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trialogue.arrays import checked_device
from trialogue.data.site_tables import ALIAS_BITS, SiteTables, Tabulated, checked_start, tabulated
from trialogue.randomness import Streams, numbers_of_64_bits, seed_of
from trialogue.validation import Count, Natural, validated

_LOWER = 2**32 - 1


class Colour(NamedTuple):
    """Sites that are drawn together: `sites` (s,), and (s, D) their `neighbours`, `strides`, with `offsets` (s, 1)."""

    sites: Tensor
    neighbours: Tensor
    strides: Tensor
    offsets: Tensor


def colours_of(tables: SiteTables) -> list[list[int]]:
    """The sites of each colour: none looks at another of its own. Greedy, in the order of the sites."""
    looked_at: list[set[int]] = [set() for _ in range(tables.sites)]
    for site, place in zip(*(tables.strides > 0).nonzero(), strict=True):
        other = int(tables.neighbours[site, place])
        looked_at[site].add(other)
        looked_at[other].add(int(site))
    colour: list[int] = []
    for site, others in enumerate(looked_at):
        taken = {colour[other] for other in others if other < site}
        colour.append(next(number for number in range(len(taken) + 1) if number not in taken))
    return [
        [site for site, its_colour in enumerate(colour) if its_colour == number]
        for number in range(max(colour) + 1)
    ]


class Chromatic:
    """`chains` independent chains on one model, each with a stream of its own, moved by sweeps over its colours.

    The model says its conditional distributions as tables. Chains start at independent uniform tokens, or at `tokens`
    (chains, N), and live on `device`. Raises `InputError` where the table would be too large.
    """

    @validated
    def __init__(
        self,
        model: Tabulated,
        chains: Count,
        seed: Natural,
        tokens: Tensor | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        tables, device = tabulated(model).site_tables(), checked_device(device)
        self._vocab, self._sites = tables.vocab_size, tables.sites
        self._entries = torch.from_numpy(tables.entries.astype(np.int64)).to(device)
        self._colours = [_colour(tables, sites, device) for sites in colours_of(tables)]
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

    @validated
    def advance(self, sweeps: Natural) -> None:
        """Update every site of every chain so many times, colour by colour."""
        for _ in range(sweeps):
            for colour in self._colours:
                places = colour.offsets.expand(-1, len(self._keys)).clone()
                for neighbours, strides in zip(colour.neighbours.T, colour.strides.T, strict=True):
                    places += self._tokens[neighbours] * strides[:, None]
                self._tokens[colour.sites] = self._drawn(places, self._numbers(colour.sites))
            self._used += self._sites

    def _numbers(self, sites: Tensor) -> Tensor:
        """A number of 32 bits (sites, chains) int64 for each of the `sites` in this sweep."""
        return (numbers_of_64_bits(self._keys, self._used + 1 + sites[:, None]) >> 32) & _LOWER

    def _drawn(self, places: Tensor, numbers: Tensor) -> Tensor:
        if self._vocab == 2:
            return (numbers < self._entries[places]).to(torch.uint8)
        product = numbers * self._vocab
        column = product >> 32
        entry = self._entries[places + column]
        keeps = ((product & _LOWER) >> ALIAS_BITS) < (entry >> ALIAS_BITS)
        return torch.where(keeps, column, entry & (2**ALIAS_BITS - 1)).to(torch.uint8)


def _colour(tables: SiteTables, sites: list[int], device: torch.device | str) -> Colour:
    columns = (
        tables.neighbours[sites],
        tables.strides[sites].astype(np.int64),
        tables.offsets[sites, None].astype(np.int64),
    )
    return Colour(
        torch.tensor(sites).to(device), *(torch.from_numpy(column).to(device) for column in columns)
    )
