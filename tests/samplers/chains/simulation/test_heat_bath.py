"""Heat bath with tables: exact conditionals, reproducible random numbers, and the output distribution."""

import math

import numpy as np
import pytest
import torch

from refusals import calls_without_expected_error
from samplers.chains.simulation.reference_kernels import SMALL_MODELS, disordered, heat_bath
from samplers.chains.small_models import ring
from trialogue.data import Ising, window_tables
from trialogue.data.site_tables import SiteTables, make_alias_entries, probability_thresholds
from trialogue.errors import InputError
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import generator
from trialogue.samplers.chains.simulation.heat_bath import LANES, HeatBath
from trialogue.samplers.chains.simulation.sweeps import run_sweeps

MODELS = {
    **SMALL_MODELS,
    "ring of two": ring(2, 0.5, 0.1),
    "free": Ising(torch.zeros(3, 3), torch.tensor([0.4, 0.0, -30.0])),
}


def windows(vocab, width, seed=1):
    return torch.randn([vocab] * width, generator=generator(seed, "energy"), dtype=torch.float64)


def window_probabilities(energy, sites, periodic):
    """Return the probabilities (V^N,) of all sequences from the summed energies of their windows."""
    states, width = enumerate_sequences(energy.shape[0], sites), energy.ndim
    firsts = range(sites if periodic else sites - width + 1)
    total = sum(
        energy[tuple(states[:, (first + k) % sites] for k in range(width))].double() for first in firsts
    )
    return (-total).softmax(0)


def entry_of(tables, tokens, site):
    """Return the table offsets of the conditionals of `site` for each row of `tokens` (rows, N)."""
    neighbours = tokens.numpy()[:, tables.neighbours[site]]
    return (neighbours * tables.strides[site].astype(np.int64)).sum(1) + int(tables.offsets[site])


def probabilities_of(tables: SiteTables, tokens):
    """Return the probabilities (rows, N, V) that the tables define for uniform numbers of 32 bits."""
    probabilities = np.zeros((*tokens.shape, tables.vocab_size))
    for site in range(tables.sites):
        places = entry_of(tables, tokens, site)
        if tables.vocab_size == 2:
            up = tables.entries[places].astype(np.float64) / 2**32
            probabilities[:, site] = np.stack((1 - up, up), 1)
            continue
        for column in range(tables.vocab_size):
            threshold, alias = np.divmod(tables.entries[places + column].astype(np.int64), 32)
            first, last = (-(-(c << 32) // tables.vocab_size) for c in (column, column + 1))
            cut = -(-((column << 32) + threshold * 32) // tables.vocab_size)
            probabilities[:, site, column] += (cut - first) / 2**32
            np.add.at(probabilities, (np.arange(len(places)), site, alias), (last - cut) / 2**32)
    return torch.from_numpy(probabilities)


@pytest.mark.parametrize("name", MODELS)
def test_every_table_entry_is_the_exact_conditional(name):
    model = MODELS[name]
    exact = model.site_log_probs(model.states()).exp()
    assert float((probabilities_of(model.site_tables(), model.states()) - exact).abs().max()) <= 2.0**-32


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(
    ("vocab", "width"), [(2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3), (5, 2), (32, 1)]
)
def test_every_table_entry_of_windows_is_the_exact_conditional(vocab, width, periodic):
    energy, sites = windows(vocab, width), 2 if vocab == 32 else 5
    states = enumerate_sequences(vocab, sites)
    joint = window_probabilities(energy, sites, periodic).view([vocab] * sites)
    found = probabilities_of(window_tables(energy, sites, periodic=periodic), states)
    for site in range(sites):
        exact = (joint / joint.sum(site, keepdim=True)).movedim(site, -1)
        exact = exact.unsqueeze(site).expand(*[vocab] * (sites + 1)).reshape(-1, vocab)
        assert float((found[:, site] - exact).abs().max()) <= 2.0**-26


def test_impossible_tokens_have_no_column():
    distribution = np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [1 / 3, 1 / 3, 1 / 3], [1e-30, 0.25, 0.75]])
    tables = SiteTables(
        np.zeros((4, 0), np.int64),
        np.zeros((4, 0), np.uint32),
        np.arange(0, 12, 3, dtype=np.uint32),
        make_alias_entries(distribution),
        3,
    )
    found = probabilities_of(tables, torch.zeros(1, 4, dtype=torch.int64))[0].numpy()
    assert np.abs(found - distribution).max() <= 2.0**-26
    assert not found[distribution == 0].any()


TABLES = {
    "disordered": disordered(8).site_tables(),
    "ring": ring(5, 0.4, 0.1).site_tables(),
    "windows": window_tables(windows(5, 2), 6),
    "ring of windows": window_tables(windows(10, 3), 7, periodic=True),
}


@pytest.mark.parametrize("name", TABLES)
def test_chains_equal_the_reference_with_the_same_numbers(name):
    chains, seed, sweeps = 150, 3, 3
    simulation = HeatBath(TABLES[name], chains, seed)
    for _ in range(sweeps):
        simulation.advance(1)
    for chain in (0, 1, LANES - 1, LANES, chains - 1):
        assert simulation.tokens[chain].tolist() == heat_bath(TABLES[name], chain, seed, sweeps)


RING = ring(3, 1.0)
INVALID = [
    ("^method=", lambda: run_sweeps(RING, chains=1, sweeps=1, method="metropolis")),
    ("^model=", lambda: run_sweeps("ring", chains=1, sweeps=1)),
    ("^chains=", lambda: run_sweeps(RING, sweeps=1)),
    ("^chains=", lambda: run_sweeps(RING, chains=1, start=torch.zeros(1, 3).long(), sweeps=1)),
    ("^start=", lambda: run_sweeps(RING, start=torch.zeros(1, 4).long(), sweeps=1)),
    ("^start=", lambda: run_sweeps(RING, start=torch.full((1, 3), 2), sweeps=1)),
    ("^coupling=", lambda: run_sweeps(disordered(64, scale=1.0), chains=1, sweeps=1)),
    ("^energy=", lambda: window_tables(torch.zeros(3, 4), 5)),
    ("^energy=", lambda: window_tables(torch.zeros(33, 33), 5)),
    ("^energy=", lambda: window_tables(torch.zeros(10, 10, 10, 10, 10), 50)),
    ("^sites=", lambda: window_tables(torch.zeros(3, 3, 3), 2)),
    ("^sites=", lambda: window_tables(torch.zeros(3, 3, 3), 4, periodic=True)),
]


def test_invalid_input_is_reported():
    assert not calls_without_expected_error(INVALID)


def test_a_user_defined_model_needs_only_tables():
    class IndependentSpins:
        """Independent spins, each up with its own probability."""

        vocab_size, device = 2, None

        def __init__(self, up):
            self.up, self.sites = up, len(up)

        def site_tables(self):
            none = np.zeros((self.sites, 0))
            first = np.arange(self.sites, dtype=np.uint32)
            return SiteTables(
                none.astype(np.int64), none.astype(np.uint32), first, probability_thresholds(self.up), 2
            )

    up = np.array([0.1, 0.5, 0.95])
    for method in ("heat-bath", "chromatic"):
        tokens = run_sweeps(IndependentSpins(up), chains=2**15, sweeps=2, seed=1, method=method)
        assert np.abs(tokens.double().mean(0).numpy() - up).max() < 6 * 0.5 / math.sqrt(2**15)
    with pytest.raises(InputError, match="model='Energyless': give an Ising model"):
        run_sweeps(type("Energyless", (), {})(), chains=1, sweeps=1)
