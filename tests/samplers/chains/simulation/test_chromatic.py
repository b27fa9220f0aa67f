"""The chromatic heat bath: colours, every number again in whole numbers, and the distribution of what comes out."""

import pytest
import torch

from mutants.modules import altered
from samplers.chains.simulation.reference_kernels import (
    ALPHA,
    correlation_error,
    disordered,
    mix,
    p_value,
    power,
    ring,
    star,
)
from samplers.chains.simulation.test_heat_bath import TABLES, window_law, windows
from trialogue.data import PottsChain, window_tables
from trialogue.errors import InputError
from trialogue.randomness import GAMMA, Streams, generator, seed_of
from trialogue.samplers import run_sweeps
from trialogue.samplers.chains.simulation import chromatic as module
from trialogue.samplers.chains.simulation.chromatic import Chromatic, colours_of

SAMPLES = 2**15


@pytest.mark.parametrize("name", TABLES)
def test_no_site_looks_at_another_of_its_colour(name):
    tables = TABLES[name]
    colours = colours_of(tables)
    assert sorted(site for sites in colours for site in sites) == list(range(tables.sites))
    for sites in colours:
        for site in sites:
            beside = tables.neighbours[site][tables.strides[site] > 0]
            assert not set(beside.tolist()) & set(sites)


def test_rings_take_two_or_three_colours_and_stars_two():
    models = (ring(8, 0.3), ring(7, 0.3), star(6), disordered(1))
    assert [len(colours_of(model.site_tables())) for model in models] == [2, 3, 2, 1]


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


def test_chains_depend_neither_on_their_number_nor_on_their_calls():
    model = disordered(12)
    many = run_sweeps(model, chains=300, sweeps=9, seed=4, method="chromatic")
    assert torch.equal(run_sweeps(model, chains=3, sweeps=9, seed=4, method="chromatic"), many[:3])
    assert not torch.equal(run_sweeps(model, chains=300, sweeps=9, seed=5, method="chromatic"), many)
    simulation = Chromatic(model, 300, 4)
    simulation.advance(2)
    simulation.advance(7)
    assert torch.equal(simulation.tokens, many)
    assert len(many.unique(dim=0)) > 50


def test_chains_start_where_they_are_told():
    start = torch.randint(5, (200, 6), generator=generator(1, "start"))
    assert torch.equal(Chromatic(TABLES["windows"], 200, 0, start).tokens, start)


def test_states_of_ising_models_follow_their_law():
    model, weaker = disordered(5), disordered(5, scale=0.45)
    distribution = model.probabilities()
    assert (
        p_value(run_sweeps(model, chains=SAMPLES, sweeps=40, seed=1, method="chromatic"), distribution)
        > ALPHA
    )
    # Couplings and fields that are 10 % too small are noticed.
    assert power(SAMPLES, distribution, weaker.probabilities()) > 1 - 1e-6
    assert (
        p_value(run_sweeps(weaker, chains=SAMPLES, sweeps=40, seed=1, method="chromatic"), distribution)
        < ALPHA
    )


def test_states_of_windowed_energies_follow_their_law():
    energy = windows(3, 3)
    distribution = window_law(energy, 5, periodic=False)
    tokens = run_sweeps(window_tables(energy, 5), chains=SAMPLES, sweeps=40, seed=1, method="chromatic")
    assert p_value(tokens, distribution, 3) > ALPHA


def test_a_long_ring_without_field_has_its_correlation():
    tokens = run_sweeps(ring(300, 0.5), chains=400, sweeps=40, seed=2, method="chromatic")
    assert correlation_error(tokens, 0.5) < 6


@pytest.mark.parametrize("method", ["heat-bath", "chromatic"])
def test_potts_chains_are_models_too(method):
    energy = windows(3, 2).abs()
    distribution = PottsChain(energy).at(5, 0.7)
    tokens = run_sweeps(distribution, chains=SAMPLES, sweeps=40, seed=1, method=method)
    assert p_value(tokens, distribution.probabilities(), 3) > ALPHA


def test_other_models_are_named():
    with pytest.raises(InputError, match="model='str': give an Ising model"):
        run_sweeps("ring", chains=1, sweeps=1, method="chromatic")
