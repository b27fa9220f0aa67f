"""Reports of chains: expected acceptance rates, block sizes, and diagnostics of mixing."""

import math

import pytest
import torch

from refusals import expect_error
from samplers.chains.small_models import Energies, random_ising, random_joint
from trialogue.enumeration import Enumeration
from trialogue.oracles import StepInfo, enumerate_sequences
from trialogue.randomness import generator
from trialogue.samplers import (
    BlockDynamics,
    BlockGibbs,
    Gibbs,
    MaskedMetropolis,
    Metropolis,
    convergence,
    run_chain,
)

MODEL = Energies(random_joint(2, 3, 3))
STATES = enumerate_sequences(3, 3)
BLOCKS = ((0, 1), (2,))


def expected_info(chain, model=MODEL, states=STATES):
    """Return the exact expected acceptance (states,) of one step from each state."""
    enumeration = Enumeration(len(states), 1)
    state, total = chain.init(model, states), torch.zeros(len(states), dtype=torch.float64)
    for weights, info in enumeration.branches(lambda: chain.step(model, state, enumeration.choose)[1]):
        total += weights * info.accepted
    return total


def ratios():
    """Return min(1, p(y) / p(x)) (27, 27) for states x and y that differ at one site, and 0 elsewhere."""
    p = MODEL.probabilities()
    adjacent = (STATES[:, None] != STATES).sum(2) == 1
    return (p / p[:, None]).clamp_max(1.0) * adjacent


class MovesAsAccepted(MaskedMetropolis):
    """A faulty chain that reports a proposal of the current token as rejected."""

    def step(self, model, state, choose):
        after, _ = super().step(model, state, choose)
        return after, StepInfo((after.tokens != state.tokens).any(1).double())


class AlwaysAccepted(Metropolis):
    """A faulty chain that reports every proposal as accepted."""

    def step(self, model, state, choose):
        after, info = super().step(model, state, choose)
        return after, StepInfo(torch.ones_like(info.accepted))


def metropolis_error(chain):
    # Each of the 3 sites proposes each of its 2 other values with probability 1/6.
    return float((expected_info(chain) - ratios().sum(1) / 6).abs().max())


def masked_metropolis_error(chain):
    """Compare with min(1, ratio of targets times ratio of proposals), summed over all proposals."""
    energy = chain.energy(MODEL, STATES)
    p = MODEL.probabilities().view(3, 3, 3)
    expected = torch.zeros(27, dtype=torch.float64)
    for site in range(3):
        conditional = (p / p.sum(site, keepdim=True)).flatten()
        same_rest = (STATES[:, None] != STATES).sum(2) == (STATES[:, None, site] != STATES[:, site])
        accept = ((energy[:, None] - energy).exp() * conditional[:, None] / conditional).clamp_max(1.0)
        expected += (same_rest * conditional * accept).sum(1) / 3
    return float((expected_info(chain) - expected).abs().max())


def test_the_expected_acceptance_is_exact():
    assert metropolis_error(Metropolis()) < 1e-14
    assert metropolis_error(AlwaysAccepted()) > 0.1
    assert masked_metropolis_error(MaskedMetropolis()) < 1e-14
    assert masked_metropolis_error(MovesAsAccepted()) > 0.1


@pytest.mark.parametrize("order", ["random", "sweep"])
def test_a_run_counts_the_accepted_proposals_after_its_burn_in(order):
    """Every accepted proposal of Metropolis changes one site and adds one entry to the trace."""
    start = torch.zeros(50, 3, dtype=torch.int64)
    settings = {"start": start, "steps": 40, "burn_in": 7, "seed": 3}
    run = run_chain(Metropolis(order), MODEL, **settings, trace=True)
    changed = torch.bincount(run.trace.chain[run.trace.step > 7], minlength=50)
    expected = changed.double() / (40 * (3 if order == "sweep" else 1))
    torch.testing.assert_close(run.acceptance, expected, rtol=1e-14, atol=0)
    # Without a trace, the engine takes several steps at a time.
    plain = run_chain(Metropolis(order), MODEL, **settings).acceptance
    torch.testing.assert_close(plain, expected, rtol=1e-14, atol=0)


def test_stopped_chains_keep_their_acceptance_rates():
    start = STATES.clone()
    until = {"until": lambda tokens: tokens.sum(1) == 6}
    run = run_chain(Metropolis(), MODEL, start=start, steps=60, seed=1, trace=True, **until)
    changed = torch.bincount(run.trace.chain, minlength=27).double()
    assert len(run.steps.unique()) > 3
    torch.testing.assert_close(run.acceptance, changed / run.steps, rtol=1e-14, atol=0, equal_nan=True)
    assert bool(run.acceptance[-1].isnan())


def test_chains_without_rejections_have_no_acceptance_rate():
    ising = random_ising(1, 4)
    start = torch.zeros(3, 4, dtype=torch.int64)
    for chain in (Gibbs(), Gibbs("sweep"), BlockGibbs(2)):
        assert run_chain(chain, ising, start=start, steps=3).acceptance is None
    assert run_chain(Gibbs(), MODEL, start=STATES, steps=3).acceptance is None


def test_block_chains_report_the_block_size():
    def likeliest(log_weights, rows):
        return log_weights.argmax(1)

    _, info = BlockGibbs(2).step(MODEL, BlockGibbs(2).init(MODEL, STATES), likeliest)
    assert info.block_size.tolist() == [2] * 27
    for weights, size in (((3.0, 1.0), 2), ((1.0, 3.0), 1)):
        chain = BlockDynamics(BLOCKS, weights)
        _, info = chain.step(MODEL, chain.init(MODEL, STATES), likeliest)
        assert info.block_size.tolist() == [size] * 27


def noise(*shape):
    return torch.randn(*shape, generator=generator(0, "noise"), dtype=torch.float64)


def test_independent_values_count_fully():
    found = convergence(noise(400, 8))
    assert found.mixed
    assert found.effective_sample_size == pytest.approx(200 * 8, rel=0.15)
    assert found.r_hat == pytest.approx(1, abs=0.01)


def test_autocorrelated_values_count_for_less():
    """The effective share of an AR(1) sequence with coefficient a is (1 - a) / (1 + a)."""
    values, a = noise(4000, 8), 0.8
    for step in range(1, len(values)):
        values[step] = a * values[step - 1] + math.sqrt(1 - a**2) * values[step]
    found = convergence(values)
    assert found.effective_sample_size == pytest.approx(2000 * 8 * (1 - a) / (1 + a), rel=0.2)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (noise(40, 8) + 5 * torch.arange(8), "chains that stay apart"),
        (noise(400, 8) + torch.arange(400)[:, None] / 200, "a trend within the spread of each chain"),
        (torch.zeros(40, 8) + torch.arange(8.0), "chains that do not move"),
        (torch.zeros(40, 8), "values that never change"),
    ],
)
def test_chains_that_have_not_mixed_are_detected(values, reason):
    assert not convergence(values).mixed, reason


def test_the_first_half_is_discarded():
    values = noise(80, 8)
    values[:40] += 100
    assert convergence(values).mixed


@pytest.mark.parametrize(
    "values", [torch.zeros(7, 3), torch.zeros(9), torch.zeros(9, 0), torch.full((9, 2), math.nan)]
)
def test_invalid_values_are_reported(values):
    assert expect_error("", convergence, values).field == "values"
