"""Simulated hitting times against exact ones, and the study end to end in miniature."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from complete_runs import require_complete
from pandas import DataFrame
from torch import Tensor

from trialogue.data import Ising
from trialogue.errors import InputError
from trialogue.inference import BlockGibbs, HittingTimes, IndependentParallel, hitting_times
from trialogue.inference.laws import transition_matrix
from trialogue.ledger import load_rows
from trialogue.ledger.claims import evaluate
from trialogue.ledger.execution import execute
from trialogue.ledger.tables import sheet
from trialogue.studies import ising_sampling
from trialogue.studies.ising_sampling import PRESETS, STUDY, Config, exact_row, simulated_rows
from trialogue.studies.ising_sampling_rows import PARALLEL, exact, smaller_blocks
from trialogue.theory.cliques.chains import block_chain, parallel_chain

SMOKE = PRESETS["smoke"]


def test_smaller_blocks_go_by_size_and_not_by_place() -> None:
    rows = DataFrame({"kind": "exact", "block_size": [1.0, 4.0, 8.0, 10.0], "chain": "any"})
    assert smaller_blocks(rows) == ["k = 1", "k = 4", "k = 8"]


@pytest.mark.parametrize("chain", [BlockGibbs(1), BlockGibbs(2), BlockGibbs(4), IndependentParallel()])
def test_the_exact_law_is_that_of_the_whole_chain(chain: BlockGibbs | IndependentParallel) -> None:
    sites, clique, coupling, field, budget = 4, 3, 0.7, 0.4, 12
    model = Ising.clique(sites, clique, coupling, field)
    matrix = transition_matrix(chain, model)
    there = (model.states()[:, :clique] == 1).all(1)
    waiting, alive = matrix[~there][:, ~there], torch.zeros(int((~there).sum()), dtype=torch.float64)
    alive[0] = 1.0
    first = second = 0.0
    for step in range(budget):
        first, second = first + float(alive.sum()), second + (2 * step + 1) * float(alive.sum())
        alive = alive @ waiting
    expected = torch.linalg.solve(torch.eye(len(waiting)) - waiting, torch.ones_like(alive))[0]
    small = (
        parallel_chain(clique, coupling, field)
        if isinstance(chain, IndependentParallel)
        else block_chain(sites, clique, coupling, field, chain.block_size)
    )
    row = exact_row(small, budget)
    assert row["mean"] == pytest.approx(first)
    assert row["deviation"] == pytest.approx(math.sqrt(second - first**2))
    assert row["reached"] == pytest.approx(1 - float(alive.sum()))
    assert row["log_expected"] == pytest.approx(math.log(expected))


def z_scores(config: Config, coupling: float, sizes: tuple[int | None, ...]) -> list[float]:
    """Simulated mean of min(T, budget) minus the exact one, in exact standard errors; None: independent parallel."""
    scores = []
    for size in sizes:
        chain = IndependentParallel() if size is None else BlockGibbs(size)
        law = (
            parallel_chain(config.clique, coupling, config.field)
            if size is None
            else block_chain(config.sites, config.clique, coupling, config.field, size)
        )
        truth = exact_row(law, config.budget)
        rows = list(simulated_rows(config, coupling, str(size), chain))
        error = truth["deviation"] / math.sqrt(len(rows) * config.chains)
        scores.append((sum(row["mean"] for row in rows) / len(rows) - truth["mean"]) / error)
    return scores


MEASURED = Config(budget=60, chains=200, seeds=(0, 1))


def as_computed(scores: list[float]) -> bool:
    """Five standard errors: 1e-6 for a right sampler."""
    return max(map(abs, scores)) < 5


def test_simulated_times_are_the_exact_ones() -> None:
    assert as_computed(z_scores(MEASURED, 2.0, (1, 2, 4, 6, None)))
    assert as_computed(z_scores(MEASURED, 4.0, (4, 6, 8)))


def _larger_blocks(chain: Any, model: Ising, **given: Any) -> HittingTimes:
    larger = (
        IndependentParallel() if isinstance(chain, IndependentParallel) else BlockGibbs(chain.block_size + 1)
    )
    return hitting_times(larger, model, **given)


def _ordered_pairs(chain: Any, model: Ising, **given: Any) -> HittingTimes:
    return hitting_times(chain, Ising(2 * model.coupling, model.field), **given)


def _one_spin_missing(
    chain: Any, model: Ising, target: Callable[[Tensor], Tensor], **given: Any
) -> HittingTimes:
    del target
    return hitting_times(chain, model, target=lambda tokens: tokens[:, :4].sum(1) >= 3, **given)


def _one_step_late(chain: Any, model: Ising, **given: Any) -> HittingTimes:
    found = hitting_times(chain, model, **given)
    return found._replace(steps=found.steps + 1)


@pytest.mark.parametrize("broken", [_larger_blocks, _ordered_pairs, _one_spin_missing, _one_step_late])
def test_a_broken_measurement_is_not(
    broken: Callable[..., HittingTimes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ising_sampling, "hitting_times", broken)
    assert not as_computed(z_scores(MEASURED, 2.0, (1, 4, 6)))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    execute(STUDY, SMOKE, folder)
    return folder


def test_every_part_claim_table_and_figure_has_rows(results: Path) -> None:
    rows = require_complete(
        STUDY, SMOKE, results, replications=len(SMOKE.seeds), lines=2 * len(SMOKE.couplings)
    )
    expected = exact(rows, "log_expected").map(math.exp)
    known = {(2.0, "k = 1"): 45.5, (3.0, "k = 1"): 1.0e4, (4.0, "k = 4"): 10.8, (6.0, "k = 8"): 2.99}
    for (coupling, chain), steps in known.items():
        assert expected.at[coupling, chain] == pytest.approx(steps, rel=0.01)
    assert expected.at[2.0, PARALLEL] == pytest.approx(4.2, rel=0.01)


def test_another_setting_leaves_the_claims_without_an_answer(tmp_path: Path) -> None:
    config = dataclasses.replace(SMOKE, couplings=(0.5,), block_sizes=(2, 3), seeds=(0,))
    rows = load_rows(execute(STUDY, config, tmp_path).folder)
    assert len(evaluate(STUDY.claims, rows)) == len(STUDY.claims)
    for table in STUDY.tables:
        assert sheet(table, rows).lines


def test_a_repetition_does_not_depend_on_the_others(results: Path, tmp_path: Path) -> None:
    one = dataclasses.replace(SMOKE, seeds=(1,), couplings=(2.0,))
    alone = load_rows(execute(STUDY, one, tmp_path).folder)
    beside = load_rows(STUDY.folder(SMOKE, results))
    first, second = (
        rows[(rows.seed == 1) & (rows.coupling == 2.0)]["mean"].tolist() for rows in (alone, beside)
    )
    assert first == second


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sites", 1),
        ("clique", 11),
        ("clique", 1),
        ("field", math.nan),
        ("couplings", ()),
        ("couplings", (2.0, 2.0)),
        ("block_sizes", (1, 1)),
        ("couplings", (math.inf,)),
        ("block_sizes", ()),
        ("block_sizes", (0,)),
        ("block_sizes", (11,)),
        ("budget", 0),
        ("chains", 1),
        ("seeds", ()),
        ("seeds", (1, 1)),
        ("seeds", (-1,)),
    ],
)
def test_a_field_out_of_range_is_named(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{field}="):
        dataclasses.replace(Config(), **{field: value})
