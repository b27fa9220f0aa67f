"""Tests of rows and statistics of `dyck-construction`."""

from pathlib import Path

import numpy as np
import pytest
import torch
from known_rows import table

from trialogue_lab.ledger import Rows
from trialogue_lab.models.dyck_transformer import balanced_transformer
from trialogue_lab.studies.dyck_construction.config import PRESETS
from trialogue_lab.studies.dyck_construction.measure import _add_noise, _measure_lemma, _sample_closings
from trialogue_lab.studies.dyck_construction.statistics import accuracy, failed, positive, slope


def test_prefixes_end_with_a_closing_bracket_and_leave_one_open() -> None:
    tokens, lengths, innermost = _sample_closings(PRESETS["smoke"], 1, 20, 60)
    assert len(tokens) == PRESETS["smoke"].disturbed_prefixes
    for row, length, kind in zip(tokens.tolist(), lengths.tolist(), innermost.tolist(), strict=True):
        stack: list[int] = []
        for token in row[:length]:
            if token % 2:
                stack.pop()
            else:
                stack.append(token // 2)
        assert row[length - 1] % 2 == 1
        assert stack[-1] == kind


def test_only_the_attention_scores_are_disturbed() -> None:
    network, twin = (balanced_transformer(2, 3, 1.0, seed=1) for _ in range(2))
    _add_noise(network, 0.1, 1)
    changed = {
        name
        for name, weight in network.state_dict().items()
        if not torch.equal(weight, twin.state_dict()[name])
    }
    assert changed == {"layers.0.attention.query.weight"}
    spread = (network.attention.query.weight - twin.attention.query.weight).detach()
    assert float(spread.std()) == pytest.approx(0.1, rel=0.2)


def test_only_the_corrected_lemma_holds_for_short_vectors() -> None:
    ratios: dict[tuple[str, float], float] = {}
    for row in _measure_lemma(Path()):
        key = row["form"], row["scale"]
        ratios[key] = max(ratios.get(key, 0.0), row["ratio"])
    assert ratios["printed", 1e-3] > 1
    assert max(ratios["corrected", scale] for scale in (1e-3, 1.0, 1e3)) <= 1


def test_statistics_of_known_rows_have_the_expected_values() -> None:
    pairs = np.array([1000, 100_000] * 2)
    distances = 5.0 / pairs ** np.array([1.0, 1.0, 0.5, 0.5])
    seeds = np.repeat([1, 2], 4)
    levels = {"disturbance": [0.0, 0.0, 0.1, 0.1] * 2, "longest": [60, 5000] * 4}
    rows = Rows(
        table("pumped", seed=[1, 1, 2, 2], disturbance=0.1, pairs=pairs, distance=distances)
        + table("disturbed", seed=seeds, **levels, accuracy=seeds / 10)
        + table("chain", network=["a", "b"], first=[2, 0], positive=[2, 0])
    )
    assert slope(0.1)(rows).tolist() == pytest.approx([-1.0, -0.5])
    assert accuracy(0.1, 60)(rows).tolist() == [0.1, 0.2]
    assert failed("first")(rows).tolist() == [2.0]
    assert [positive(name)(rows).item() for name in ("a", "b")] == [1.0, 0.0]
