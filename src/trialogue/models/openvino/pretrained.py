"""Pretrained causal language models that OpenVINO evaluates, with the weights in the codes of their file.

The kind is used by the name `openvino:NAME`, for example `trialogue generate --model openvino:FILE.gguf`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.extras import from_extra
from trialogue.models.caching.cache_check import sliding_windows
from trialogue.models.caching.head_context import require_capacity_and_layers
from trialogue.models.hub.checkpoint_loading import Checkpoint
from trialogue.models.hub.generation_config import end_tokens, recommended_settings
from trialogue.models.hub.memory import require_memory
from trialogue.models.hub.opening import Pretrained, TextModel
from trialogue.models.openvino.compiled import CompiledDecoder
from trialogue.models.openvino.context import OpenVinoContext
from trialogue.models.openvino.decoder import Encode, read_decoder, require_supported, rotary_table
from trialogue.models.openvino.weight_formats import FORMATS, make_encoder, require_format
from trialogue.models.packed.choice import (
    MAX_TOTAL_VARIATION,
    checked_tokens,
    mean_total_variation,
    next_token_distributions,
)
from trialogue.models.packed.gguf_blocks import GgufBlocks
from trialogue.models.packed.linear import load_missing_weights
from trialogue.models.tokenization import Tokenization

_FINDING = "openvino weights"
_BY_BITS = ("int4", "int8", "float32")


class OpenVinoCheckpoint(Pretrained):
    """Pretrained causal language model for OpenVINO, whose weights have not been loaded.

    Args:
        name: Hub id, folder, GGUF file, or short name of a model.
        device: Must be the CPU.
        dtype: Must be "float32" or "auto".
        remote_code: Must be False.

    Raises:
        InputError: If OpenVINO is not installed, if the model cannot be loaded, or if a setting is not supported.
    """

    def __init__(
        self,
        name: str | Path,
        *,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype = "float32",
        remote_code: bool = False,
    ) -> None:
        from_extra("openvino", "openvino")
        if device is not None and torch.device(device).type != "cpu":
            raise InputError("device", str(device), "the kind openvino computes on the CPU. Leave device out")
        if dtype not in ("float32", torch.float32, "auto"):
            raise InputError("dtype", str(dtype), "the kind openvino reads float32. Leave dtype out")
        self._files = Checkpoint("CausalLM", name, device="cpu", dtype="float32", remote_code=remote_code)
        self.tokenization = self._files.tokenization
        self.max_length: int | None = getattr(self._files.text_config, "max_position_embeddings", None)

    def load(self, *, recompute: bool = False, weights: str = "float32") -> OpenVinoOracle:
        """Load the weights.

        The 4-bit and 8-bit codes of a GGUF file are used without rounding in every format. "auto" also recovers such
        codes from float weights. It rounds other weights to the fewest bits that change the next-token distributions by
        at most `MAX_TOTAL_VARIATION`.

        Args:
            recompute: Must be False.
            weights: "float32", "int8" (one scale per output), "int4" (a scale and an offset per group of 32 weights) or
                "auto". "float32" also computes in float32, the others in bfloat16 if the processor has products of it.

        Raises:
            InputError: If the architecture or a setting is not supported, or if memory is insufficient.
        """
        if recompute:
            hint = "the kind openvino always uses its cache. Leave recompute out"
            raise InputError("recompute", recompute, hint)
        require_format(weights)
        model, blocks = self._files.load_without_dequantising()
        require_supported(model, self._files.name)
        findings = self._files.findings(kind="openvino", weights=weights)
        known = findings.get(_FINDING)
        formats = (weights,) if weights != "auto" else (known,) if known in FORMATS[1:] else _BY_BITS
        for rounding in formats:
            encode = make_encoder(rounding, blocks, recover=weights == "auto")
            oracle = OpenVinoOracle(
                model, encode, self.tokenization, self._files, precise=weights == "float32"
            )
            if rounding == formats[-1] or oracle.is_exact or _is_close(oracle, model, blocks):
                break
        findings.keep(_FINDING, rounding)
        return oracle


def _is_close(oracle: OpenVinoOracle, model: Any, blocks: Mapping[nn.Module, GgufBlocks]) -> bool:
    """Return whether the next-token distributions of an oracle are close to those of its model in float32."""
    missing = [layer for layer in blocks if isinstance(layer, nn.Linear) and layer.weight.is_meta]
    size = sum(layer.weight.numel() for layer in missing) * torch.float32.itemsize
    require_memory("weights", "auto", size)
    load_missing_weights(blocks)
    tokens = checked_tokens(model, oracle.tokenization)
    context = oracle.open(1, tokens.shape[1])
    lengths = list(range(1, tokens.shape[1] + 1))
    with torch.inference_mode():
        rounded = context.log_probs(context.prefix_features(tokens, 0, [lengths])).exp()
    distance = mean_total_variation(next_token_distributions(model, tokens), rounded)
    for layer in missing:
        layer.weight = nn.Parameter(layer.weight.to("meta"), requires_grad=False)
    return distance <= MAX_TOTAL_VARIATION


class OpenVinoOracle(TextModel):
    """Causal language model that OpenVINO evaluates, for use with samplers.

    Prefixes are token ids from the tokenizer, without additional tokens. An empty prompt stands for the BOS
    token. The probabilities of all tokens that end a sequence are merged into `eos`.

    Args:
        model: Model of transformers.
        encode: Function that returns the codes of each linear layer.
        tokenization: Tokenization of the model.
        files: Checkpoint of the model.
        precise: Compute in float32, even if the processor has faster products in bfloat16.

    Attributes:
        vocab_size: Number of tokens that have a logit.
        max_length: Maximum number of positions, or None if the configuration sets no limit.
        layers: Number of blocks.
        width: Width of the hidden states.
        window: Sliding-window length that limits the capacity of contexts, or None.
        weights: Formats of the linear layers, with their shares.
        is_exact: Whether no weight of the checkpoint has been rounded.
        generation_config: Generation settings that the publisher of the model recommends.
        head: Function that maps inputs (n, width) of the output head to logits (n, vocab) float32.
        compiled: Compiled decoder.
        embedding: Embeddings (vocab, width) of the tokens.
    """

    prompts_go_on = True
    plain_head = True
    batch_size = 16

    def __init__(
        self, model: Any, encode: Encode, tokenization: Tokenization, files: Checkpoint, *, precise: bool
    ) -> None:
        decoder = read_decoder(model, encode)
        config = model.config.get_text_config(decoder=True)
        self.name, self.files = files.name, files
        self.vocab_size, self.width = decoder.head.codes.codes.shape
        self.layers = len(decoder.blocks)
        self.tokenization = tokenization.resize(self.vocab_size)
        self.empty_prompt = None if tokenization.bos is None else (tokenization.bos,)
        self.eos, self.other_ends = end_tokens(model, tokenization.eos, self.vocab_size)
        self.max_length = getattr(config, "max_position_embeddings", None)
        self.window = sliding_windows(config)[0]
        self.generation_config = recommended_settings(model)
        self.weights, self.is_exact = decoder.describe_formats(), decoder.is_exact()
        self.compiled = CompiledDecoder(decoder, partial(read_decoder, model, encode), precise)
        self.head: Any = self.compiled.logits
        self.embedding = model.get_input_embeddings().weight.detach().float()
        self._rotary, self._rotation = model.base_model.rotary_emb, torch.empty(2, 0, 1)

    def rotation(self, positions: int) -> Tensor:
        """Return cosines and sines (2, n, head size) of the rotary embedding, for at least `positions` positions."""
        if self._rotation.shape[1] < positions:
            self._rotation = rotary_table(self._rotary, 2 * positions)
        return self._rotation

    def describe(self) -> dict[str, str]:
        """Return a description of the model for the records of results.

        Returns:
            The name under "model", the weight formats under "weights", and `Checkpoint.identity` under "files".
        """
        return {"model": self.name, "weights": f"OpenVINO, {self.weights}", "files": self.files.identity}

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> OpenVinoContext:
        """Create a context for `rows` sequences of up to `capacity` tokens.

        Args:
            rows: Number of sequences.
            capacity: Maximum number of tokens per sequence.
            layers: Layers whose hidden states are recorded. Layer i is the residual stream after i blocks, and -1 is
                the input of the output head.

        Raises:
            InputError: If `capacity` exceeds the positions or the sliding window of the model, or if a layer is not in
                -1..layers - 1.
        """
        return OpenVinoContext(self, rows, capacity, require_capacity_and_layers(self, capacity, layers))
