"""Samples as ArviZ `InferenceData`, and the error for a missing extra."""

import sys

import pytest
import torch

from refusals import expect_error
from samplers.chains.small_models import random_ising
from trialogue.data import Table
from trialogue.data.potts.chain import PottsChain
from trialogue.samplers import (
    Gibbs,
    MaskedDecoding,
    MaskedMetropolis,
    Metropolis,
    convergence,
    generate,
    run_chain,
)
from trialogue.verifiers import FunctionVerifier

START = torch.zeros(3, 4, dtype=torch.int64)
MODEL = random_ising(1, 4)


def weighted_samples():
    """Return samples of masked decoding of two fair coins that must not both be 1. The prefix 1 has weight 1/2."""
    oracle = Table(torch.full((2, 2), 0.25))
    verifier = FunctionVerifier(lambda prefix: sum(prefix) < 2)
    return generate(oracle, sampler=MaskedDecoding(), verifier=verifier, num_samples=40, seed=1)


def test_samples_of_chains_are_converted():
    pytest.importorskip("arviz_base", reason="pip install 'trialogue[chains]'")
    run = run_chain(MaskedMetropolis(), MODEL, start=START, steps=20, thin=2)
    tree = run.to_inference_data()
    assert tree.posterior.tokens.dims == ("chain", "draw", "site")
    assert torch.equal(torch.from_numpy(tree.posterior.tokens.values), run.samples.transpose(0, 1))
    assert torch.equal(torch.from_numpy(tree.sample_stats.energy.values), run.energies.T)
    assert tree.posterior.attrs["acceptance"] == run.acceptance.tolist()
    metropolis = run_chain(Metropolis(), MODEL, start=START, steps=20, thin=2).to_inference_data()
    assert "tokens" in metropolis.posterior
    assert "sample_stats" not in run_chain(Gibbs(), MODEL, start=START, steps=2, thin=1).to_inference_data()


def test_weighted_samples_of_prefix_samplers_are_converted():
    pytest.importorskip("arviz_base", reason="pip install 'trialogue[chains]'")
    samples = weighted_samples()
    stats = samples.to_inference_data().sample_stats
    assert torch.equal(torch.from_numpy(stats.log_weight.values)[0], samples.log_weight)
    assert len(set(stats.log_weight.values[0].round(9).tolist())) == 2
    rejected = samples[:3]
    rejected.accepted[1] = False
    tree = rejected.to_inference_data()
    assert tree.sample_stats.log_weight.values[0].tolist()[1] == -float("inf")
    assert tree.posterior.tokens.dims == ("chain", "draw", "position")
    assert tree.posterior.sizes["draw"] == 3
    assert tree.posterior.length.values.tolist() == [rejected.lengths.tolist()]


def test_a_run_without_samples_cannot_be_converted():
    expect_error("pass `thin`", run_chain(Gibbs(), MODEL, start=START, steps=2).to_inference_data)


@pytest.mark.parametrize(
    ("module", "extra", "call"),
    [
        ("arviz_base", "chains", lambda: weighted_samples().to_inference_data()),
        ("arviz_stats.base", "chains", lambda: convergence(torch.rand(8, 2))),
        ("mpmath", "precise", lambda: PottsChain(1e3 * (1 - torch.eye(2))).correlation_length(30.0)),
    ],
)
def test_a_missing_extra_is_reported(module, extra, call, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    caught = expect_error("", call)
    hint = f"it is not installed: pip install 'trialogue[{extra}]'"
    assert (caught.field, caught.value, caught.hint) == (
        "package",
        module.split(".")[0],
        hint,
    )
