"""Known rates, text against the exact law of the network that wrote it, and the study end to end in miniature."""

import dataclasses
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from complete_runs import require_complete
from torch import Tensor

from trialogue.errors import InputError
from trialogue.inference import truncated
from trialogue.ledger.execution import execute
from trialogue.models import Cropped, Transformer
from trialogue.oracles import Autoregressive
from trialogue.studies import window_coherence_networks
from trialogue.studies.window_coherence import PRESETS, STUDY, Config, parts
from trialogue.studies.window_coherence_networks import (
    Setting,
    network_rows,
    reference_rows,
    text_rows,
    token_loss,
    trained,
)
from trialogue.studies.window_coherence_rows import SLIDING, UNLIMITED, cropped

SMOKE = PRESETS["smoke"]
SHORT = dataclasses.replace(
    SMOKE, samples=300, width=32, training_steps=200, batch_tokens=1024, learning_rate=1e-2
).setting
trained_once = cache(trained)


@pytest.fixture(autouse=True)
def train_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_coherence_networks, "trained", trained_once)


def test_the_best_models_by_window_and_temperature() -> None:
    rows = list(reference_rows(SHORT, range(3, 8, 2), (0.5, 1.0)))
    assert rows[0]["survival"] == pytest.approx(0.98, abs=0.01)
    found = {(row["window"], row["temperature"]): row["rate"] for row in rows[1:]}
    known = {(3, 1.0): 0.252, (5, 1.0): 0.0930, (7, 1.0): 0.0186, (3, 0.5): 0.251, (7, 0.5): 1.62e-4}
    assert {key: found[key] for key in known} == pytest.approx(known, rel=0.005)


def text_is_exact(name: str, window: int, temperature: float = 1.0) -> bool:
    """Within five standard errors of 600 texts, at the horizon, and at temperature 1 on the way to it."""
    rows = network_rows(SHORT, name, window, 0, (temperature,), (temperature, 1.0))
    found = [row for row in rows if row["kind"] == "curve" or row.get("temperature") == temperature]
    shares = [(row["survival"], row["exact_survival"]) for row in found if "exact_survival" in row]
    assert len(shares) > (5 if temperature == 1 else 0)
    return all(
        abs(share - exact) < 5 * math.sqrt(exact * (1 - exact) / 600) + 0.005 for share, exact in shares
    )


@pytest.mark.parametrize(
    ("name", "window", "temperature"), [(cropped(5), 5, 1.0), (cropped(5), 5, 0.5), (SLIDING, 7, 1.0)]
)
def test_text_is_that_of_the_exact_law(name: str, window: int, temperature: float) -> None:
    assert text_is_exact(name, window, temperature)


def _warmer(setting: Setting, oracle: Autoregressive, *arguments: Any) -> Any:
    return text_rows(setting, truncated(oracle, 3.0), *arguments)


def _seeing_less(base: Autoregressive, window: int) -> Cropped:
    # The map asks with double precision, the text is written with single precision.
    double = next(base.base.parameters()).dtype == torch.float64  # type: ignore[attr-defined]
    return Cropped(base, window if double else 2)


@pytest.mark.parametrize(("attribute", "broken"), [("text_rows", _warmer), ("Cropped", _seeing_less)])
def test_text_of_another_law_is_noticed(
    attribute: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_coherence_networks, attribute, broken)
    assert not text_is_exact(cropped(5), 5)


def test_an_end_is_never_learned() -> None:
    model, loss = trained_once(SHORT, cropped(5), 5, 0)
    assert 0.5 < loss < 0.66
    inputs = torch.tensor([[model.bos, 0, 1, 1, 1]])
    with torch.no_grad():
        assert float(model(inputs)[0, -1].softmax(0)[model.eos]) < 0.05


def test_the_loss_is_that_of_every_token() -> None:
    model, _ = trained(dataclasses.replace(SHORT, training_steps=10), UNLIMITED, None, 0)
    tokens = torch.tensor([[0, 1, 1, 0], [1, 1, 0, 0]])
    expected = [_log_prob(model, row[:place], int(row[place])) for row in tokens for place in range(4)]
    with torch.no_grad():
        assert float(token_loss(model, tokens)) == pytest.approx(-sum(expected) / 8, abs=1e-5)


def _log_prob(model: Transformer, prefix: Tensor, token: int) -> float:
    inputs = torch.cat((torch.tensor([model.bos]), prefix))[None]
    with torch.no_grad():
        return float(model(inputs)[0, -1].log_softmax(0)[token])


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    execute(STUDY, SMOKE, folder)
    return folder


def test_every_part_claim_table_and_figure_has_rows(results: Path) -> None:
    require_complete(STUDY, SMOKE, results, replications=len(SMOKE.seeds), lines=3)
    assert len(parts(SMOKE)) == 1 + 2 * 4


def test_the_receptive_field_is_one_number() -> None:
    config = Config(attention_window=6, layers=3, periods=3)
    assert config.receptive_field == 16
    assert config.networks[SLIDING] == 16
    assert config.networks[UNLIMITED] is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seeds", ()),
        ("seeds", (1, 1)),
        ("seeds", (-1,)),
        ("periods", 4),
        ("periods", 0),
        ("pattern_bits", 1),
        ("windows", (3,)),
        ("windows", (5, 3)),
        ("windows", (0, 3)),
        ("windows", (3, 22)),
        ("windows", (3, 5.5)),
        ("seeds", (0.5,)),
        ("attention_window", 2.5),
        ("attention_window", 12),
        ("attention_window", 0),
        ("best_windows", 22),
        ("temperatures", (1.0,)),
        ("temperatures", (0.0, 1.0)),
        ("temperatures", (0.6, 1.0)),
        ("exact_temperatures", (0.5, math.inf)),
        ("horizon", 21),
        ("noise", 0.0),
        ("learning_rate", math.nan),
        ("samples", 0),
        ("training_steps", 9),
        ("heads", 0),
    ],
)
def test_a_field_out_of_range_is_named(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{field}="):
        dataclasses.replace(Config(), **{field: value})
