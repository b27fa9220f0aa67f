"""Tests of the study `decoding-laws`: closed forms, difficulty measures, and statistics of known rows."""

import dataclasses
import math
from typing import Any

import pytest
import torch
from pandas import isna

from trialogue.samplers import BestOfN, MaskedDecoding, SequentialMonteCarlo, truncated
from trialogue.samplers.exact import (
    exact_distribution,
    kullback_leibler,
    target_distribution,
    total_variation,
)
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.decoding_laws import measure, methods
from trialogue_lab.studies.decoding_laws import statistics as stats
from trialogue_lab.studies.decoding_laws.config import Config
from trialogue_lab.studies.decoding_laws.difficulty import compute_difficulty
from trialogue_lab.studies.decoding_laws.distributions import (
    compute_best_of_distribution,
    compute_weighted_distribution,
    select_expected_distribution,
)
from trialogue_lab.studies.decoding_laws.measure import measure_task
from trialogue_lab.studies.decoding_laws.methods import MASK, METHODS, NOISY, SHARPENED, TEMPERATURE, TEMPERED
from trialogue_lab.studies.decoding_laws.tasks import (
    HIDDEN,
    LADDER,
    VARYING,
    ConstraintTask,
    make_random_model,
    make_uniform_model,
)

CONFIG = Config(seeds=(3, 4), candidates=(2,), drawn_among=(2,))


def find_task(name: str, place: int = 0) -> ConstraintTask:
    family = next(family for family in LADDER if family.name == name)
    return list(family.tasks())[place]


def random_task(name: str, seed: int = 3, place: int = 0) -> tuple[ConstraintTask, Any]:
    task = find_task(name, place)
    return task, make_random_model(task, seed, 1.0)


def free_distribution(oracle: Any) -> dict[tuple[int, ...], float]:
    return dict(exact_distribution(METHODS["no rule"].sampler, oracle).probabilities)


def test_valid_strings_of_tasks_have_the_expected_numbers() -> None:
    counts = {family.name: [len(task.valid) for task in family.tasks()] for family in LADDER}
    assert counts == {
        "first token": [9, 27],
        "no repeats": [3 * 2**2, 3 * 2**3],
        "regex": [8, 18],
        "JSON": [3, 7],
        "all different": [24, 24],
        "brackets": [2, 14],
        "palindrome": [9, 27],
        "sum": [7, 19],
        "checksum": [9, 27],
        HIDDEN: [4, 32],
    }
    json = find_task("JSON", 1)
    texts = {"".join("[01,]"[token] for token in string) for string in json.valid}
    assert texts == {"[]", "[0]", "[1]", "[0,0]", "[0,1]", "[1,0]", "[1,1]"}
    assert json((0, 1, 3))
    assert not json((0, 1, 1))
    # The verifier includes the length: "[0,1" can be completed, and "[0,1," cannot.
    assert not json((0, 1, 3, 2, 3))


@pytest.mark.parametrize("name", ["JSON", "checksum", "sum"])
def test_closed_forms_agree_with_exact_distributions_of_samplers(name: str) -> None:
    task, oracle = random_task(name)
    free = exact_distribution(METHODS["no rule"].sampler, oracle)
    restricted = target_distribution(oracle, task)
    best = exact_distribution(BestOfN(2), oracle, task)
    assert (
        total_variation(best.probabilities, compute_best_of_distribution(free.probabilities, restricted, 2))
        < 1e-12
    )
    assert (
        total_variation(best.probabilities, compute_best_of_distribution(free.probabilities, restricted, 3))
        > 1e-3
    )
    assert best.expected_calls == pytest.approx(2 * free.expected_calls)
    masked = exact_distribution(MaskedDecoding(), oracle, task)
    particles = exact_distribution(SequentialMonteCarlo(2, 0.0, "mask"), oracle, task)
    assert total_variation(particles.probabilities, compute_weighted_distribution(masked, 2)) < 1e-12
    assert total_variation(particles.probabilities, compute_weighted_distribution(masked, 3)) > 1e-3
    assert particles.expected_calls == pytest.approx(2 * masked.expected_calls)


@pytest.mark.parametrize("family", [family.name for family in LADDER])
def test_difficulty_measures_agree_with_exact_distributions(family: str) -> None:
    task, oracle = random_task(family)
    target, free = target_distribution(oracle, task), free_distribution(oracle)
    masked = exact_distribution(MaskedDecoding(), oracle, task).probabilities
    found = compute_difficulty(oracle, task)
    assert found.mass == pytest.approx(math.fsum(free[x] for x in target))
    assert found.rarity == pytest.approx(kullback_leibler(target, free))
    assert found.unseen == pytest.approx(kullback_leibler(target, masked), abs=1e-12)
    assert found.swing >= found.rarity - 1e-12
    assert 1 / task.length - 1e-12 <= found.lateness <= 1
    assert (found.spread < 1e-9) == (total_variation(target, masked) < 1e-9)


def test_lateness_and_spread_have_known_values() -> None:
    checksum = find_task("checksum")
    early = compute_difficulty(*reversed(random_task("first token")))
    late = compute_difficulty(make_uniform_model(checksum), checksum)
    assert (early.lateness, late.lateness) == pytest.approx((1 / 3, 1))
    assert (early.spread, late.spread) == pytest.approx((0, 0), abs=1e-12)
    assert late.rarity == pytest.approx(math.log(3))
    hidden = compute_difficulty(*reversed(random_task(HIDDEN)))
    # One of two valid tokens has value zero at two positions, so deviation over mean is 1 twice.
    expected = ((1 / 3 + 2 / 3) / 2, 2 * math.log(2), 2)
    assert (hidden.lateness, hidden.unseen, hidden.spread) == pytest.approx(expected)


def test_expected_distributions_of_methods_agree_with_their_definitions() -> None:
    task, oracle = random_task("no repeats")
    free, restricted = free_distribution(oracle), target_distribution(oracle, task)
    tempered = target_distribution(truncated(oracle, temperature=TEMPERATURE), task)

    def expected_for(name: str, given: dict[tuple[int, ...], float] | None = None) -> Any:
        return select_expected_distribution(name, free, restricted, tempered, given or restricted)

    (mode,) = expected_for(methods.LIKELIEST)
    assert restricted[mode] == max(restricted.values())
    (mode,) = expected_for(methods.LIKELIEST_OF_ALL)
    assert free[mode] == max(free.values())
    assert expected_for(TEMPERED) is tempered
    sharpened = expected_for(SHARPENED)
    first, second = list(restricted)[:2]
    assert math.log(sharpened[first] / sharpened[second]) == pytest.approx(
        math.log(restricted[first] / restricted[second]) / TEMPERATURE
    )
    assert total_variation(sharpened, tempered) > 1e-3
    renormalized = expected_for(methods.KEPT, {first: 0.3, second: 0.0})
    assert renormalized == {first: 1.0}


def rows_of(*names: str, seeds: tuple[int, ...] = (3, 4)) -> Rows:
    records = [
        {"seed": seed, "family": name, "length": task.length, **row}
        for seed in seeds
        for name in names
        for task, oracle in [random_task(name, seed)]
        for row in measure_task(CONFIG, task, oracle, seed)
    ]
    return Rows(records, "kind", {"seeds": seeds})


@pytest.fixture(scope="module")
def measured_rows() -> Rows:
    return rows_of("checksum", "brackets")


def test_measured_errors_of_methods_agree_with_theory(measured_rows: Rows) -> None:
    for name, rule in METHODS.items():
        if rule.exact:
            assert (stats.decoded(name)(measured_rows) < 1e-12).all(), name
    assert (stats.decoded("no rule", "invalid")(measured_rows) > 0.2).all()
    mask = stats.decoded("mask")(measured_rows)
    assert mask.tolist() == pytest.approx(stats.decoded("tokenwise rejection")(measured_rows).tolist())
    for name, rule in METHODS.items():
        if rule.weighs:
            assert (stats.decoded(name, "weighted")(measured_rows) < 1e-12).all(), name
    # If top-p truncation precedes the mask, weights refer to the truncated distribution.
    assert (stats.decoded("top-p, then mask", "weighted")(measured_rows) > 1e-3).any()
    assert (stats.decoded("drawn by weight, 2")(measured_rows) < mask).all()
    assert stats.relative_model_calls("no rule")(measured_rows).tolist() == [1, 1]
    assert (
        stats.relative_model_calls("rejection")(measured_rows)
        > stats.relative_model_calls("tokenwise rejection")(measured_rows)
    ).all()
    # For outputs of one length and exact values, the first leaf has the exact distribution.
    assert (stats.decoded("first leaf, exact values")(measured_rows) < 1e-12).all()


def test_methods_without_outputs_have_no_variation_and_no_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "top-p, rejection"
    monkeypatch.setattr(measure, "METHODS", {each: METHODS[each] for each in (MASK, name)})
    rows = rows_of("brackets", seeds=(3, 8, 9, 10))
    cut = rows.where("rule", rule=name)
    is_empty = cut.none > 0.5
    assert 0 < is_empty.sum() < len(cut)
    assert (cut.variation.isna() == is_empty).all()
    assert (cut.queries.isna() == is_empty).all()
    assert (cut.restricted[is_empty] == 1).all()


def largest_value(rows: Rows, column: str) -> float:
    """Return the largest value of `column` over methods for which it is proved to be zero."""
    proved = {"variation": "exact", "weighted": "weighs"}[column]
    names = [name for name, rule in METHODS.items() if getattr(rule, proved)]
    table = rows["rule"]
    return float(table[table.rule.isin(names)][column].max())


@pytest.fixture(scope="module")
def all_tasks() -> Rows:
    first_leaf = "first leaf, exact values"
    chosen = {name: rule for name, rule in METHODS.items() if rule.exact or rule.weighs or name == first_leaf}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "METHODS", chosen)
        return rows_of(*(family.name for family in LADDER), seeds=(3,))


@pytest.mark.parametrize("column", ["variation", "weighted"])
def test_proved_identities_hold_on_every_task(column: str, all_tasks: Rows) -> None:
    assert largest_value(all_tasks, column) < 1e-9


def test_first_leaf_is_exact_only_if_outputs_have_one_length(all_tasks: Rows) -> None:
    found = all_tasks.where("rule", rule="first leaf, exact values")
    varying = found.family.isin(VARYING)
    assert (found[~varying].variation < 1e-9).all()
    assert (found[varying].variation > 1e-3).all()


@pytest.mark.parametrize(
    ("column", "name", "broken"),
    [
        ("variation", "rejection", {"cut": {"temperature": 0.7}}),
        ("variation", "action level, exact values", {"guide": NOISY}),
        ("weighted", "mask, then top-p", {"sampler": MaskedDecoding(mask_first=False)}),
    ],
)
def test_inexact_methods_are_detected(
    column: str, name: str, broken: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant = {MASK: METHODS[MASK], name: dataclasses.replace(METHODS[name], **broken)}
    monkeypatch.setattr(measure, "METHODS", mutant)
    assert largest_value(rows_of("checksum"), column) > 1e-3


def make_rows(seed: int, family: str, length: int, distance: float, lateness: float) -> list[dict[str, Any]]:
    place = {"seed": seed, "family": family, "length": length}
    difficulties = dict.fromkeys(("mass", "rarity", "swing", "unseen"), 0.5)
    numbers = {"no rule": (2.0, 0.5), "mask": (length, distance), "rejection": (None, 1e-15)}
    return [{**place, "kind": "task", **difficulties, "lateness": lateness, "spread": distance}] + [
        {**place, "kind": "rule", "rule": rule, "queries": queries, "variation": variation}
        for rule, (queries, variation) in numbers.items()
    ]


def test_statistics_of_known_rows_have_the_expected_values() -> None:
    rows = Rows(
        [
            *make_rows(1, "a", 2, 0.1, 0.9),
            *make_rows(1, "a", 4, 0.4, 0.6),
            *make_rows(1, "b", 2, 0.2, 0.7),
            *make_rows(1, "b", 8, 0.3, 0.65),
            *make_rows(1, HIDDEN, 3, 0.9, 0.9),
            *make_rows(2, "a", 2, 0.0, 0.1),
            *make_rows(2, "a", 4, 0.2, 0.3 + 1e-13),
            *make_rows(2, "b", 2, 0.1, 0.3),
            *make_rows(2, "b", 8, 0.5, 0.4),
        ],
        "kind",
        {"seeds": (1, 2)},
    )
    assert stats.decoded("mask")(rows).tolist() == pytest.approx([0.25, 0.2])
    assert stats.decoded("rejection")(rows).tolist() == [0, 0]
    assert stats.growth("mask")(rows).tolist() == pytest.approx([0.2, 0.3])
    assert stats.order("spread")(rows).tolist() == pytest.approx([1, 1])
    # All pairs are in reverse order for seed 1, and two values are tied up to rounding for seed 2.
    assert stats.order("lateness")(rows).tolist() == pytest.approx([-1, math.sqrt(0.9)])
    geometric = (1 * 2 * 1 * 4) ** 0.25
    assert stats.relative_model_calls("mask")(rows).tolist() == pytest.approx([geometric, geometric])
    assert all(isna(number) for number in stats.relative_model_calls("rejection")(rows))
    assert stats.relative_model_calls("nothing")(rows).empty
    assert stats.on_task("mask", "a", 4)(rows).tolist() == [0.4, 0.2]
    assert stats.at_varying_lengths("mask")(rows).empty
    varying = Rows([{**each, "family": "JSON"} for each in rows.records if each["family"] == "b"], "kind")
    assert stats.at_varying_lengths("mask")(varying).tolist() == pytest.approx([0.25, 0.3])
    names = [task.name for task in stats.average_task_difficulties(rows)]
    assert names == ["a, 2", "b, 2", "a, 4", "b, 8", f"{HIDDEN}, 3"]
    assert len(stats.average_task_difficulties(rows, hidden=False)) == 4
    assert stats.average_task_difficulties(rows)[0].difficulty.lateness == pytest.approx(0.5)


def test_random_oracles_depend_only_on_seed_and_family() -> None:
    tokens, length = torch.tensor([[0, 1, 2, 0]]), 2

    def next_distribution(name: str, seed: int, place: int = 0) -> list[float]:
        _, oracle = random_task(name, seed, place)
        (log_probs,) = oracle.next_log_probs(tokens[:, : oracle.max_length], torch.tensor([length]))
        return list(log_probs.tolist())

    assert next_distribution("sum", 1) == next_distribution("sum", 1, 1)
    assert next_distribution("sum", 1) != next_distribution("sum", 2)
    assert next_distribution("sum", 1) != next_distribution("checksum", 1)
