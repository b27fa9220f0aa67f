"""Tests of the study `window-coherence`: known rates, generated text, and statistics of known rows."""

import dataclasses
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from trialogue.models import Cropped, Transformer
from trialogue.oracles import Autoregressive
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.window_coherence import measure, statistics
from trialogue_lab.studies.window_coherence.config import PRESETS, SLIDING, UNLIMITED, Config, cropped
from trialogue_lab.studies.window_coherence.measure import (
    compute_token_loss,
    measure_network,
    measure_references,
    train_network,
)

SMOKE = PRESETS["smoke"]
SHORT = dataclasses.replace(
    SMOKE, samples=300, width=32, training_steps=200, batch_tokens=1024, learning_rate=1e-2
)
trained_once = cache(train_network)


@pytest.fixture(autouse=True)
def train_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "train_network", trained_once)


def test_rates_of_the_best_models_have_known_values() -> None:
    rows = list(measure_references(SHORT, Path()))
    assert rows[0]["survival"] == pytest.approx(0.98, abs=0.01)
    found = {(row["window"], row["temperature"]): row["rate"] for row in rows[1:]}
    known = {(3, 1.0): 0.252, (5, 1.0): 0.0930, (7, 1.0): 0.0186, (3, 0.5): 0.251, (7, 0.5): 1.62e-4}
    assert {key: found[key] for key in known} == pytest.approx(known, rel=0.005)


def text_agrees_with_exact_shares(name: str, temperature: float = 1.0) -> bool:
    """Return whether shares of 600 texts agree with exact ones within five standard errors plus 0.005."""
    rows = [
        row for row in measure_network(SHORT, name, 0, Path()) if row.get("temperature", 1.0) == temperature
    ]
    shares = [(row["survival"], row["exact_survival"]) for row in rows if "exact_survival" in row]
    assert len(shares) > (5 if temperature == 1 else 0)
    return all(
        abs(share - exact) < 5 * math.sqrt(exact * (1 - exact) / 600) + 0.005 for share, exact in shares
    )


@pytest.mark.parametrize(("name", "temperature"), [(cropped(5), 1.0), (cropped(5), 0.5), (SLIDING, 1.0)])
def test_text_follows_the_exact_distribution(name: str, temperature: float) -> None:
    assert text_agrees_with_exact_shares(name, temperature)


def _shorter_window(base: Autoregressive, window: int) -> Cropped:
    # The map uses double precision, and the text is generated with single precision.
    double = next(base.base.parameters()).dtype == torch.float64  # type: ignore[attr-defined]
    return Cropped(base, window if double else 2)


def test_text_of_another_window_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "Cropped", _shorter_window)
    assert not text_agrees_with_exact_shares(cropped(5))


def test_the_end_token_has_low_probability() -> None:
    model, loss = trained_once(SHORT, cropped(5), 0)
    assert 0.5 < loss < 0.66
    inputs = torch.tensor([[model.bos, 0, 1, 1, 1]])
    with torch.no_grad():
        assert float(model(inputs)[0, -1].softmax(0)[model.eos]) < 0.05


def test_loss_averages_all_tokens() -> None:
    model, _ = train_network(dataclasses.replace(SHORT, training_steps=10), UNLIMITED, 0)
    tokens = torch.tensor([[0, 1, 1, 0], [1, 1, 0, 0]])
    expected = [_log_prob(model, row[:place], int(row[place])) for row in tokens for place in range(4)]
    with torch.no_grad():
        assert float(compute_token_loss(model, tokens)) == pytest.approx(-sum(expected) / 8, abs=1e-5)


def _log_prob(model: Transformer, prefix: Tensor, token: int) -> float:
    inputs = torch.cat((torch.tensor([model.bos]), prefix))[None]
    with torch.no_grad():
        return float(model(inputs)[0, -1].log_softmax(0)[token])


def rows_of(rates: dict[str, float], late: dict[str, tuple[int, int]] | None = None) -> Rows:
    """Return rows of one training at temperature 1, and at temperature 0.5 with half the rates, by network."""
    records: list[dict[str, Any]] = [
        {"kind": "best", "temperature": 1.0, "window": w, "rate": 0.02} for w in (5, 7)
    ]
    for name, rate in rates.items():
        window = 7 if name == SLIDING else int(name.split()[1])
        network = {"seed": 0, "model": name, "window": window}
        records.append({"kind": "bound", **network, "log_crossing": math.log(30.0)})
        for temperature, factor in ((1.0, 1.0), (0.5, 0.5)):
            records.append({"kind": "rate", **network, "temperature": temperature, "rate": rate * factor})
            ends, tokens = (late or {}).get(name, (0, 1))
            written = {"temperature": temperature, "late_ends": ends, "late_tokens": tokens}
            records.append({"kind": "network", **network, **written})
    return Rows(records)


RATES = {cropped(3): 0.2, cropped(5): 0.1, cropped(7): 0.04, cropped(11): 0.08}


def test_steps_between_windows_have_the_expected_values() -> None:
    rows = rows_of(RATES)
    assert statistics.longer()(rows).item() == pytest.approx(math.log(0.04 / 0.08))
    assert statistics.longer(last=-1)(rows).item() == pytest.approx(math.log(2))
    assert statistics.longer(first=-1)(rows).item() == pytest.approx(math.log(0.5))


def test_crossing_length_is_computed_by_network() -> None:
    rows = rows_of(RATES)
    # The longest coherent length is 25 tokens, the crossing length of all is 30.
    assert statistics.decades_beyond_crossing()(rows).item() == pytest.approx(math.log10(25 / 30))


def test_networks_are_compared_with_the_best_model_of_equal_window() -> None:
    rows = rows_of({cropped(3): 0.2, cropped(5): 0.1, cropped(7): 0.04, SLIDING: 0.08})
    assert statistics.above_best(sliding=False)(rows).item() == pytest.approx((math.log(5) + math.log(2)) / 2)
    assert statistics.above_best(sliding=True)(rows).item() == pytest.approx(math.log(4))


def test_cold_rate_is_computed_by_network() -> None:
    assert statistics.colder(tells=True)(rows_of(RATES)).item() == pytest.approx(math.log(2))


def test_late_walls_are_compared_with_the_exact_rate() -> None:
    rate = -math.log1p(-0.1)
    rows = rows_of({cropped(3): rate, cropped(5): rate}, {cropped(3): (30, 200), cropped(5): (2, 100)})
    assert statistics.measured_rate_error()(rows).item() == pytest.approx(math.log(32 / 30))


def test_the_receptive_field_is_one_number() -> None:
    config = Config(attention_window=6, layers=3, periods=3)
    assert config.receptive_field == 16
    assert config.networks[SLIDING] == 16
    assert config.networks[UNLIMITED] is None
