"""Tests of the study `query-complexity`: known values, and statistics that detect wrong measurements."""

import dataclasses
from typing import Any

import pytest

from trialogue.data.puzzles.hidden_string import HiddenString
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.query_complexity import exact, knapsacks, measure, statistics
from trialogue_lab.studies.query_complexity.config import PRESETS
from trialogue_lab.studies.query_complexity.exact import DYCK, HIDDEN
from trialogue_lab.studies.query_complexity.knapsacks import (
    solve_by_lattice_reduction,
    solve_random_knapsacks,
    solve_superincreasing_knapsacks,
)
from trialogue_lab.studies.query_complexity.measure import (
    REJECTION,
    TOKENWISE,
    simulate_samplers,
    simulate_searches,
)
from trialogue_lab.theory.query_complexity.trying_tokens import GenerationResult


def test_exact_rows_have_known_values() -> None:
    costs = (
        exact.measure_optimal_search((4, 8)),
        exact.measure_fixed_order_search((4,)),
        exact.measure_zero_string((2, 6)),
        exact.measure_dyck_strings((2, 8)),
    )
    rows = Rows([row for found in costs for row in found])
    optimum = rows["optimum"].set_index("length")
    assert optimum.inferred.tolist() == optimum.closed_form.tolist() == [35 / 8, 8255 / 128]
    assert optimum.queried.tolist() == [4.5, 64.5]
    assert optimum.printed.tolist() == [8, 128]
    assert rows["order"].set_index("inferred")[["most", "mean"]].T.to_dict("list") == {
        True: [7, 35 / 8],
        False: [8, 4.5],
    }
    assert rows["zeros"].rejection.tolist() == pytest.approx([8, 384])
    assert rows["zeros"].tokenwise.tolist() == pytest.approx([4, 12])
    assert statistics.largest_error("zeros", "rejection", "rejection_printed")(rows).item() < 1e-12
    dyck = rows["dyck"].set_index("length")
    assert dyck.loc[8, ["rejection", "tokenwise"]].tolist() == pytest.approx((2340.571, 19.2757), abs=1e-3)
    assert statistics.power("dyck", "tokenwise")(rows).item() == pytest.approx(0.842, abs=1e-3)
    assert statistics.least_growth("dyck", "rejection")(rows).item() == pytest.approx(1.199, abs=1e-3)
    assert statistics.growth("optimum", "inferred")(rows).item() == pytest.approx(0.970, abs=1e-3)


def test_verifier_does_not_reduce_the_cost_of_a_hidden_string() -> None:
    rows = Rows([*exact.measure_hidden_string((2, 5), (1, 3)), *exact.measure_verifier_calls((2, 4), (1, 3))])
    assert statistics.capped_error()(rows).item() < 1e-12
    assert rows["hidden"].rejection.tolist() == pytest.approx([4, 80])
    capped = rows["capped"].set_index(["length", "cap"])
    assert capped.per_output[5, 1] == pytest.approx(80)
    assert capped.queries[5, 3] == pytest.approx(4 + 1 / 16 + 3 * 15 / 16)
    assert statistics.unsolved(DYCK)(rows).item() == 0
    assert statistics.unsolved(HIDDEN)(rows).item() == pytest.approx(0.75)
    assert statistics.calls_beyond("verifier", task=DYCK)(rows).item() == 0
    assert [exact.can_generate(HiddenString((1, 0)), (1, 0, bit)) for bit in (0, 1)] == [False, True]


def test_exact_distributions_as_fractions_have_known_distances() -> None:
    rows = Rows(list(exact.measure_tokenwise_distribution((1, 2, 3))))["law"]
    assert rows.variation.tolist() == pytest.approx([0, 1 / 6, 3 / 28])
    assert rows.walked.tolist() == pytest.approx([0, 1 / 6, 3 / 28])
    assert rows.off.tolist() == [0] * 3
    assert rows["last"].tolist() == [2] * 3
    assert rows.least_of_a.tolist() == [1] * 3
    assert rows.least.tolist() == [0] * 3


def wrong_answers(count: int = 12) -> tuple[float, ...]:
    rows = Rows([*solve_random_knapsacks(count), *solve_superincreasing_knapsacks(30)])
    assert {*rows["knapsack"].feasible} == {*rows["greedy"].unique} == {True, False}
    assert statistics.calls_beyond("knapsack")(rows).item() <= 0
    columns = (("knapsack", "generated_wrong"), ("knapsack", "table_wrong"), ("greedy", "wrong"))
    return tuple(statistics.wrong(*column)(rows).item() for column in columns)


@pytest.mark.parametrize(
    ("place", "name", "broken"),
    [
        (0, "generate_by_trying", lambda task, seed: GenerationResult(None, 0, 0)),
        (1, "knapsack_by_table", lambda weights, total: None),
        (2, "superincreasing_knapsack", lambda weights, total: (1,) * len(weights)),
    ],
)
def test_wrong_answers_are_counted(
    place: int, name: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wrong_answers() == (0, 0, 0)
    monkeypatch.setattr(knapsacks.theory, name, broken)
    found = wrong_answers()
    assert [count > 0 for count in found] == [index == place for index in range(3)]


def test_solved_lattices_are_counted_as_shares() -> None:
    config = dataclasses.replace(PRESETS["smoke"], lattices=3)
    rows = Rows(list(solve_by_lattice_reduction(config)))
    assert statistics.solved(32)(rows).tolist() == [1, 1]
    assert rows.where("lattice", digits=32).density.tolist() == pytest.approx([0.25, 0.25], rel=0.05)
    counts = statistics.solved(32).counts(rows)
    assert counts is not None
    assert counts.trials.tolist() == [3, 3]


def searches_agree_with_the_optimum() -> bool:
    rows = Rows([*exact.measure_optimal_search((2, 4)), *simulate_searches((2, 4), 60, (5, 6))])
    assert rows["search"].right.tolist() == [1] * 8
    costs = (("inferred", True), ("queried", False))
    close = [abs(statistics.searched_over(*cost)(rows).mean() - 1) < 0.15 for cost in costs]
    return bool(statistics.searched(2, True)(rows).eq(1).all()) and all(close)


def test_search_without_inference_of_the_last_string_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    assert searches_agree_with_the_optimum()
    search = measure.theory.search_hidden_string

    def never_infer(oracle: Any, length: int, *, infer_last: bool, seed: int) -> Any:
        return search(oracle, length, infer_last=False, seed=seed)

    monkeypatch.setattr(measure.theory, "search_hidden_string", never_infer)
    assert not searches_agree_with_the_optimum()


def test_costs_of_samplers_agree_with_published_values() -> None:
    rows = Rows(list(simulate_samplers((2, 4), 400, (3,))))
    assert rows["walk"].accepted.tolist() == [1] * 4
    for sampler in (REJECTION, TOKENWISE):
        assert statistics.walked_over_printed(sampler)(rows).item() == pytest.approx(1, abs=0.15)
    assert statistics.walked(TOKENWISE, 4)(rows).item() == pytest.approx(8, abs=0.6)
