"""The study `decoding-laws`: closed forms against enumeration, difficulty measures, and statistics of known rows."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from pandas import isna

from trialogue.samplers import BestOfN, MaskedDecoding, SequentialMonteCarlo, ValueGuided, truncated
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
from trialogue_lab.studies.decoding_laws.difficulty import difficulty
from trialogue_lab.studies.decoding_laws.distributions import (
    best_of_distribution,
    expected_distribution,
    weighted_distribution,
)
from trialogue_lab.studies.decoding_laws.measure import measure_task
from trialogue_lab.studies.decoding_laws.methods import MASK, METHODS, NOISY, SHARPENED, TEMPERATURE, TEMPERED
from trialogue_lab.studies.decoding_laws.tasks import (
    HIDDEN,
    LADDER,
    VARYING,
    ConstraintTask,
    random_model,
    uniform_model,
)

CONFIG = Config(seeds=(3, 4), candidates=(2,), drawn_among=(2,))


def task_of(name: str, place: int = 0) -> ConstraintTask:
    family = next(family for family in LADDER if family.name == name)
    return list(family.tasks())[place]


def drawn(name: str, seed: int = 3, place: int = 0) -> tuple[ConstraintTask, Any]:
    task = task_of(name, place)
    return task, random_model(task, seed, 1.0)


def free_distribution(oracle: Any) -> dict[tuple[int, ...], float]:
    return dict(exact_distribution(METHODS["no rule"].sampler, oracle).probabilities)


def test_valid_strings() -> None:
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
    json = task_of("JSON", 1)
    texts = {"".join("[01,]"[token] for token in string) for string in json.valid}
    assert texts == {"[]", "[0]", "[1]", "[0,0]", "[0,1]", "[1,0]", "[1,1]"}
    assert json((0, 1, 3))
    assert not json((0, 1, 1))
    # It knows the length: "[0,1" can be closed, "[0,1," cannot.
    assert not json((0, 1, 3, 2, 3))


@pytest.mark.parametrize("name", ["JSON", "checksum", "sum"])
def test_closed_forms_are_the_walks(name: str) -> None:
    task, oracle = drawn(name)
    free = exact_distribution(METHODS["no rule"].sampler, oracle)
    restricted = target_distribution(oracle, task)
    best = exact_distribution(BestOfN(2), oracle, task)
    assert (
        total_variation(best.probabilities, best_of_distribution(free.probabilities, restricted, 2)) < 1e-12
    )
    assert total_variation(best.probabilities, best_of_distribution(free.probabilities, restricted, 3)) > 1e-3
    assert best.expected_calls == pytest.approx(2 * free.expected_calls)
    masked = exact_distribution(MaskedDecoding(), oracle, task)
    particles = exact_distribution(SequentialMonteCarlo(2, 0.0, "mask"), oracle, task)
    assert total_variation(particles.probabilities, weighted_distribution(masked, 2)) < 1e-12
    assert total_variation(particles.probabilities, weighted_distribution(masked, 3)) > 1e-3
    assert particles.expected_calls == pytest.approx(2 * masked.expected_calls)


@pytest.mark.parametrize("family", [family.name for family in LADDER])
def test_what_a_task_shows_is_of_its_laws(family: str) -> None:
    task, oracle = drawn(family)
    target, free = target_distribution(oracle, task), free_distribution(oracle)
    masked = exact_distribution(MaskedDecoding(), oracle, task).probabilities
    found = difficulty(oracle, task)
    assert found.mass == pytest.approx(math.fsum(free[x] for x in target))
    assert found.rarity == pytest.approx(kullback_leibler(target, free))
    assert found.unseen == pytest.approx(kullback_leibler(target, masked), abs=1e-12)
    assert found.swing >= found.rarity - 1e-12
    assert 1 / task.length - 1e-12 <= found.lateness <= 1
    assert (found.spread < 1e-9) == (total_variation(target, masked) < 1e-9)


def test_when_verdicts_show() -> None:
    checksum = task_of("checksum")
    at_once, late = difficulty(*reversed(drawn("first token"))), difficulty(uniform_model(checksum), checksum)
    assert at_once.lateness == pytest.approx(1 / 3)
    assert at_once.spread == pytest.approx(0, abs=1e-12)
    assert late.lateness == pytest.approx(1)
    assert late.rarity == pytest.approx(math.log(3))
    assert late.spread == pytest.approx(0, abs=1e-12)
    hidden = difficulty(*reversed(drawn(HIDDEN)))
    assert hidden.lateness == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert hidden.unseen == pytest.approx(2 * math.log(2))
    # Of two viable tokens one has no value: deviation over mean is 1, twice.
    assert hidden.spread == pytest.approx(2)


def test_what_users_believe() -> None:
    task, oracle = drawn("no repeats")
    free, restricted = free_distribution(oracle), target_distribution(oracle, task)
    tempered = target_distribution(truncated(oracle, temperature=TEMPERATURE), task)

    def believed(name: str, given: dict[tuple[int, ...], float] | None = None) -> Any:
        return expected_distribution(name, free, restricted, tempered, given or restricted)

    (mode,) = believed(methods.LIKELIEST)
    assert restricted[mode] == max(restricted.values())
    (mode,) = believed(methods.LIKELIEST_OF_ALL)
    assert free[mode] == max(free.values())
    assert believed(TEMPERED) is tempered
    sharpened = believed(SHARPENED)
    first, second = list(restricted)[:2]
    assert math.log(sharpened[first] / sharpened[second]) == pytest.approx(
        math.log(restricted[first] / restricted[second]) / TEMPERATURE
    )
    assert total_variation(sharpened, tempered) > 1e-3
    kept = believed(methods.KEPT, {first: 0.3, second: 0.0})
    assert kept == {first: 1.0}


def rows_of(*names: str, seeds: tuple[int, ...] = (3, 4)) -> Rows:
    records = [
        {"seed": seed, "family": name, "length": task.length, **row}
        for seed in seeds
        for name in names
        for task, oracle in [drawn(name, seed)]
        for row in measure_task(CONFIG, task, oracle, seed)
    ]
    return Rows(records, "kind", {"seeds": seeds})


@pytest.fixture(scope="module")
def measured() -> Rows:
    return rows_of("checksum", "brackets")


def test_rules_as_measured(measured: Rows) -> None:
    for name, rule in METHODS.items():
        if rule.exact:
            assert (stats.decoded(name)(measured) < 1e-12).all(), name
    assert (stats.decoded("no rule", "invalid")(measured) > 0.2).all()
    mask = stats.decoded("mask")(measured)
    assert mask.tolist() == pytest.approx(stats.decoded("tokenwise rejection")(measured).tolist())
    for name, rule in METHODS.items():
        if rule.weighs:
            assert (stats.decoded(name, "weighted")(measured) < 1e-12).all(), name
    # A cut before the mask weighs by the law that is cut.
    assert (stats.decoded("top-p, then mask", "weighted")(measured) > 1e-3).any()
    assert (stats.decoded("drawn by weight, 2")(measured) < mask).all()
    assert stats.price("no rule")(measured).tolist() == [1, 1]
    assert (stats.price("rejection")(measured) > stats.price("tokenwise rejection")(measured)).all()
    # Fixed lengths, and exact values: the first leaf is exact.
    assert (stats.decoded("first leaf, exact values")(measured) < 1e-12).all()


def test_a_cut_that_leaves_nothing_is_believed_in_by_no_one(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "top-p, rejection"
    monkeypatch.setattr(measure, "METHODS", {each: METHODS[each] for each in (MASK, name)})
    rows = rows_of("brackets", seeds=(3, 8, 9, 10))
    cut = rows.where("rule", rule=name)
    lost = cut.none > 0.5
    assert 0 < lost.sum() < len(cut)
    assert (cut.variation.isna() == lost).all()
    assert (cut.queries.isna() == lost).all()
    assert (cut.restricted[lost] == 1).all()


def furthest(rows: Rows, column: str) -> float:
    """The largest of `column` among the methods for which it is proved to be zero."""
    proved = {"variation": "exact", "weighted": "weighs"}[column]
    names = [name for name, rule in METHODS.items() if getattr(rule, proved)]
    table = rows["rule"]
    return float(table[table.rule.isin(names)][column].max())


@pytest.fixture(scope="module")
def whole_ladder() -> Rows:
    names = [name for name, rule in METHODS.items() if rule.exact or rule.weighs] + [
        "first leaf, exact values"
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "METHODS", {name: METHODS[name] for name in names})
        return rows_of(*(family.name for family in LADDER), seeds=(3,))


@pytest.mark.parametrize("column", ["variation", "weighted"])
def test_what_is_proved_holds_on_every_task(column: str, whole_ladder: Rows) -> None:
    assert furthest(whole_ladder, column) < 1e-9


def test_the_first_leaf_is_exact_where_outputs_have_one_length(whole_ladder: Rows) -> None:
    found = whole_ladder.where("rule", rule="first leaf, exact values")
    varying = found.family.isin(VARYING)
    assert (found[~varying].variation < 1e-9).all()
    assert (found[varying].variation > 1e-3).all()


@pytest.mark.parametrize("family", [family.name for family in LADDER])
def test_the_walk_with_momentum_begins_again_at_the_first_refusal(family: str) -> None:
    task, oracle = drawn(family)
    walked = exact_distribution(METHODS["first leaf with momentum, verdicts"].sampler, oracle, task)
    asked = finished = 0.0
    for x, p in free_distribution(oracle).items():
        refused = next((end for end in range(1, len(x) + 1) if not task(x[:end])), None)
        if refused is None:
            finished += p
            asked += p * len(x)
        elif refused > 1:
            # Down to the refusal, and back up over the nodes below the first token's parent; that token is masked.
            asked += p * (refused + refused - 2)
    assert walked.expected_calls == pytest.approx(asked / finished)


@pytest.mark.parametrize(
    ("column", "name", "broken"),
    [
        ("variation", "rejection", {"sampler": MaskedDecoding()}),
        ("variation", "rejection", {"cut": {"temperature": 0.7}}),
        ("variation", "first leaf with momentum, verdicts", {"sampler": ValueGuided(lazy=False)}),
        ("variation", "action level, exact values", {"guide": NOISY}),
        ("weighted", "mask, then top-p", {"sampler": MaskedDecoding(mask_first=False)}),
        ("weighted", "temperature, mask", {"believed": SHARPENED}),
    ],
)
def test_a_rule_that_is_not_exact_is_noticed(
    column: str, name: str, broken: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant = {MASK: METHODS[MASK], name: dataclasses.replace(METHODS[name], **broken)}
    monkeypatch.setattr(measure, "METHODS", mutant)
    assert furthest(rows_of("checksum"), column) > 1e-3


def known(seed: int, family: str, length: int, far: float, lateness: float) -> Iterator[dict[str, Any]]:
    place = {"seed": seed, "family": family, "length": length}
    shows = dict.fromkeys(("mass", "rarity", "swing", "unseen"), 0.5) | {"lateness": lateness, "spread": far}
    yield {**place, "kind": "task", **shows}
    for rule, queries, variation in (
        ("no rule", 2.0, 0.5),
        ("mask", length, far),
        ("rejection", None, 1e-15),
    ):
        yield {**place, "kind": "rule", "rule": rule, "queries": queries, "variation": variation}


def test_quantities_of_known_rows() -> None:
    rows = Rows(
        [
            *known(1, "a", 2, 0.1, 0.9),
            *known(1, "a", 4, 0.4, 0.6),
            *known(1, "b", 2, 0.2, 0.7),
            *known(1, "b", 8, 0.3, 0.65),
            *known(1, HIDDEN, 3, 0.9, 0.9),
            *known(2, "a", 2, 0.0, 0.1),
            *known(2, "a", 4, 0.2, 0.3 + 1e-13),
            *known(2, "b", 2, 0.1, 0.3),
            *known(2, "b", 8, 0.5, 0.4),
        ],
        "kind",
        {"seeds": (1, 2)},
    )
    assert stats.decoded("mask")(rows).tolist() == pytest.approx([0.25, 0.2])
    assert stats.decoded("rejection")(rows).tolist() == [0, 0]
    assert stats.growth("mask")(rows).tolist() == pytest.approx([0.2, 0.3])
    assert stats.order("spread")(rows).tolist() == pytest.approx([1, 1])
    # All in the other order; and two that tie but for rounding.
    assert stats.order("lateness")(rows).tolist() == pytest.approx([-1, math.sqrt(0.9)])
    geometric = (1 * 2 * 1 * 4) ** 0.25
    assert stats.price("mask")(rows).tolist() == pytest.approx([geometric, geometric])
    assert all(isna(number) for number in stats.price("rejection")(rows))
    assert stats.price("nothing")(rows).empty
    assert stats.on_task("mask", "a", 4)(rows).tolist() == [0.4, 0.2]
    assert stats.at_varying_lengths("mask")(rows).empty
    varying = Rows([{**each, "family": "JSON"} for each in rows.records if each["family"] == "b"], "kind")
    assert stats.at_varying_lengths("mask")(varying).tolist() == pytest.approx([0.25, 0.3])
    assert [task.name for task in stats.task_difficulties(rows)] == [
        "a, 2",
        "b, 2",
        "a, 4",
        "b, 8",
        f"{HIDDEN}, 3",
    ]
    assert len(stats.task_difficulties(rows, hidden=False)) == 4
    assert stats.task_difficulties(rows)[0].difficulty.lateness == pytest.approx(0.5)


def test_oracles_are_drawn_by_seed_and_family() -> None:
    tokens, length = torch.tensor([[0, 1, 2, 0]]), 2

    def law(name: str, seed: int, place: int = 0) -> list[float]:
        _, oracle = drawn(name, seed, place)
        (law,) = oracle.next_log_probs(tokens[:, : oracle.max_length], torch.tensor([length]))
        return list(law.tolist())

    assert law("sum", 1) == law("sum", 1, 1)
    assert law("sum", 1) != law("sum", 2)
    assert law("sum", 1) != law("checksum", 1)
