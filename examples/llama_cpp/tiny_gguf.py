"""Write a small Llama with random weights and a byte-level vocabulary to a GGUF file, for tests without downloads."""

from pathlib import Path

import numpy as np
from gguf import GGUFWriter, TokenType
from tokenizers.pre_tokenizers import ByteLevel

from trialogue.randomness import numpy_generator

WIDTH, HIDDEN, LAYERS, HEADS, SHARED_HEADS, CONTEXT = 32, 64, 2, 4, 2, 64
MERGES = ("t h", "th e", "Ġ the", "c a", "ca t", "Ġ cat", "1 2")
MARKS = ("<unk>", "<s>", "</s>", "<end>")
TEMPLATE = (
    "{% for message in messages %}<s>{{ message['role'] }}: {{ message['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant: {% endif %}"
)


def write_tiny(path: Path, *, seed: int = 0, architecture: str = "llama", eos: int | None = 2) -> Path:
    """Write the model to a file. The vocabulary has `MARKS`, followed by all bytes and the results of `MERGES`."""
    writer = GGUFWriter(path, architecture)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(SHARED_HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    tokens = [*MARKS, *sorted(ByteLevel.alphabet()), *(merge.replace(" ", "") for merge in MERGES)]
    kinds = [TokenType.CONTROL] * len(MARKS) + [TokenType.NORMAL] * (len(tokens) - len(MARKS))
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(list(MERGES))
    writer.add_bos_token_id(1)
    if eos is not None:
        writer.add_eos_token_id(eos)
        writer.add_eot_token_id(3)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    draw = numpy_generator(seed, "tiny GGUF")

    def add(name: str, *shape: int) -> None:
        scale = 1.5 / np.sqrt(shape[-1]) if len(shape) > 1 else 0.0
        values = draw.standard_normal(shape) * scale if scale else np.ones(shape)
        writer.add_tensor(f"{name}.weight", values.astype(np.float32))

    shared = WIDTH // HEADS * SHARED_HEADS
    add("token_embd", len(tokens), WIDTH)
    add("output_norm", WIDTH)
    add("output", len(tokens), WIDTH)
    for layer in range(LAYERS):
        for name, shape in (
            ("attn_norm", (WIDTH,)),
            ("attn_q", (WIDTH, WIDTH)),
            ("attn_k", (shared, WIDTH)),
            ("attn_v", (shared, WIDTH)),
            ("attn_output", (WIDTH, WIDTH)),
            ("ffn_norm", (WIDTH,)),
            ("ffn_gate", (HIDDEN, WIDTH)),
            ("ffn_up", (HIDDEN, WIDTH)),
            ("ffn_down", (WIDTH, HIDDEN)),
        ):
            add(f"blk.{layer}.{name}", *shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
