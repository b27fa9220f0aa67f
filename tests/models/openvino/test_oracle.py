"""Models that OpenVINO evaluates, compared with the same weights in float32."""

from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from torch import Tensor

from models.tiny_gguf import write_gguf
from models.tiny_pretrained import tiny_model, tiny_tokenizer
from refusals import calls_without_expected_error
from trialogue.models.hub.opening import open_pretrained
from trialogue.models.hub.pretrained import load_pretrained
from trialogue.oracles import next_log_probs
from trialogue.oracles.prefix_features import prefix_features
from trialogue.samplers import SAMPLERS, generate
from trialogue.testing import check_oracle
from trialogue.verifiers import RandomVerifier, Threshold

pytest.importorskip("openvino")

MIXED = {"token_embd": Kind.Q8_0, "ffn_down": Kind.Q5_0, "attn_v": Kind.F16, "attn_output": Kind.Q4_0}
FILES: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama-mixed": {"kinds": MIXED},
    "llama-untied": {"kinds": {"output.weight": Kind.Q8_0, "ffn_up": Kind.Q5_1}, "tied": False},
    "qwen2": {"architecture": "qwen2"},
}
GENTLE = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 16, "vocab_size": 300}
"""Sizes of a model whose layers have groups of 32 weights."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("folder")
    tiny_model(scale=15.0, **GENTLE).save_pretrained(path)
    tiny_tokenizer().save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def oracle(folder):
    return open_pretrained(f"openvino:{folder}").load()


@pytest.fixture(scope="module")
def expected(folder):
    return load_pretrained(folder, device="cpu")


def distributions(oracle: Any) -> Tensor:
    draw = torch.arange(8 * 9).view(8, 9) * 37 % 250
    with torch.inference_mode():
        return next_log_probs(oracle, draw, torch.tensor([1, 2, 3, 5, 7, 8, 9, 9])).exp()


def distance(first: Any, second: Any) -> float:
    return float((distributions(first) - distributions(second)).abs().sum(1).max() / 2)


@pytest.mark.parametrize("name", FILES)
def test_a_gguf_file_has_the_distributions_of_its_weights_in_float32(name, tmp_path):
    write_gguf(tmp_path / "model.gguf", **FILES[name])
    loaded = open_pretrained(f"openvino:{tmp_path / 'model.gguf'}").load()
    assert "4-bit codes of Q4_1" in loaded.weights
    assert ("float32 of Q5_1" in loaded.weights) == (name == "llama-untied")
    assert distance(loaded, load_pretrained(tmp_path / "model.gguf", device="cpu")) < 1e-3


def test_the_oracle_satisfies_the_contract(oracle):
    check_oracle(oracle, steps=20, seeds=(0,))
    check_oracle(oracle, capacity=70, steps=20, seeds=(1,))


def test_rows_longer_than_a_block_equal_float32(oracle, expected):
    tokens = torch.arange(3 * 100).view(3, 100) * 7 % 290
    lengths, rows = torch.tensor([100, 33, 64]), torch.arange(3)
    with torch.inference_mode():
        found = []
        for model in (oracle, expected):
            context = model.open(3, 100)
            context.features(tokens, torch.zeros_like(lengths), lengths - 3, rows)
            context.copy(torch.tensor([0, 0]), torch.tensor([1, 2]), 0, 90)
            child = context.fork(torch.tensor([2, 1, 0]), 100)
            copied = tokens[:1].expand(3, -1)
            found.append(
                child.log_probs(
                    child.features(copied, torch.full((3,), 91), torch.tensor([95, 97, 99]), rows)
                )
            )
            found.append(
                context.log_probs(
                    context.features(copied, torch.tensor([98, 60, 91]), lengths.clamp_min(91), rows)
                )
            )
    for ours, theirs in zip(found[:2], found[2:], strict=True):
        assert (ours - theirs).abs().max() < 1e-4


def test_a_rewound_row_does_not_depend_on_removed_tokens(oracle):
    tokens, one = torch.arange(3, 43)[None], torch.tensor([0])
    found = []
    with torch.inference_mode():
        for removed in (12, 40):
            context = oracle.open(1, 40)
            context.features(tokens, one, one + removed, one)
            changed = tokens.clone()
            changed[:, 8:] += 100
            found.append(context.log_probs(context.features(changed, one + 9, one + 12, one)))
    assert torch.allclose(*found, rtol=0, atol=1e-6)


def test_uncached_positions_are_an_error(oracle):
    context, one = oracle.open(1, 100), torch.tensor([0])
    with pytest.raises(ValueError, match="not cached"):
        context.features(torch.ones(1, 100, dtype=torch.int64), one + 70, one + 71, one)


def test_hidden_states_equal_float32(oracle, expected):
    sequences, lengths, layers = [list(range(3, 30)), list(range(5, 12))], [[1, 4, 27], [7]], (0, 1, -1)
    found = []
    with torch.inference_mode():
        for model in (oracle, expected):
            for part in prefix_features(model, sequences, lengths, layers):
                found.append([part.context.hidden(part.features, layer) for layer in layers])
    for ours, theirs in zip(*found, strict=True):
        assert ours.shape == (4, 64)
        assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_return_the_samples_of_float32(name, oracle, expected):
    settings = {
        "block-best-of-n": {"block_tokens": 2},
        "block-value-guided": {"block_tokens": 2},
        "power-metropolis": {"num_steps": 2},
        "stationary-value-guided": {"steps": 4},
    }
    sampler = SAMPLERS[name](**settings.get(name, {}))
    found = [
        generate(
            model,
            [[5, 9, 30, 4], [7, 8]],
            sampler=sampler,
            verifier=Threshold(RandomVerifier(1), 0.3),
            max_new_tokens=3 if name == "stationary-value-guided" else 6,
            seed=3,
        )
        for model in (oracle, expected)
    ]
    ours, theirs = ([(sample.tokens, sample.log_weight) for sample in samples] for samples in found)
    assert [tokens for tokens, _ in ours] == [tokens for tokens, _ in theirs]
    assert np.allclose(*([weight for _, weight in samples] for samples in (ours, theirs)), atol=1e-4)


def test_formats_of_a_folder(folder, expected, tmp_path):
    distances = {}
    for weights in ("float32", "int8", "int4", "auto"):
        loaded = open_pretrained(f"openvino:{folder}").load(weights=weights)
        assert loaded.weights.startswith(weights if weights != "auto" else "int")
        distances[weights] = distance(loaded, expected)
    assert distances["float32"] < 1e-4 < distances["int8"] < distances["int4"] < 0.3
    assert distances["auto"] in (distances["int8"], distances["int4"])


def test_auto_recovers_the_codes_of_dequantised_weights(tmp_path):
    write_gguf(tmp_path / "model.gguf", {"token_embd": Kind.Q8_0})
    exact = load_pretrained(tmp_path / "model.gguf", device="cpu", packed=False)
    exact.model.save_pretrained(tmp_path / "folder")
    exact.tokenization.tokenizer.save_pretrained(tmp_path / "folder")
    loaded = open_pretrained(f"openvino:{tmp_path / 'folder'}").load(weights="auto")
    assert set(loaded.weights.split(" (")) >= {"4-bit codes"}
    assert "8-bit codes" in loaded.weights
    assert distance(loaded, exact) < 1e-3


def test_unsupported_models_and_settings_are_reported(folder, tmp_path):
    write_gguf(tmp_path / "gemma.gguf", architecture="gemma3")
    tiny_model(rope_scaling={"rope_type": "dynamic", "factor": 2.0}).save_pretrained(tmp_path / "dynamic")
    tiny_tokenizer().save_pretrained(tmp_path / "dynamic")

    def load(name: Any, opening: dict[str, Any] | None = None, **loading: Any) -> Any:
        return open_pretrained(f"openvino:{name}", **(opening or {})).load(**loading)

    cases = [
        ("Gemma3DecoderLayer", lambda: load(tmp_path / "gemma.gguf")),
        ("rotary embedding .dynamic.", lambda: load(tmp_path / "dynamic")),
        ("weights.*bfloat16.*auto, float32, int8, int4", lambda: load(folder, weights="bfloat16")),
        ("recompute", lambda: load(folder, recompute=True)),
        ("device.*cuda", lambda: load(folder, {"device": "cuda"})),
        ("dtype.*bfloat16", lambda: load(folder, {"dtype": "bfloat16"})),
        ("capacity", lambda: load(folder).open(1, 1000)),
        ("layers.*5", lambda: load(folder).open(1, 10, (5,))),
    ]
    assert not calls_without_expected_error(cases)
