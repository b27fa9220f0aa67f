"""The study `potts-coherence`: what it measures against enumeration, its rows at the smallest size, its bad input."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
from complete_runs import require_complete
from trialogue.ledger.execution import execute

from trialogue.data import PottsChain
from trialogue.errors import InputError
from trialogue.ledger import load_rows
from trialogue.oracles import whole_sequences
from trialogue.studies import potts_coherence_chains
from trialogue.studies.potts_coherence import PRESETS, STUDY, Config
from trialogue.studies.potts_coherence_chains import (
    Sampled,
    chain_rows,
    control_rows,
    periodic,
    planted,
    sampled_rows,
    shared_tokens,
    uniform,
)
from trialogue.studies.potts_coherence_maps import law_of, map_rows, random_model

SMOKE = PRESETS["smoke"]


@pytest.mark.parametrize(
    "family", [uniform(2, 3, 1.0, 3), planted(3, 2, 1.5), periodic(1.0), shared_tokens(2.0)]
)
def test_rows_of_a_chain_are_those_of_all_its_sequences(family):
    chain, length, temperature = family.chain, 7, 0.8
    states = whole_sequences(chain.vocab_size, length)
    law = (-chain.energy(states) / temperature).softmax(0)
    walls = chain.domain_walls(states)
    row = next(row for row in chain_rows(family, [temperature], [length]) if row["kind"] == "length")
    assert row["walls"] == pytest.approx(float(law @ walls.sum(1).double()), abs=1e-12)
    assert row["wall"] == pytest.approx(float(law @ walls.any(1).double()), abs=1e-12)
    runs = (walls.long().cumsum(1) == 0).sum(1) + 1
    assert row["run"] == pytest.approx(float(law @ runs.double()), abs=1e-12)
    assert row["windows"] == length - chain.window + 1
    first = next(chain_rows(family, [temperature], []))
    assert first["max_energy"] == float(chain.energies.max())
    assert first["wall_decay"] > 0 < first["ground_decay"]


def test_the_control_is_certain():
    rows = list(control_rows())
    assert [row["forbidden"] for row in rows] == [False] * 4 + [True]
    assert rows[-1]["ground_decay"] == rows[-1]["wall"] == 0.0
    assert rows[-2]["wall"] > 1e-4


def as_computed(setting, chains, sweeps):
    """Shares with a wall are the computed ones within five standard errors each: 2e-6 for right samplers."""
    scores = []
    for row in sampled_rows([setting], chains, sweeps, 3):
        error = math.sqrt(row["wall"] * (1 - row["wall"]) / chains)
        scores += [(row[column] - row["wall"]) / error for column in ("drawn", "gibbs")]
    return max(map(abs, scores)) < 5


SETTING = Sampled(patterns=2, window=2, temperature=0.5)


def test_sampled_walls_are_the_computed_ones():
    assert SETTING.lengths == (4, 8, 84)
    assert as_computed(SETTING, 4000, 300)


def test_what_has_not_mixed_is_not():
    assert not as_computed(SETTING, 4000, 1)


def test_a_hotter_chain_is_not(monkeypatch):
    def hotter(energies, length):
        return original(energies * 0.9, length)

    original = potts_coherence_chains.window_tables
    monkeypatch.setattr(potts_coherence_chains, "window_tables", hotter)
    assert not as_computed(SETTING, 4000, 300)


def test_maps_agree_with_the_products_of_conditionals():
    oracle = random_model(2, 0)
    assert float(law_of(oracle).sum()) == pytest.approx(1, abs=1e-12)
    row = next(map_rows([2], 1))
    assert max(row["global"], row["round_trip"], row["exact_0.5"], row["exact_2"]) < 1e-12
    assert min(row["per_context"], row["per_step_0.5"], row["per_step_2"]) > 1e-3
    assert row["patterns"] >= row["cycles"] >= 1


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    execute(STUDY, SMOKE, folder)
    return folder


def test_every_part_claim_table_and_figure_has_rows(results: Path) -> None:
    require_complete(
        STUDY, SMOKE, results, replications=len(SMOKE.seeds), lines=len(SMOKE.plane_temperatures)
    )


def test_a_seed_does_not_depend_on_the_others(results: Path, tmp_path: Path) -> None:
    one = list(sampled_rows(SMOKE.sampled, SMOKE.chains, SMOKE.sweeps, 1))
    rows = load_rows(STUDY.folder(SMOKE, results))
    beside = rows[(rows.kind == "sampled") & (rows.seed == 1)]
    assert [row["gibbs"] for row in one] == beside.gibbs.tolist()
    assert [row["drawn"] for row in one] == beside.drawn.tolist()


def test_planted_tables_store_their_patterns() -> None:
    chain = planted(3, 3, 2.0).chain
    assert isinstance(chain, PottsChain)
    assert int((chain.energies == 0).sum()) == 3
    assert 1.0 <= float(chain.energies[chain.energies > 0].min()) <= chain.max_energy <= 2.0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("patterns", ()),
        ("patterns", (1,)),
        ("windows", (1,)),
        ("lengths", (3,)),
        ("widths", (0,)),
        ("sides", (2,)),
        ("penalties", (0.0,)),
        ("temperatures", ()),
        ("temperatures", (-1.0,)),
        ("plane_temperatures", (math.inf,)),
        ("sampled", ()),
        ("sampled", (Sampled(patterns=2, window=2, temperature=0.05),)),
        ("patterns", (2, 2.5)),
        ("patterns", (2, 2)),
        ("lengths", (10, 10)),
        ("sides", (5, 5)),
        ("temperatures", (0.5, 0.5)),
        ("sampled", (SETTING, SETTING)),
        ("seeds", ()),
        ("seeds", (0.5,)),
        ("seeds", (1, 1)),
        ("seeds", (-1,)),
        ("chains", 0),
        ("sweeps", 0),
        ("models", 0),
        ("plane_chains", 0),
        ("plane_sweeps", 0),
    ],
)
def test_a_field_out_of_range_is_named(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{field}="):
        dataclasses.replace(Config(), **{field: value})
