"""Tiny random model as a GGUF file, with tensors in given types."""

import json
from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from trialogue.randomness import numpy_generator

WIDTH, INNER, BLOCKS, HEADS, KEYS = 64, 96, 2, 4, 2
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = "{% for message in messages %}<|im_start|>{{ message['content'] }}<|im_end|>{% endfor %}"


def digit_tokenizer() -> Tokenizer:
    """Return a byte-level BPE tokenizer that splits numbers into digits."""
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


def write_gguf(
    path: Path,
    kinds: Mapping[str, Kind] | None = None,
    architecture: str = "llama",
    tied: bool = True,
    unused: int = 0,
) -> None:
    """Write the model to `path`.

    Args:
        path: File that is written.
        kinds: Types of tensors by a part of their name, where the first match counts (default: Q4_1).
        architecture: "llama", "qwen2" (with biases of queries, keys and values) or "gemma3" (with additional norms).
        tied: Omit the output embeddings.
        unused: Number of unused tokens that are added at the end of the vocabulary.
    """
    tokenizer = digit_tokenizer()
    tokens = [tokenizer.id_to_token(token) for token in range(tokenizer.get_vocab_size())]
    tokens += [f"<unused{number}>" for number in range(unused)]
    merges = [" ".join(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
    writer = gguf.GGUFWriter(path, architecture)
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
    if architecture == "gemma3":
        writer.add_key_length(WIDTH // HEADS)
        writer.add_sliding_window(32)
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (len(tokens), WIDTH),
        "output_norm.weight": (WIDTH,),
    }
    if not tied:
        shapes["output.weight"] = (len(tokens), WIDTH)
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
        if architecture == "qwen2":
            shapes |= {f"blk.{block}.attn_q.bias": (WIDTH,)}
            shapes |= {f"blk.{block}.attn_{name}.bias": (WIDTH * KEYS // HEADS,) for name in "kv"}
        if architecture == "gemma3":
            shapes |= {
                f"blk.{block}.{name}_norm.weight": (width,)
                for name, width in (
                    ("post_attention", WIDTH),
                    ("post_ffw", WIDTH),
                    ("attn_q", WIDTH // HEADS),
                    ("attn_k", WIDTH // HEADS),
                )
            }
    generator = numpy_generator(0, "tiny gguf")
    for name, shape in shapes.items():
        weight = generator.normal(size=shape).astype(np.float32)
        if len(shape) == 1:
            writer.add_tensor(name, weight)
        else:
            fitting = (kind for part, kind in (kinds or {}).items() if part in name)
            kind = next(fitting, Kind.Q4_1)
            writer.add_tensor(name, gguf.quants.quantize(weight, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
