"""The study `type-signature`: exact numbers, costs and networks against what is known, and end to end in miniature."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from complete_runs import require_complete
from torch import Tensor

from trialogue.data.puzzles.arithmetic import SemiprimeTuples
from trialogue.errors import InputError
from trialogue.ledger import load_rows
from trialogue.ledger.claims import evaluate
from trialogue.ledger.execution import execute
from trialogue.models.transformer import Transformer
from trialogue.studies import type_signature_exact, type_signature_networks
from trialogue.studies.rows import kind
from trialogue.studies.type_signature import PRESETS, STUDY, Config
from trialogue.studies.type_signature_costs import cost_rows
from trialogue.studies.type_signature_exact import law_rows, overlap_rows
from trialogue.studies.type_signature_networks import Training, network_rows
from trialogue.studies.type_signature_rows import FACTORS_FIRST, HIDDEN, PRODUCT_FIRST, RHO, STREAMS, TESTS

SMOKE = PRESETS["smoke"]


def laws_are_exact() -> bool:
    rows = list(law_rows())
    exact = all(row["variation"] < 1e-12 for row in rows)
    return exact and all((row["factorings"] > 0) == (row["stream"] == PRODUCT_FIRST) for row in rows)


def test_laws_are_exact_and_only_product_first_factors() -> None:
    assert laws_are_exact()


def _without_hidden_tokens(tuples: SemiprimeTuples) -> SemiprimeTuples:
    return tuples


def _other_digits(tuples: SemiprimeTuples) -> Any:
    from trialogue.data.puzzles.hidden_streams import random_seed

    return random_seed(tuples, 6)


@pytest.mark.parametrize("broken", [_without_hidden_tokens, _other_digits])
def test_a_work_around_that_is_none_is_noticed(
    broken: Callable[[SemiprimeTuples], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type_signature_exact, "hidden_factors", broken)
    assert not laws_are_exact()


def test_the_overlap_bound_is_tight_and_never_broken() -> None:
    rows = list(overlap_rows(100))
    assert all(row["overlap"] <= row["bound"] + 1e-12 for row in rows)
    tight = [row for row in rows if row["kind"] == "tight"]
    assert [row["overlap"] for row in tight] == pytest.approx([row["factored"] / 100 for row in tight])
    for row in rows:
        if row["kind"] == "generator":
            assert row["reached"] == pytest.approx(row["overlap"], abs=1e-12)


def test_costs_grow_in_one_order() -> None:
    rows = list(cost_rows((3, 5), 20, (7,)))
    cost = {(row["routine"], row["digits"]): row["cost"] for row in rows}
    assert cost[RHO, 5] > 4 * cost[RHO, 3]
    assert cost[TESTS, 5] < 4 * cost[TESTS, 3]
    assert len(cost) == 6


QUICK = Training(1, FACTORS_FIRST, 300, 32, 32)


def network(training: Training, seed: int = 0) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    whole, *positions = network_rows(training, 200, seed)
    return whole, positions


def has_learned(training: Training) -> bool:
    whole, _ = network(training)
    return whole["valid"] > 0.8 and whole["overlap"] > 0.7 and whole["excess"] < 0.4


@pytest.mark.parametrize("stream", [FACTORS_FIRST, HIDDEN])
def test_a_network_learns_small_tuples(stream: str) -> None:
    training = dataclasses.replace(QUICK, stream=stream)
    whole, positions = network(training)
    assert whole["valid"] > 0.8
    assert whole["overlap"] > 0.7
    assert sum(row["excess"] for row in positions) == pytest.approx(whole["excess"], abs=1e-9)
    assert [row["position"] for row in positions] == list(range(-training.hidden, 5))
    assert all(row["excess"] > -1e-9 for row in positions)


def test_an_untrained_network_has_learned_nothing() -> None:
    assert not has_learned(dataclasses.replace(QUICK, steps=1))


def test_training_on_other_tuples_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def shuffled(training: Training, public: Tensor) -> Tensor:
        return public.flip(1)

    training, trained = QUICK, None
    with monkeypatch.context() as patch:
        patch.setattr(Training, "written", shuffled)
        trained = type_signature_networks.trained(training, 0)
    monkeypatch.setattr(type_signature_networks, "trained", lambda *_: trained)
    assert not has_learned(training)


def test_the_law_itself_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the law's own conditionals in place of a network's, no position loses and the overlap is whole."""

    def exact(_: Transformer, sequences: Tensor) -> Tensor:
        tuples = SemiprimeTuples(1, "factors-first")
        rows = [tuple(row) for row in sequences.tolist()]
        found = [
            [
                float(tuples.next_log_probs(torch.tensor([row]), torch.tensor([k]))[0, row[k]])
                for k in range(4)
            ]
            for row in rows
        ]
        return torch.cat((torch.tensor(found, dtype=torch.float64), torch.zeros(len(rows), 1)), 1)

    monkeypatch.setattr(type_signature_networks, "_log_probs", exact)
    whole, positions = network(dataclasses.replace(QUICK, steps=1))
    assert whole["overlap"] == pytest.approx(1)
    assert whole["excess"] == pytest.approx(0, abs=1e-9)
    assert [row["excess"] for row in positions] == pytest.approx([0] * 5, abs=1e-9)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    execute(STUDY, SMOKE, folder)
    return folder


def test_every_part_claim_table_and_figure_has_rows(results: Path) -> None:
    rows = require_complete(STUDY, SMOKE, results, replications=2, lines=2)
    assert set(rows.stream.dropna()) == set(STREAMS)


def test_known_numbers(results: Path) -> None:
    rows = load_rows(STUDY.folder(SMOKE, results))
    reductions = kind(rows, "reduction").sort_values("digits")
    assert reductions.semiprimes.tolist() == reductions.factored.tolist() == [10, 231, 10296]
    density = kind(rows, "density").set_index(["digits", "counted", "length"])
    assert density.variation[6, 0, 3] == pytest.approx(0.0289, abs=5e-5)
    assert density.variation[6, 4, 6] == pytest.approx(0.0063, abs=5e-5)
    assert density.uniform[6, 0, 1] == pytest.approx(0.0192, abs=5e-5)


def test_exact_claims_hold_but_where_the_post_is_silent(results: Path) -> None:
    verdicts = evaluate(STUDY.claims, load_rows(STUDY.folder(SMOKE, results)))
    assert {verdict.answer for verdict in verdicts if verdict.claim.unit == "exact"} == {"holds"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("vectors", 0),
        ("cost_digits", (3,)),
        ("cost_digits", (3, 10)),
        ("cost_digits", (3, 3, 4)),
        ("cost_digits", (2.5, 3)),
        ("cost_samples", 0),
        ("cost_seeds", ()),
        ("training_digits", ()),
        ("training_digits", (4,)),
        ("training_digits", (2, 2)),
        ("training_digits", (1.5,)),
        ("training_seeds", (1, 1)),
        ("training_seeds", (-1,)),
        ("training_steps", 0),
        ("batch_size", 0),
        ("emitted", 0),
        ("width", 6),
    ],
)
def test_a_field_out_of_range_is_named(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{field}="):
        dataclasses.replace(Config(), **{field: value})
