"""The chromatic heat bath: colours, every number again in whole numbers, and the distribution of what comes out."""

import pytest
import torch

from mutants.modules import altered
from samplers.chains.simulation.reference_kernels import (
    mix,
)
from samplers.chains.simulation.test_heat_bath import TABLES
from trialogue.randomness import GAMMA, Streams, seed_of
from trialogue.samplers.chains.simulation import chromatic as module
from trialogue.samplers.chains.simulation.chromatic import Chromatic, colours_of


@pytest.mark.parametrize("name", TABLES)
def test_no_site_looks_at_another_of_its_colour(name):
    tables = TABLES[name]
    colours = colours_of(tables)
    assert sorted(site for sites in colours for site in sites) == list(range(tables.sites))
    for sites in colours:
        for site in sites:
            beside = tables.neighbours[site][tables.strides[site] > 0]
            assert not set(beside.tolist()) & set(sites)


def by_hand(tables, chain, seed, sweeps):
    """Tokens (N,) of one chain, number by number."""
    key = int(Streams(seed_of(seed, "chromatic"), torch.tensor([chain])).keys[0])

    def number(count):
        return mix((key + count * int(GAMMA)) % 2**64) >> 32

    vocab, sites = tables.vocab_size, tables.sites
    tokens = [number(1 + site) * vocab >> 32 for site in range(sites)]
    for sweep in range(1, sweeps + 1):
        for site in (site for colour in colours_of(tables) for site in colour):
            strides = [int(stride) for stride in tables.strides[site]]
            beside = [tokens[neighbour] for neighbour in tables.neighbours[site]]
            place = int(tables.offsets[site]) + sum(map(int.__mul__, strides, beside))
            drawn = number(sweep * sites + 1 + site)
            if vocab == 2:
                tokens[site] = int(drawn < int(tables.entries[place]))
                continue
            column, rest = divmod(drawn * vocab, 2**32)
            threshold, alias = divmod(int(tables.entries[place + column]), 32)
            tokens[site] = column if rest // 32 < threshold else alias
    return tokens


def strays(kind, tables) -> bool:
    simulation = kind(tables, 5, 3)
    for _ in range(3):
        simulation.advance(1)
    return any(simulation.tokens[chain].tolist() != by_hand(tables, chain, 3, 3) for chain in (0, 4))


@pytest.mark.parametrize("name", TABLES)
def test_chains_are_what_their_own_numbers_make_of_the_tables(name):
    assert not strays(Chromatic, TABLES[name])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ring", ("numbers < self", "numbers <= ~self")),
        ("windows", ("torch.where(keeps, column", "torch.where(~keeps, column")),
        ("windows", ("places + column", "places")),
        ("disordered", ("self._used += self._sites", "self._used += 1")),
        (
            "ring",
            ("site, others in enumerate(looked_at)", "site, others in enumerate([[]] * len(looked_at))"),
        ),
    ],
)
def test_mutants_are_told_apart(name, change):
    assert strays(altered(module, change, compiled=False)["Chromatic"], TABLES[name])
