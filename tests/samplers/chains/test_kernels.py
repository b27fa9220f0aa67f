"""Compiled steps of `run_chain`: the same tokens and random numbers as `Gibbs.step`."""

import math

import pytest
import torch

from samplers.chains.simulation.reference_kernels import SMALL_MODELS, disordered
from trialogue.data import Ising
from trialogue.oracles import Sequences
from trialogue.randomness import Streams, generator, select_index
from trialogue.samplers import Gibbs, run_chain
from trialogue.samplers.chains import kernels
from trialogue.samplers.chains.chain import make_advance_function

MODELS = {
    **SMALL_MODELS,
    "one site": Ising(torch.zeros(1, 1), torch.tensor([0.4])),
    "many sites": disordered(300, scale=0.1),
}


def differences(model, order, chains=40, steps=6) -> list[str]:
    """Return the differences between compiled steps and `Gibbs.step` in tokens and in used numbers."""
    chain = Gibbs(order)
    start = torch.randint(2, (chains, model.sites), generator=generator(3, "start"))
    ids = torch.randperm(1000, generator=generator(4, "ids"))[:chains]
    plain, fast = Streams(5, ids), Streams(5, ids)
    advance = kernels.gibbs_kernel(chain, model)
    state = other = Sequences(start)
    found = []
    for count in (1, steps, 2):
        for _ in range(count):
            state, _ = chain.step(model, state, plain.choose)
        before = other.tokens.clone()
        after, _ = advance(other, fast, count)
        if not torch.equal(before, other.tokens):
            found.append("start")
        other = after
        if not torch.equal(state.tokens, other.tokens):
            found.append("tokens")
        if not torch.equal(plain.counters, fast.counters):
            found.append("counters")
    return found


@pytest.mark.parametrize("order", ["random", "sweep"])
@pytest.mark.parametrize("name", MODELS)
def test_compiled_steps_equal_interpreted_steps(name, order):
    assert differences(MODELS[name], order) == []


@pytest.mark.parametrize(
    "log_odds", [0.0, 1e-17, 0.3, -0.3, 5.0, -40.0, 745.0, -746.0, 800.0, -math.inf, math.inf]
)
def test_tokens_are_drawn_by_inversion(log_odds):
    steps = torch.arange(0, 1, 1 / 64, dtype=torch.float64)
    uniforms = torch.cat((steps, steps + 2.0**-53, steps[1:] - 2.0**-53, torch.tensor([1 - 2.0**-53])))
    distribution = torch.tensor([[min(0.0, -log_odds), min(0.0, log_odds)]], dtype=torch.float64)
    expected = select_index(uniforms, distribution.expand(len(uniforms), 2)).tolist()
    assert [kernels.draw_token(uniform, log_odds) for uniform in uniforms.tolist()] == expected


def test_unsupported_chains_and_models_use_interpreted_steps(monkeypatch):
    class Own(Gibbs):
        pass

    assert make_advance_function(Own(), MODELS["ring"]).__name__ == "by_step"
    monkeypatch.setattr(kernels, "MAX_SITES", 6)
    assert kernels.gibbs_kernel(Gibbs(), MODELS["ring"]) is None
    assert kernels.gibbs_kernel(Gibbs(), MODELS["clique"]) is not None


def test_chains_depend_on_their_ids_only(monkeypatch):
    start = torch.randint(2, (64, 300), generator=generator(1, "start"))
    model, steps = MODELS["many sites"], 40
    expected = run_chain(Gibbs("sweep"), model, start=start, steps=steps).tokens
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert torch.equal(run_chain(Gibbs("sweep"), model, start=start, steps=steps).tokens, expected)
    chosen = [60, 3, 17]
    part = run_chain(Gibbs("sweep"), model, start=start[chosen], steps=steps, chain_ids=chosen).tokens
    assert torch.equal(part, expected[chosen])
