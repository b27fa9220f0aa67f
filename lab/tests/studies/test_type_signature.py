"""Tests of the study `type-signature`: exact numbers, costs, and small networks."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from known_rows import table, verdict_of
from torch import Tensor

from trialogue.models.networks.transformer import Transformer
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.hidden_streams import random_seed
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.type_signature import STUDY, exact, networks, statistics
from trialogue_lab.studies.type_signature.config import (
    FACTORS_FIRST,
    HIDDEN,
    PRODUCT_FIRST,
    RHO,
    TESTS,
    Config,
)
from trialogue_lab.studies.type_signature.exact import (
    measure_density,
    measure_orders,
    measure_overlap,
    measure_reduction,
)
from trialogue_lab.studies.type_signature.measure import measure_costs
from trialogue_lab.studies.type_signature.networks import NetworkTraining, measure_network


def distributions_are_exact() -> bool:
    rows = list(measure_orders())
    exact = all(row["variation"] < 1e-12 for row in rows)
    return exact and all((row["factorings"] > 0) == (row["stream"] == PRODUCT_FIRST) for row in rows)


def test_distributions_are_exact_and_only_product_first_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert distributions_are_exact()
    # Streams that hide nothing or other digits than p and q are detected.
    for broken in (lambda tuples: tuples, lambda tuples: random_seed(tuples, 6)):
        monkeypatch.setattr(exact, "hidden_factors", broken)
        assert not distributions_are_exact()


def test_overlap_bound_is_tight_and_never_violated() -> None:
    rows = list(measure_overlap(100))
    assert all(row["overlap"] <= row["bound"] + 1e-12 for row in rows)
    tight = [row for row in rows if row["kind"] == "tight"]
    assert [row["overlap"] for row in tight] == pytest.approx([row["factored"] / 100 for row in tight])
    for row in rows:
        if row["kind"] == "generator":
            assert row["reached"] == pytest.approx(row["overlap"], abs=1e-12)


def test_costs_grow_in_one_order() -> None:
    rows = list(measure_costs(dataclasses.replace(Config(), cost_digits=(3, 5), cost_seeds=(7,))))
    cost = {(row["routine"], row["digits"]): row["cost"] for row in rows}
    assert cost[RHO, 5] > 4 * cost[RHO, 3]
    assert cost[TESTS, 5] < 4 * cost[TESTS, 3]
    assert len(cost) == 6


QUICK = NetworkTraining(1, FACTORS_FIRST, 300, 32, 32)


def network(training: NetworkTraining, seed: int = 0) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    summary, *positions = measure_network(training, 200, seed)
    return summary, positions


def is_trained(summary: dict[str, Any]) -> bool:
    return summary["valid"] > 0.8 and summary["overlap"] > 0.7 and summary["excess"] < 0.4


@pytest.mark.parametrize("stream", [FACTORS_FIRST, HIDDEN])
def test_a_network_learns_small_tuples(stream: str) -> None:
    training = dataclasses.replace(QUICK, stream=stream)
    summary, positions = network(training)
    assert is_trained(summary)
    assert sum(row["excess"] for row in positions) == pytest.approx(summary["excess"], abs=1e-9)
    assert [row["position"] for row in positions] == list(range(-training.hidden, 5))
    assert all(row["excess"] > -1e-9 for row in positions)


def test_untrained_and_wrongly_trained_networks_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_trained(network(dataclasses.replace(QUICK, steps=1))[0])
    with monkeypatch.context() as patch:
        patch.setattr(NetworkTraining, "add_hidden_tokens", lambda training, public: public.flip(1))
        trained = networks.train_network(QUICK, 0)
    monkeypatch.setattr(networks, "train_network", lambda *_: trained)
    assert not is_trained(network(QUICK)[0])


def test_the_exact_distribution_has_no_excess_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """With exact conditionals instead of a network, every position has excess loss zero and the overlap is 1."""

    def exact_log_probs(_: Transformer, sequences: Tensor) -> Tensor:
        tuples = SemiprimeTuples(1, "factors-first")
        each = [tuples.next_log_probs(sequences, torch.full((len(sequences),), k)) for k in range(4)]
        found = [log_probs.gather(1, sequences[:, k : k + 1]) for k, log_probs in enumerate(each)]
        return torch.cat((*found, torch.zeros(len(sequences), 1)), 1)

    monkeypatch.setattr(networks, "_compute_log_probs", exact_log_probs)
    summary, positions = network(dataclasses.replace(QUICK, steps=1))
    assert summary["overlap"] == pytest.approx(1)
    assert summary["excess"] == pytest.approx(0, abs=1e-9)
    assert [row["excess"] for row in positions] == pytest.approx([0] * 5, abs=1e-9)


def test_exact_rows_have_known_values() -> None:
    rows = Rows([*measure_reduction((1, 2)), *measure_density()])
    assert [statistics.factored(digits)(rows).item() for digits in (1, 2)] == [10, 231]
    assert statistics.unfactored()(rows).item() == 0
    density = rows["density"].set_index(["digits", "counted", "length"])
    assert density.variation[6, 0, 3] == pytest.approx(0.0289, abs=5e-5)
    assert (
        density.variation[6, 4, 6]
        == statistics.density_error(4)(rows).item()
        == pytest.approx(0.0063, abs=5e-5)
    )
    assert density.uniform[6, 0, 1] == pytest.approx(0.0192, abs=5e-5)


def shares(*by_size: float) -> Rows:
    """Return rows of one budget with the shares of factored tuples by number of digits, from one digit."""
    return Rows(table("support", exponent=4, digits=range(1, len(by_size) + 1), share=by_size))


def test_largest_fall_includes_only_budgets_that_factor_tuples() -> None:
    for rows, quotient in (
        (shares(0.4, 0.5, 0.2, 0.1, 0, 0), 0.5),
        (shares(0.4, 1, 1, 0.9, 0.3, 0), 0.9),
        (shares(0.4, 0.5, 0.6, 0), 1.2),
    ):
        assert statistics.largest_fall(2)(rows).item() == pytest.approx(quotient)
    assert statistics.largest_fall(1)(shares(0.4, 0.5, 0.2)).item() == pytest.approx(1.25)


def test_three_digits_are_compared_only_if_networks_learned_them() -> None:
    config = {"training_seeds": (1, 2)}
    columns = {"seed": [1, 1, 2, 2], "digits": 3, "stream": [FACTORS_FIRST, PRODUCT_FIRST] * 2}

    def reason(valid: float) -> str:
        records = table("network", **columns, valid=valid, excess=[1.1, 3.1, 1.2, 4.2])
        rows = Rows(records, "kind", config)
        return verdict_of(STUDY, "three-digits-are-closer-factors-first", rows, **config).reason

    unmet = "precondition not met: networks have learned three-digit tuples, factors first"
    assert reason(0.0).startswith(unmet)
    assert not reason(0.5).startswith("precondition")


def test_growth_of_costs_and_shares_by_training_has_the_expected_value() -> None:
    seeds, sizes = np.repeat([1, 2], 3), np.array([2, 3, 5] * 2)
    costs = Rows(table("cost", seed=seeds, digits=sizes, routine=RHO, cost=seeds * 3.0**sizes))
    assert (10 ** statistics.growth(RHO)(costs)).tolist() == pytest.approx([3, 3])
    columns = {"seed": [2, 2, 1, 1], "stream": [HIDDEN, PRODUCT_FIRST] * 2, "valid": [1.2, 0.2, 1.1, 0.1]}
    trained = Rows(table("network", digits=2, **columns))
    assert statistics.learned("valid", HIDDEN, 2)(trained).tolist() == pytest.approx([1.1, 1.2])
    assert statistics.learned("valid", HIDDEN, 3)(trained).empty
