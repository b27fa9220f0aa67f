"""`trialogue interaction-order`: losses of models on clones, and errors for invalid input."""

import json
import xml.etree.ElementTree as ElementTree
from functools import partial

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from refusals import commands_without_expected_error
from trialogue.data import Clone, Clones
from trialogue.models import Transformer, TransformerConfig
from trialogue.models.networks.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue.randomness import generator
from trialogue.training import TrainingConfig, packed_token_loss, save_model, train


def batch(step: int, rows: int = 16) -> torch.Tensor:
    """Return sequences in which each token depends on the token two places before it."""
    draw = generator(step, "period")
    tokens = torch.randint(0, 3, (rows, 6), generator=draw)
    for site in range(2, 6):
        same = torch.rand(rows, generator=draw) < 0.9
        tokens[:, site] = torch.where(same, tokens[:, site - 2], tokens[:, site])
    return tokens


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """Return a folder with clones, two training checkpoints, and a network with another vocabulary."""
    folder = tmp_path_factory.mktemp("order")
    own = Tokenizer(models.WordLevel({"a": 0, "b": 1, "c": 2}, unk_token="a"))
    own.pre_tokenizer = pre_tokenizers.Whitespace()
    clones = Clones.create(folder / "clones", own, length=6, vocab_size=3)
    uniform = torch.randint(0, 3, (200, 6), generator=generator(0, "uniform"))
    clones.add(Clone(name="independent", tokens=uniform, max_order=1, r_hat=1.36))
    clones.add(Clone(name="text", tokens=batch(10_000, 200)))
    model = Transformer(
        TransformerConfig(vocab_size=3, layers=2, heads=2, width=16, mlp_width=32, max_length=6)
    )
    save_model(model, folder / "kept" / "step-0.safetensors")
    config = TrainingConfig(steps=150, batch_size=16, learning_rate=1e-2, warmup_steps=10)
    trained = train(model, batch, config, loss=packed_token_loss, progress=False).model
    save_model(trained, folder / "kept" / "step-150.safetensors")
    save_model(Transformer(TransformerConfig(vocab_size=5)), folder / "other.safetensors")
    return folder


@pytest.fixture
def run(run_command):
    return partial(run_command, "interaction-order")


def test_the_checkpoints_of_a_training_are_listed(workspace, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    code, out, err = run("--model", workspace / "kept", "--clones", workspace / "clones")
    assert code == 0
    assert "next token, nats per token" in out
    assert "beyond order 1 at step 150" in out
    assert "these have not mixed" in out
    assert "independent (1.36)" in out
    assert [line.rsplit("/")[-1] for line in err.splitlines()] == [
        "step-0.safetensors",
        "step-150.safetensors",
    ]
    figure = workspace / "clones" / "interaction-order.svg"
    assert str(figure) in out
    assert ElementTree.parse(figure).getroot().tag.endswith("svg")


def test_all_numbers_are_printed_as_json(workspace, run):
    files = [workspace / "kept" / f"step-{step}.safetensors" for step in (150, 0)]
    picture = workspace / "of both.png"
    words = ("--model", *files, "--clones", workspace / "clones", "--rows", 1, "--json", "--figure", picture)
    code, out, _ = run(*words)
    assert code == 0
    message = json.loads(out)
    assert [(one["model"], one["clone"], one["step"]) for one in message["losses"]] == [
        (str(file), clone, step)
        for file, step in zip(files, (150, 0), strict=True)
        for clone in ("independent", "text")
    ]
    assert all(one["error"] is None for one in message["losses"])  # A single row has no standard error.
    assert all(one["per"] == "token" and one["targets"] == 5 for one in message["losses"])
    assert message["readings"][0]["gap"]["error"] is None
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_single_model_is_a_column(workspace, run):
    words = ("--model", workspace / "kept" / "step-0.safetensors", "--clones", workspace / "clones")
    code, out, _ = run(*words)
    assert code == 0
    assert "accuracy" in out
    assert "No clone differs significantly from the text" in out


def test_a_model_with_a_fixed_context_predicts_the_following_tokens(workspace, run):
    shape = {"vocab_size": 3, "width": 4, "heads": 1, "head_width": 2}
    for context in (2, 6):
        save_model(
            AttentionOnly(AttentionOnlyConfig(context=context, **shape)), workspace / f"{context}.safetensors"
        )
    words = ("--clones", workspace / "clones", "--rows", 1, "--json")
    code, out, _ = run("--model", workspace / "2.safetensors", *words)
    assert code == 0
    assert [one["targets"] for one in json.loads(out)["losses"]] == [4, 4]
    code, out, err = run("--model", workspace / "6.safetensors", *words)
    assert (code, out) == (2, "")
    message = (
        "its context of 6 tokens is not shorter than the rows of the clones (6 tokens): "
        "make clones with longer rows, or use a model with a shorter context"
    )
    assert message in err.splitlines()[-1]


BAD: list[tuple[str, str]] = [
    (
        "--model other.safetensors --clones clones",
        "use a model with 3 tokens, like the tokenizer of the clones",
    ),
    ("--model kept --clones nowhere", "give an existing folder, or create one with `trialogue clone`"),
    ("--model clones --clones clones", "neither a model (config.json) nor checkpoints"),
    ("--model kept --clones clones --rows 0", "rows=0"),
    ("--model kept --clones clones --share 0", "share=0.0"),
    ("--model kept --clones clones --threads 0", "threads=0"),
    ("--model kept --clones clones --device abacus", "device='abacus'"),
    ("--model kept --clones clones --figure order.pdf", "ends in .svg or .png"),
    ("--model kept --clones clones --figure no/where.svg", "there is no folder no"),
]


def test_invalid_input_is_reported_in_one_line(workspace, run, monkeypatch):
    monkeypatch.chdir(workspace)
    assert not commands_without_expected_error(BAD, run, alone=False)
