"""Tests of exact rows of cliques and of imitated steps in the study `parallel-gap`."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch

from trialogue.data import Ising
from trialogue.samplers import BlockGibbs, HittingTimes, IndependentParallel, hitting_times
from trialogue.samplers.exact import transition_matrix
from trialogue_lab.analysis import clique_hits
from trialogue_lab.studies.parallel_gap import cliques, transitions
from trialogue_lab.studies.parallel_gap.cliques import CORRECTED, NAMED, STATED
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL, Config, CorollaryInstance


def test_instances_of_the_corollary_have_known_values() -> None:
    rows = list(cliques.measure_one_step(Config().instances))
    assert [row["arrives"] for row in rows] == pytest.approx((0.9873, 0.9629, 0.8400, 0.9838), abs=1e-4)
    assert [row["promised"] for row in rows] == pytest.approx((0.9750, 0.9509, 0.7875, 0.9776), abs=1e-4)
    assert rows[0]["stuck_exponent"] == pytest.approx(35.53, abs=0.01)
    assert rows[0]["stuck_exponent_needed"] == pytest.approx(8.29, abs=0.01)
    assert [row["stuck"] for row in rows] == pytest.approx([1.0] * 4)
    assert [Config().instances[index].block_size for index in (0, 1, 2, 3)] == [75, 14995, 439, 30798]


def test_steps_into_the_larger_mode_have_known_values() -> None:
    rows = [row for row in cliques.measure_hitting() if row["delta"] == 0.5]
    for row, known in zip(rows, (0.0362, 0.1449, 0.0419, 0.1514), strict=False):
        assert row["bound"] == pytest.approx(known, abs=1e-4)
    assert [row["rate"] for row in rows[:4]] == pytest.approx((0.0582, 0.2330, 0.1406, 0.9168), abs=1e-4)
    last = rows[4]
    assert (last["rate"], last["bound"]) == pytest.approx((0.00411, 0.00392), abs=1e-5)
    assert last["bound_proof"] == pytest.approx(0.0627, abs=1e-4)
    assert all(row["rate"] >= row["bound"] - 1e-12 for row in cliques.measure_hitting())


def test_worst_case_step_agrees_with_the_transition_matrix() -> None:
    for (sites, clique, size, excess, field), row in zip(
        NAMED[:3], (row for row in cliques.measure_hitting() if row["delta"] == 0.5), strict=False
    ):
        fields = torch.tensor([field] * clique + [0.01] * (sites - clique), dtype=torch.float64)
        model = Ising.clique(sites, clique, excess + float(fields.sum()), fields)
        there = (model.states()[:, :clique] == 1).all(1)
        matrix = transition_matrix(BlockGibbs(size), model)
        assert row["rate"] == pytest.approx(float(matrix[:, there].sum(1).min()))


def test_statement_fails_without_its_assumption() -> None:
    rows = list(cliques.measure_stuck())
    stated = [row for row in rows if row["assumption"] == STATED]
    assert stated[0]["stuck"] == pytest.approx(0.25005, abs=1e-5)
    assert all(row["steps"] == 1 and row["stuck"] < 1 - row["delta"] for row in stated)
    corrected = [row for row in rows if row["assumption"] == CORRECTED]
    assert all(row["stuck"] >= 1 - row["delta"] for row in corrected)
    assert any(row["steps"] > 1 for row in corrected)
    model = Ising.clique(2, 2, 1e-4 + 2e-6, 1e-6)
    matrix = transition_matrix(IndependentParallel(), model)
    assert float(matrix[0, 0]) == pytest.approx(stated[0]["stuck"])


SIMULATED = (CorollaryInstance(delta=0.5, steps=10, clique=44, sites=60),)


def shares_are_exact() -> bool:
    """Return whether shares of 300 runs agree with exact ones within five standard errors plus 0.01."""
    rows = [*cliques.simulate_corollary(SIMULATED, 150, (0, 1))]
    rows += cliques.simulate_hitting(150, (0, 1))
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["instance"], row.get("chain"), row["delta"]), []).append(row)
    assert len(groups) == 2 + 2 * 4
    for group in groups.values():
        exact = group[0]["exact"]
        error = 5 * math.sqrt(exact * (1 - exact) / 300) + 0.01
        if abs(np.mean([row["reached"] for row in group]) - exact) > error:
            return False
    return True


def test_simulated_shares_agree_with_exact_ones() -> None:
    assert shares_are_exact()


def test_half_the_budget_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def shorter(chain: Any, model: Ising, budget: int, **given: Any) -> HittingTimes:
        return hitting_times(chain, model, budget=max(1, budget // 2), **given)

    monkeypatch.setattr(clique_hits, "hitting_times", shorter)
    assert not shares_are_exact()


def test_distances_of_two_modes_from_products_agree_with_published_values() -> None:
    rows = {row["sites"]: row for row in transitions.measure_two_modes((2, 3, 4))}
    assert rows[2]["best_variation"] == pytest.approx(math.sqrt(2) - 1, abs=1e-6)
    assert [rows[sites]["best_variation"] for sites in (3, 4)] == pytest.approx((0.4912, 0.4994), abs=1e-4)
    assert all(
        row["best_divergence"] == pytest.approx((sites - 1) * math.log(2)) for sites, row in rows.items()
    )
    assert rows[2]["likely_variation"] == pytest.approx(0.5)


def test_only_parallel_chains_have_product_form() -> None:
    rows = {row["chain"]: row for row in transitions.measure_kernels((3,), 0.5)}
    assert rows[PARALLEL]["divergence"] < 1e-12
    assert rows["one fixed site"]["divergence"] < 1e-12
    assert rows["one random site"]["divergence"] > 0.01
    assert rows["k-Gibbs, k = 3"]["divergence"] > 0.1


WEAK = transitions.ImitationTask(GIBBS, 2, 0.8, 150, 256)


def is_close_to_bound(row: dict[str, Any]) -> bool:
    """Return whether the divergence is at least the divergence of the best product distribution, and close to it."""
    return bool(-1e-9 < row["divergence"] - row["best_divergence"] < 0.03)


def test_network_approaches_the_best_product_distribution() -> None:
    row = transitions.measure_network(WEAK, 0)
    assert is_close_to_bound(row)
    assert row["best_divergence"] > 0.1
    assert row["variation"] >= row["best_variation"] - 1e-6
    control = transitions.measure_network(dataclasses.replace(WEAK, chain=PARALLEL), 0)
    assert is_close_to_bound(control)
    assert control["best_divergence"] < 1e-12


def test_imitation_of_another_chain_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    parallel = dataclasses.replace(WEAK, chain=PARALLEL)
    sampled_steps = transitions.sample_transitions
    monkeypatch.setattr(transitions, "sample_transitions", lambda _, seed: sampled_steps(parallel, seed))
    assert not is_close_to_bound(transitions.measure_network(WEAK, 0))
