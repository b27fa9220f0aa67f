"""Fuzz tests of single-site conditionals: each call raises an error of one line or agrees with enumeration."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from fuzzing.faults import HARMLESS, INDEX_FAULTS, fuzz, log_softmax, result_or_none
from trialogue.data import Ising, ManyBody, PottsChain
from trialogue.oracles import Energy
from trialogue.samplers.chains.simulation.many_body import ManyBodyHeatBath

COUPLED = torch.tensor([[0.0, 0.3, -0.7], [0.3, 0.0, 0.2], [-0.7, 0.2, 0.0]])
FIELD = torch.tensor([0.1, -0.4, 0.2])
WINDOWS = torch.arange(9.0).view(3, 3) % 4
MODELS = {
    "rank one": ManyBody(torch.tensor([[0.5, -1, 2, 1, 0.3, -0.7]]), torch.tensor([[1.0, -0.5]]), order=3),
    "four bodies": ManyBody.random(5, 2),
    "three bodies": ManyBody.random(4, 3, order=3, rank=2),
    "Potts": PottsChain(WINDOWS).at(4, 0.8),
    "dense Ising": Ising(COUPLED, FIELD),
    "clique": Ising.clique(4, 3, 0.5, 0.2),
}


def test_the_models_use_both_compiled_kernels():
    kinds = {type(model.kernel).__name__ for model in MODELS.values() if isinstance(model, ManyBody)}
    assert kinds == {"SymmetricSumKernel", "SubsetKernel"}


def energy_of(model: Energy, tokens: tuple[int, ...]) -> float:
    """Return the energy of one sequence, term by term."""
    if isinstance(model, ManyBody):
        positions, vectors = model.positions.numpy(), model.vectors.numpy()
        factor = model.strength * math.factorial(model.order)
        return factor * sum(
            float(positions[:, sites].prod(1).sum() * vectors[:, [tokens[i] for i in sites]].prod(1).sum())
            for sites in map(list, combinations(range(model.sites), model.order))
        )
    if isinstance(model, Ising):
        spins, coupling = 2.0 * np.array(tokens) - 1, model.coupling.numpy()
        return -float(spins @ np.triu(coupling) @ spins + spins @ model.field.numpy())
    table = WINDOWS.numpy() / 0.8
    return float(sum(table[left, right] for left, right in pairwise(tokens)))


ENERGIES = {
    name: {
        tuple(state): energy_of(model, tuple(state))
        for state in torch.cartesian_prod(*[torch.arange(model.vocab_size)] * model.sites).tolist()
    }
    for name, model in MODELS.items()
}


def conditional(name: str, tokens: list[int], site: int) -> np.ndarray:
    """Return log-probabilities of the values of one site given the others, from energies of sequences."""
    values = range(MODELS[name].vocab_size)
    return log_softmax(
        np.array([-ENERGIES[name][(*tokens[:site], value, *tokens[site + 1 :])] for value in values])
    )


@pytest.mark.parametrize("name", MODELS)
@fuzz(INDEX_FAULTS, st.sampled_from(["tokens", "sites", "both"]))
def test_weights_of_sites_are_correct(name, draw, where):
    model, rows = MODELS[name], draw.integer(1, 70)
    tokens, sites = draw.indices((rows, model.sites), model.vocab_size), draw.indices((rows,), model.sites)
    if where != "sites":
        tokens = draw.with_index_fault(tokens, model.vocab_size)
    if where != "tokens":
        sites = draw.with_index_fault(sites, model.sites)
    valid = draw.fault in HARMLESS and (where == "both" or draw.fault != "no rows")
    weights = result_or_none(lambda: model.site_log_weights(tokens, sites), valid)
    if weights is None:
        return
    assert weights.shape == (len(tokens), model.vocab_size)
    for row in {0, len(tokens) - 1} if len(tokens) else ():
        expected = conditional(name, tokens[row].int().tolist(), int(sites[row]))
        assert np.abs(log_softmax(weights[row].numpy()) - expected).max() < 1e-9


@fuzz(INDEX_FAULTS, st.sampled_from(["rank one", "four bodies", "three bodies"]))
def test_sweeps_of_many_body_distributions_return_valid_tokens(draw, name):
    model, chains, seed = MODELS[name], draw.integer(1, 9), draw.integer(-1, 2**40)
    assert isinstance(model, ManyBody)
    start = draw.with_index_fault(draw.indices((chains, model.sites), model.vocab_size), model.vocab_size)
    sweeps = draw.integer(-1, 2)
    simulation = result_or_none(lambda: ManyBodyHeatBath(model, chains, seed, start))
    if simulation is None:
        assert draw.fault not in ("nothing", "strided", "int32") or seed < 0
        return
    before = simulation.tokens
    assert torch.equal(before, start.long())
    done = result_or_none(lambda: simulation.advance(sweeps) or True)
    assert bool(done) == (sweeps >= 0)
    after = simulation.tokens
    assert after.shape == before.shape
    assert bool(((after >= 0) & (after < model.vocab_size)).all())
    assert sweeps > 0 or torch.equal(before, after)
