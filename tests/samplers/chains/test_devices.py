"""Chains on another device: no tensor remains on the CPU, and the results are the same."""

import pytest
import torch

from contract.test_chains import MODELS, NAMES, REQUIRED, variants
from refusals import expect_error
from samplers.chains.simulation.other_device import DEVICE, DeviceMode
from samplers.chains.small_models import random_ising
from trialogue.data import Ising
from trialogue.errors import InputError
from trialogue.randomness import Streams, generator, invert_rows, select_index
from trialogue.samplers import CHAINS, ChainRule, Gibbs, Metropolis, hitting_times, run_chain, run_sweeps
from trialogue.samplers.exact import transition_matrix

MODEL = MODELS["ising"]
START = torch.randint(2, (30, 4), generator=generator(0, "start"))


@pytest.fixture
def other_device():
    with DeviceMode():
        yield


def all_up(tokens):
    return (tokens == 1).all(1)


@pytest.mark.usefixtures("other_device")
@pytest.mark.parametrize(("name", "options"), [variant for name in NAMES for variant in variants(name)])
def test_every_chain_gives_the_same_results_on_another_device(name, options):
    chain = CHAINS[name](**REQUIRED.get(name, {}), **options)
    for model in (MODEL, MODELS["clique"]):
        settings = {"steps": 4, "burn_in": 1, "thin": 2, "seed": 3, "trace": True, "require_ergodic": False}
        expected = run_chain(chain, model, start=START, **settings)
        found = run_chain(chain, model.to(DEVICE), start=START.to(DEVICE), **settings)
        for tensor in (found.tokens, found.samples, found.steps, found.reached, *found.trace):
            assert tensor.device.type == DEVICE.type
        assert torch.equal(found.tokens.cpu(), expected.tokens)
        assert torch.equal(found.samples.cpu(), expected.samples)
        assert torch.equal(found.steps.cpu(), expected.steps)


@pytest.mark.usefixtures("other_device")
def test_hitting_times_and_transitions_are_the_same_on_another_device():
    model = MODEL.to(DEVICE)
    expected = hitting_times(Metropolis(), MODEL, start=START, target=all_up, budget=15)
    found = hitting_times(Metropolis(), model, start=START.to(DEVICE), target=all_up, budget=15)
    assert torch.equal(found.steps.cpu(), expected.steps)
    assert torch.equal(found.censored.cpu(), expected.censored)
    expected = transition_matrix(Gibbs(), MODEL)
    torch.testing.assert_close(transition_matrix(Gibbs(), model), expected, rtol=1e-13, atol=0)
    expect_error("start='cpu': move it to meta", run_chain, Gibbs(), model, start=START, steps=1)
    expect_error(r"tokens=\(30, 4, 'meta'\)", MODEL.energy, START.to(DEVICE))


@pytest.mark.usefixtures("other_device")
@pytest.mark.parametrize(
    "model",
    [random_ising(1, 6), Ising.clique(14, 12, 0.2, torch.linspace(-0.3, 0.5, 14))],
    ids=["dense", "clique"],
)
def test_an_ising_model_is_the_same_on_another_device(model):
    moved, sites = model.to(DEVICE), model.sites
    tokens = torch.randint(2, (5, sites), generator=generator(1, "tokens"))
    block = torch.rand(5, sites, generator=generator(1, "block")) < 0.6
    assert moved.device.type == DEVICE.type
    calls = {
        "energy": lambda m, d: m.energy(tokens.to(d)),
        "features": lambda m, d: m.features(tokens.to(d)),
        "parameters": lambda m, d: m.parameters,
        "sites": lambda m, d: m.site_log_probs(tokens.to(d)),
        "masked": lambda m, d: m.log_probs(tokens.to(d), block.to(d)),
        "moments": lambda m, d: m.moments(),
        "sample": lambda m, d: m.sample(7, 1).double(),
    }
    for call in calls.values():
        found, expected = call(moved, DEVICE), call(model, torch.device("cpu"))
        assert found.device.type == DEVICE.type
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-12, atol=1e-12)
    assert moved.log_partition() == pytest.approx(model.log_partition(), rel=1e-13)


@pytest.mark.usefixtures("other_device")
def test_the_chain_rule_and_sweeps_are_the_same_on_another_device():
    model = MODEL.to(DEVICE)
    for order in ("forward", "random"):
        chain = CHAINS["block-gibbs"](2)
        found = run_chain(chain, ChainRule(model, order), start=START.to(DEVICE), steps=5).tokens.cpu()
        assert torch.equal(found, run_chain(chain, ChainRule(MODEL, order), start=START, steps=5).tokens)
    expected = run_sweeps(MODEL, chains=9, sweeps=4, seed=2, method="chromatic")
    for found in (
        run_sweeps(MODEL, chains=9, sweeps=4, seed=2, device=DEVICE),
        run_sweeps(model, chains=9, sweeps=4, seed=2),
    ):
        assert found.device.type == DEVICE.type
        assert torch.equal(found.cpu(), expected)
    with pytest.raises(InputError, match=r"method='heat-bath': use .chromatic. on meta"):
        run_sweeps(MODEL, chains=9, sweeps=4, method="heat-bath", device=DEVICE)


def test_inversion_with_tensors_equals_the_cpu_implementation():
    weights = torch.rand(4000, 7, generator=generator(0, "weights"), dtype=torch.float64)
    weights[torch.rand(4000, 7, generator=generator(1, "zeros")) < 0.4] = 0
    weights[:, 3] += weights.sum(1) == 0
    uniform = torch.rand(4000, generator=generator(2, "uniform"), dtype=torch.float64)
    for numbers in (uniform, torch.zeros(4000).double(), torch.full((4000,), 1 - 2.0**-53).double()):
        found = invert_rows(numbers, weights)
        assert torch.equal(found, select_index(numbers, weights.log()))
        assert bool((weights.gather(1, found[:, None]) > 0).all())
    # Rounding may lift the target to the total. The last index with weight is then returned.
    assert invert_rows(torch.ones(1).double(), torch.tensor([[0.0, 1.0, 2.0, 0.0]])).tolist() == [2]
    for wrong in ([[0.0, 0.0]], [[float("nan"), 1.0]]):
        expect_error("log_weights", invert_rows, uniform[:1], torch.tensor(wrong))


@pytest.mark.usefixtures("other_device")
def test_streams_draw_the_same_numbers_on_another_device():
    rows = torch.tensor([0, 3, 1])
    expected, found = Streams(7, torch.arange(5)), Streams(7, torch.arange(5).to(DEVICE))
    for _ in range(3):
        assert torch.equal(found.uniform(rows.to(DEVICE)).cpu(), expected.uniform(rows))
    expected.select(rows)
    found.select(rows.to(DEVICE))
    assert torch.equal(found.counters.cpu(), expected.counters)
    assert torch.equal(found.uniform(rows[1:].to(DEVICE) % 3).cpu(), expected.uniform(rows[1:] % 3))


@pytest.mark.usefixtures("other_device")
def test_the_simulated_device_rejects_the_same_operations_as_a_real_one():
    tensor = START.to(DEVICE)
    assert torch.equal(tensor.cpu(), START)
    assert (tensor + 1).device.type == DEVICE.type
    with pytest.raises(RuntimeError, match="same device"):
        tensor + START
    with pytest.raises(RuntimeError, match="same device"):
        tensor[torch.arange(3)]
    with pytest.raises((TypeError, RuntimeError)):
        tensor.numpy()
