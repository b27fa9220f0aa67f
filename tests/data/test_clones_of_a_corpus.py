"""Test loading, atomic writes and errors of folders of clones."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models

from refusals import expect_error
from trialogue.data import Clone, Clones
from trialogue.tensor_files import write_tensors

TOKENS = torch.tensor([[0, 1, 2], [2, 2, 0]])


def tokenizer(*words: str) -> Tokenizer:
    vocabulary = {word: place for place, word in enumerate((*words, "?"))}
    return Tokenizer(models.WordLevel(vocabulary, unk_token="?"))


def folder_of(path: Path) -> Clones:
    clones = Clones.create(path, tokenizer("a", "b"), length=3, vocab_size=3)
    clones.add(Clone(name="text", tokens=TOKENS))
    clones.add(
        Clone(
            name="layers-2",
            tokens=TOKENS.flip(0),
            source="factored-attention",
            layers=2,
            max_order=3,
            sampler="metropolis",
            gauge="raw",
            bodies=1.0,
            sweeps=20,
            acceptance=0.5,
            effective_sample_size=12.5,
            r_hat=1.01,
        )
    )
    return clones


def test_added_clones_are_loaded(tmp_path):
    folder_of(tmp_path / "out")
    read = Clones(tmp_path / "out")
    assert read.names == ("text", "layers-2")
    assert (read.length, read.vocab_size, len(read)) == (3, 3, 2)
    text, clone = read
    assert torch.equal(text.tokens, TOKENS)
    assert (text.max_order, text.sampler, text.keeps) == (None, None, "all orders")
    assert torch.equal(clone.tokens, TOKENS.flip(0))
    assert (clone.layers, clone.max_order, clone.sweeps, clone.acceptance) == (2, 3, 20, 0.5)
    assert (clone.effective_sample_size, clone.r_hat, clone.keeps) == (12.5, 1.01, "up to order 3")
    assert read.decode(TOKENS[:1]) == ["a b ?"]


def test_clones_are_added_to_an_existing_folder(tmp_path):
    folder_of(tmp_path)
    again = Clones.create(tmp_path, tokenizer("a", "b"), length=3, vocab_size=3)
    again.add(Clone(name="layers-2", tokens=TOKENS, layers=2, max_order=3))
    assert Clones(tmp_path).names == ("text", "layers-2")
    assert torch.equal(Clones(tmp_path)["layers-2"].tokens, TOKENS)


def test_interrupted_writes_leave_no_clone(tmp_path, monkeypatch):
    clones = folder_of(tmp_path)

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("trialogue.data.clones._write_manifest", killed)
    with pytest.raises(KeyboardInterrupt):
        clones.add(Clone(name="layers-4", tokens=TOKENS))
    assert Clones(tmp_path).names == ("text", "layers-2")


def edited(**fields: object) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        manifest = json.loads((folder / "clones.json").read_text())
        (folder / "clones.json").write_text(json.dumps({**manifest, **fields}))

    return edit


def add_clones_of_another_tokenizer(folder: Path) -> None:
    Clones.create(folder / "other", tokenizer("b", "a"), length=3, vocab_size=3).add(
        Clone(name="text", tokens=TOKENS)
    )
    shutil.copy(folder / "other" / "text.safetensors", folder / "text.safetensors")


def outside(folder: Path) -> None:
    entry = {"name": "../text", "file": "../text.safetensors"}
    edited(clones=[entry])(folder)


def with_a_token_beyond(folder: Path) -> None:
    edited(vocab_size=2)(folder)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (shutil.rmtree, "an existing folder"),
        (lambda folder: (folder / "clones.json").unlink(), "no clones.json"),
        (lambda folder: (folder / "clones.json").write_text("{"), "damaged"),
        (edited(format=7), "format 7"),
        (edited(clones=[{"name": "text"}]), "damaged"),
        (outside, "damaged"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "cannot be read"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "another tokenizer"),
        (add_clones_of_another_tokenizer, "another tokenizer"),
        (with_a_token_beyond, "3 tokens below 2"),
        (lambda folder: (folder / "text.safetensors").write_bytes(b"x"), "damaged"),
        (lambda folder: (folder / "text.safetensors").unlink(), "no such file"),
        (
            lambda folder: write_tensors(folder / "text.safetensors", "trialogue network 1", {}, {}),
            "not a file of kind",
        ),
    ],
)
def test_damaged_folders_have_one_line_errors(tmp_path, spoil, message):
    folder_of(tmp_path / "out")
    spoil(tmp_path / "out")
    expect_error(message, lambda: list(Clones(tmp_path / "out")))


def test_clones_of_different_texts_cannot_be_mixed(tmp_path):
    folder_of(tmp_path)
    expect_error("tokenizer", Clones.create, tmp_path, tokenizer("b", "a"), length=3, vocab_size=3)
    expect_error("length 3", Clones.create, tmp_path, tokenizer("a", "b"), length=4, vocab_size=3)
    expect_error("3 tokens below", Clones(tmp_path).add, Clone(name="short", tokens=TOKENS[:, :2]))
    expect_error("text, layers-2", lambda: Clones(tmp_path)["layers-9"])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "../text"),
        ("tokens", torch.zeros(0, 3, dtype=torch.int64)),
        ("tokens", torch.tensor([[-1]])),
        ("layers", 0),
        ("acceptance", 1.5),
        ("r_hat", float("nan")),
        ("bodies", 0.0),
        ("sampler", 1),
    ],
)
def test_invalid_clone_fields_are_rejected(field, value):
    error = expect_error("", Clone, **{"name": "text", "tokens": TOKENS, field: value})
    assert error.field == field
