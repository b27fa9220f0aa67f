"""Tests of simulated and exact hitting times of the study `ising-sampling`."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from trialogue.data import Ising
from trialogue.samplers import BlockGibbs, HittingTimes, IndependentParallel, hitting_times
from trialogue.samplers.exact import transition_matrix
from trialogue_lab.analysis import clique_hits
from trialogue_lab.ledger import Result, Rows
from trialogue_lab.studies.ising_sampling import STUDY, statistics
from trialogue_lab.studies.ising_sampling.config import PARALLEL, Config, block_label
from trialogue_lab.studies.ising_sampling.measure import measure_exactly, simulate_chain
from trialogue_lab.theory.cliques.chains import block_chain, parallel_chain


def rows_of_chain(coupling: float, size: int, mean: float, times: float) -> list[dict[str, Any]]:
    """Return the exact row of a chain, and one simulated repetition whose time is a multiple of the exact time."""
    common = {"coupling": coupling, "chain": block_label(size), "block_size": size}
    return [
        {"kind": "exact", **common, "mean": mean, "log_expected": math.log(mean)},
        {"kind": "simulated", **common, "seed": 5, "mean": times * mean},
    ]


def test_statistics_compare_chains_and_couplings_on_a_logarithmic_scale() -> None:
    means = {(2.0, 2): 40.0, (2.0, 9): 4.0, (2.0, 10): 1.0, (8.0, 2): 160.0, (8.0, 9): 5.0, (8.0, 10): 0.9}
    rows = Rows(
        [row for (coupling, size), mean in means.items() for row in rows_of_chain(coupling, size, mean, 2.0)]
    )
    assert statistics.list_block_samplers(rows, below_all=1) == ["k = 2", "k = 9"]
    assert statistics.list_block_samplers(rows, smallest=9) == ["k = 9", "k = 10"]
    # Chains are compared by size. Without k = 9, the statistic uses another k below N - 1.
    assert statistics.list_block_samplers(rows, below_all=2) == ["k = 2"]
    assert statistics.log_steps_ratio("k = 2", "k = 9")(rows)[5] == pytest.approx(math.log(10 * 32) / 2)
    assert statistics.slowdown(8.0, 2.0, below_all=2)(rows)[5] == pytest.approx(math.log(4))
    assert statistics.slowdown(8.0, 2.0)(rows)[5] == pytest.approx(math.log(4 * 1.25 * 0.9) / 3)
    assert statistics.steps_over_exact(9)(rows)[5] == pytest.approx(2)
    assert statistics.largest_increase_with_blocks()(rows).item() == pytest.approx(math.log(0.25))
    assert statistics.smallest_increase_with_coupling()(rows).item() == pytest.approx(math.log(0.9))
    assert statistics.smallest_slowdown(8.0, 2.0)(rows).item() == pytest.approx(math.log(1.25))


def small_chain(chain: Any, sites: int, clique: int, coupling: float, field: float) -> Any:
    """Return the exact chain of the number of up spins."""
    if isinstance(chain, IndependentParallel):
        return parallel_chain(clique, coupling, field)
    return block_chain(sites, clique, coupling, field, chain.block_size)


@pytest.mark.parametrize("chain", [BlockGibbs(1), BlockGibbs(2), BlockGibbs(4), IndependentParallel()])
def test_exact_rows_agree_with_the_transition_matrix(chain: BlockGibbs | IndependentParallel) -> None:
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
    row = measure_exactly(small_chain(chain, sites, clique, coupling, field), budget)
    assert row["mean"] == pytest.approx(first)
    assert row["deviation"] == pytest.approx(math.sqrt(second - first**2))
    assert row["reached"] == pytest.approx(1 - float(alive.sum()))
    assert row["log_expected"] == pytest.approx(math.log(expected))


def z_scores(config: Config, coupling: float, sizes: tuple[int | None, ...]) -> list[float]:
    """Return differences of means of min(T, budget) in standard errors. The size None is independent parallel."""
    scores = []
    for size in sizes:
        chain = IndependentParallel() if size is None else BlockGibbs(size)
        exact_chain = small_chain(chain, config.sites, config.clique, coupling, config.field)
        exact = measure_exactly(exact_chain, config.budget)
        rows = list(simulate_chain(config, coupling, str(size), chain))
        error = exact["deviation"] / math.sqrt(len(rows) * config.chains)
        scores.append((sum(row["mean"] for row in rows) / len(rows) - exact["mean"]) / error)
    return scores


MEASURED = Config(budget=60, chains=200, seeds=(0, 1))


def agrees_with_exact_times(scores: list[float]) -> bool:
    """Return whether all differences are below five standard errors."""
    return max(map(abs, scores)) < 5


def test_simulated_times_agree_with_exact_ones() -> None:
    assert agrees_with_exact_times(z_scores(MEASURED, 2.0, (1, 2, 4, 6, None)))
    assert agrees_with_exact_times(z_scores(MEASURED, 4.0, (4, 6, 8)))


def _ordered_pairs(chain: Any, model: Ising, **given: Any) -> HittingTimes:
    return hitting_times(chain, Ising(2 * model.coupling, model.field), **given)


def _one_step_late(chain: Any, model: Ising, **given: Any) -> HittingTimes:
    found = hitting_times(chain, model, **given)
    return found._replace(steps=found.steps + 1)


@pytest.mark.parametrize("broken", [_ordered_pairs, _one_step_late])
def test_wrong_measurements_are_detected(
    broken: Callable[..., HittingTimes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clique_hits, "hitting_times", broken)
    assert not agrees_with_exact_times(z_scores(MEASURED, 2.0, (1, 4, 6)))


def test_expected_steps_agree_with_published_values(smoke_run: Callable[[str], Result]) -> None:
    rows = STUDY.rows(smoke_run(STUDY.name))
    for coupling, chain, steps in (
        (2.0, "k = 1", 45.5),
        (3.0, "k = 1", 1.0e4),
        (4.0, "k = 4", 10.8),
        (6.0, "k = 8", 2.99),
        (2.0, PARALLEL, 4.2),
    ):
        found = math.exp(statistics.exact_number(coupling, chain, "log_expected")(rows).item())
        assert found == pytest.approx(steps, rel=0.01), (coupling, chain)
