"""Tests of the study `interaction-order`: bounds, small networks, spectra, and statistics of known rows."""

import dataclasses
import math
from functools import cache

import numpy as np
import pytest
import torch

from trialogue.data import ManyBody
from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.interaction_order import distributions, small, statistics
from trialogue_lab.studies.interaction_order.config import PRESETS, Config
from trialogue_lab.studies.interaction_order.distributions import (
    StaircaseDistribution,
    make_population,
    sample_staircase,
)
from trialogue_lab.studies.interaction_order.large import TEST_SEQUENCES, compute_heldout_loss, measure_large

SMOKE = PRESETS["smoke"]
STEPPED = Config(gap=0.05, starts=(3, 1))


@cache
def stairs() -> StaircaseDistribution:
    return sample_staircase(STEPPED, 5)


def test_bounds_of_the_distribution_decrease_with_the_order() -> None:
    found = stairs()
    assert found.two - found.three > 0.05
    assert found.three - found.four > 0.05
    assert found.draws >= 1
    assert found.four == make_population(found.model).entropy


def test_distributions_without_steps_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributions, "_MAX_DRAWS", 2)
    with pytest.raises(InputError, match=r"gap=0\.9: the bounds of 2 distributions are closer"):
        sample_staircase(dataclasses.replace(SMOKE, gap=0.9), 0)


def one_layer_excess(config: Config) -> float:
    losses, steps, moved = small.train_network(config, stairs(), 1, 5)
    assert len(losses) == config.steps[0] + 1
    assert moved.shape == (len(steps), 1)
    assert losses[0] == pytest.approx(math.log(3), abs=0.02)
    assert moved[0, 0] == 0
    return float(losses[-1] - stairs().two)


def test_one_layer_reaches_the_two_body_bound() -> None:
    assert abs(one_layer_excess(STEPPED)) < 0.01


def test_short_training_is_detected() -> None:
    assert one_layer_excess(dataclasses.replace(STEPPED, steps=(60, 1, 1))) > 0.01


def test_factored_attention_recovers_two_bodies() -> None:
    rows = Rows(
        [{"seed": 1, **row} for row in small.measure_pairs(dataclasses.replace(SMOKE, pair_steps=800), 1)]
    )
    table = rows["pairs"]
    assert table.couplings.item() > 0.99
    assert table.similarities.item() > 0.99
    assert statistics.pair_excess("factored")(rows).item() < 1e-3
    assert statistics.pair_excess("standard")(rows).item() > 0.01


def test_tensors_of_another_model_do_not_correlate() -> None:
    exact = torch.tensor([1.0, -2.0, 0.5, 3.0])
    assert small.compute_correlation(-4 * exact, exact) == pytest.approx(1)
    assert small.compute_correlation(exact[[1, 0, 3, 2]], exact) < 0.9


def test_orders_agree_with_the_architecture() -> None:
    rows = [row for row in small.measure_spectra(SMOKE, 1) if not row["norm"]]
    assert [row["bodies"] for row in rows] == [2, 3, 5, 9]
    assert all(row["bodies"] == row["bound"] for row in rows)
    assert max(row["beyond"] for row in rows) < 1e-12
    normed = [row for row in small.measure_spectra(SMOKE, 1) if row["norm"] and row["layers"] > 1]
    assert min(row["beyond"] for row in normed) > 1e-4


def test_exchange_exponent_of_the_first_two_layers_is_four() -> None:
    rows = Rows([{"seed": 5, **row} for row in small.measure_exchange(SMOKE, stairs(), 5)])
    assert statistics.exchange_exponent()(rows).item() == pytest.approx(4, abs=0.2)


def test_plateau_ratios_have_known_values() -> None:
    """The loss needs 100 steps to 1, stays 300, needs 50 to 0.5, stays 25, and then decreases further."""
    plateaus = [np.full(count, loss) for count, loss in ((300, 1.0), (25, 0.5), (9, 0.1))]
    falls = np.linspace(2, 1.02, 100), np.linspace(0.98, 0.52, 50)
    losses = np.concatenate((falls[0], plateaus[0], falls[1], *plateaus[1:]))
    assert small.compute_plateau_ratios(losses, [1.0, 0.5]) == pytest.approx([3.0, 0.5])
    assert small.compute_plateau_ratios(losses[:350], [1.0, 0.5]) == pytest.approx([2.5, 1 / 350])
    assert small.compute_plateau_ratios(losses, [0.1])[0] == pytest.approx(9 / 475)
    assert small.compute_plateau_ratios(np.full(10, 0.0), [1.0]) == [1.0]


def test_onset_is_the_first_step_beyond_a_tenth_of_the_displacement() -> None:
    assert small.find_onset(np.array([0.0, 0.05, 0.1, 0.11, 2.0, 1.0])) == 3
    assert small.find_onset(np.array([0.0, 0.9, 0.05, 1.0])) == 1


def test_heldout_loss_is_the_cross_entropy() -> None:
    model = ManyBody.random(5, 3, scale=1.0, seed=1)
    samples = torch.multinomial(model.probabilities(), 40_000, True, generator=generator(0))
    loss = compute_heldout_loss(model, model.states()[samples])
    assert loss == pytest.approx(make_population(model).entropy, abs=0.02)


def test_large_model_is_sampled_and_learned() -> None:
    config = dataclasses.replace(
        SMOKE, large_sequences=4096, large_sweeps=30, large_steps=400, large_scale=0.5, large_batch=128
    )
    rows = Rows([{"seed": 3, **row} for row in measure_large(config, 3, None)])  # type: ignore[arg-type]
    bounds, curve = rows["large-law"].iloc[0], rows["large-curve"]
    assert TEST_SEQUENCES == 1024
    last = curve.groupby("layers").loss.last()
    assert bounds.four < last[3] < last[1] < bounds.uniform
    assert bounds.four < bounds.three < bounds.two < bounds.uniform
    assert last[1] == pytest.approx(bounds.two, abs=0.05)
    assert curve.moved_1[curve.step == 0].max() == 0
