"""Chains on another device: nothing is left on the CPU, and what comes out is what comes out there."""

import pytest
import torch

from contract.test_chains import MODELS, NAMES, REQUIRED, variants
from samplers.chains.simulation.elsewhere import DEVICE, Pretence
from samplers.chains.small_models import random_ising
from trialogue.data import Ising
from trialogue.errors import InputError
from trialogue.randomness import Streams, generator, index_of, inverted
from trialogue.samplers import CHAINS, ChainRule, Gibbs, Metropolis, hitting_times, run_chain, run_sweeps
from trialogue.samplers.exact import transition_matrix

MODEL = MODELS["ising"]
START = torch.randint(2, (30, 4), generator=generator(0, "start"))


@pytest.fixture
def elsewhere():
    with Pretence():
        yield


def all_up(tokens):
    return (tokens == 1).all(1)


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(("name", "options"), [variant for name in NAMES for variant in variants(name)])
def test_every_chain_does_there_what_it_does_here(name, options):
    chain = CHAINS[name](**REQUIRED.get(name, {}), **options)
    for model in (MODEL, MODELS["clique"]):
        settings = {"steps": 12, "burn_in": 2, "thin": 5, "seed": 3, "trace": True, "require_ergodic": False}
        here = run_chain(chain, model, start=START, **settings)
        there = run_chain(chain, model.to(DEVICE), start=START.to(DEVICE), **settings)
        for tensor in (there.tokens, there.samples, there.steps, there.reached, *there.trace):
            assert tensor.device.type == DEVICE.type
        assert torch.equal(there.tokens.cpu(), here.tokens)
        assert torch.equal(there.samples.cpu(), here.samples)
        assert torch.equal(there.steps.cpu(), here.steps)


@pytest.mark.usefixtures("elsewhere")
def test_ergodicity_hitting_times_and_transitions_there():
    model = MODEL.to(DEVICE)
    here = hitting_times(Metropolis(), MODEL, start=START, target=all_up, budget=40)
    there = hitting_times(Metropolis(), model, start=START.to(DEVICE), target=all_up, budget=40)
    assert torch.equal(there.steps.cpu(), here.steps)
    assert torch.equal(there.censored.cpu(), here.censored)
    expected = transition_matrix(Gibbs(), MODEL)
    torch.testing.assert_close(transition_matrix(Gibbs(), model), expected, rtol=1e-13, atol=0)
    with pytest.raises(InputError, match="start='cpu': the model lies on meta"):
        run_chain(Gibbs(), model, start=START, steps=1)
    with pytest.raises(InputError, match=r"tokens=\(30, 4, 'meta'\)"):
        MODEL.energy(START.to(DEVICE))


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    "model",
    [random_ising(1, 6), Ising.clique(14, 12, 0.2, torch.linspace(-0.3, 0.5, 14))],
    ids=["dense", "clique"],
)
def test_an_ising_model_answers_there(model):
    there, sites = model.to(DEVICE), model.sites
    tokens = torch.randint(2, (5, sites), generator=generator(1, "tokens"))
    block = torch.rand(5, sites, generator=generator(1, "block")) < 0.6
    assert there.device.type == DEVICE.type
    answers = {
        "energy": lambda m, d: m.energy(tokens.to(d)),
        "features": lambda m, d: m.features(tokens.to(d)),
        "parameters": lambda m, d: m.parameters,
        "sites": lambda m, d: m.site_log_probs(tokens.to(d)),
        "masked": lambda m, d: m.log_probs(tokens.to(d), block.to(d)),
        "moments": lambda m, d: m.moments(),
        "sample": lambda m, d: m.sample(7, 1).double(),
    }
    for answer in answers.values():
        found, expected = answer(there, DEVICE), answer(model, torch.device("cpu"))
        assert found.device.type == DEVICE.type
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-12, atol=1e-12)
    assert there.log_partition() == pytest.approx(model.log_partition(), rel=1e-13)


@pytest.mark.usefixtures("elsewhere")
def test_the_chain_rule_and_sweeps_there():
    model = MODEL.to(DEVICE)
    for order in ("forward", "random"):
        chain = CHAINS["block-gibbs"](2)
        there = run_chain(chain, ChainRule(model, order), start=START.to(DEVICE), steps=5).tokens.cpu()
        assert torch.equal(there, run_chain(chain, ChainRule(MODEL, order), start=START, steps=5).tokens)
    here = run_sweeps(MODEL, chains=9, sweeps=4, seed=2, method="chromatic")
    for found in (
        run_sweeps(MODEL, chains=9, sweeps=4, seed=2, device=DEVICE),
        run_sweeps(model, chains=9, sweeps=4, seed=2),
    ):
        assert found.device.type == DEVICE.type
        assert torch.equal(found.cpu(), here)
    with pytest.raises(InputError, match=r"method='heat-bath': it runs on the CPU: on meta"):
        run_sweeps(MODEL, chains=9, sweeps=4, method="heat-bath", device=DEVICE)


def test_inversion_by_tensors_is_inversion():
    weights = torch.rand(4000, 7, generator=generator(0, "weights"), dtype=torch.float64)
    weights[torch.rand(4000, 7, generator=generator(1, "zeros")) < 0.4] = 0
    weights[:, 3] += weights.sum(1) == 0
    uniform = torch.rand(4000, generator=generator(2, "uniform"), dtype=torch.float64)
    for numbers in (uniform, torch.zeros(4000).double(), torch.full((4000,), 1 - 2.0**-53).double()):
        found = inverted(numbers, weights)
        assert torch.equal(found, index_of(numbers, weights.log()))
        assert bool((weights.gather(1, found[:, None]) > 0).all())
    # A target that rounding lifts to the total: the last index that has weight.
    assert inverted(torch.ones(1).double(), torch.tensor([[0.0, 1.0, 2.0, 0.0]])).tolist() == [2]
    for wrong in ([[0.0, 0.0]], [[float("nan"), 1.0]]):
        with pytest.raises(InputError, match="log_weights"):
            inverted(uniform[:1], torch.tensor(wrong))


@pytest.mark.usefixtures("elsewhere")
def test_streams_draw_the_same_numbers_there():
    rows = torch.tensor([0, 3, 1])
    here, there = Streams(7, torch.arange(5)), Streams(7, torch.arange(5).to(DEVICE))
    for _ in range(3):
        assert torch.equal(there.uniform(rows.to(DEVICE)).cpu(), here.uniform(rows))
    here.select(rows)
    there.select(rows.to(DEVICE))
    assert torch.equal(there.counters.cpu(), here.counters)
    assert torch.equal(there.uniform(rows[1:].to(DEVICE) % 3).cpu(), here.uniform(rows[1:] % 3))


@pytest.mark.usefixtures("elsewhere")
def test_the_pretended_device_refuses_what_a_real_one_does():
    there = START.to(DEVICE)
    assert torch.equal(there.cpu(), START)
    assert (there + 1).device.type == DEVICE.type
    with pytest.raises(RuntimeError, match="same device"):
        there + START
    with pytest.raises(RuntimeError, match="same device"):
        there[torch.arange(3)]
    with pytest.raises((TypeError, RuntimeError)):
        there.numpy()
