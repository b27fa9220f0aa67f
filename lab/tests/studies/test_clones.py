"""Tests of the studies of clones: saturation of curves, protocols of the source, exact clones, and missing texts."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from trialogue.errors import InputError
from trialogue_lab import studies
from trialogue_lab.ledger import NoRows, Result, Rows
from trialogue_lab.studies.clones import statistics
from trialogue_lab.studies.clones.config import ENCODER, PRESETS, TEXT
from trialogue_lab.studies.clones.material import (
    find_interaction_order,
    load_corpus,
    select_initial_sequences,
)
from trialogue_lab.studies.clones.statistics import find_saturation_step
from trialogue_lab.studies.clones.twin import measure_twin
from trialogue_lab.studies.clones_gpt.config import PRESETS as GPT_PRESETS

SMOKE = PRESETS["smoke"]
STEPS = (0, 1, 10, 100, 1000)


def curve(*losses: float) -> "pd.Series[float]":
    return pd.Series(losses, index=STEPS)


@pytest.mark.parametrize(
    ("losses", "step"),
    [
        ((4.0, 3.0, 2.0, 1.0, 0.0), 820.0),  # 0.2 lies eight tenths of the way from 1.0 to 0.0
        ((4.0, 4.0, 0.0, 0.0, 0.0), 1 + 9 * 3.8 / 4.0),
        ((4.0, 4.0, 0.0, 7.0, 9.0), 1 + 9 * 3.8 / 4.0),  # a later increase changes nothing
        ((104.0, 103.0, 102.0, 101.0, 100.0), 820.0),  # nor does a constant
    ],
)
def test_saturation_step_of_a_curve_has_the_known_value(losses, step):
    assert find_saturation_step(curve(*losses)) == pytest.approx(step)


def test_a_rising_curve_has_no_saturation_step():
    with pytest.raises(NoRows):
        find_saturation_step(curve(1.0, 2.0, 3.0, 4.0, 5.0))


def rows(
    curves: dict[str, tuple[float, ...]], seeds: tuple[int, ...] = (0, 1), steps: tuple[int, ...] = STEPS
) -> Rows:
    """Return losses by clone that are equal for both samplers and all seeds."""
    records: list[dict[str, Any]] = [
        {
            "kind": "loss",
            "seed": seed,
            "step": step,
            "clone": name,
            "sampler": "" if name == TEXT else sampler,
            "sweeps": sweeps,
            "loss": loss * (1.01 if sweeps == 20 else 1.0),
        }
        for seed in seeds
        for name, losses in curves.items()
        for sampler, sweeps in (
            (("", 0),) if name == TEXT else (("metropolis", 20), ("metropolis", 70), ("gibbs", 70))
        )
        for step, loss in zip(steps, losses, strict=True)
    ]
    return Rows(records, "kind", {"layers": [1, 2], "sweeps": [20, 70]})


ORDERED = rows(
    {
        "layers-1": (4.0, 2.0, 1.0, 1.5, 2.0),
        "layers-2": (4.0, 2.1, 1.2, 0.5, 0.6),
        ENCODER: (4.0, 2.2, 1.4, 0.9, 0.1),
        TEXT: (4.0, 2.2, 1.4, 0.9, 0.0),
    }
)


@pytest.mark.parametrize("sampler", ["metropolis", "gibbs"])
def test_curves_in_order_have_the_expected_statistics(sampler):
    low, high = (statistics.saturation(name, sampler)(ORDERED) for name in ("layers-1", ENCODER))
    # Three tenths of 1000 steps lie log10(3) of the way from 100 to 1000.
    scale, left = 1.01 if sampler == "metropolis" else 1.0, 1 - np.log10(3)
    for statistic, expected in (
        (statistics.later(sampler), (high / low).tolist()),
        (statistics.late_gain(sampler), [scale * left * 0.8] * 2),
        (statistics.late_change(ENCODER, sampler), [scale * left * 0.8] * 2),
        (statistics.late_change("layers-1", sampler), [-scale * left / 2] * 2),
        # The deeper of two depths is not a low order.
        (statistics.low_orders_later(sampler), (high / low).tolist()),
    ):
        assert statistic(ORDERED).tolist() == pytest.approx(expected), statistic.name
    assert statistics.in_order(sampler)(ORDERED).tolist() == [1.0, 1.0]
    assert statistics.lowest_saturation(sampler)(ORDERED).tolist() == low.tolist()
    assert statistics.late_share(sampler)(ORDERED).tolist() == [0.0, 0.0]


def test_smaller_increase_of_the_loss_is_not_a_gain():
    rising = rows({"layers-1": (4.0, 2.0, 1.0, 2.0, 5.0), ENCODER: (4.0, 2.0, 1.0, 1.5, 2.0)})
    assert statistics.late_gain("gibbs")(rising).tolist() == [0.0, 0.0]
    assert (statistics.late_change(ENCODER, "gibbs")(rising) < 0).all()


def test_the_latest_of_the_low_orders_is_compared_with_all_orders():
    table = rows(
        {
            "layers-1": (4.0, 0.0, 0.0, 0.0, 0.0),
            "layers-2": (4.0, 4.0, 0.0, 0.0, 0.0),
            "layers-4": (4.0, 4.0, 4.0, 4.0, 0.0),
            ENCODER: (4.0, 4.0, 4.0, 0.0, 0.0),
        }
    )
    table.config["layers"] = [1, 2, 4]
    found = statistics.low_orders_later("gibbs")(table)
    later = statistics.saturation(ENCODER, "gibbs")(table) / statistics.saturation("layers-2", "gibbs")(table)
    assert found.tolist() == pytest.approx(later.tolist())
    table.config["layers"] = [4]
    assert statistics.low_orders_later("gibbs")(table).empty


LATE = [
    ((0, 1, 10, 100), (4.0, 3.0, 2.0, 0.0), 2.0 / 4.0),
    ((0, 1, 10, 50, 100), (4.0, 3.0, 2.0, 1.0, 3.0), 1.0 / 3.0),  # an increase at the end changes nothing
    ((0, 1, 5, 10, 100), (4.0, 3.0, 0.0, 2.0, 1.0), 1.0 / 4.0),  # the total decrease is to the minimum
    ((0, 1, 10, 100), (4.0, 1.0, 2.0, 3.0), 0.0),  # a late increase does not count as a decrease
    ((0, 1, 1000), (4.0, 4.0, 0.0), (4.0 / 3.0) / 4.0),  # 100 lies two thirds of the way from 1 to 1000
    ((0, 1, 2, 5), (4.0, 3.0, 2.0, 0.0), 3.0 / 4.0),  # a tenth of five steps is before step 1
]


@pytest.mark.parametrize(("steps", "losses", "share"), LATE)
def test_late_share_of_the_decrease_has_known_values(steps, losses, share):
    found = statistics.late_share("gibbs")(rows({"layers-1": losses}, steps=steps))
    assert found.tolist() == pytest.approx([share] * 2)


def test_curves_out_of_order_are_detected():
    swapped = rows(
        {
            "layers-1": (4.0, 2.0, 1.4, 0.9, 0.1),
            "layers-2": (4.0, 2.1, 1.2, 0.5, 0.6),
            ENCODER: (4.0, 2.2, 1.0, 1.5, 2.0),
            TEXT: (4.0, 2.2, 1.4, 0.9, 0.0),
        }
    )
    assert statistics.in_order("gibbs")(swapped).tolist() == [0.0, 0.0]
    assert (statistics.later("gibbs")(swapped) < 1).all()


def test_early_spread_of_curves_is_measured_before_the_first_saturation():
    """Only steps 0 and 1 are below a third of the first saturation step, which is about 4."""
    spread = statistics.early_spread("gibbs")(ORDERED)
    assert spread.tolist() == pytest.approx([0.2 / 4.0] * 2)


def test_difference_between_numbers_of_sweeps_has_the_expected_value():
    for name in ("layers-1", ENCODER):
        assert statistics.between_sweeps(name, "metropolis")(ORDERED).tolist() == pytest.approx([0.01] * 2)
    with pytest.raises(LookupError):
        statistics.between_sweeps("layers-4", "metropolis").compute(ORDERED)


@pytest.fixture(scope="module")
def smoke(smoke_run: Callable[[str], Result]) -> Rows:
    return studies.find("clones").rows(smoke_run("clones"))


def test_encoders_share_their_initial_weights_and_differ_in_their_data(smoke: Rows):
    table = smoke["loss"].pivot(index=["clone", "sampler", "sweeps", "step"], columns="seed", values="loss")
    first = table[table.index.get_level_values("step") == 0]
    assert (first[0] == first[1]).all()
    last = table[table.index.get_level_values("step") == SMOKE.encoder_steps]
    assert (last[0] != last[1]).all()


def test_every_clone_is_measured_at_every_step(smoke: Rows):
    losses = smoke["loss"]
    sampled = {(name, "metropolis", sweeps) for name in SMOKE.names for sweeps in SMOKE.sweeps}
    sampled |= {(name, "gibbs", SMOKE.sweeps[-1]) for name in SMOKE.names}
    found = set(zip(losses.clone, losses.sampler, losses.sweeps, strict=True))
    assert found == sampled | {(TEXT, "", 0)}
    steps = losses.groupby(["seed", "clone", "sampler", "sweeps"]).step.apply(tuple)
    assert steps.nunique() == 1
    assert steps.iloc[0][0] == 0
    assert steps.iloc[0][-1] == SMOKE.encoder_steps
    sweeps = smoke["energy"].groupby(["clone", "sampler"]).sweep.apply(tuple)
    assert set(sweeps) == {tuple(range(SMOKE.sweeps[-1] + 1))}
    networks = smoke["network"].groupby("network").seed.apply(sorted)
    assert networks.to_dict() == {name: list(SMOKE.seeds) for name in SMOKE.names}


def test_orders_are_those_of_the_architecture():
    config = replace(PRESETS["default"], layers=(1, 2, 4, 6))
    assert [find_interaction_order(config, name) for name in config.names] == [2, 3, 9, None, None]
    assert find_interaction_order(replace(config, layer_norm=True), "layers-2") is None


def test_chains_start_from_held_out_text(tmp_path: Path):
    corpus, starts = load_corpus(SMOKE, tmp_path), select_initial_sequences(SMOKE, tmp_path)
    assert len(starts) == SMOKE.sequences == len(starts.unique(dim=0))
    assert {tuple(row) for row in starts.tolist()} <= {tuple(row) for row in corpus.test.tolist()}


def test_losses_on_exact_clones_are_bounded_by_their_entropies(smoke: Rows):
    for order in SMOKE.twin_orders:
        entropy = smoke.where("twin-law", order=order).set_index("seed").entropy
        losses = statistics.select_twin_curves(smoke, order)
        assert (losses >= entropy - 1e-9).all(axis=None)
        # The distribution is nearly uniform before training.
        assert losses.iloc[0].to_numpy() == pytest.approx(np.log(SMOKE.twin_vocab), abs=0.05)
    distances = smoke["twin-sampler"].pivot_table("distance", "sampler", "order")
    assert (distances.loc[["gibbs", "metropolis-by-order"]] < 1e-12).all(axis=None)
    assert (distances.loc["metropolis"] > 0.01).all()


def test_twin_learns_the_exact_distribution(tmp_path: Path):
    config = replace(SMOKE, twin_steps=250, twin_rows=20_000, twin_rank=20)
    found = Rows(list(measure_twin(config, 3, tmp_path)), "kind")
    last = found.where("twin-loss", order=4, step=250).loss.item()
    first = found.where("twin-loss", order=4, step=0).loss.item()
    smallest = found.where("twin-law", order=4).entropy.item()
    assert last - smallest < 0.5 * (first - smallest)


def test_twin_curves_do_not_depend_on_other_orders(tmp_path: Path):
    def twin(*orders: int) -> Rows:
        config = replace(SMOKE, twin_steps=20, twin_orders=orders)
        return Rows([{"seed": 3} | row for row in measure_twin(config, 3, tmp_path)], "kind")

    all_orders, parts = twin(2, 3, 4), twin(2, 3)
    for order in (2, 3):
        pd.testing.assert_frame_equal(
            statistics.select_twin_curves(parts, order), statistics.select_twin_curves(all_orders, order)
        )
    later = statistics.twin_later(4, 3)
    assert later(parts).empty
    assert later.missing_rows(parts) == "no losses on the exact clone of 4 bodies"


@pytest.mark.parametrize("preset", [PRESETS["default"], GPT_PRESETS["default"]])
def test_missing_text_is_rejected(preset: Any, tmp_path: Path):
    with pytest.raises(InputError, match="existing file or folder") as error:
        load_corpus(replace(preset, text="nowhere"), tmp_path)
    assert error.value.field == "text"


def test_sizes_and_batches_agree_with_the_source():
    paper = PRESETS["paper"]
    shape = paper.encoder()
    assert (shape.layers, shape.heads, shape.width, shape.mlp_width) == (4, 16, 768, 1536)
    assert paper.encoder_training(0).batch_size == 1026  # 54 sequences of 19 copies each
    decoder = GPT_PRESETS["paper"].decoder()
    assert (decoder.layers, decoder.heads, decoder.width, decoder.causal) == (2, 16, 768, True)
    assert GPT_PRESETS["paper"].decoder_training(0).learning_rate == 5e-4
