"""The chromatic heat bath: colours, and every random number in integer arithmetic."""

import pytest
import torch

from samplers.chains.simulation.reference_kernels import draw_token, mix
from samplers.chains.simulation.test_heat_bath import TABLES
from trialogue.randomness import GAMMA, Streams, derive_seed
from trialogue.samplers.chains.simulation.chromatic import Chromatic, colour_sites


@pytest.mark.parametrize("name", TABLES)
def test_no_site_has_a_neighbour_of_its_colour(name):
    tables = TABLES[name]
    colours = colour_sites(tables)
    assert sorted(site for sites in colours for site in sites) == list(range(tables.sites))
    for sites in colours:
        for site in sites:
            neighbours = tables.neighbours[site][tables.strides[site] > 0]
            assert not set(neighbours.tolist()) & set(sites)


def reference_tokens(tables, chain, seed, sweeps):
    """Return the tokens (N,) of one chain, computed number by number."""
    key = int(Streams(derive_seed(seed, "chromatic"), torch.tensor([chain])).keys[0])

    def number(count):
        return mix((key + count * int(GAMMA)) % 2**64) >> 32

    vocab, sites = tables.vocab_size, tables.sites
    tokens = [number(1 + site) * vocab >> 32 for site in range(sites)]
    for sweep in range(1, sweeps + 1):
        for site in (site for colour in colour_sites(tables) for site in colour):
            tokens[site] = draw_token(tables, tokens, site, number(sweep * sites + 1 + site))
    return tokens


@pytest.mark.parametrize("name", TABLES)
def test_chains_equal_the_reference_with_the_same_numbers(name):
    simulation = Chromatic(TABLES[name], 5, 3)
    for _ in range(3):
        simulation.advance(1)
    for chain in (0, 4):
        assert simulation.tokens[chain].tolist() == reference_tokens(TABLES[name], chain, 3, 3)
