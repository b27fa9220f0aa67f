"""Chains of clones: target distributions, recorded energies, and resumption."""

import pytest
import torch

from refusals import calls_without_expected_error, expect_error
from trialogue.data import ManyBody
from trialogue.generation.cloning.drawing import ChainStates, describe_convergence, draw
from trialogue.generation.cloning.samplers import SAMPLERS, SCORE, make_chain
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.oracles import enumerate_sequences
from trialogue.samplers import Convergence
from trialogue.samplers.exact import chain_transitions
from trialogue.storage import compute_sha256

NETWORK = FactoredAttention(FactoredAttentionConfig(vocab_size=3, sites=4, layers=2), seed=1)
START = enumerate_sequences(3, 4)[::7]
DISTRIBUTION = ManyBody.random(4, 3, order=3, rank=8, seed=2)


@pytest.mark.parametrize(
    ("sampler", "exact"), [("gibbs", True), ("metropolis-by-order", True), ("metropolis", False)]
)
def test_only_the_published_chain_misses_a_k_body_distribution(sampler, exact):
    distribution = DISTRIBUTION.probabilities()
    after = distribution @ chain_transitions(make_chain(sampler, DISTRIBUTION.order), DISTRIBUTION)
    assert (float((after - distribution).abs().sum()) < 1e-12) is exact


def test_the_published_chain_samples_a_sharpened_distribution():
    sharpened = (-DISTRIBUTION.order * DISTRIBUTION.energy(DISTRIBUTION.states())).softmax(0)
    after = sharpened @ chain_transitions(make_chain("metropolis", DISTRIBUTION.order), DISTRIBUTION)
    torch.testing.assert_close(after, sharpened, rtol=0, atol=1e-13)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_energies_and_samples_are_recorded(sampler):
    chain, reports = make_chain(sampler, 3), []
    drawn = draw(chain, NETWORK, START, (2, 5), seed=1, report=lambda *sweep: reports.append(sweep))
    assert drawn.energies.shape == (6, len(START))
    assert drawn.samples.keys() == {2, 5}
    energy = SCORE.energy if sampler == "gibbs" else chain.energy
    for sweep, tokens in ((0, START), *drawn.samples.items()):
        torch.testing.assert_close(drawn.energies[sweep], energy(NETWORK, tokens))
    assert reports == [(sweep, float(drawn.energies[sweep].mean())) for sweep in range(1, 6)]
    assert 0 < drawn.acceptance < 1


class Killed(BaseException):
    pass


@pytest.mark.parametrize("sampler", ["gibbs", "metropolis"])
@pytest.mark.parametrize("often", [True, False], ids=["after every step", "at the end alone"])
def test_a_killed_run_is_resumed(tmp_path, monkeypatch, sampler, often):
    chain, path = make_chain(sampler, 3), tmp_path / "chains.safetensors"
    complete = draw(chain, NETWORK, START, (3, 6), seed=1)
    if often:
        monkeypatch.setattr("trialogue.generation.cloning.drawing._CHECKPOINT_SECONDS", 0.0)
    step, taken = type(chain).step, []

    def killed(*given):
        taken.append(1)
        if len(taken) == 11:
            raise Killed
        return step(*given)

    with monkeypatch.context() as patch:
        patch.setattr(type(chain), "step", killed)
        with pytest.raises(Killed):
            draw(chain, NETWORK, START, (3, 6), seed=1, path=path)
    assert path.exists() is often
    again = draw(chain, NETWORK, START, (3, 6), seed=1, path=path)
    assert torch.equal(again.energies, complete.energies)
    assert all(torch.equal(again.samples[number], complete.samples[number]) for number in (3, 6))
    assert again.acceptance == complete.acceptance


def test_further_sweeps_continue_from_the_saved_ones(tmp_path):
    chain, path = make_chain("metropolis", 3), tmp_path / "chains.safetensors"
    draw(chain, NETWORK, START, 3, seed=1, path=path)
    reports = []
    more = draw(
        chain, NETWORK, START, (3, 6), seed=1, path=path, report=lambda *sweep: reports.append(sweep[0])
    )
    assert reports == [4, 5, 6]
    complete = draw(chain, NETWORK, START, (3, 6), seed=1)
    assert torch.equal(more.energies, complete.energies)
    assert torch.equal(more.samples[3], complete.samples[3])
    before = compute_sha256(path)
    assert torch.equal(draw(chain, NETWORK, START, 6, seed=1, path=path).samples[6], complete.samples[6])
    assert compute_sha256(path) == before
    expect_error(" has 6 sweeps", draw, chain, NETWORK, START, 4, seed=1, path=path)


@pytest.mark.parametrize("often", [True, False], ids=["within a sweep", "after it"])
def test_fewer_sweeps_have_the_results_of_a_shorter_run(tmp_path, monkeypatch, often):
    chain, path = make_chain("metropolis", 3), tmp_path / "chains.safetensors"
    few = draw(chain, NETWORK, START, 3, seed=1)
    if often:
        monkeypatch.setattr("trialogue.generation.cloning.drawing._CHECKPOINT_SECONDS", 0.0)
    more = draw(chain, NETWORK, START, (3, 6), seed=1, path=path)
    again = draw(chain, NETWORK, START, 3, seed=1, path=path)
    assert torch.equal(again.energies, few.energies)
    assert again.acceptance == few.acceptance != more.acceptance


def test_the_file_of_another_run_is_rejected(tmp_path):
    chain, path = make_chain("gibbs", 3), tmp_path / "chains.safetensors"
    draw(chain, NETWORK, START, 2, path=path)
    expect_error("other chains", draw, chain, NETWORK, START[:2], 3, path=path)
    path.write_bytes(b"x")
    expect_error("damaged", draw, chain, NETWORK, START, 3, path=path)


def test_the_state_of_convergence_is_described_in_words():
    assert describe_convergence(None) == "too few sweeps to assess"
    assert describe_convergence(Convergence(100.0, 1.01, 0.0, 1.0)) == "mixed"
    assert describe_convergence(Convergence(100.0, 1.5, 0.0, 1.0)) == "not mixed: increase --sweeps"
    assert describe_convergence(Convergence(100.0, 1.0, 9.0, 1.0)) == "not mixed: increase --sweeps"
    assert (
        describe_convergence(Convergence(100.0, float("nan"), 0.0, 0.0)) == "not mixed: no sequence changes"
    )
    few = ChainStates({}, torch.zeros(8, 3), 0.5)
    assert few.convergence(7) is None


BAD = [
    ("sampler=", lambda: make_chain("hamiltonian", 3)),
    ("sweeps=", lambda: draw(make_chain("gibbs", 3), NETWORK, START, 0)),
    ("sweeps=", lambda: draw(make_chain("gibbs", 3), NETWORK, START, (1, 0))),
]


def test_invalid_input_is_reported():
    assert not calls_without_expected_error(BAD)
