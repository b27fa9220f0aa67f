"""Gibbs sampling of many chains by tensor operations, on any device.

The sites (positions) are colored so that no two neighbors have the same color. All sites of one color are
updated together (Gonzalez, Low, Gretton and Guestrin 2011). Each chain uses its own random stream, so its
tokens do not depend on the number of chains or the device.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trialogue.arrays import parse_device
from trialogue.data.site_tables import ALIAS_BITS, SiteTables, Tabulated, require_tabulated, validate_start
from trialogue.randomness import Streams, derive_seed, random_bits
from trialogue.validation import Count, Natural, validated

_LOWER = 2**32 - 1


class Colour(NamedTuple):
    """Tables for updating all sites of one colour together. No two sites of a colour are neighbours.

    All conditional distributions are stored in one table. The entry of a site is its offset plus the sum, over its
    neighbours, of their stride times their token.

    Attributes:
        sites: Sites (s,).
        neighbours: Neighbours (s, D) of each site.
        strides: Strides (s, D) of the neighbours in the table.
        offsets: Offsets (s, 1) of the sites in the table.
    """

    sites: Tensor
    neighbours: Tensor
    strides: Tensor
    offsets: Tensor


def colour_sites(tables: SiteTables) -> list[list[int]]:
    """Assign a colour to each site (position) so that neighbours have different colours.

    Args:
        tables: Conditional distributions of the sites, with their neighbours.

    Returns:
        The sites of each colour.
    """
    neighbours_of: list[set[int]] = [set() for _ in range(tables.sites)]
    for site, place in zip(*(tables.strides > 0).nonzero(), strict=True):
        other = int(tables.neighbours[site, place])
        neighbours_of[site].add(other)
        neighbours_of[other].add(int(site))
    colour: list[int] = []
    for site, others in enumerate(neighbours_of):
        taken = {colour[other] for other in others if other < site}
        colour.append(next(number for number in range(len(taken) + 1) if number not in taken))
    return [
        [site for site, its_colour in enumerate(colour) if its_colour == number]
        for number in range(max(colour) + 1)
    ]


class Chromatic:
    """Many independent Gibbs chains on one model, run by tensor operations on any device.

    A colour is a set of sites (positions) of which no two are neighbours, so that their tokens can be drawn together
    given all other tokens. A sweep updates the sites of each colour once.

    Args:
        model: A model that provides its conditional distributions as tables.
        chains: Number of chains.
        seed: Seed of the random streams.
        tokens: Start (chains, N) of each chain (default: independent uniform tokens).
        device: Device of the chains (default: the CPU).

    Raises:
        InputError: If the table would be too large.
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
        tables, device = require_tabulated(model).site_tables(), parse_device(device)
        self._vocab, self._sites = tables.vocab_size, tables.sites
        self._entries = torch.from_numpy(tables.entries.astype(np.int64)).to(device)
        self._colours = [_make_colour_tables(tables, sites, device) for sites in colour_sites(tables)]
        self._keys = Streams(derive_seed(seed, "chromatic"), torch.arange(chains)).keys.to(device)
        self._used = 0
        if tokens is None:
            numbers = self._numbers(torch.arange(self._sites, device=device))
            self._tokens = ((numbers * self._vocab) >> 32).to(torch.uint8)
        else:
            tokens = validate_start("tokens", tokens, self._sites, self._vocab, chains)
            self._tokens = tokens.to(device, torch.uint8).T.contiguous()
        self._used = self._sites

    @property
    def tokens(self) -> Tensor:
        """Tokens (chains, N) int64, on the device."""
        return self._tokens.T.long()

    @validated
    def advance(self, sweeps: Natural) -> None:
        """Run `sweeps` Gibbs sweeps. A sweep updates every site once, all sites of a colour together."""
        for _ in range(sweeps):
            for colour in self._colours:
                places = colour.offsets.expand(-1, len(self._keys)).clone()
                for neighbours, strides in zip(colour.neighbours.T, colour.strides.T, strict=True):
                    places += self._tokens[neighbours] * strides[:, None]
                self._tokens[colour.sites] = self._draw_tokens(places, self._numbers(colour.sites))
            self._used += self._sites

    def _numbers(self, sites: Tensor) -> Tensor:
        """Return a 32-bit number (sites, chains) int64 for each of the `sites` in this sweep."""
        return (random_bits(self._keys, self._used + 1 + sites[:, None]) >> 32) & _LOWER

    def _draw_tokens(self, places: Tensor, numbers: Tensor) -> Tensor:
        if self._vocab == 2:
            return (numbers < self._entries[places]).to(torch.uint8)
        product = numbers * self._vocab
        column = product >> 32
        entry = self._entries[places + column]
        keeps = ((product & _LOWER) >> ALIAS_BITS) < (entry >> ALIAS_BITS)
        return torch.where(keeps, column, entry & (2**ALIAS_BITS - 1)).to(torch.uint8)


def _make_colour_tables(tables: SiteTables, sites: list[int], device: torch.device | str) -> Colour:
    columns = (
        tables.neighbours[sites],
        tables.strides[sites].astype(np.int64),
        tables.offsets[sites, None].astype(np.int64),
    )
    return Colour(
        torch.tensor(sites).to(device), *(torch.from_numpy(column).to(device) for column in columns)
    )
