"""Tests of `trialogue memorize`: models that other commands can open, and one-line errors for invalid input."""

import json
from pathlib import Path

import pytest
import torch

from refusals import commands_without_expected_error
from trialogue.data.corpus.corpus import Corpus
from trialogue.models.hub.opening import open_pretrained
from trialogue.models.networks.attention_only import AttentionOnly
from trialogue.randomness import generator
from trialogue.training import load_model
from trialogue_lab.data.ngrams import ngram_distributions

WORDS = [
    "the cat sat on the mat",
    "a dog ran to the hut",
    "the dog sat",
    "a cat ran on",
    "he saw the red hat",
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_command):
    """Run the command in a folder with a text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    order = torch.randint(0, len(WORDS), (600,), generator=generator(0, "words")).tolist()
    Path("text.txt").write_text("".join(WORDS[place] + ".\n" for place in order))
    return run_command


MEMORIZE = ("memorize", "--text", "text.txt", "--vocab-size", "262", "--width", "24", "--heads", "6")


def test_without_out_only_the_plan_is_printed(run):
    code, out, _ = run(*MEMORIZE)
    assert code == 0
    assert "168 features" in out
    assert "no model is built: use --out DIR" in out
    assert not Path("model").exists()


def test_a_stored_text_can_be_generated(run):
    code, out, err = run(*MEMORIZE, "--out", "model", "--json")
    assert (code, "training a tokenizer" in err) == (0, True)
    record = json.loads(out)
    corpus = Corpus.open("text.txt", vocab_size=262, length=3)
    distributions = ngram_distributions(corpus.train.flatten(), 2, 262, record["stored"])
    model = load_model("model/model.safetensors", AttentionOnly)
    assert torch.equal(model.contexts, distributions.contexts)
    targets = distributions.log_probs(0.01)
    answers = model.context_log_probs(distributions.contexts)
    assert record["kl"] == pytest.approx(
        float(distributions.prior @ (targets.exp() * (targets - answers)).sum(1)), abs=1e-9
    )
    assert record["share"] == distributions.share
    assert record["kl"] < 0.1
    assert record["largest_error"] < 1e-6 < record["largest_error_float32"]
    assert abs(record["test_loss"] - record["test_loss_table"]) < 0.1

    generate = ("generate", "--model", "model", "--prompt", "the c", "--n", "4", "--max-new-tokens", "8")
    code, out, err = run(*generate, "--sampler", "masked-decoding", "--verifier", "regex:at[a-z ]*")
    assert code == 0, err
    texts = [json.loads(line)["text"] for line in out.splitlines()]
    assert all(text.startswith("at") for text in texts)
    code, out, err = run(*generate)
    assert code == 0
    assert run(*generate)[1].count('"accepted": true') == out.count('"accepted": true') == 4
    opened = open_pretrained("model").load()
    assert (opened.vocab_size, opened.tokenization.text(opened.tokenization.encode("the mat"))) == (
        262,
        "the mat",
    )


def test_ridge_regression_stores_more_contexts_than_features(run):
    sizes = ("--heads", "2", "--contexts", "40", "--width", "8")
    code, out, _ = run(*MEMORIZE, *sizes, "--out", "model", "--json", "--method", "ridge")
    record = json.loads(out)
    assert code == 0
    assert (record["features"], record["largest_error"]) == (24, None)
    assert record["stored"] == 40


def test_invalid_input_prints_a_one_line_error(run):
    command = " ".join(MEMORIZE)
    cases = [
        ("memorize", "text=None: name the text to memorize"),
        ("memorize --text nothing.txt", "text='nothing.txt': give an existing file or folder"),
        (f"{command} --context 1", "context=1: with one token of context attention is the identity"),
        (f"{command} --contexts 169", "contexts=169: the features have rank 168"),
        (f"{command} --vocab-size 100", "vocab_size=100: use at least 257 for 256 bytes"),
        (f"{command} --head-width 25", "head_width=25: use 1 to width=24"),
        (f"{command} --smoothing 0", "smoothing=0.0"),
        (f"{command} --out nowhere/model", "out='nowhere/model': there is no folder nowhere"),
        (f"{command} --sampler ancestral", "--sampler"),
    ]
    assert commands_without_expected_error(cases, run, alone=False) == []


def test_short_prompts_and_damaged_models_are_rejected(run):
    assert run(*MEMORIZE, "--out", "model")[0] == 0
    code, _, err = run("generate", "--model", "model", "--prompt", "t", "--n", "1", "--max-new-tokens", "2")
    assert code == 2
    assert "the model reads the last 2 tokens" in err
    for option, value in (("--dtype", "bfloat16"), ("--weights", "int8")):
        code, _, err = run("generate", "--model", "model", "--prompt", "the", "--n", "1", option, value)
        assert (code, f"leave {option[2:]} out" in err) == (2, True)
    Path("model/model.safetensors").write_bytes(b"nothing")
    code, _, err = run("generate", "--model", "model", "--prompt", "the", "--n", "1")
    assert code == 2
    assert "write it again with save_model" in err
