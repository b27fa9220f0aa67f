"""The engine of chains: hitting times, ergodicity, compiled steps, resumption and errors for invalid input."""

import math

import pytest
import torch

from refusals import calls_without_expected_error, expect_error
from samplers.chains.small_models import Energies, FunctionEnergy, random_ising
from trialogue.data import Ising
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.oracles import Sequences, StepInfo, enumerate_sequences
from trialogue.samplers import (
    AdaptiveBlockDynamics,
    BlockGibbs,
    Gibbs,
    IndependentParallel,
    MaskedMetropolis,
    Metropolis,
    hitting_times,
    run_chain,
)
from trialogue.samplers.chains import ergodicity as checks
from trialogue.samplers.chains.chain import KERNELS
from trialogue.samplers.chains.resumable import RunningChains
from trialogue.samplers.exact import chain_ergodicity, ergodicity, transition_matrix

MODEL = random_ising(1, 4)
START = torch.zeros(3, 4, dtype=torch.int64)


def all_up(tokens):
    return (tokens == 1).all(1)


@pytest.mark.parametrize("chain", [Gibbs(), BlockGibbs(2), IndependentParallel()], ids=repr)
def test_hitting_times_follow_their_exact_distribution(chain):
    """Outside the target, E T solves (I - Q) t = 1, and P(T > t) is the row sum of Q^t."""
    chains, budget = 4000, 60
    inside = all_up(enumerate_sequences(2, 4))
    outside = transition_matrix(chain, MODEL)[~inside][:, ~inside]
    eye = torch.eye(len(outside), dtype=torch.float64)
    ones = torch.ones(len(outside), dtype=torch.float64)
    survival = torch.stack([(torch.linalg.matrix_power(outside, t) @ ones)[0] for t in range(budget + 1)])
    restricted = float(survival[:-1].sum())  # E min(T, budget)
    assert restricted <= float(torch.linalg.solve(eye - outside, ones)[0])
    times = hitting_times(
        chain, MODEL, start=START[:1].expand(chains, -1), target=all_up, budget=budget, seed=5
    )
    steps = times.steps.double()
    assert abs(float(steps.mean()) - restricted) < 6 * float(steps.std()) / math.sqrt(chains)
    for t in (1, 3, 10, 30):
        p = min(1.0, float(survival[t]))
        assert abs(float((steps > t).double().mean()) - p) < 6 * math.sqrt(p * (1 - p) / chains) + 1e-12
    censored = float(survival[budget])
    assert abs(float(times.censored.double().mean()) - censored) < 6 * math.sqrt(censored / chains) + 1e-12
    assert torch.equal(all_up(times.tokens), ~times.censored)


def test_a_chain_that_starts_in_the_target_takes_no_step():
    start = torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0]])
    times = hitting_times(Gibbs(), MODEL, start=start, target=all_up, budget=1)
    assert times.steps.tolist() == [0, 1]
    assert times.censored.tolist() == [False, True]


def test_the_stopping_condition_is_first_checked_after_the_burn_in():
    start = torch.ones(50, 4, dtype=torch.int64)
    run = run_chain(Gibbs("sweep"), MODEL, start=start, steps=5, burn_in=4, until=all_up, seed=2)
    plain = run_chain(Gibbs("sweep"), MODEL, start=start, steps=4, seed=2).tokens
    assert torch.equal(run.steps == 0, all_up(plain))
    assert 0 < int(all_up(plain).sum()) < 50


def test_compiled_steps_replace_the_steps_of_the_chain(monkeypatch):
    """A kernel serves only its exact types, uses the streams of the chain, and may decline a chain."""
    taken = []

    def kernel(chain, model):
        def advance(state, streams, steps):
            taken.append(steps)
            for _ in range(steps):
                state, _ = chain.step(model, state, streams.choose)
            return Sequences(state.tokens), None

        return advance if chain.order == "random" else None

    plain = {
        order: run_chain(Gibbs(order), MODEL, start=START, steps=300).tokens for order in ("random", "sweep")
    }
    monkeypatch.setitem(KERNELS, (Gibbs, Ising), kernel)
    for order, expected in plain.items():
        assert torch.equal(run_chain(Gibbs(order), MODEL, start=START, steps=300).tokens, expected)
    assert sum(taken) == 300

    class Own(Gibbs):
        pass

    run_chain(Own(), MODEL, start=START, steps=5)
    assert sum(taken) == 300


def matrix(*rows):
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize(
    ("transitions", "classes", "period"),
    [
        (matrix([0, 1], [1, 0]), 1, 2),
        (matrix([1, 0], [0, 1]), 2, 1),
        (matrix([0.5, 0.5], [0, 1]), 1, 1),
        (matrix([0, 1, 0], [0, 0, 1], [1, 0, 0]), 1, 3),
        (matrix([0, 1, 0], [0, 0, 1], [0.5, 0.5, 0]), 1, 1),
        (matrix([0, 0.5, 0.5], [0, 0, 1], [0, 1, 0]), 1, 2),
        (matrix([0.2, 0.4, 0.4], [0, 1, 0], [0, 0, 1]), 2, 1),
    ],
)
def test_ergodicity_of_small_matrices(transitions, classes, period):
    found = ergodicity(transitions)
    assert found == (classes, period)
    assert found.ergodic == (classes == period == 1)


def test_states_of_probability_zero_are_ignored():
    """With x_1 = x_2, single sites cannot move but blocks of two sites can."""
    model = Energies(matrix([0.4, 0.0], [0.0, 0.6]))
    start = torch.zeros(2, 2, dtype=torch.int64)
    expect_error("2 closed classes", run_chain, Gibbs(), model, start=start, steps=1)
    run = run_chain(BlockGibbs(2), model, start=start.expand(2, -1), steps=9, seed=1, thin=1)
    assert bool((run.samples[..., 0] == run.samples[..., 1]).all())
    assert (
        run_chain(Gibbs(), model, start=start, steps=3, require_ergodic=False).tokens.tolist() == [[0, 0]] * 2
    )


def test_a_distribution_over_blocks_that_omits_sites_is_rejected():
    def first(tokens):
        return torch.tensor([[1.0, 0.0]]).expand(len(tokens), -1)

    chain = AdaptiveBlockDynamics(((0, 1), (2, 3)), first)
    expect_error("4 closed classes", run_chain, chain, MODEL, start=START, steps=1)


def test_a_periodic_chain_is_rejected():
    class Flip:
        def init(self, model, tokens):
            return Sequences(tokens)

        def step(self, model, state, choose):
            return Sequences(1 - state.tokens), StepInfo()

    flat = Energies(torch.full((2,), 0.5, dtype=torch.float64))
    expect_error("it has period 2", run_chain, Flip(), flat, start=torch.zeros(1, 1).long(), steps=1)
    assert chain_ergodicity(Flip(), flat) == (1, 2)


def test_ergodicity_is_checked_once_per_chain_and_model(monkeypatch):
    checked = []

    def counting(chain, model, **settings):
        checked.append(chain)
        return chain_ergodicity(chain, model, **settings)

    monkeypatch.setattr(checks, "chain_ergodicity", counting)
    for model in (random_ising(1, 4), random_ising(2, 4)):
        for chain in (Metropolis(), Metropolis(), Gibbs()):
            run_chain(chain, model, start=START, steps=1)
    assert checked == [Metropolis(), Metropolis()]


def test_models_and_chains_need_not_be_hashable():
    class Plain(Metropolis):
        __hash__ = None

    own = FunctionEnergy(lambda tokens: tokens.sum(1))
    for chain in (Gibbs(), Metropolis(), Plain(), BlockGibbs(2)):
        expected = run_chain(chain, FunctionEnergy(lambda x: x.sum(1).double()), start=START, steps=20).tokens
        assert torch.equal(run_chain(chain, own, start=START, steps=20).tokens, expected)


def run(**fields):
    settings = {"chain": Gibbs(), "model": MODEL, "start": START, "steps": 2}
    return run_chain(**settings | fields)


TOTAL = FunctionEnergy(lambda x: x.sum(1).double())
INVALID = [
    (r"chain='Gibbs': give an instance: Gibbs\(\)", lambda: run(chain=Gibbs)),
    ("model='object'", lambda: run(model=object())),
    (r"energy=\(\d+, 4\): return a tensor of shape", lambda: run(model=FunctionEnergy(lambda x: x))),
    ("start=.*give token ids", lambda: run(start=[[0, 1], [0]])),
    ("chain_ids=.*give 3 different integers", lambda: run(chain_ids=[0.5, 1, 2])),
    ("thin=3: use at most 2", lambda: run(thin=3)),
    ("thin=1: leave it out with `until`", lambda: run(thin=1, until=all_up)),
    (r"start=\(4,\): give token ids of shape \(chains, 4\)", lambda: run(start=START[0])),
    (r"start=\(3, 3\): give token ids of shape \(chains, 4\)", lambda: run(start=START[:, :3])),
    ("start=2: use tokens below vocab_size=2", lambda: run(start=START + 2)),
    ("chain_ids=", lambda: run(chain_ids=[0, 1, 1])),
    (r"until=\(3, 4\): return one bool", lambda: run(until=lambda tokens: tokens == 1)),
    ("budget=0: use at least 1", lambda: hitting_times(Gibbs(), MODEL, start=START, target=all_up, budget=0)),
    (
        r"block=17: .*2\^17 states.*ChainRule",
        lambda: run(chain=BlockGibbs(17), model=TOTAL, start=torch.zeros(1, 18).long()),
    ),
    (
        r"max_states=4096: .* 2\^13 states.*run_chain\(Gibbs\(...\)",
        lambda: transition_matrix(Gibbs(), random_ising(0, 13)),
    ),
    (
        "sites=3: leave it out, because the model has 4 sites",
        lambda: transition_matrix(Gibbs(), MODEL, sites=3),
    ),
    ("sites=None: give a number, because FunctionEnergy", lambda: transition_matrix(Gibbs(), TOTAL)),
]


def test_invalid_input_is_reported():
    assert not calls_without_expected_error(INVALID)


def test_the_start_determines_an_unspecified_number_of_sites():
    model = FunctionEnergy(lambda x: x.double().sum(1), vocab_size=3)
    tokens = run_chain(Gibbs("sweep"), model, start=torch.zeros(500, 7).long(), steps=1).tokens
    weights = torch.tensor([0.0, -1.0, -2.0]).softmax(0)
    for value in range(3):
        p = float(weights[value])
        assert abs(float((tokens == value).double().mean()) - p) < 6 * math.sqrt(p * (1 - p) / 3500)
    assert transition_matrix(Metropolis(), model, sites=2).shape == (9, 9)


def test_progress_is_shown_only_on_request(capsys):
    run_chain(Gibbs(), MODEL, start=START, steps=300)
    assert capsys.readouterr().err == ""
    run_chain(Gibbs(), MODEL, start=START, steps=300, progress=True)
    assert "300" in capsys.readouterr().err


def test_a_vocabulary_of_one_token_is_allowed():
    alone = FunctionEnergy(lambda x: x.double().sum(1), vocab_size=1)
    for chain in (Gibbs(), Metropolis(), BlockGibbs(2), IndependentParallel()):
        assert not bool(run_chain(chain, alone, start=START, steps=3).tokens.any())


NETWORK = FactoredAttention(FactoredAttentionConfig(vocab_size=3, sites=4, layers=2), seed=1)
NETWORK_START = enumerate_sequences(3, 4)[::7]
RESUMED = {
    "gibbs on a network": (Gibbs(), NETWORK, NETWORK_START),
    "metropolis on a network": (MaskedMetropolis(), NETWORK, NETWORK_START),
    "a compiled sweep": (Gibbs("sweep"), random_ising(1, 4), enumerate_sequences(2, 4)),
}


@pytest.mark.parametrize("name", RESUMED)
def test_a_resumed_chain_follows_the_path_of_run_chain(name):
    chain, model, start = RESUMED[name]
    expected = run_chain(chain, model, start=start, steps=20, seed=3)
    running = RunningChains(chain, model, start, seed=3)
    running.advance(7)
    saved = {key: value.clone() for key, value in running.saved().items()}
    running.advance(13)
    assert torch.equal(running.tokens, expected.tokens)
    again = RunningChains(chain, model, start, seed=3)
    again.resume(saved)
    assert again.steps == 7
    again.advance(13)
    assert torch.equal(again.tokens, expected.tokens)
    if running.energies is not None:
        assert torch.equal(again.energies, running.energies)


@pytest.mark.parametrize("lost", ["counters", "state/energy"])
def test_a_state_with_lost_entries_follows_another_path(lost):
    chain, model, start = RESUMED["metropolis on a network"]
    running = RunningChains(chain, model, start)
    running.advance(7)
    saved = {key: value.clone() for key, value in running.saved().items()}
    running.advance(40)
    again = RunningChains(chain, model, start)
    again.resume({**saved, lost: torch.zeros_like(saved[lost])})
    again.advance(40)
    assert not torch.equal(again.tokens, running.tokens)


def test_the_state_of_other_chains_is_rejected():
    chain, model, start = RESUMED["metropolis on a network"]
    saved = RunningChains(chain, model, start).saved()
    for chains in (RunningChains(chain, model, start[:3]), RunningChains(Gibbs(), model, start)):
        other = chains.saved()
        expect_error("other chains", RunningChains(chain, model, start).resume, other)
    expect_error("other chains", RunningChains(chain, model, start[:3]).resume, saved)
