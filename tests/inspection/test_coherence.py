"""Tests of coherence against brute force, manual examples, and oracles with a known rate of walls."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from models.tiny_pretrained import tiny_oracle
from refusals import calls_without_expected_error
from trialogue.data import PottsChain, Table
from trialogue.inspection import coherence as measure
from trialogue.inspection.coherence import Coherence, Runs, coherence, measure_coherence, nearest_labels
from trialogue.randomness import generator, numpy_generator

PATTERNS = [[0, 1, 1], [0, 0, 1, 0, 2]]


def labels_by_hand(tokens: Tensor, patterns: Sequence[Sequence[int]], window: int) -> list[list[int]]:
    found = []
    for row in tokens.tolist():
        labels = []
        for begin in range(len(row) - window + 1):
            distances = [
                sum(
                    row[place] != pattern[(place + phase) % len(pattern)]
                    for place in range(begin, begin + window)
                )
                for pattern in patterns
                for phase in range(len(pattern))
            ]
            labels.append(distances.index(min(distances)))
        found.append(labels)
    return found


@pytest.mark.parametrize("window", [1, 3, 6])
def test_labels_are_nearest(window):
    tokens = torch.randint(0, 3, (20, 17), generator=generator(0, "texts"))
    label, distance = nearest_labels(tokens, PATTERNS, window, 3)
    assert label.tolist() == labels_by_hand(tokens, PATTERNS, window)
    assert int(distance.min()) >= 0
    assert int(distance.max()) <= window


def test_walls_equal_those_of_the_chain_for_equal_periods():
    patterns = [torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1])]
    chain = PottsChain.from_patterns(patterns, window=4)
    tokens = torch.randint(0, 2, (30, 20), generator=generator(1, "texts"))
    assert torch.equal(coherence(tokens, patterns, 4).walls, chain.domain_walls(tokens))


#         0  1  2  3  4  5  6  7  8  9
TEXT = [[0, 0, 0, 0, 1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1, 0, 0, 1, 0]]


def test_runs_equal_a_hand_calculation():
    found = coherence(torch.tensor(TEXT), [[0], [1]], 1, lengths=torch.tensor([10, 6]), start=1)
    assert found.walls.nonzero().tolist() == [[0, 3], [0, 8]]
    first = found.first_runs()
    assert (first.lengths.tolist(), first.ended.tolist()) == ([3, 4], [True, False])
    assert found.walls_per_token() == pytest.approx(2 / 12)
    assert first.hazard() == pytest.approx(1 / 7)
    np.testing.assert_allclose(first.survival([0, 2, 3, 4, 5]), [1, 1, 0.5, 0.5, np.nan])
    assert first.restricted_mean() == pytest.approx(3.5)
    # The survival probability is 0 beyond the longest run if that run was not censored.
    assert Runs(np.array([2, 5]), np.array([False, True])).survival([4, 5, 9]).tolist() == [1, 0, 0]


def test_walls_before_the_start_are_ignored():
    found = coherence(torch.tensor(TEXT), [[0], [1]], 1, start=torch.tensor([4, 0]))
    assert found.first_runs().lengths.tolist() == [5, 6]
    assert found.first_runs().ended.tolist() == [True, True]


def censored_runs(n: int = 4000) -> Runs:
    """Geometric runs with mean 10, half of which are censored at an independent random length."""
    draws = numpy_generator(0, "runs")
    lengths, cut = draws.geometric(0.1, n), draws.integers(1, 15, n)
    cut[: n // 2] = 60
    return Runs(np.minimum(lengths, cut), lengths <= cut)


def survival_is_correct(runs: Runs) -> bool:
    """Return whether the survival probability is within five standard errors of the exact value."""
    at = np.array([1, 5, 10, 20, 30])
    exact = 0.9**at
    return bool((np.abs(runs.survival(at) - exact) < 5 * np.sqrt(exact * (1 - exact) / 2000)).all())


def test_censored_runs_give_the_uncensored_distribution():
    runs = censored_runs()
    assert survival_is_correct(runs)
    assert runs.hazard() == pytest.approx(0.1, rel=0.1)
    low, high = (
        side.evaluate([10.0]) for side in runs.survival_curve().confidence_interval(0.99, method="log-log")
    )
    assert low < 0.9**10 < high


def test_wrong_treatment_of_censoring_is_detected():
    runs = censored_runs()
    assert not survival_is_correct(runs._replace(ended=np.ones_like(runs.ended)))
    assert not survival_is_correct(Runs(runs.lengths[runs.ended], runs.ended[runs.ended]))


def test_texts_without_walls():
    runs = coherence(torch.tensor([[0, 1] * 6] * 3), [[0, 1]], 4).first_runs()
    assert not runs.ended.any()
    assert runs.survival([0, 8]).tolist() == [1, 1]
    assert runs.hazard() == 0


FLIP = 0.05


def flipping(eos: bool = False) -> Table:
    """Oracle that repeats the last token except for flips. With `eos`, a text ends with probability 0.02 per token."""
    tail = [0.02] if eos else []

    def distribution(prefix: tuple[int, ...]) -> list[float]:
        last = prefix[-1] if prefix else 0
        flips = [1 - FLIP - sum(tail), FLIP][:: 1 if last == 0 else -1]
        return [*flips, *tail]

    return Table(distribution, 3 if eos else 2, eos=2 if eos else None)


def wall_rate_is_known(eos: bool) -> bool:
    found = measure_coherence(flipping(eos), [[0], [1]], max_new_tokens=40, window=1, num_samples=500)
    runs = found.first_runs()
    hazard = FLIP
    error = 5 * math.sqrt(hazard / runs.lengths.sum())
    return abs(runs.hazard() - hazard) < error and abs(found.walls_per_token() - hazard) < error


def test_oracle_with_known_wall_rate():
    assert wall_rate_is_known(False)
    assert wall_rate_is_known(True)


def walls_of_ending_texts() -> Coherence:
    """Texts of token 0 and an end-of-sequence token that would match the second pattern if it counted as text."""
    oracle = Table(lambda _: [0.9, 0.0, 0.1], 3, eos=2)
    return measure_coherence(oracle, [[0], [2]], max_new_tokens=40, window=1, num_samples=50)


def test_end_of_text_is_not_a_wall(monkeypatch):
    found = walls_of_ending_texts()
    assert not found.walls.any()
    assert len(set(found.first_runs().lengths.tolist())) > 5
    original = measure.coherence

    def count_end_of_text(tokens: Tensor, *arguments: Any, lengths: Tensor, **settings: Any) -> Coherence:
        longer = (lengths + 1).clamp_max(tokens.shape[1])
        return original(tokens, *arguments, lengths=longer, **settings)

    monkeypatch.setattr(measure, "coherence", count_end_of_text)
    assert walls_of_ending_texts().walls.any()


def test_temperature_applies_to_each_token():
    cold = measure_coherence(flipping(), [[0]], max_new_tokens=20, window=2, temperature=0, num_samples=3)
    assert not cold.walls.any()
    odds = (FLIP / (1 - FLIP)) ** 2
    half = measure_coherence(
        flipping(), [[0], [1]], max_new_tokens=60, window=1, temperature=0.5, num_samples=1000
    )
    assert half.walls_per_token() == pytest.approx(odds / (1 + odds), rel=0.15)


def test_pretrained_model_is_measured_in_bytes():
    oracle = tiny_oracle()
    texts = ["the cat sat. ", "a dog ran, "]
    found = measure_coherence(oracle, texts, max_new_tokens=12, repeats=2, num_samples=3, seed=1)
    again = measure_coherence(oracle, texts, max_new_tokens=12, repeats=2, num_samples=3, seed=1, window=13)
    assert torch.equal(found.labels, again.labels)
    assert found.labels.shape[0] == 6
    assert found.start.tolist() == [13] * 3 + [9] * 3
    rows = torch.arange(6)
    assert found.labels[rows, found.start].tolist() == [0] * 3 + [13] * 3
    assert found.distances[rows, found.start].tolist() == [0] * 6
    assert found.walls_per_token() > 0.03  # A random model does not follow the patterns.


BAD = [
    ("window=", lambda: coherence(torch.zeros(2, 3).long(), [[0, 1]], 4)),
    ("window=", lambda: coherence(torch.zeros(2, 3).long(), [[0, 1]], 0)),
    ("patterns=", lambda: coherence(torch.zeros(2, 3).long(), [], 2)),
    ("start=", lambda: coherence(torch.zeros(2, 3).long(), [[0, 1]], 2, lengths=torch.tensor([3, 1]))),
    ("start=", lambda: coherence(torch.zeros(2, 3).long(), [[0, 1]], 2, start=2)),
    ("start=", lambda: measure_coherence(flipping(), [[0]], max_new_tokens=5, window=4, repeats=2)),
    ("repeats=", lambda: measure_coherence(flipping(), [[0]], max_new_tokens=5, repeats=0)),
    ("patterns=", lambda: measure_coherence(flipping(), ["ab"], max_new_tokens=5)),
    ("patterns=", lambda: measure_coherence(tiny_oracle(), ["ab", [1]], max_new_tokens=5)),
    ("patterns=", lambda: measure_coherence(tiny_oracle(), [], max_new_tokens=5)),
    ("patterns=", lambda: measure_coherence(tiny_oracle(), "ab", max_new_tokens=5)),
    ("patterns=", lambda: measure_coherence(tiny_oracle(), ["ab", ""], max_new_tokens=5)),
    ("patterns=", lambda: measure_coherence(flipping(), [[]], max_new_tokens=5)),
    ("patterns=", lambda: measure_coherence(flipping(), [[0.5]], max_new_tokens=5)),
    ("temperature=", lambda: measure_coherence(flipping(), [[0]], max_new_tokens=5, temperature=-1)),
    ("runs=", lambda: Runs(np.zeros(0, np.int64), np.zeros(0, bool)).survival_curve()),
    ("runs=", lambda: Runs(np.zeros(0, np.int64), np.zeros(0, bool)).restricted_mean()),
    ("tokens=", lambda: coherence(torch.zeros(3).long(), [[0, 1]], 2)),
    ("tokens=", lambda: coherence(torch.zeros(2, 3), [[0, 1]], 2)),
    ("patterns=", lambda: coherence(torch.zeros(2, 3).long(), [[]], 2)),
    ("patterns=", lambda: coherence(torch.zeros(2, 3).long(), ["ab"], 2)),
    ("lengths=", lambda: coherence(torch.zeros(2, 3).long(), [[0, 1]], 2, lengths=torch.tensor([3, 4]))),
    ("lengths=", lambda: coherence(torch.zeros(2, 3).long(), [[0, 1]], 2, lengths=torch.tensor([3] * 3))),
    ("start=", lambda: coherence(torch.zeros(2, 3).long(), [[0, 1]], 2, start=torch.tensor([0] * 3))),
    ("start=", lambda: coherence(torch.zeros(2, 3).long(), [[0, 1]], 2, start=0.5)),
]


def test_invalid_input_is_reported():
    assert not calls_without_expected_error(BAD)
