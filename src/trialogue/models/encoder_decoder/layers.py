"""Transformer blocks of an encoder-decoder, with cross-attention and positional attention in the decoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trialogue.models.encoder_decoder.config import EncoderDecoderConfig
from trialogue.models.networks.transformer import TransformerBlock


class EncoderBlock(TransformerBlock):
    """Transformer block with bidirectional self-attention.

    Attention is computed with explicit matrix products, because their backward pass is faster on a CPU.

    Args:
        config: Architecture.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__(config)
        self.activation, self.dropout = config.activation, config.dropout

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        del causal
        return attend(q, k, v, mask)


class DecoderBlock(EncoderBlock):
    """Decoder block with self-attention, optional positional attention, cross-attention and an MLP.

    Args:
        config: Architecture.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__(config)
        width = config.width
        self.positional = config.positional_attention
        if self.positional:
            self.position_norm = nn.LayerNorm(width)
            self.position_queries_keys = nn.Linear(width, 2 * width)
            self.position_values = nn.Linear(width, width)
            self.position_projection = nn.Linear(width, width)
        self.source_norm = nn.LayerNorm(width)
        self.source_queries = nn.Linear(width, width)
        self.source_keys_values = nn.Linear(width, 2 * width)
        self.source_projection = nn.Linear(width, width)

    def read(
        self, x: Tensor, mask: Tensor, positions: Tensor, source: tuple[Tensor, Tensor], source_mask: Tensor
    ) -> Tensor:
        """Apply the block.

        Args:
            x: Residual stream, (n, T, width).
            mask: Bias of the self-attention scores, (n or 1, 1, T or 1, T).
            positions: Position embeddings, (T, width).
            source: Keys and values of the source, each (n, heads, S, head width).
            source_mask: Bias of the cross-attention scores, (n, 1, 1, S).

        Returns:
            Residual stream after the block, (n, T, width).
        """
        x = self._attend_target(x, mask, positions)
        x = x + self._apply_dropout(self.source_projection(self._cross_attention(x, source, source_mask)))
        return self._add_mlp(x)

    def weights(
        self, x: Tensor, mask: Tensor, positions: Tensor, source: tuple[Tensor, Tensor], source_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the attention weights of `read`: self-attention (n, heads, T, T), cross-attention (n, heads, T, S)."""
        queries, keys, _ = map(self._heads, self.qkv(self.attention_norm(x)).chunk(3, -1))
        own = attention_weights(queries, keys, mask)
        return own, self.source_weights(self._attend_target(x, mask, positions), source, source_mask)

    def _attend_target(self, x: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        """Return the residual stream after self-attention and positional attention."""
        x = self._add_attention(x, mask, causal=False)
        if self.positional:
            x = x + self._apply_dropout(
                self.position_projection(self._positional_attention(x, mask, positions))
            )
        return x

    def source_states(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Compute keys and values (n, heads, S, head width) from the encoder states (n, S, width)."""
        keys, values = self.source_keys_values(encoded).chunk(2, -1)
        return self._heads(keys), self._heads(values)

    def position_weights(self, positions: Tensor, mask: Tensor) -> Tensor:
        """Compute positional attention weights (n or 1, heads, T, T) from position embeddings (T, width)."""
        queries, keys = self.position_queries_keys(positions)[None].chunk(2, -1)
        return attention_weights(self._heads(queries), self._heads(keys), mask)

    def source_weights(self, x: Tensor, source: tuple[Tensor, Tensor], source_mask: Tensor) -> Tensor:
        """Compute cross-attention weights (n, heads, T, S)."""
        queries = self._heads(self.source_queries(self.source_norm(x)))
        return attention_weights(queries, source[0], source_mask)

    def _positional_attention(self, x: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        values = self._heads(self.position_values(self.position_norm(x)))
        weights = self.position_weights(positions, mask)
        return merge_heads(weights.to(values.dtype) @ values)

    def _cross_attention(self, x: Tensor, source: tuple[Tensor, Tensor], source_mask: Tensor) -> Tensor:
        queries = self._heads(self.source_queries(self.source_norm(x)))
        return merge_heads(attend(queries, *source, source_mask))

    def _heads(self, x: Tensor) -> Tensor:
        """Split (n, T, width) into heads (n, heads, T, head width)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Compute attention.

    Args:
        q: Queries, (n, heads, T, size).
        k: Keys, (n, heads, S, size).
        v: Values, (n, heads, S, size).
        mask: Bias that is added to the scores and broadcasts to (n, heads, T, S), or None.

    Returns:
        Attended values, (n, heads, T, size).
    """
    return attention_weights(q, k, mask).to(v.dtype) @ v


def attention_weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """Return the attention weights (n, heads, T, S) of T queries and S keys.

    Args:
        q: Queries, (n, heads, T, size).
        k: Keys, (n, heads, S, size).
        mask: Bias that is added to the scores and broadcasts to (n, heads, T, S), or None.
    """
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    if mask is not None:
        scores = scores + mask.to(scores.dtype)
    return scores.softmax(-1)


def merge_heads(x: Tensor) -> Tensor:
    """Concatenate heads (n, heads, T, head width) to (n, T, width)."""
    return x.transpose(1, 2).flatten(2)


def attention_bias(allowed: Tensor) -> Tensor:
    """Return a mask to add to attention scores: 0 where `allowed` is True, and a large negative number elsewhere."""
    return torch.zeros(allowed.shape, device=allowed.device).masked_fill_(~allowed, -1e4)
