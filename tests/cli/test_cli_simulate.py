"""`trialogue simulate`: registered chains and distributions, diagnostics and output files."""

import io
import json
import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from refusals import commands_without_expected_error
from trialogue import cli
from trialogue.data import ising_grid
from trialogue.data.registered import DISTRIBUTIONS
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import generator
from trialogue.samplers import Metropolis, run_chain

PACKAGE = Path(__file__).parents[1] / "registered"
ISING = 'ising:{"sites": 6, "coupling": 0.3}'
POTTS = 'potts:{"length": 6, "temperature": 0.8, "patterns": [[0, 1], [1, 1]]}'


@pytest.fixture
def simulated(run_command):
    def run(*words):
        code, out, err = run_command("simulate", *words, "--json")
        assert code == 0, err
        return json.loads(out)

    return run


def test_a_chain_gives_the_samples_of_run_chain(simulated, tmp_path):
    file = tmp_path / "samples.npz"
    settings = {"steps": 60, "burn_in": 5, "thin": 2, "seed": 3}
    options = (f"--{name.replace('_', '-')}={value}" for name, value in settings.items())
    found = simulated(
        "--distribution", ISING, "--chain", "metropolis", "--chains", 5, *options, "--out", file
    )
    with np.load(file) as written:
        tokens, energy = torch.from_numpy(written["tokens"]), torch.from_numpy(written["energy"])
        rates = written["acceptance"].tolist()
    model = ising_grid(1, 6, 0.3)
    assert tokens.shape == (5, 30, 6)
    torch.testing.assert_close(model.energy(tokens.flatten(0, 1)).view(5, 30), energy)
    assert found["mean_energy"] == pytest.approx(float(energy.mean()))
    assert found["acceptance"] == pytest.approx(sum(rates) / 5)
    assert found["acceptance_by_chain"] == pytest.approx(rates)
    assert 0.2 < found["acceptance"] < 1
    assert (found["draws"], found["steps"], found["burn_in"], found["thin"]) == (30, 60, 5, 2)
    # The same start and seed give the same path.
    uniform = torch.randint(2, (5, 6), generator=generator(3, "starts"))
    again = run_chain(Metropolis(), model, start=uniform, **settings)
    assert torch.equal(again.samples.transpose(0, 1), tokens)


@pytest.mark.parametrize(
    ("spec", "chain"),
    [
        (ISING, "exact"),
        (
            'ising-grid:{"rows": 3, "columns": 2, "coupling": 0.2, "periodic": false}',
            'gibbs:{"order": "sweep"}',
        ),
        (POTTS, 'block-dynamics:{"blocks": [[0, 1, 2], [3, 4, 5]], "weights": [1, 2]}'),
        ('many-body:{"sites": 5, "vocab_size": 3, "scale": 0.8, "seed": 1}', "metropolis"),
    ],
)
def test_the_mean_energy_is_exact(simulated, spec, chain):
    model = DISTRIBUTIONS.build(spec)
    energy = model.energy(enumerate_sequences(model.vocab_size, model.sites))
    exact = float((-energy).softmax(0) @ energy)
    found = simulated(
        "--distribution", spec, "--chain", chain, "--chains", 16, "--steps", 600, "--burn-in", 100
    )
    # The standard error is itself an estimate, hence the wide tolerance of six.
    assert found["mean_energy"] == pytest.approx(exact, abs=6 * found["standard_error"])
    assert found["standard_error"] < 0.3
    assert found["r_hat"] < 1.05
    assert (found["acceptance"] is not None) == (chain == "metropolis")
    if chain == "exact":
        assert found["effective_sample_size"] == pytest.approx(16 * 600, rel=0.1)


def test_an_autoregressive_distribution_has_exact_samples(simulated):
    found = simulated("--distribution", 'dyck:{"length": 6}', "--chain", "exact")
    assert found["mean_log_probability"] < 0
    assert found["draws"] == 1000


@pytest.mark.parametrize("steps", [1, 3])
def test_few_samples_have_no_diagnostics(simulated, steps):
    found = simulated("--distribution", ISING, "--steps", steps)
    assert (found["r_hat"], found["effective_sample_size"], found["standard_error"]) == (None, None, None)
    assert math.isfinite(found["mean_energy"])


def test_a_missing_extra_removes_only_the_diagnostics(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "arviz_stats.base", None)
    assert cli.main(["simulate", "--distribution", ISING, "--steps", "20"]) == 0
    captured = capsys.readouterr()
    assert "mean_energy" in captured.out
    assert "r_hat" not in captured.out
    assert captured.err.endswith("it is not installed: pip install 'trialogue[chains]'\n")


def test_registered_distributions_and_chains_can_be_simulated(simulated, monkeypatch):
    monkeypatch.syspath_prepend(PACKAGE)
    found = simulated("--distribution", 'loaded-dice:{"sites": 2}', "--chain", "lazy-gibbs", "--steps", 4000)
    above = 1 / (1 + math.e)
    assert found["mean_energy"] == pytest.approx(2 * above, abs=6 * found["standard_error"])


def test_samples_are_written_as_inference_data(simulated, tmp_path):
    for module in ("arviz_base", "h5netcdf"):
        pytest.importorskip(module, reason="pip install 'trialogue[chains]'")
    import xarray

    options = ("--chain", "metropolis", "--steps", 20, "--chains", 3, "--out", tmp_path / "a.nc")
    found = simulated("--distribution", ISING, *options)
    with xarray.open_datatree(io.BytesIO((tmp_path / "a.nc").read_bytes()), engine="h5netcdf") as tree:
        assert dict(tree.posterior.tokens.sizes) == {"chain": 3, "draw": 20, "site": 6}
        assert float(tree.sample_stats.energy.mean()) == pytest.approx(found["mean_energy"])
        assert tree.posterior.attrs["acceptance"] == pytest.approx(found["acceptance_by_chain"])
    assert [file.name for file in tmp_path.iterdir()] == ["a.nc"]


def test_invalid_input_is_reported_in_one_line(run_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ising = f"--distribution '{ISING}'"
    cases = [
        ("", "distribution=None: use a distribution, for example ising"),
        ("--distribution isng", "distribution='isng': no such distribution: did you mean ising?"),
        ("--distribution 'ising:[1]'", "give its arguments as a JSON object"),
        ("--distribution 'dyck:{\"length\": 4}'", "give a masked model or an energy"),
        (f"{ising} --chain gibs", "chain='gibs': no such chain: did you mean gibbs?"),
        (f"{ising} --chain block-gibbs", "missing a required argument: 'block_size'"),
        (f"{ising} --chain 'block-gibbs:{{\"block_size\": 9}}'", "use at most 6, the number of sites"),
        (f'{ising} --chain \'metropolis:{{"order": "sweep"}}\'', "not ergodic on this model"),
        ('--distribution \'many-body:{"sites": 4, "vocab_size": 3}\' --chain exact', "no exact sampler"),
        (f"{ising} --steps 5 --thin 6", "use at most 5"),
        (f"{ising} --out a.csv", "use a file name that ends in .npz or .nc"),
        (f"{ising} --out none/a.npz", "there is no folder"),
        (f"{ising} --stepz 5", "did you mean --steps?"),
    ]
    assert not commands_without_expected_error(cases, partial(run_command, "simulate"))
    assert list(tmp_path.iterdir()) == []
