"""The quantities of dyck-attention by hand-made rows, and what its networks yield."""

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from trialogue.analysis.attention_variation import causal_baseline
from trialogue.errors import InputError
from trialogue.ledger import Rows
from trialogue.ledger.rows import NoRows
from trialogue.studies.dyck_attention.config import PRESETS, Config
from trialogue.studies.dyck_attention.measure import parts
from trialogue.studies.dyck_attention.networks import NESTED, SETTINGS
from trialogue.studies.dyck_attention.quantities import (
    closed,
    minimal,
    rank_correlation,
    setting_variation,
    table_variation,
    variation,
)


def made(**columns: object) -> dict[str, object]:
    return {"kind": "network", "arm": "words", **columns}


def test_variation_is_the_mean_over_all_pairs_of_seeds() -> None:
    patterns = {1: [[1.0, 0.0], [0.5, 0.5]], 2: [[1.0, 0.0], [1.0, 0.0]], 3: [[1.0, 0.0], [0.0, 1.0]]}
    patterns[4] = patterns[2]
    rows = Rows(
        [
            {"kind": "pattern", "arm": "words", "layer": 1, "seed": seed, "weights": json.dumps(weights)}
            for seed, weights in patterns.items()
        ]
    )
    # Pairs: 12, 13 and 14 are 0.5 apart, 23 and 34 are 2, 24 are the same.
    assert variation("words")(rows).mean() == pytest.approx((3 * 0.5 + 2 * 2) / 6 / causal_baseline(2))
    assert variation("words")(rows)[3] == pytest.approx((4 * 5.5 / 6 - 3 * 1 / 3) / causal_baseline(2))
    assert variation("prefixes")(rows).empty
    assert variation("words")(Rows(rows.records[:3])).empty


def test_the_table_is_the_mean_over_its_settings() -> None:
    settings = {setting: place + 1.0 for place, setting in enumerate(SETTINGS)}
    rows = Rows(
        [
            {
                "kind": "pair",
                **setting._asdict(),
                "seed": first,
                "other": second,
                "layer": layer,
                "variation": layer * number * causal_baseline(19),
            }
            for setting, number in settings.items()
            for layer in range(1, setting.layers + 1)
            for second, first in combinations(range(5, 10), 2)
        ]
    )
    assert setting_variation(SETTINGS[3], 2)(rows).tolist() == pytest.approx([8.0] * 5)
    assert table_variation(1)(rows).mean() == pytest.approx(4.5)
    assert table_variation(3, 3)(rows).mean() == pytest.approx(3 * 5.0)
    assert table_variation(3)(rows).empty


def test_the_rank_correlation_is_with_the_error() -> None:
    balances = [0.1 * place for place in range(12)]
    rows = Rows([made(seed=place, balance=each, outside=1 - each) for place, each in enumerate(balances)])
    assert rank_correlation("words")(rows).tolist() == pytest.approx([1.0] * 12)
    assert rank_correlation("words")(Rows(rows.records[:9])).empty
    assert "needs 10" in rank_correlation("words").absence(Rows(rows.records[:9]))


def test_what_is_closed_is_counted() -> None:
    rows = Rows([made(seed=seed, inside=share, closings=200) for seed, share in ((1, 1.0), (2, 0.97))])
    counts = closed("words").counts(rows)
    assert counts is not None
    assert counts.successes.tolist() == [200, 194]
    assert counts.trials.tolist() == [200, 200]
    assert (minimal("words", "inside") - 0.97)(rows).tolist() == pytest.approx([0.03, 0.0])


def test_a_network_yields_its_numbers_and_a_pattern_for_each_layer() -> None:
    named = {part.name: part for part in parts(PRESETS["smoke"])}
    assert len(named) == 2 * 8 + 2 * 3 + 8
    row, *patterns = named["words-contrast-0"].rows(Path())
    assert (row["arm"], row["seed"], row["kind"], row["violations"]) == ("words, contrast", 0, "network", 0)
    assert row["cases"] == 144
    # (q (1 - q) / k^2)^N alone is 16^-28; networks of this size leave it below 1.
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
    # Networks of different seeds that have hardly been trained attend alike to all, but not the same.
    assert 0 < pairs.variation.max() < 0.1
    assert set(rows["pattern"].seed) == {4, 5}
    assert not any(part.name.startswith("table") for part in parts(Config()))


def test_a_single_network_of_a_setting_has_none_to_differ_from() -> None:
    with pytest.raises(InputError, match=r"^grid_seeds=\[301\]: give at least two, or none"):
        Config(grid_seeds=(301,))
    with pytest.raises(NoRows):
        setting_variation(SETTINGS[0], 1).statistic(Rows([]))
