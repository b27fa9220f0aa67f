"""Multispin coding: thresholds of 52 bits, every bit of every chain, and rejected models."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import expit

from mutants.modules import altered
from refusals import expect_error
from samplers.chains.simulation.reference_kernels import (
    disordered,
    multispin,
    star,
)
from samplers.chains.small_models import ring
from trialogue.data import Ising, window_tables
from trialogue.data.ising.neighbourhoods import SiteClass
from trialogue.samplers.chains.simulation import multispin as module
from trialogue.samplers.chains.simulation import multispin_kernels
from trialogue.samplers.chains.simulation.multispin import Multispin, spin_thresholds
from trialogue.samplers.chains.simulation.sweeps import run_sweeps


@pytest.mark.parametrize("coupling", [0.5, -0.3, 1e-9, 30.0, -400.0])
@pytest.mark.parametrize(("count", "field"), [(0, 0.2), (1, 0.0), (2, 0.0), (2, 0.1), (5, 0.0), (6, -0.7)])
def test_every_threshold_is_the_exact_conditional(coupling, count, field):
    kind = SiteClass((coupling,) if count else (), (count,) if count else (), field)
    thresholds, column, flip = spin_thresholds(kind)
    local = coupling * (2.0 * np.arange(count + 1) - count) * (count > 0) + field
    found = [thresholds[c] / 2**52 for c in column]
    found = [1 - p if flipped else p for p, flipped in zip(found, flip, strict=True)]
    # Half a unit of 2^-52, and the same for each of the two float64 results.
    assert found == pytest.approx(expit(2 * local).tolist(), rel=0, abs=2.0**-51)
    assert all(0 <= threshold < 2**52 for threshold in thresholds)
    if not field:
        # A symmetric distribution needs half of the comparisons.
        assert len(thresholds) <= count // 2 + 1


MODELS = {
    "ring": ring(5, 0.4),
    "ring with field": ring(5, -0.3, 0.2),
    "star": star(6),
    "clique": Ising.clique(6, 4, 0.3, 0.1),
}


def change_multispin(*changes, words=1):
    """Return an interpreted `Multispin` with `words` words per block and with the given source changes."""
    small = ("WORDS = 64", f"WORDS = {words}")
    source = [
        [change for change in changes if change[0] in read_source(m)] for m in (multispin_kernels, module)
    ]
    kernels = altered(multispin_kernels, small, *source[0])
    line = "from trialogue.errors import InputError"
    names = altered(module, (line, f"{line}\nfrom trialogue.compilation import compiled"), *source[1])
    names |= {name: kernels[name] for name in ("WORDS", "BELOW", "COLUMN", "sweep_words")}
    return names["Multispin"]


def read_source(part):
    return Path(part.__file__).read_text(encoding="utf-8")


def differs_from_reference(kind, model, words, sweeps=2, seed=3) -> bool:
    """Return whether the spins differ from the reference with the same random bits."""
    with np.errstate(over="ignore"):
        simulation = kind(model, 64 * words, seed)
        for _ in range(sweeps):
            simulation.advance(1)
    return simulation.tokens.tolist() != multispin(model, words, seed, sweeps)


@pytest.mark.parametrize("name", MODELS)
def test_chains_equal_the_reference_with_the_same_bits(name):
    assert not differs_from_reference(Multispin, MODELS[name], multispin_kernels.WORDS)
    assert not differs_from_reference(change_multispin(), MODELS[name], 1)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ring", ("place + GROUP < lengths[column]", "place + 2 * GROUP < BITS // 4")),
        ("ring with field", ("thresholds[column, place + 3]", "thresholds[first, place + 3]")),
        ("star", ("& ~least[row + _W + w]", "")),
        ("clique", ("(work[column + w] ^ flipped)", "work[column + w]")),
    ],
)
def test_faulty_kernels_are_detected(name, change):
    assert differs_from_reference(change_multispin(change), MODELS[name], 1)


def test_models_with_different_couplings_are_rejected():
    for model in (disordered(5), window_tables(torch.zeros(2, 2), 5)):
        expect_error("multispin", run_sweeps, model, chains=1, sweeps=1, method="multispin")
