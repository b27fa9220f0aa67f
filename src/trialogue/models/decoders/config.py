"""Configuration of a decoder of the Llama family, read from the `config.json` of its checkpoint.

`read_config` accepts a configuration only if every entry is known and has a supported value. Other models are evaluated
by transformers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import ConfigDict, TypeAdapter

_COPIED = (
    "model_type",
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "max_position_embeddings",
    "rms_norm_eps",
)
"""Entries that are copied, and that a configuration must state."""
_FIXED: Mapping[str, tuple[Any, ...]] = {
    "hidden_act": ("silu",),
    "is_llama_config": (True, False),
    "rope_interleaved": (False,),
    "use_sliding_window": (False,),
}
"""Supported values of entries for which there is no choice."""
_UNUSED = {
    "_model_name_or_path", "_name_or_path", "attention_dropout", "bos_token_id", "dtype", "eos_token_id",
    "initializer_range", "max_window_layers", "pad_token_id", "pretraining_tp", "torch_dtype", "transformers.js_config",
    "transformers_version", "unk_token_id", "use_cache",
}  # fmt: skip
"""Entries that do not affect the forward pass."""
_ROPE_KEYS = {
    "default": set[str](),
    "linear": {"factor"},
    "llama3": {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
}
"""Parameters of the supported types of rotary embeddings, except the base."""


class _Architecture(NamedTuple):
    """Differences of an architecture from the others.

    Attributes:
        model_class: Name of the model class of transformers.
        options: Further entries that its configuration may contain.
        query_bias: Whether queries, keys and values always have biases.
        head_norms: Whether queries and keys are normalised.
    """

    model_class: str
    options: tuple[str, ...]
    query_bias: bool = False
    head_norms: bool = False


ARCHITECTURES = {
    "llama": _Architecture("LlamaForCausalLM", ("attention_bias", "mlp_bias")),
    "mistral": _Architecture("MistralForCausalLM", ("sliding_window",)),
    "qwen2": _Architecture("Qwen2ForCausalLM", ("sliding_window", "layer_types"), query_bias=True),
    "qwen3": _Architecture(
        "Qwen3ForCausalLM", ("attention_bias", "sliding_window", "layer_types"), head_norms=True
    ),
}
"""Supported architectures, by the `model_type` of their configuration."""


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes and options of a decoder, with the names of transformers.

    Attributes:
        query_bias: Whether queries, keys and values have biases.
        output_bias: Whether the output of the attention has a bias.
        mlp_bias: Whether the layers of the MLP have biases.
        head_norms: Whether queries and keys are normalised per head.
        rope: Type and parameters of the rotary embedding, including `rope_theta`.
    """

    __pydantic_config__ = ConfigDict(strict=True)

    model_type: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    max_position_embeddings: int
    rms_norm_eps: float
    head_dim: int
    tie_word_embeddings: bool
    query_bias: bool
    output_bias: bool
    mlp_bias: bool
    head_norms: bool
    rope: dict[str, str | float]

    @property
    def layer_types(self) -> list[str]:
        """Kind of attention of each layer."""
        return ["full_attention"] * self.num_hidden_layers

    def get_text_config(self, decoder: bool = True) -> Self:
        """Return this configuration, like the method of transformers."""
        del decoder
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return all entries, like the method of transformers."""
        return asdict(self)


_CONFIG = TypeAdapter(DecoderConfig)


def read_config(folder: Path) -> DecoderConfig | None:
    """Return the configuration of the checkpoint in a folder, or None if only the package transformers can load it."""
    try:
        stated = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        architecture = ARCHITECTURES[stated["model_type"]]
        return _parse(stated, architecture)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _parse(stated: dict[str, Any], architecture: _Architecture) -> DecoderConfig | None:
    """Return the configuration of a network.

    Args:
        stated: Entries of the file `config.json`.
        architecture: What the architecture of the file supports.

    Returns:
        The configuration, or None if an entry is unknown or has a value that this package does not support.

    Raises:
        KeyError: If an entry is missing.
    """
    known = {*_COPIED, *_FIXED, *_UNUSED, *architecture.options}
    known |= {
        "architectures",
        "head_dim",
        "rope_parameters",
        "rope_scaling",
        "rope_theta",
        "tie_word_embeddings",
    }
    unknown = stated.keys() - known
    unsupported = [name for name, values in _FIXED.items() if name in stated and stated[name] not in values]
    rope = _parse_rope(stated)
    if unknown or unsupported or rope is None or stated["architectures"] != [architecture.model_class]:
        return None
    if "hidden_act" not in stated or _has_windows(stated):
        return None
    head_dim = stated.get("head_dim")
    if head_dim is None:
        if architecture.head_norms:  # The default of Qwen3 is not the quotient.
            return None
        head_dim = stated["hidden_size"] // stated["num_attention_heads"]
    attention_bias = stated.get("attention_bias", False)
    entries = {
        **{name: stated[name] for name in _COPIED},
        "head_dim": head_dim,
        "tie_word_embeddings": stated.get("tie_word_embeddings", False),
        "query_bias": architecture.query_bias or attention_bias,
        "output_bias": attention_bias,
        "mlp_bias": stated.get("mlp_bias", False),
        "head_norms": architecture.head_norms,
        "rope": rope,
    }
    return _CONFIG.validate_json(json.dumps(entries))


def _has_windows(stated: dict[str, Any]) -> bool:
    """Return whether some layers attend to a window of tokens only, by the entries of a `config.json`."""
    if set(stated.get("layer_types") or ()) - {"full_attention"}:
        return True
    # Mistral has no switch. Its default is a window.
    if stated["model_type"] == "mistral":
        return stated.get("sliding_window", 1) is not None
    return False


def _parse_rope(stated: dict[str, Any]) -> dict[str, Any] | None:
    """Return the type, the base and the parameters of the rotary embedding, or None if they are not supported."""
    scaling = stated.get("rope_scaling")
    if scaling and stated.get("rope_parameters"):
        return None
    found = {"rope_theta": stated.get("rope_theta"), **(scaling or stated.get("rope_parameters") or {})}
    found["rope_type"] = kind = found.get("rope_type", found.pop("type", "default"))
    if found["rope_theta"] is None or found.keys() != {"rope_theta", "rope_type"} | _ROPE_KEYS[kind]:
        return None
    return found
