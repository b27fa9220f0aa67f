"""Tests of the study `memorization-train`: short trainings, published networks, and statistics on synthetic rows."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from trialogue.oracles import enumerate_sequences
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.memorization_train import measure, statistics
from trialogue_lab.studies.memorization_train.config import PRESETS, Config
from trialogue_lab.studies.memorization_train.measure import MLP, PER_HEAD, SHARED
from trialogue_lab.studies.memorization_train.published import POINTS

SMOKE = PRESETS["smoke"]
PAPER = PRESETS["paper"]


def rows_of(accuracy: Any, config: Config = PAPER) -> Rows:
    """Return rows of all networks of a preset, with accuracies `accuracy(form, shape)`."""
    records = [
        {
            "kind": "training",
            "experiment": experiment,
            "seed": seed,
            "form": form,
            **{name: getattr(shape, name) for name in ("vocab_size", *measure._COLUMNS)},
            "contexts": shape.vocab_size**2,
            "accuracy": accuracy(form, shape),
            "bound": 0.01,
            "previous": 0.005,
        }
        for seed in (1, 2)
        for experiment, shapes in measure.list_experiments(config).items()
        for form, shape in shapes
    ]
    return Rows(records, "kind", {"seeds": (1, 2)})


def proportional(form: str, shape: Any, power: float = 2.0) -> float:
    """Return 0.7 associations per head and power of its width, or half as many with a shared map."""
    heads = shape.heads + shape.mlp_width / (2 * shape.width)
    each = 0.35 if form == SHARED else 0.7
    inner = min(shape.width, shape.head_width) if form == SHARED else shape.head_width
    return 0.02 + each * heads * inner * shape.width ** (power - 1) / shape.vocab_size**2


def test_statistics_of_proportional_accuracies_have_the_expected_values() -> None:
    rows = rows_of(proportional)
    assert np.allclose(statistics.slope("heads", 10)(rows), 70)
    assert np.allclose(statistics.straightness("heads", 10)(rows), 1)
    assert np.allclose(statistics.exponent()(rows), 2)
    assert np.allclose(statistics.constant("large", 50)(rows), 0.7)
    assert np.allclose(statistics.beyond_slope(10)(rows), 7)
    assert np.allclose(statistics.bend(PER_HEAD)(rows), 0, atol=1e-9)
    assert np.allclose(statistics.gain(PER_HEAD, 11, 15)(rows), 0.7 * 20 * 10 * 4 / 2500)
    assert np.allclose(statistics.mlp_slope()(rows), 1)
    assert np.allclose(statistics.mlp_gain()(rows), 0)
    assert (statistics.own_values()(rows) > 0.05).all()
    assert np.allclose(
        statistics.heads_against_depth()(rows), 0.7 * 100 * 2 * np.mean(PAPER.deep_heads) / 70**2
    )
    assert (statistics.least_beyond()(rows) > 0).all()
    assert statistics.accuracy("heads", width=10, heads=6)(rows).tolist() == pytest.approx(
        [0.02 + 0.7 * 600 / 2500] * 2
    )


def test_the_preset_contains_all_published_networks() -> None:
    printed = {(e, *point[:4]): point.accuracy for e, points in POINTS.items() for point in points}
    heads = {MLP: lambda shape: 1 + shape.mlp_width // (2 * shape.width)}
    measured = {
        (experiment, form, shape.width, shape.head_width, heads.get(form, lambda one: one.heads)(shape))
        for experiment, shapes in measure.list_experiments(PAPER).items()
        for form, shape in shapes
    }
    assert set(printed) <= measured

    def as_printed(form: str, shape: Any) -> float:
        count = heads.get(form, lambda one: one.heads)(shape)
        found = [printed.get((name, form, shape.width, shape.head_width, count)) for name in POINTS]
        return next((each for each in found if each is not None), 0.5)

    assert np.allclose(statistics.ahead("two-dimensions")(rows_of(as_printed)), 0)
    assert np.allclose(statistics.ahead("width")(rows_of(as_printed)), 0)
    lower = rows_of(lambda form, shape: as_printed(form, shape) - 0.1)
    assert np.allclose(statistics.ahead("width")(lower), -0.1)


def test_published_accuracies_are_transcribed_correctly() -> None:
    for experiment, network, in_print in (
        ("heads", (PER_HEAD, 5, 5, 31), 0.294),
        ("heads", (PER_HEAD, 10, 10, 16), 0.685),
        ("heads", (PER_HEAD, 10, 10, 21), 0.861),
        ("heads", (PER_HEAD, 13, 13, 11), 0.774),
        ("head-width", (SHARED, 10, 1, 20), 0.081),
        ("head-width", (SHARED, 10, 7, 20), 0.453),
        ("head-width", (PER_HEAD, 10, 10, 20), 0.804),
        ("width", (SHARED, 5, 10, 20), 0.264),
        ("width", (SHARED, 9, 10, 20), 0.697),
        ("width", (SHARED, 11, 10, 20), 0.777),
        ("width", (SHARED, 15, 10, 20), 0.814),
        ("mlp", (PER_HEAD, 10, 10, 11), 0.230),
        ("mlp", (PER_HEAD, 10, 10, 31), 0.594),
        ("mlp", (MLP, 10, 10, 6), 0.236),
        ("mlp", (MLP, 10, 10, 26), 0.590),
        ("two-dimensions", (PER_HEAD, 2, 2, 9), 0.633),
        ("two-dimensions", (PER_HEAD, 2, 2, 21), 0.858),
    ):
        found = [point.accuracy for point in POINTS[experiment] if point[:4] == network]
        assert found == [in_print], (experiment, network)


def test_an_mlp_has_as_many_parameters_as_the_heads_it_replaces() -> None:
    shapes = measure.list_experiments(PAPER)["mlp"]
    attention = {shape.heads: shape.parameters for form, shape in shapes if form == PER_HEAD}
    for form, shape in shapes:
        if form == MLP:
            assert shape.parameters == attention[1 + shape.mlp_width // (2 * shape.width)]


def test_training_stores_the_sampled_associations(monkeypatch: pytest.MonkeyPatch) -> None:
    config = dataclasses.replace(SMOKE, steps=250)
    shape = measure.AttentionOnlyConfig(vocab_size=5, context=2, width=6, heads=6, head_width=6)

    def trained_accuracy() -> float:
        (row,) = measure._measure_experiment(config, 7, [(PER_HEAD, shape)], Path())
        return float(row["accuracy"])

    assert trained_accuracy() == 1
    # The associations of other contexts must not be learned.
    loss = measure.compute_association_loss
    monkeypatch.setattr(
        measure, "compute_association_loss", lambda model, tokens: loss(model, tokens.roll(1, 0))
    )
    assert trained_accuracy() < 0.8


def test_the_loss_averages_over_all_contexts() -> None:
    _, shape = measure.list_experiments(SMOKE)["mlp"][-1]
    network, tokens = (
        measure.make_initial_network(SMOKE, shape, 3),
        measure.sample_tokens(3, shape.vocab_size),
    )
    plain = functional.cross_entropy(network(enumerate_sequences(shape.vocab_size, 2)), tokens)
    torch.testing.assert_close(measure.compute_association_loss(network, tokens), plain)
    assert float(network.embedding.detach().std()) == pytest.approx(SMOKE.initial_scale, rel=0.2)
    assert not torch.equal(measure.sample_tokens(3, 12), measure.sample_tokens(4, 12))
