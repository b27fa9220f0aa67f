"""Compare energies, conditionals and variances of many-body distributions with definitions, and sweeps with Gibbs."""

import math
from itertools import permutations, product

import numpy as np
import pytest
import torch

from refusals import expect_error
from trialogue.data import Ising, ManyBody
from trialogue.data.many_body.subset_kernel import SubsetKernel
from trialogue.data.many_body.symmetric_sum_kernel import SymmetricSumKernel
from trialogue.randomness import Streams, derive_seed
from trialogue.samplers.chains.simulation.sweeps import run_sweeps
from trialogue.testing import check_energy, check_masked

SMALL = {
    "two": ManyBody.random(4, 3, order=2, rank=2, seed=1),
    "three": ManyBody.random(5, 3, order=3, rank=7, seed=2),
    "four": ManyBody.random(5, 3, order=4, rank=3, seed=3),
    "four of four": ManyBody.random(4, 4, order=4, rank=2, seed=2),
    "signs": ManyBody.random(5, 3, order=4, rank=3, seed=3, entries="signs"),
    "binary": ManyBody.random(5, 3, order=4, rank=6, seed=3, entries="binary"),
}


@pytest.fixture(params=SMALL)
def distribution(request):
    return SMALL[request.param]


def kernels_of(distribution):
    arguments = (distribution.positions.numpy(), distribution.vectors.numpy(), distribution.order)
    factor = -distribution.strength * math.factorial(distribution.order)
    return [kind(*arguments, factor) for kind in (SymmetricSumKernel, SubsetKernel)]


def energies_by_hand(distribution):
    """Compute the energies with loops over the indices of the tensors."""
    positions, vectors, states = (
        distribution.positions.numpy(),
        distribution.vectors.numpy(),
        distribution.states().numpy(),
    )
    axes = "abcd"[: distribution.order]
    equation = ",".join(f"p{axis}" for axis in axes) + "->" + axes
    couplings, tokens = (np.einsum(equation, *[each] * distribution.order) for each in (positions, vectors))
    energy = np.zeros(len(states))
    for sites in permutations(range(distribution.sites), distribution.order):
        energy += couplings[sites] * tokens[tuple(states[:, site] for site in sites)]
    return torch.from_numpy(distribution.strength * energy)


def shares_by_hand(distribution):
    """Return the variance shares from an analysis of variance of the energies of all sequences."""
    energy = energies_by_hand(distribution).view([distribution.vocab_size] * distribution.sites)
    shares = torch.zeros(distribution.order + 1, dtype=torch.float64)
    for inside in product((False, True), repeat=distribution.sites):
        term = energy
        for site, kept in enumerate(inside):
            mean = term.mean(site, keepdim=True)
            term = term - mean if kept else mean.expand_as(term)
        if 0 < sum(inside) <= distribution.order:
            shares[sum(inside)] += term.square().mean()
    return shares / energy.var(correction=0)


def test_energies_equal_tensor_sums(distribution):
    torch.testing.assert_close(
        distribution.energy(distribution.states()), energies_by_hand(distribution), rtol=1e-12, atol=1e-12
    )
    assert float(distribution.energy(distribution.states()).std(correction=0)) == pytest.approx(
        2.0, abs=1e-12
    )
    assert distribution.deviation == pytest.approx(2.0, abs=1e-12)


def test_variance_shares_equal_enumeration(distribution):
    torch.testing.assert_close(
        distribution.variance_by_order(), shares_by_hand(distribution), rtol=1e-10, atol=1e-12
    )
    assert float(distribution.variance_by_order().sum()) == pytest.approx(1, abs=1e-12)


def test_models_keep_their_contracts(distribution):
    check_masked(distribution, distribution=(-energies_by_hand(distribution)).softmax(0))
    check_energy(distribution)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("name", SMALL)
def test_sweeps_equal_gibbs_samples(name, kind, monkeypatch):
    distribution = SMALL[name]
    monkeypatch.setitem(vars(distribution), "kernel", kernels_of(distribution)[kind])
    start = distribution.states()[:64]
    fast = run_sweeps(distribution, sweeps=5, start=start, seed=4)
    kernel, tokens = kernels_of(distribution)[1 - kind], start.clone()
    streams = Streams(derive_seed(4, "many-body"), torch.arange(64))
    for _ in range(5):
        for site in range(distribution.sites):
            weights = distribution.site_log_weights(tokens, torch.full((64,), site))
            tokens[:, site] = streams.choose(weights, torch.arange(64))
    assert torch.equal(fast, tokens)
    again = start.clone()
    streams = Streams(derive_seed(4, "many-body"), torch.arange(64))
    kernel.sweep(again.numpy(), streams.keys.numpy(), streams.counters.numpy(), 5)
    assert torch.equal(again, tokens)


@pytest.mark.usefixtures("restored_threads")
def test_a_chain_does_not_depend_on_other_chains_or_threads():
    distribution = ManyBody.random(20, 10, seed=1)
    many = run_sweeps(distribution, sweeps=3, chains=300, seed=1)
    assert torch.equal(run_sweeps(distribution, sweeps=3, chains=7, seed=1), many[:7])
    torch.set_num_threads(3)
    assert torch.equal(run_sweeps(distribution, sweeps=3, chains=300, seed=1), many)


def test_faster_kernel_is_selected():
    assert isinstance(ManyBody.random(20, 10, rank=20).kernel, SymmetricSumKernel)
    assert isinstance(ManyBody.random(20, 10, rank=200).kernel, SubsetKernel)


def test_published_parameters_give_a_freezing_warning():
    with pytest.warns(UserWarning, match="freeze"):
        distribution = ManyBody.random(20, 10, rank=200, scale=None, entries="binary")
    assert distribution.strength == 1


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("order", lambda: ManyBody.random(5, 3, order=5)),
        ("sites", lambda: ManyBody.random(3, 3, order=4)),
        ("scale", lambda: ManyBody.random(5, 3, scale=-1.0)),
        ("positions", lambda: ManyBody(torch.ones(2, 3), torch.ones(2, 3), order=4)),
        ("vectors", lambda: ManyBody(torch.ones(2, 4), torch.tensor([[math.nan, 1.0]]), order=4)),
        ("strength", lambda: ManyBody(torch.ones(2, 4), torch.ones(2, 3), strength=1e308)),
        ("tokens", lambda: SMALL["four"].energy(torch.zeros(2, 4, dtype=torch.int64))),
        ("tokens", lambda: SMALL["four"].energy(torch.full((2, 5), 3))),
        ("sites", lambda: ManyBody.random(20, 10).states()),
        ("sites", lambda: ManyBody(torch.ones(200, 2000), torch.ones(200, 300)).kernel),
        ("method", lambda: run_sweeps(Ising.clique(3, 3, 0.1, 0.0), sweeps=1, chains=2, method="many-body")),
        ("model", lambda: run_sweeps(SMALL["four"], sweeps=1, chains=2, method="heat-bath")),
    ],
)
def test_invalid_input_is_reported(field, call):
    assert expect_error("", call).field == field
