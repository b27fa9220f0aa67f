"""Decoders that are read without transformers have the distributions, tokens and settings of transformers."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from models.test_decoder_pass import SIZES, evaluate_schedule
from models.tiny_pretrained import TEXT, random_model, save_tiny, tiny_tokenizer
from refusals import expect_error
from trialogue import load_pretrained
from trialogue.models.decoders.checkpoint import DecoderCheckpoint
from trialogue.models.decoders.config import ARCHITECTURES, read_config
from trialogue.models.decoders.network import DecoderNetwork
from trialogue.models.decoders.tokenizer_file import TokenizerFile
from trialogue.models.hub.pretrained import PretrainedOracle

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
    "rope_theta": 1000.0,
}
TRUNCATION = {"max_length": 3, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama, tied": ("llama", {"tie_word_embeddings": True}),
    "llama, one key per head": ("llama", {"num_key_value_heads": 4}),
    "llama, biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, linear positions": ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0}}),
    "llama, long positions": ("llama", {"rope_parameters": LLAMA3}),
    "mistral": ("mistral", {"sliding_window": None}),
    "qwen2": ("qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("qwen3", {"attention_bias": True}),
}


def save_kind(folder: Path, kind: str) -> Path:
    architecture, settings = KINDS[kind]
    config = transformers.AutoConfig.for_model(architecture, **SIZES | settings)

    def build() -> Any:
        model = transformers.AutoModelForCausalLM.from_config(config)
        for name, parameter in model.named_parameters():
            if name.endswith(("bias", "norm.weight")):
                torch.nn.init.uniform_(parameter, 0.5, 1.5)
        return model

    random_model(build, 0).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def load_both(
    folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any
) -> tuple[PretrainedOracle, PretrainedOracle]:
    """Return the oracle of a folder without and with transformers."""
    ours = load_pretrained(folder, device="cpu", **settings)
    assert isinstance(ours.model, DecoderNetwork)
    with monkeypatch.context() as patch:
        patch.setattr(DecoderCheckpoint, "open", lambda *_: None)
        theirs = load_pretrained(folder, device="cpu", **settings)
    assert isinstance(theirs.model, transformers.PreTrainedModel)
    return ours, theirs


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("weights", ["float32", "bfloat16"])
def test_distributions_equal_those_of_transformers(tmp_path, monkeypatch, kind, weights):
    ours, theirs = load_both(save_kind(tmp_path, kind), monkeypatch, weights=weights)
    assert (ours.weights, ours.window, ours.max_length) == (theirs.weights, theirs.window, theirs.max_length)
    for found, expected in zip(
        evaluate_schedule(ours, (0, 2)), evaluate_schedule(theirs, (0, 2)), strict=True
    ):
        assert torch.equal(found, expected)
    tokens = (torch.arange(2 * 40).view(2, 40) * 7 + 5) % SIZES["vocab_size"]
    with torch.inference_mode():
        found, expected = (
            oracle.model(input_ids=tokens, use_cache=False).logits for oracle in (ours, theirs)
        )
    assert torch.equal(found, expected)


def test_cached_passes_of_the_network_are_correct(tmp_path):
    oracle = load_pretrained(save_kind(tmp_path, "qwen3"), device="cpu")
    expected = evaluate_schedule(oracle, (0, 2))
    assert oracle.decoder is not None
    oracle.decoder = None
    for found, other in zip(evaluate_schedule(oracle, (0, 2)), expected, strict=True):
        assert torch.allclose(found, other, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_in_half_precision_are_converted(tmp_path, monkeypatch, dtype):
    save_kind(tmp_path, "llama, tied")
    file = tmp_path / "model.safetensors"
    save_file({name: tensor.to(dtype) for name, tensor in load_file(file).items()}, file, {"format": "pt"})
    ours, theirs = load_both(tmp_path, monkeypatch)
    assert torch.equal(evaluate_schedule(ours)[0], evaluate_schedule(theirs)[0])


def test_several_files_of_weights(tmp_path, monkeypatch):
    save_kind(tmp_path, "llama")
    transformers.AutoModelForCausalLM.from_pretrained(tmp_path).save_pretrained(
        tmp_path, max_shard_size="100KB"
    )
    (tmp_path / "model.safetensors").unlink()
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    ours, theirs = load_both(tmp_path, monkeypatch)
    assert torch.equal(evaluate_schedule(ours)[0], evaluate_schedule(theirs)[0])


def edit_json(file: Path, **entries: Any) -> None:
    stated = json.loads(file.read_text()) if file.exists() else {}
    kept = {name: value for name, value in (stated | entries).items() if value != "absent"}
    file.write_text(json.dumps(kept))


def test_missing_entries_have_the_defaults_of_transformers(tmp_path):
    for architecture in ARCHITECTURES:
        folder = tmp_path / architecture
        folder.mkdir()
        edit_json(
            folder / "config.json",
            **{name: value for name, value in SIZES.items() if name != "head_dim" or architecture == "qwen3"},
            model_type=architecture,
            architectures=[ARCHITECTURES[architecture].model_class],
            hidden_act="silu",
            rms_norm_eps=1e-5,
            rope_theta=500.0,
            **({"sliding_window": None} if architecture == "mistral" else {}),
        )
        ours, theirs = read_config(folder), transformers.AutoConfig.from_pretrained(folder)
        assert ours is not None
        for name in ("head_dim", "num_key_value_heads", "tie_word_embeddings", "rms_norm_eps"):
            assert getattr(ours, name) == getattr(theirs, name, SIZES["head_dim"])
        assert ours.rope == theirs.rope_parameters
        model = transformers.AutoModelForCausalLM.from_config(theirs)
        assert {name: part.shape for name, part in DecoderNetwork(ours, None).named_parameters()} == {
            name: part.shape for name, part in model.named_parameters()
        } | {"lm_head.weight": model.lm_head.weight.shape}


UNSUPPORTED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "unknown entry": ("llama", "config.json", {"logit_scale": 2.0}),
    "quantised": ("llama", "config.json", {"quantization_config": {"quant_method": "gptq", "bits": 4}}),
    "own code": ("llama", "config.json", {"auto_map": {"AutoModelForCausalLM": "model.Model"}}),
    "other class": ("llama", "config.json", {"architectures": ["LlamaForSequenceClassification"]}),
    "other architecture": ("llama", "config.json", {"model_type": "gpt2"}),
    "activation": ("llama", "config.json", {"hidden_act": "gelu"}),
    "dynamic positions": (
        "llama",
        "config.json",
        {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}},
    ),
    "older dynamic positions": (
        "llama",
        "config.json",
        {"rope_parameters": "absent", "rope_theta": 1e4, "rope_scaling": {"type": "dynamic", "factor": 2.0}},
    ),
    "part of a head": (
        "llama",
        "config.json",
        {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}},
    ),
    "no base": ("llama", "config.json", {"rope_parameters": "absent"}),
    "text as a size": ("llama", "config.json", {"hidden_size": "64"}),
    "window": ("mistral", "config.json", {"sliding_window": 8}),
    "window by default": ("mistral", "config.json", {"sliding_window": "absent"}),
    "window of some layers": ("qwen2", "config.json", {"use_sliding_window": True}),
    "kinds of layers": ("qwen3", "config.json", {"layer_types": ["full_attention", "sliding_attention"]}),
    "no generation config": ("llama", "generation_config.json", {"eos_token_id": None}),
    "generation": ("llama", "generation_config.json", {"watermarking_config": {}}),
}


@pytest.mark.parametrize("case", list(UNSUPPORTED))
def test_unusual_models_require_transformers(tmp_path, case):
    kind, file, entries = UNSUPPORTED[case]
    save_kind(tmp_path, kind)
    assert DecoderCheckpoint.open(tmp_path) is not None
    edit_json(tmp_path / file, **entries)
    if case == "no generation config":
        (tmp_path / file).unlink()
    assert DecoderCheckpoint.open(tmp_path) is None


def test_other_models_are_loaded_with_transformers(tmp_path):
    folder = save_kind(tmp_path / "model", "llama")
    for settings in ({"packed": False}, {"dtype": "float64"}, {"dtype": "auto"}):
        oracle = load_pretrained(folder, device="cpu", **settings)
        assert isinstance(oracle.model, transformers.LlamaForCausalLM)
    edit_json(
        folder / "config.json", rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
    )
    assert isinstance(load_pretrained(folder, device="cpu").model, transformers.LlamaForCausalLM)


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors: tensors.pop("model.norm.weight"),
        lambda tensors: tensors.update({"model.norm.weight": torch.ones(3)}),
        lambda tensors: tensors.update({"model.norm.weight": torch.ones(64, dtype=torch.int64)}),
        lambda tensors: tensors.update({"model.norm.bias": torch.ones(64)}),
    ],
)
def test_weights_that_do_not_fit_are_left_to_transformers(tmp_path, change: Callable[[Any], Any]):
    save_kind(tmp_path, "llama")
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file, {"format": "pt"})
    checkpoint = DecoderCheckpoint.open(tmp_path)
    assert checkpoint is not None
    assert checkpoint.load() is None


def test_missing_weight_is_reported(tmp_path):
    save_kind(tmp_path, "llama")
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, file, {"format": "pt"})
    expect_error(
        r"its checkpoint lacks model\.layers\.1\.mlp\.up_proj", load_pretrained, tmp_path, device="cpu"
    )


@pytest.mark.parametrize(
    "stated",
    [
        {},
        {"eos_token_id": [2, 7], "do_sample": True, "temperature": 0.6, "top_p": 0.9},
        {"eos_token_id": 5, "use_cache": False, "repetition_penalty": 1.1, "max_length": 20},
    ],
)
def test_generation_settings_equal_those_of_transformers(tmp_path, monkeypatch, stated):
    save_kind(tmp_path, "llama")
    edit_json(tmp_path / "generation_config.json", **stated)
    ours, theirs = load_both(tmp_path, monkeypatch)
    assert ours.generation_config == theirs.generation_config
    assert (ours.eos, ours.other_ends, ours.empty_prompt) == (
        theirs.eos,
        theirs.other_ends,
        theirs.empty_prompt,
    )


def open_tokenizer(folder: Path, architecture: str = "llama") -> TokenizerFile | None:
    return TokenizerFile.open(
        folder, architecture, lambda: transformers.AutoTokenizer.from_pretrained(folder)
    )


def test_tokens_equal_those_of_transformers(tmp_path, monkeypatch):
    ours, theirs = load_both(save_kind(tmp_path, "llama"), monkeypatch)
    assert isinstance(open_tokenizer(tmp_path), TokenizerFile)
    ours, theirs = ours.tokenization, theirs.tokenization
    for text in (*TEXT, "", "<s>user: 12</s>", "  \n\t"):
        assert ours.encode(text) == theirs.encode(text)
        assert ours.encode_completion(text) == theirs.encode_completion(text)
    assert (ours.bos, ours.eos, ours.special) == (theirs.bos, theirs.eos, theirs.special)
    assert ours.token_bytes == theirs.token_bytes
    assert ours.chat("hello") == theirs.chat("hello")
    assert len(ours.resize(310).token_bytes) == 310


@pytest.mark.parametrize(
    ("file", "entries"),
    [
        ("tokenizer_config.json", {"tokenizer_class": "LlamaTokenizer"}),
        ("tokenizer_config.json", {"add_bos_token": True}),
        ("tokenizer_config.json", {"extra_special_tokens": ["<extra>"]}),
        ("tokenizer_config.json", {"bos_token": "the"}),
        ("tokenizer_config.json", {"added_tokens_decoder": {}}),
        ("special_tokens_map.json", {"bos_token": "</s>"}),
        ("tokenizer.json", {"truncation": TRUNCATION}),
        ("tokenizer.json", {"model": "absent"}),
    ],
)
def test_unusual_tokenizers_require_transformers(tmp_path, file, entries):
    tiny_tokenizer().save_pretrained(tmp_path)
    assert open_tokenizer(tmp_path) is not None
    assert open_tokenizer(tmp_path, "qwen2") is None
    edit_json(tmp_path / file, **entries)
    assert open_tokenizer(tmp_path) is None


def test_added_tokens_may_be_repeated(tmp_path):
    tiny_tokenizer().save_pretrained(tmp_path)
    added = json.loads((tmp_path / "tokenizer.json").read_text())["added_tokens"]
    decoder = {token.pop("id"): token for token in added}
    edit_json(tmp_path / "tokenizer_config.json", added_tokens_decoder=decoder)
    edit_json(tmp_path / "special_tokens_map.json", bos_token="<s>")
    assert open_tokenizer(tmp_path) is not None


def test_command_does_not_import_transformers(tmp_path):
    folder = save_tiny(tmp_path / "model")
    command = ["generate", "--model", str(folder), "--prompt", "a", "--choice", "b", "cd"]
    script = (
        "import sys; from trialogue.cli import main; code = main(sys.argv[1:]); "
        "sys.exit(code or [name for name in ('transformers', 'torch._dynamo') if name in sys.modules] or None)"
    )
    subprocess.run([sys.executable, "-c", script, *command], check=True, capture_output=True, text=True)
