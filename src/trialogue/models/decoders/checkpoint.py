"""Folders with a decoder of the Llama family, which are read without transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from trialogue.models.decoders.config import DecoderConfig, read_config
from trialogue.models.decoders.network import DecoderNetwork, GenerationSettings

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_GENERATION = {
    "_from_model_config", "bos_token_id", "do_sample", "eos_token_id", "max_length", "max_new_tokens", "min_p",
    "no_repeat_ngram_size", "num_beams", "output_attentions", "output_hidden_states", "pad_token_id",
    "repetition_penalty", "return_dict_in_generate", "temperature", "top_k", "top_p", "transformers_version",
    "typical_p", "use_cache",
}  # fmt: skip
"""Entries of a generation config that need no conversion."""


class DecoderCheckpoint:
    """Checkpoint of a decoder that needs no transformers.

    Args:
        folder: Folder in the format of Hugging Face.
        config: Configuration of the decoder.
        generation: Entries of the generation config.
    """

    def __init__(self, folder: Path, config: DecoderConfig, generation: dict[str, Any]) -> None:
        self._folder, self.config, self._generation = folder, config, generation

    @classmethod
    def open(cls, folder: Path) -> DecoderCheckpoint | None:
        """Return the checkpoint in a folder, or None if only the package transformers can load it."""
        config = read_config(folder)
        try:
            generation = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if config is None or not isinstance(generation, dict) or generation.keys() - _GENERATION:
            return None
        return cls(folder, config, generation)

    def load(self) -> DecoderNetwork | None:
        """Return the network in float32 on the CPU, or None if the weights do not fit its configuration."""
        network = DecoderNetwork(self.config, GenerationSettings(**self._generation))
        try:
            stored = _read_tensors(self._folder)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError):
            return None
        expected = {name: part.shape for name, part in network.named_parameters()}
        if self.config.tie_word_embeddings:
            del expected["lm_head.weight"]
        if expected != {name: tensor.shape for name, tensor in stored.items()}:
            return None
        if any(tensor.dtype not in _DTYPES for tensor in stored.values()):
            return None
        for name in expected:
            module, _, kind = name.rpartition(".")
            weight = nn.Parameter(stored[name].float(), requires_grad=False)
            setattr(network.get_submodule(module), kind, weight)
        if self.config.tie_word_embeddings:
            network.lm_head.weight = network.model.embed_tokens.weight
        return network.eval()


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    """Return all tensors of the safetensors files in a folder, which are mapped into memory."""
    files = [folder / "model.safetensors"]
    if not files[0].is_file():
        index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
        files = [folder / name for name in sorted(set(index["weight_map"].values()))]
    tensors: dict[str, Tensor] = {}
    for file in files:
        with safe_open(file, "pt") as stored:
            tensors |= {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 - not a mapping
    return tensors
