"""Forward pass of decoders of the Llama family, with the same operations and parameter names as in transformers."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trialogue.models.decoders.config import DecoderConfig


class RmsNorm(nn.Module):
    """Normalisation by the root mean square.

    Args:
        width: Width of the states.
        epsilon: Number that is added to the mean square.
    """

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, device="meta"))
        self.variance_epsilon = epsilon

    def forward(self, states: Tensor) -> Tensor:
        """Normalise states (..., width)."""
        variance = states.pow(2).mean(-1, keepdim=True)
        return self.weight * (states * torch.rsqrt(variance + self.variance_epsilon))


class RotaryEmbedding(nn.Module):
    """Cosines and sines of the rotary position embedding.

    Args:
        config: Configuration of the decoder.
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self._frequencies = inverse_frequencies(config)

    def forward(self, states: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines (n, m, head size) at positions (n, m)."""
        del states
        angles = positions[..., None].float() * self._frequencies
        angles = torch.cat([angles, angles], -1)
        return angles.cos(), angles.sin()


def inverse_frequencies(config: DecoderConfig) -> Tensor:
    """Return the angle (head size / 2,) float32 of the rotary embedding per position."""
    rope: dict[str, Any] = config.rope
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    frequencies = 1.0 / (rope["rope_theta"] ** exponents)
    if rope["rope_type"] == "linear":
        return frequencies / rope["factor"]
    if rope["rope_type"] == "llama3":
        return _stretch_long_waves(frequencies, rope)
    return frequencies


def _stretch_long_waves(frequencies: Tensor, rope: dict[str, Any]) -> Tensor:
    """Divide the frequencies of long waves by a factor, as in Llama 3.1, and interpolate for waves of medium length."""
    factor, low, high = rope["factor"], rope["low_freq_factor"], rope["high_freq_factor"]
    context = rope["original_max_position_embeddings"]
    waves = 2 * math.pi / frequencies
    stretched = torch.where(waves > context / low, frequencies / factor, frequencies)
    share = (context / waves - low) / (high - low)
    between = (1 - share) * stretched / factor + share * stretched
    is_between = ~(waves < context / high) * ~(waves > context / low)
    return torch.where(is_between, between, stretched)


def _linear(inputs: int, outputs: int, bias: bool) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=bias, device="meta")


class Attention(nn.Module):
    """Causal attention, in which several heads may share keys and values.

    Args:
        config: Configuration of the decoder.
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        width, size = config.hidden_size, config.head_dim
        heads, key_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim, self.scaling, self._is_grouped = size, size**-0.5, heads > key_heads
        self.q_proj = _linear(width, heads * size, config.query_bias)
        self.k_proj = _linear(width, key_heads * size, config.query_bias)
        self.v_proj = _linear(width, key_heads * size, config.query_bias)
        self.o_proj = _linear(heads * size, width, config.output_bias)
        self.q_norm = RmsNorm(size, config.rms_norm_eps) if config.head_norms else None
        self.k_norm = RmsNorm(size, config.rms_norm_eps) if config.head_norms else None

    def forward(
        self, states: Tensor, rotation: tuple[Tensor, Tensor], mask: Tensor | None, cache: Any
    ) -> Tensor:
        """Return the output (n, m, width) of the attention.

        Args:
            states: Normalised states (n, m, width).
            rotation: Cosines and sines of the positions.
            mask: Mask (n, 1, m, reach) that is added to the scores. None for causal attention without a cache, or for
                single tokens.
            cache: Cache layer that stores keys and values, or None.
        """
        shape = (*states.shape[:2], -1, self.head_dim)
        query, key, value = (part(states).view(shape) for part in (self.q_proj, self.k_proj, self.v_proj))
        if self.q_norm is not None and self.k_norm is not None:
            query, key = self.q_norm(query), self.k_norm(key)
        query, key = (_rotate(part.transpose(1, 2), *rotation) for part in (query, key))
        value = value.transpose(1, 2)
        if cache is not None:
            key, value = cache.update(key, value)
        attended = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            is_causal=mask is None and query.shape[2] > 1,
            scale=self.scaling,
            enable_gqa=self._is_grouped,
        )
        return self.o_proj(attended.transpose(1, 2).reshape(*states.shape[:2], -1))


def _rotate(states: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Apply the rotary embedding to states (n, heads, m, head size)."""
    first, second = states.chunk(2, -1)
    return states * cosines[:, None] + torch.cat([-second, first], -1) * sines[:, None]


class GatedMlp(nn.Module):
    """Multilayer perceptron with a gate.

    Args:
        config: Configuration of the decoder.
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        width, inner, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.gate_proj = _linear(width, inner, bias)
        self.up_proj = _linear(width, inner, bias)
        self.down_proj = _linear(inner, width, bias)
        self.act_fn = nn.SiLU()

    def forward(self, states: Tensor) -> Tensor:
        """Map states (n, m, width) to the same shape."""
        return self.down_proj(self.act_fn(self.gate_proj(states)) * self.up_proj(states))


class DecoderLayer(nn.Module):
    """Attention and MLP, each after a normalisation.

    Args:
        config: Configuration of the decoder.
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.self_attn, self.mlp = Attention(config), GatedMlp(config)
        self.input_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)

    def forward(
        self, stream: Tensor, rotation: tuple[Tensor, Tensor], mask: Tensor | None, cache: Any
    ) -> Tensor:
        """Return the residual stream (n, m, width) after this layer. The arguments are those of `Attention`."""
        stream = stream + self.self_attn(self.input_layernorm(stream), rotation, mask, cache)
        return stream + self.mlp(self.post_attention_layernorm(stream))


class DecoderBody(nn.Module):
    """Decoder without its output head.

    Args:
        config: Configuration of the decoder.
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        # Without weights, the class would draw them at random, and import the compiler of torch to do so.
        empty = torch.empty(config.vocab_size, config.hidden_size, device="meta")
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size, _weight=empty)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.rotary_emb = RotaryEmbedding(config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool = False,
        output_hidden_states: bool = False,
    ) -> SimpleNamespace:
        """Evaluate token ids (n, m).

        Args:
            input_ids: Token ids (n, m) int64.
            attention_mask: Mask (n, 1, m, reach) that is added to the scores (default: causal attention).
            position_ids: Positions (n, m) of the tokens (default: counted from 0).
            past_key_values: Cache with one entry of `layers` per layer, which stores keys and values.
            use_cache: Ignored, because the cache is used if there is one.
            output_hidden_states: Return all residual streams.

        Returns:
            Namespace with `last_hidden_state` (n, m, width), and with `hidden_states`, the residual streams before each
            layer and the last hidden state, or None.
        """
        del use_cache
        stream = self.embed_tokens(input_ids)
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        rotation, streams = self.rotary_emb(stream, position_ids), []
        caches = [None] * len(self.layers) if past_key_values is None else past_key_values.layers
        for layer, cache in zip(self.layers, caches, strict=True):
            streams.append(stream)
            stream = layer(stream, rotation, attention_mask, cache)
        last = self.norm(stream)
        return SimpleNamespace(
            last_hidden_state=last, hidden_states=(*streams, last) if output_hidden_states else None
        )


class DecoderNetwork(nn.Module):
    """Causal language model of the Llama family, for inference in float32.

    All parameters are on the meta device until `load_weights` of `checkpoint` replaces them.

    Args:
        config: Configuration of the decoder.
        generation: Generation settings of the publisher.

    Attributes:
        generation_config: Generation settings, with the interface of transformers.
    """

    def __init__(self, config: DecoderConfig, generation: GenerationSettings) -> None:
        super().__init__()
        self.config, self.generation_config = config, generation
        self.model = DecoderBody(config)
        self.lm_head = _linear(config.hidden_size, config.vocab_size, False)

    @property
    def base_model(self) -> DecoderBody:
        """Decoder without its output head."""
        return self.model

    @property
    def device(self) -> torch.device:
        """Device of the parameters."""
        return self.model.norm.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """Data type of the parameters."""
        return self.model.norm.weight.dtype

    def get_input_embeddings(self) -> nn.Embedding:
        """Return the embeddings of the tokens."""
        return self.model.embed_tokens

    def get_output_embeddings(self) -> nn.Module:
        """Return the output head."""
        return self.lm_head

    def forward(self, input_ids: Tensor, **settings: Any) -> SimpleNamespace:
        """Evaluate token ids (n, m).

        Args:
            input_ids: Token ids (n, m) int64.
            **settings: Further arguments of `DecoderBody.forward`.

        Returns:
            Namespace with `logits` (n, m, vocab), and the entries of `DecoderBody.forward`.
        """
        output = self.model(input_ids, **settings)
        output.logits = self.lm_head(output.last_hidden_state)
        return output


class GenerationSettings(SimpleNamespace):
    """Generation settings that the publisher of a model recommends."""

    eos_token_id: int | list[int] | None = None

    def to_diff_dict(self) -> dict[str, Any]:
        """Return the settings that are not None, as `transformers.GenerationConfig.to_diff_dict` does."""
        return {name: value for name, value in vars(self).items() if value is not None}
