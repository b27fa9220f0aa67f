"""Tests of `trialogue balance`: output for bracket networks, and one-line errors for invalid input."""

import json
from pathlib import Path

import pytest

from trialogue import cli
from trialogue.models import Transformer, TransformerConfig
from trialogue.training import save_model
from trialogue_lab.models.dyck_transformer import (
    DyckTransformer,
    DyckTransformerConfig,
    uniform_attention_transformer,
)


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


def run(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    capfd.readouterr()
    code = cli.main(["balance", "--prefixes", "4", "--far", "60", "--checkpoint", *map(str, words)])
    return code, *capfd.readouterr()


def test_output_is_printed_as_text(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, folder / "exact.safetensors")
    assert code == 0
    assert "accuracy from 28 to 60 brackets" in out
    assert "100.0%" in out
    assert "stack-like attention, layer 2" in out
    assert "balance violation" in out


def test_output_is_printed_as_json(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, folder / "exact.safetensors", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["accuracy"] == found["accuracy_far"] == found["accuracy_uniform_attention"] == 1.0
    assert found["balance_violation"] < 1e-9
    code, out, _ = run(capfd, folder / "tokens.safetensors", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["balance_violation"] is None
    assert "the input of its last layer depends on more" in found["no_balance"]
    assert found["accuracy_far"] < 1


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("other.safetensors",), "it contains the network 'transformer', not a DyckTransformer"),
        (("ahead.safetensors",), "the network is not causal"),
        (("none.safetensors",), "path="),
        (("exact.safetensors", "--length", "0"), "length=0"),
        (("exact.safetensors", "--length", "60"), "far=60: use at least 61"),
        (("exact.safetensors", "--prefixes", "-3"), "prefixes=-3"),
    ],
)
def test_invalid_input_prints_a_one_line_error(
    folder: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], line: str
) -> None:
    code, out, err = run(capfd, folder / words[0], *words[1:])
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert line in err
