"""Tests of statistics of known rows in the study `dyck-attention`, and of rows of its networks."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from known_rows import table, verdict_of

from trialogue_lab.analysis.attention_variation import causal_baseline
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.dyck_attention import STUDY
from trialogue_lab.studies.dyck_attention import statistics as stats
from trialogue_lab.studies.dyck_attention.config import PRESETS, Config
from trialogue_lab.studies.dyck_attention.measure import parts
from trialogue_lab.studies.dyck_attention.networks import NESTED, SETTINGS


def test_variation_is_the_mean_over_all_pairs_of_seeds() -> None:
    closed = [[1.0, 0.0], [1.0, 0.0]]
    weights = [[[1.0, 0.0], [0.5, 0.5]], closed, [[1.0, 0.0], [0.0, 1.0]], closed]
    rows = Rows(
        table("pattern", arm="words", layer=1, seed=[1, 2, 3, 4], weights=list(map(json.dumps, weights)))
    )
    # Pairs: 12, 13 and 14 are 0.5 apart, 23 and 34 are 2, 24 are the same.
    assert stats.variation("words")(rows).mean() == pytest.approx((3 * 0.5 + 2 * 2) / 6 / causal_baseline(2))
    assert stats.variation("words")(rows)[3] == pytest.approx((4 * 5.5 / 6 - 3 * 1 / 3) / causal_baseline(2))
    assert stats.variation("prefixes")(rows).empty
    assert stats.variation("words")(Rows(rows.records[:3])).empty


def pairs(count: range, variation: Callable[[int, int, int, int], float]) -> list[dict[str, object]]:
    """Return rows of all pairs of networks with `variation(place of the setting, layer, first, second)`."""
    return [
        {"kind": "pair", **setting._asdict(), "seed": first, "other": second, "layer": layer}
        | {"variation": variation(place, layer, first, second) * causal_baseline(19)}
        for place, setting in enumerate(SETTINGS)
        for layer in range(1, setting.layers + 1)
        for second, first in combinations(count, 2)
    ]


def test_the_table_is_the_mean_over_its_settings() -> None:
    rows = Rows(pairs(range(5, 10), lambda place, layer, *_: layer * (place + 1.0)))
    assert stats.setting_variation(SETTINGS[3], 2)(rows).tolist() == pytest.approx([8.0] * 5)
    assert stats.table_variation(1)(rows).mean() == pytest.approx(4.5)
    assert stats.table_variation(3, 3)(rows).mean() == pytest.approx(3 * 5.0)
    assert stats.table_variation(3)(rows).empty


def networks(**columns: object) -> Rows:
    return Rows(table("network", arm="words", **columns))


TWELVE = np.arange(12)


def test_rank_correlation_with_the_error_has_the_expected_value() -> None:
    rows = networks(seed=TWELVE, balance=0.1 * TWELVE, outside=1 - 0.1 * TWELVE)
    assert stats.rank_correlation("words")(rows).tolist() == pytest.approx([1.0] * 12)
    assert stats.rank_correlation("words")(Rows(rows.records[:9])).empty
    assert "needs 10" in stats.rank_correlation("words").missing_rows(Rows(rows.records[:9]))


def test_rank_correlation_with_other_accuracies_has_the_expected_value() -> None:
    violations = {"balance": 0.1 * TWELVE, "balance_released": -0.1 * TWELVE}
    accuracies = {"outside": 1 - 0.01 * TWELVE, "outside_confident": 0.5 + 0.01 * TWELVE}
    rows = networks(seed=TWELVE, **violations, **accuracies)
    for names, expected in (
        ((), 1),
        (("outside_confident",), -1),
        (("outside_confident", "balance_released"), 1),
    ):
        assert stats.rank_correlation("words", *names)(rows).mean() == pytest.approx(expected)
    equal = networks(seed=TWELVE, balance=0.1 * TWELVE, outside=0.5)
    assert "all networks have the same outside" in stats.rank_correlation("words").missing_rows(equal)


def grid(share: float, count: int = 12) -> list[dict[str, object]]:
    """Return rows of Table 2.6, in which a share of the networks of each setting reach the required accuracy."""
    inside = np.where(np.arange(count) < share * count, 0.99, 0.96)
    found = [
        row
        for setting in SETTINGS
        for row in table("setting", **setting._asdict(), seed=range(count), inside=inside)
    ]
    return found + pairs(range(count), lambda _, layer, first, second: layer + 0.01 * (first + second))


@pytest.mark.parametrize(("share", "answer"), [(1.0, "holds"), (11 / 12, "holds"), (10 / 12, "not tested")])
def test_claims_of_the_table_are_not_tested_if_networks_are_not_trained(share: float, answer: str) -> None:
    rows = Rows(grid(share))
    assert stats.learned_share()(rows).item() == pytest.approx(share)
    identity = "second-layers-differ-more-than-random"
    verdict = verdict_of(STUDY, identity, rows, "paper", grid_seeds=range(12))
    assert verdict.answer == answer
    assert ("nine in ten" in verdict.reason) == (answer == "not tested")


def test_correct_closing_brackets_are_counted() -> None:
    rows = networks(seed=[1, 2], inside=[1.0, 0.97], closings=200)
    counts = stats.closed("words").counts(rows)
    assert counts is not None
    assert counts.successes.tolist() == [200, 194]
    assert counts.trials.tolist() == [200, 200]
    assert (stats.minimal("words", "inside") - 0.97)(rows).tolist() == pytest.approx([0.03, 0.0])


def test_a_network_yields_its_numbers_and_a_pattern_for_each_layer() -> None:
    named = {part.name: part for part in parts(PRESETS["smoke"])}
    assert len(named) == 2 * 8 + 2 * 3 + 8
    row, *patterns = named["words-contrast-0"].rows(Path())
    assert (row["arm"], row["seed"], row["kind"], row["violations"]) == ("words, contrast", 0, "network", 0)
    assert row["cases"] == 144
    # (q (1 - q) / k^2)^N alone is 16^-28.
    assert -100 < row["log_decay"] < -28 * np.log(16)
    assert [each["layer"] for each in patterns] == [1]
    weights = np.array(json.loads(patterns[0]["weights"]))
    assert weights.shape == (len(NESTED) + 1,) * 2
    assert weights.sum(1) == pytest.approx(np.ones(len(weights)), abs=1e-2)


def test_a_setting_yields_every_pair_of_its_networks_for_every_layer() -> None:
    config = replace(PRESETS["smoke"], grid_seeds=(4, 5, 6), grid_steps=1)
    named = {part.name: part for part in parts(config)}
    rows = Rows(list(named["table-k2-d4-3-layers"].rows(Path())))
    assert len(rows["setting"]) == 3
    pairs = rows["pair"]
    assert sorted(zip(pairs.seed, pairs.other, pairs.layer, strict=True)) == [
        (first, second, layer) for first, second in ((5, 4), (6, 4), (6, 5)) for layer in (1, 2, 3)
    ]
    # The attention of networks after one update is close to uniform, but differs between seeds.
    assert 0 < pairs.variation.max() < 0.1
    assert set(rows["pattern"].seed) == {4, 5}
    assert not any(part.name.startswith("table") for part in parts(Config()))


def test_networks_of_the_table_have_a_separate_learning_rate() -> None:
    def losses(**changes: float) -> list[float]:
        config = replace(PRESETS["smoke"], grid_seeds=(4, 5), grid_steps=3, **changes)  # type: ignore[arg-type]
        (part,) = (part for part in parts(config) if part.name == "table-k2-d4-2-layers")
        return list(Rows(list(part.rows(Path())))["setting"].loss)

    assert losses() == losses(standard_learning_rate=0.1) != losses(grid_learning_rate=0.1)
