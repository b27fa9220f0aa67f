"""Models from GGUF files, compared with transformers, and their weight formats."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
import transformers
from gguf import GGMLQuantizationType as Kind
from torch import Tensor

from models.tiny_gguf import digit_tokenizer, write_gguf
from models.tiny_pretrained import next_distribution
from refusals import expect_error
from trialogue.errors import InputError
from trialogue.models.hub import gguf_file
from trialogue.models.hub.gguf_file import GgufFile
from trialogue.models.hub.pretrained import load_pretrained
from trialogue.models.packed.formats import FORMATS, available_formats
from trialogue.models.packed.linear import load_missing_weights

needs_formats = pytest.mark.skipif(
    available_formats() != tuple(FORMATS), reason="this machine does not multiply all formats"
)
MIXED = {"token_embd": Kind.Q8_0, "ffn_down": Kind.Q5_0, "attn_v": Kind.F16, "attn_output": Kind.Q4_0}
FILES: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama-mixed": {"kinds": MIXED},
    "llama-untied": {"kinds": {"output.weight": Kind.Q8_0}, "tied": False},
    "qwen2": {"architecture": "qwen2"},
    "gemma3": {"architecture": "gemma3", "kinds": MIXED},
}


@pytest.fixture(scope="module", params=list(FILES))
def path(request, tmp_path_factory):
    file = tmp_path_factory.mktemp("gguf") / f"{request.param}.gguf"
    write_gguf(file, **FILES[request.param])
    return file


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    file = tmp_path_factory.mktemp("gguf") / "mixed.gguf"
    write_gguf(file, MIXED)
    return file


def load_with_transformers(path: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, dtype=torch.float32
    ).eval()


def load_directly(path: Path) -> Any:
    file = GgufFile(path)
    model, blocks = file.model(file.config())
    load_missing_weights(blocks)
    return model


def distributions(model: Any) -> Tensor:
    with torch.inference_mode():
        return model(input_ids=torch.tensor([[5, 9, 30, 4, 77]])).logits[0].softmax(-1)


def test_weights_equal_transformers(path):
    assert GgufFile(path).is_supported()
    model, expected = load_directly(path), load_with_transformers(path)
    weights = dict(expected.named_parameters())
    assert {name for name, _ in model.named_parameters()} == set(weights)
    for name, weight in model.named_parameters():
        assert torch.equal(weight, weights[name]), name
    assert torch.equal(distributions(model), distributions(expected))


def test_config_and_tokenizer_equal_transformers(path):
    where: dict[str, Any] = {"gguf_file": path.name}
    config = transformers.AutoConfig.from_pretrained(str(path.parent), **where)
    assert GgufFile(path).config().to_dict() == config.to_dict()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(path.parent), **where)
    read = load_pretrained(path, device="cpu").tokenization.tokenizer
    for text in ("if a:\n    b = 12", "<|im_start|>34 56<|im_end|>", "café 東京"):
        assert read(text)["input_ids"] == tokenizer(text)["input_ids"]
    assert read.chat_template == tokenizer.chat_template
    for name in ("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id"):
        assert getattr(read, name) == getattr(tokenizer, name)


@pytest.mark.parametrize("long", [4, 1024])
def test_long_arrays_are_skipped_but_counted(path, long, monkeypatch):
    expected = load_directly(path)
    monkeypatch.setattr(gguf_file, "_LONG_ARRAY", long)
    file = GgufFile(path)
    assert bool(file._fields["tokenizer.ggml.tokens"].data) == (long > 4)
    del file._fields[f"{file._architecture}.vocab_size"]
    assert file.config().vocab_size == len(digit_tokenizer().get_vocab())
    assert torch.equal(distributions(load_directly(path)), distributions(expected))


@needs_formats
@pytest.mark.parametrize(
    ("weights", "descriptions", "max_distance"),
    [
        ("float32", ["float32 of Q4_1 (", "float32 of Q8_0 ("], 1e-3),
        ("bfloat16", ["bfloat16 rounded from Q4_1 ("], 0.1),
        ("int8", ["int8 rounded from Q4_1 (", "int8 rounded from Q8_0 (", "int8 rounded from F16 ("], 0.2),
        (
            "int4",
            [
                "int4 with the codes of Q4_1 (",
                "int4 with the codes of Q4_0 (",
                "int8 rounded from Q5_0 (",
                "int4 rounded from F16 (",
                "int8 rounded from Q8_0 (",
            ],
            0.5,
        ),
    ],
)
def test_mixed_files_keep_distributions_and_report_formats(mixed, weights, descriptions, max_distance):
    oracle = load_pretrained(mixed, device="cpu", weights=weights)
    for words in descriptions:
        assert words in oracle.weights
    with torch.inference_mode():
        expected = load_with_transformers(mixed)(torch.tensor([[5, 9, 30, 4]])).logits[0, -1].softmax(-1)
    assert float((next_distribution(oracle).exp() - expected).abs().sum() / 2) < max_distance


@needs_formats
def test_four_bit_output_embeddings_are_not_converted(tmp_path):
    file = tmp_path / "four.gguf"
    write_gguf(file, unused=-len(digit_tokenizer().get_vocab()) % 16)
    oracle = load_pretrained(file, device="cpu", weights="int4")
    assert oracle.weights.startswith("int4 with the codes of Q4_1 (100%")
    assert " Q4_1 (100%" in load_pretrained(file, device="cpu", weights="auto").weights


def test_other_dtypes_and_unpacked_layers(mixed):
    half = load_pretrained(mixed, device="cpu", dtype="bfloat16")
    assert (half.dtype, half.weights) == (torch.bfloat16, "as stored (100%)")
    plain = load_pretrained(mixed, device="cpu", packed=False)
    assert plain.weights == "as stored (100%)"
    assert torch.equal(distributions(plain.model), distributions(load_with_transformers(mixed)))


def test_unsupported_architectures_use_transformers(mixed, monkeypatch):
    expected = next_distribution(load_pretrained(mixed, device="cpu"))
    monkeypatch.setattr(gguf_file, "_SUPPORTED", set())
    oracle = load_pretrained(mixed, device="cpu")
    assert oracle.weights == "float32 (100%)"
    assert torch.allclose(next_distribution(oracle), expected, atol=1e-5)


def write_unsupported_file(path: Path) -> Path:
    """Write a file with a tensor in a type that llama.cpp uses for intermediate results only."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor(
        "blk.0.attn_q.weight",
        np.zeros((16, gguf.GGML_QUANT_SIZES[Kind.Q8_1][1]), np.uint8),
        raw_dtype=Kind.Q8_1,
    )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_truncated_file(path: Path, share: float) -> Path:
    write_gguf(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    return path


def test_invalid_files_raise_one_line_errors(tmp_path):
    path, cannot = tmp_path / "file.gguf", "cannot be read as GGUF"
    for make, message in (
        (
            write_unsupported_file,
            r"its tensor blk\.0\.attn_q\.weight has the unsupported type Q8_1\. Use a file in Q4_K_M",
        ),
        (lambda path: write_truncated_file(path, 0.9), cannot),
        (lambda path: write_truncated_file(path, 0.05), cannot),
        (lambda path: write_truncated_file(path, 0), cannot),
    ):
        expect_error(message, load_pretrained, make(path), device="cpu", weights="int4")


def test_missing_weight_is_reported(mixed):
    file = GgufFile(mixed)
    del file._tensors["blk.0.attn_q.weight"]
    with pytest.raises(InputError, match=r"its checkpoint lacks model\.layers\.0\.self_attn\.q_proj\.weight"):
        file.model(file.config())
