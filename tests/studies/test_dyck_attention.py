"""The quantities of dyck-attention by hand-made rows, and what one of its networks yields."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trialogue.analysis.attention_variation import causal_baseline
from trialogue.errors import InputError
from trialogue.ledger import Rows
from trialogue.studies.dyck_attention.config import PRESETS, Config
from trialogue.studies.dyck_attention.measure import NESTED, parts
from trialogue.studies.dyck_attention.quantities import closed, discordance, minimal, variation


def made(**columns: object) -> dict[str, object]:
    return {"kind": "network", "arm": "words", **columns}


def test_variation_is_that_of_disjoint_pairs_of_seeds() -> None:
    patterns = {1: [[1.0, 0.0], [0.5, 0.5]], 2: [[1.0, 0.0], [1.0, 0.0]], 3: [[1.0, 0.0], [0.0, 1.0]]}
    patterns[4] = patterns[2]
    rows = Rows(
        [
            {"kind": "pattern", "arm": "words", "layer": 1, "seed": seed, "weights": json.dumps(weights)}
            for seed, weights in patterns.items()
        ]
    )
    expected = np.array([0.5, 2.0]) / causal_baseline(2)
    assert variation("words")(rows).tolist() == pytest.approx(expected.tolist())
    assert variation("prefixes")(rows).empty


def test_discordance_counts_pairs_in_which_balance_and_accuracy_go_together() -> None:
    rows = Rows(
        [
            made(seed=seed, balance=balance, outside=outside)
            for seed, balance, outside in (
                (1, 0.1, 0.9),
                (2, 0.2, 0.8),
                (3, 0.1, 0.8),
                (4, 0.2, 0.9),
                (5, 1, 1),
                (6, 2, 1),
            )
        ]
    )
    assert discordance("words")(rows).tolist() == [1.0, 0.0, 0.5]


def test_what_is_closed_is_counted() -> None:
    rows = Rows([made(seed=seed, inside=share, closings=200) for seed, share in ((1, 1.0), (2, 0.97))])
    counts = closed("words").counts(rows)
    assert counts is not None
    assert counts.successes.tolist() == [200, 194]
    assert counts.trials.tolist() == [200, 200]
    assert (minimal("words", "inside") - 0.97)(rows).tolist() == pytest.approx([0.03, 0.0])


def test_a_network_yields_its_numbers_and_a_pattern_for_each_layer() -> None:
    config = replace(PRESETS["smoke"], seeds=(0, 1))
    named = {part.name: part for part in parts(config)}
    assert len(named) == 2 * 6 + 2 * 3
    row, *patterns = named["words-contrast-0"].rows(Path())
    assert (row["arm"], row["seed"], row["kind"], row["violations"]) == ("words, contrast", 0, "network", 0)
    assert row["cases"] == 144
    assert [each["layer"] for each in patterns] == [1]
    weights = np.array(json.loads(patterns[0]["weights"]))
    assert weights.shape == (len(NESTED) + 1,) * 2
    assert weights.sum(1) == pytest.approx(np.ones(len(weights)), abs=1e-2)


def test_seeds_make_the_pairs() -> None:
    with pytest.raises(InputError, match=r"^standard_pairs=3: use half the number of standard_seeds, 4"):
        Config(standard_pairs=3)
