"""Tests of the study `potts-coherence`: comparison with enumeration, statistics and invalid input."""

import math
from pathlib import Path

import pytest
from known_rows import table

from trialogue.data import PottsChain
from trialogue.oracles import enumerate_sequences
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.potts_coherence import chains, statistics
from trialogue_lab.studies.potts_coherence.chains import UNIFORM
from trialogue_lab.studies.potts_coherence.config import PRESETS, Config, SampledChain
from trialogue_lab.studies.potts_coherence.maps import (
    compute_sequence_probabilities,
    make_random_model,
    measure_maps,
)

SMOKE = PRESETS["smoke"]


@pytest.mark.parametrize(
    "family",
    [
        chains.make_uniform_chain(2, 3, 1.0, 3),
        chains.make_planted_chain(3, 2, 1.5),
        chains.make_periodic_chain(1.0),
        chains.make_shared_token_chain(2.0),
    ],
)
def test_rows_of_a_chain_agree_with_enumeration(family):
    chain, length, temperature = family.chain, 7, 0.8
    states = enumerate_sequences(chain.vocab_size, length)
    probabilities = (-chain.energy(states) / temperature).softmax(0)
    walls = chain.domain_walls(states)
    row = next(
        row for row in chains.measure_chain(family, [temperature], [length]) if row["kind"] == "length"
    )
    assert row["walls"] == pytest.approx(float(probabilities @ walls.sum(1).double()), abs=1e-12)
    assert row["wall"] == pytest.approx(float(probabilities @ walls.any(1).double()), abs=1e-12)
    runs = (walls.long().cumsum(1) == 0).sum(1) + 1
    assert row["run"] == pytest.approx(float(probabilities @ runs.double()), abs=1e-12)
    assert row["windows"] == length - chain.window + 1
    first = next(chains.measure_chain(family, [temperature], []))
    assert first["max_energy"] == float(chain.energies.max())
    assert first["wall_decay"] > 0 < first["ground_decay"]


def test_control_has_no_walls():
    rows = list(chains.measure_control())
    assert [row["forbidden"] for row in rows] == [False] * 4 + [True]
    assert rows[-1]["ground_decay"] == rows[-1]["wall"] == 0.0
    assert rows[-2]["wall"] > 1e-4


def agrees_with_exact_shares(setting, count, sweeps):
    """Return whether shares with a wall are within five standard errors of exact shares."""
    scores = []
    config = Config(sampled=(setting,), chains=count, sweeps=sweeps)
    for row in chains.measure_samples(config, 3, Path()):
        error = math.sqrt(row["wall"] * (1 - row["wall"]) / count)
        scores += [(row[column] - row["wall"]) / error for column in ("drawn", "gibbs")]
    return max(map(abs, scores)) < 5


SETTING = SampledChain(patterns=2, window=2, temperature=0.5)


def test_sampled_walls_agree_with_exact_ones():
    assert SETTING.lengths == (4, 8, 84)
    assert agrees_with_exact_shares(SETTING, 4000, 300)


def test_unmixed_chains_are_rejected():
    assert not agrees_with_exact_shares(SETTING, 4000, 1)


def test_a_hotter_chain_is_rejected(monkeypatch):
    def hotter(energies, length):
        return original(energies * 0.9, length)

    original = chains.window_tables
    monkeypatch.setattr(chains, "window_tables", hotter)
    assert not agrees_with_exact_shares(SETTING, 4000, 300)


def test_maps_agree_with_products_of_conditionals():
    oracle = make_random_model(2, 0)
    assert float(compute_sequence_probabilities(oracle).sum()) == pytest.approx(1, abs=1e-12)
    row = next(measure_maps([2], 1))
    assert max(row["global"], row["round_trip"], row["exact_0.5"], row["exact_2"]) < 1e-12
    assert min(row["per_context"], row["per_step_0.5"], row["per_step_2"]) > 1e-3
    assert row["patterns"] >= row["cycles"] >= 1


def lengths(**columns: list[float]) -> Rows:
    """Return rows of uniform chains of two patterns and 300 tokens."""
    return Rows(table("length", family=UNIFORM, patterns=2, length=300, windows=299, **columns))


def test_windows_are_compared_at_equal_energy_over_temperature() -> None:
    rows = lengths(
        window=[2, 3, 2, 3],
        temperature=[0.2, 0.2, 0.3, 0.3],
        max_energy=[2, 3, 2, 3],
        run=[9.0, 50.0, 5.0, 12.0],
    )
    # W = 3 at T = 0.3 is compared with W = 2 at T = 0.2, not at T = 0.3.
    assert statistics.run_ratio()(rows).tolist() == [pytest.approx(12 / 9)]


def test_truncated_runs_are_not_compared() -> None:
    rows = lengths(window=[2, 3], temperature=[0.2, 0.3], max_energy=[2, 3], run=[200.0, 100.0])
    assert statistics.run_ratio()(rows).empty


def test_steps_of_rare_and_frequent_walls_are_comparable() -> None:
    columns = {"window": [2.0] * 4, "max_energy": [2.0] * 4, "temperature": [0.2, 0.3, 0.5, 1.0]}
    step = statistics.smallest_step("temperature")
    assert step(lengths(**columns, walls=[1e-9, 2e-9, 5e-9, 2.0])).tolist() == [pytest.approx(math.log(2))]
    assert step(lengths(**columns, walls=[1e-9, 2e-9, 1.9e-9, 2.0])).item() < 0


def test_planted_energies_store_their_patterns() -> None:
    chain = chains.make_planted_chain(3, 3, 2.0).chain
    assert isinstance(chain, PottsChain)
    assert int((chain.energies == 0).sum()) == 3
    assert 1.0 <= float(chain.energies[chain.energies > 0].min()) <= chain.max_energy <= 2.0
