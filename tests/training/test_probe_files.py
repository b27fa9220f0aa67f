"""Test that probe files are restored, are checked against the model, and have a card with metrics."""

from dataclasses import replace

import pytest
import torch

from models.tiny_pretrained import tiny_model, tiny_oracle, tiny_tokenizer
from refusals import expect_error
from training.planted_signal import marked_texts
from trialogue.errors import InputError
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.models.networks.probe import hidden_states
from trialogue.models.networks.saved import save_model
from trialogue.models.networks.transformer import Transformer, TransformerConfig
from trialogue.samplers import Ancestral, generate
from trialogue.training.probes.probe_files import card, load_probe, save_probe
from trialogue.training.probes.probe_training import ProbeTrainingConfig, train_verifier

ORACLE = tiny_oracle(1)


@pytest.fixture(scope="module")
def file():
    config = ProbeTrainingConfig(layers=(1, -1), depths=(2, 1), threshold="youden", hidden=8, epochs=20)
    return train_verifier(ORACLE, marked_texts(120), config, name="marked.jsonl")


def test_saved_probe_is_restored(file, tmp_path):
    save_probe(file, tmp_path / "probe.safetensors")
    read = load_probe(tmp_path / "probe.safetensors")
    weights = [own.probe.state_dict() for own in (file, read)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert replace(read, probe=file.probe) == file
    assert sorted(path.name for path in tmp_path.iterdir()) == ["probe.md", "probe.safetensors"]


@pytest.mark.parametrize("layer", [-1, 1])
def test_verifier_reads_the_stored_layer(file, layer, tmp_path):
    save_probe(replace(file, layer=layer), tmp_path / "probe.safetensors")
    read = load_probe(tmp_path / "probe.safetensors")
    read.check(ORACLE)
    prompts = [ORACLE.tokenization.encode("the cat")] * 60
    samples = generate(
        ORACLE, prompts, sampler=Ancestral(), verifier=read.verifier(), max_new_tokens=4, seed=2
    )
    states = hidden_states(ORACLE, samples.tokens, samples.lengths, (layer,))[:, 0]
    probability = read.probe.probability(states)
    sure = (probability - read.threshold).abs() > 1e-3
    assert torch.equal(samples.accepted[sure], (probability >= read.threshold)[sure])
    strict = generate(
        ORACLE, prompts, sampler=Ancestral(), verifier=read.verifier(1.0), max_new_tokens=4, seed=2
    )
    assert not strict.accepted[probability < 0.99].any()


def test_probe_of_another_model_is_rejected(file):
    wide = PretrainedOracle(tiny_model(hidden_size=32), tiny_tokenizer(), name="wide")
    caught = expect_error("probe='tiny': it was trained on 'tiny' and does not fit", file.check, wide)
    assert "probe width=16" in str(caught)
    expect_error("layers=7", replace(file, layer=7).check, ORACLE)
    prompts = [wide.tokenization.encode("the cat")]
    with pytest.raises(InputError, match="hidden states here have width 32"):
        generate(wide, prompts, sampler=Ancestral(), verifier=file.verifier(), max_new_tokens=2)


def test_card_contains_the_metrics(file, tmp_path):
    text = save_probe(file, tmp_path / "probe.safetensors").read_text(encoding="utf-8")
    numbers, first = file.numbers, file.grid[0]
    assert f"| AUROC | {numbers.auroc:.4f} |" in text
    assert f"({numbers.detections.events} of {numbers.detections.total};" in text
    assert f"below {file.threshold:.4g}." in text
    assert (
        f"| {first.layer} | {first.depth} | {first.epoch} | {first.log_loss:.4f} | {first.accuracy:.4f} |"
        in text
    )
    for settings, words in (
        ({"threshold": None, "false_rejections": 0.05}, "expected to reject at most 5.00%"),
        ({"threshold": 0.3}, "set by the user"),
    ):
        assert words in card(replace(file, settings=settings), "probe.safetensors")


def test_file_that_is_not_a_probe_is_rejected(file, tmp_path):
    path = tmp_path / "probe.safetensors"
    expect_error("no such file", load_probe, path)
    path.write_bytes(b"pickle")
    expect_error("create it again with `trialogue probe`", load_probe, path)
    save_model(Transformer(TransformerConfig(vocab_size=3)), path)
    expect_error("not a file of kind 'trialogue probe 1'", load_probe, path)
    save_probe(file, path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b'\\"width\\": 16', b'\\"width\\": 17'))
    expect_error("do not agree", load_probe, path)
