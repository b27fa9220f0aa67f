"""Tests of `trialogue balance`: output for bracket networks, and one-line errors for invalid input."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from refusals import commands_without_expected_error
from trialogue.models import Transformer, TransformerConfig
from trialogue.training import save_model
from trialogue_lab.models.dyck_transformer import (
    DyckTransformer,
    DyckTransformerConfig,
    uniform_attention_transformer,
)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an exact, a two-layer and a non-causal network, and a network of another class."""
    created = tmp_path_factory.mktemp("balance")
    save_model(uniform_attention_transformer(2, 3), created / "exact.safetensors")
    tokens = DyckTransformerConfig(embedding="tokens", residual=True, mlps=((50,), ()), initial_scale=0.5)
    save_model(DyckTransformer(tokens), created / "tokens.safetensors")
    save_model(DyckTransformer(DyckTransformerConfig(causal=False)), created / "ahead.safetensors")
    save_model(Transformer(TransformerConfig(vocab_size=4)), created / "other.safetensors")
    return created


OPTIONS = ("--prefixes", "4", "--far", "60")


def test_output_is_printed_as_text(folder: Path, run_command: Run) -> None:
    code, out, _ = run_command("balance", "--checkpoint", folder / "exact.safetensors", *OPTIONS)
    assert code == 0
    assert "accuracy from 28 to 60 brackets" in out
    assert "100.0%" in out
    assert "stack-like attention, layer 2" in out
    assert "balance violation" in out


def test_output_is_printed_as_json(folder: Path, run_command: Run) -> None:
    code, out, _ = run_command("balance", "--checkpoint", folder / "exact.safetensors", "--json", *OPTIONS)
    found = json.loads(out)
    assert code == 0
    assert found["accuracy"] == found["accuracy_far"] == found["accuracy_uniform_attention"] == 1.0
    assert found["balance_violation"] < 1e-9
    code, out, _ = run_command("balance", "--checkpoint", folder / "tokens.safetensors", "--json", *OPTIONS)
    found = json.loads(out)
    assert code == 0
    assert found["balance_violation"] is None
    assert "the input of its last layer depends on more" in found["no_balance"]
    assert found["accuracy_far"] < 1


def test_invalid_input_prints_a_one_line_error(folder: Path, run_command: Run) -> None:
    options = " ".join(OPTIONS)
    cases = [
        ("other.safetensors", "it contains the network 'transformer', not a DyckTransformer"),
        ("ahead.safetensors", "the network is not causal"),
        ("none.safetensors", "path="),
        ("exact.safetensors --length 0", "length=0"),
        ("exact.safetensors --length 60", "far=60: use at least 61"),
        ("exact.safetensors --prefixes -3", "prefixes=-3"),
    ]
    commands = [(f"balance {options} --checkpoint {folder / words}", message) for words, message in cases]
    assert commands_without_expected_error(commands, run_command) == []
