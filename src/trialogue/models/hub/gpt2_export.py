"""Export of a trained `Transformer` as a GPT-2 checkpoint of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import safetensors.torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.networks.transformer import Transformer
from trialogue.storage import atomic_write, make_folder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_END = "<|endoftext|>"
_NORMS = {"attention_norm": "ln_1", "mlp_norm": "ln_2"}
_LINEAR = {"qkv": "attn.c_attn", "projection": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj"}
"""Names of GPT-2 for the layers of a block."""


def save_gpt2(model: Transformer, tokens: Sequence[str] | Tokenizer, folder: str | PathLike[str]) -> Path:
    """Write a causal transformer and a tokenizer as a GPT-2 checkpoint, which transformers and `inspect` can load.

    The checkpoint has the same next-token probabilities as the network. Its token `model.eos` is EOS, and also BOS,
    which the tokenizer adds before each text.

    Args:
        model: Causal network with learned positions and without an attention window.
        tokens: Text of each data token, for example "()[]" for the tokens 0 to 3. Or a tokenizer of these tokens and
            of the EOS token, which comes last.
        folder: Folder to write. Existing files of a checkpoint are replaced.

    Returns:
        Path of the folder.

    Raises:
        InputError: If GPT-2 does not have the architecture of the network, if the number of tokens differs from that of
            the network, or if the folder cannot be written.

    Example:
        >>> from trialogue.models import Transformer, TransformerConfig, save_gpt2
        >>> save_gpt2(Transformer(TransformerConfig(vocab_size=2)), "ab", "ab-model")  # doctest: +SKIP
    """
    from transformers import GPT2Config, PreTrainedTokenizerFast

    config = model.config
    for field, value in (("causal", True), ("positions", "learned"), ("attention_window", None)):
        if getattr(config, field) != value:
            raise InputError(field, getattr(config, field), f"GPT-2 has only {field}={value!r}")
    tokenizer = make_tokenizer(tokens, model)
    end = str(tokenizer.id_to_token(model.eos))
    where, length = make_folder(Path(folder)), config.max_length + 1
    PreTrainedTokenizerFast(
        tokenizer_object=_with_start(tokenizer, end, model.eos),
        bos_token=end,
        eos_token=end,
        model_max_length=length,
    ).save_pretrained(where)
    atomic_write(
        where / "model.safetensors", safetensors.torch.save(_weights(model, length), {"format": "pt"})
    )
    GPT2Config(
        architectures=["GPT2LMHeadModel"],
        vocab_size=model.vocab_size,
        n_positions=length,
        n_embd=config.width,
        n_layer=config.layers,
        n_head=config.heads,
        n_inner=config.mlp_width,
        scale_attn_weights=config.scaled_attention,
        tie_word_embeddings=False,
        bos_token_id=model.eos,
        eos_token_id=model.eos,
    ).save_pretrained(where)
    return where


def _weights(model: Transformer, length: int) -> dict[str, Tensor]:
    """Return the weights under the names of GPT-2."""
    embedding = model.token_embedding.weight.detach()
    # EOS is never an input of the network, so its embedding is free for BOS.
    weights = {
        "transformer.wte.weight": embedding[[*range(model.eos), model.bos]],
        "transformer.wpe.weight": model.position_embedding.weight[:length],
        "transformer.ln_f.weight": model.final_norm.weight,
        "transformer.ln_f.bias": model.final_norm.bias,
        "lm_head.weight": model.head.weight,
    }
    for number, block in enumerate(model.blocks):
        for name, parameter in block.named_parameters():
            layer, _, kind = name.partition(".")
            # GPT-2 stores the transposed matrices of linear layers.
            stored = parameter.T if layer in _LINEAR and kind == "weight" else parameter
            weights[f"transformer.h.{number}.{(_NORMS | _LINEAR)[layer]}.{kind}"] = stored
    return {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}


def make_tokenizer(tokens: Sequence[str] | Tokenizer, model: Transformer) -> Tokenizer:
    """Return a tokenizer that splits a text into the given tokens, followed by EOS.

    Args:
        tokens: Text of each data token, or a tokenizer of these tokens and of EOS.
        model: Network that reads the tokens.

    Raises:
        InputError: If the number of tokens differs from that of the network.
    """
    tokenizer = _tokenizer(tokens)
    size = tokenizer.get_vocab_size()
    if size != model.vocab_size or tokenizer.id_to_token(model.eos) is None:
        hint = f"the network has {model.vocab_size} tokens including EOS. Give one text per data token"
        raise InputError("tokens", f"{size} tokens including EOS", hint)
    return tokenizer


def _tokenizer(tokens: Sequence[str] | Tokenizer) -> Tokenizer:
    import re

    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    if isinstance(tokens, Tokenizer):
        return Tokenizer.from_str(tokens.to_str())
    tokenizer = Tokenizer(models.WordLevel({text: index for index, text in enumerate((*tokens, _END))}))
    longest_first = sorted(tokens, key=len, reverse=True)
    pattern = Regex("|".join(map(re.escape, longest_first)))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(pattern, behavior="removed", invert=True)
    # Constraints such as regular expressions need the bytes of a token. In visible ASCII, they are those of its text.
    visible = all("!" <= letter <= "~" for text in tokens for letter in text)
    tokenizer.decoder = decoders.ByteLevel() if visible else decoders.Fuse()
    return tokenizer


def _with_start(tokenizer: Tokenizer, end: str, eos: int) -> Tokenizer:
    """Add EOS before each text, because the network reads BOS there."""
    from tokenizers import processors

    tokenizer.post_processor = processors.TemplateProcessing(single=f"{end} $A", special_tokens=[(end, eos)])
    return tokenizer
