"""Blocks of an encoder-decoder: those of the project's transformer, and what a decoder reads besides itself."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trialogue.models.encoder_decoder.config import EncoderDecoderConfig
from trialogue.models.networks.transformer import TransformerBlock


class EncoderBlock(TransformerBlock):
    """A block of `Transformer`; attention is plain products, whose backward pass a processor computes faster."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__(config)
        self.activation, self.dropout = config.activation, config.dropout

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        del causal  # `mask` says it
        return attend(q, k, v, mask)


class DecoderBlock(EncoderBlock):
    """Attention to the target, by position where the model does that, to the source, and the MLP."""

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
        """Residual stream (n, T, width) to the next.

        `mask` and `source_mask` are added to scores: (n or 1, 1, T or 1, T) and (n, 1, 1, S). `positions` (T, width)
        are the vectors of the positions, `source` the keys and values (n, heads, S, width of a head) of the source.
        """
        x = self._before_source(x, mask, positions)
        x = x + self._dropped(self.source_projection(self._from_source(x, source, source_mask)))
        return self._fed(x)

    def weights(
        self, x: Tensor, mask: Tensor, positions: Tensor, source: tuple[Tensor, Tensor], source_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """How much positions attend to each other (n, heads, T, T) and to the source (n, heads, T, S) in `read`."""
        queries, keys, _ = map(self._heads, self.qkv(self.attention_norm(x)).chunk(3, -1))
        own = attention_weights(queries, keys, mask)
        return own, self.source_weights(self._before_source(x, mask, positions), source, source_mask)

    def _before_source(self, x: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        """The residual stream after attention to the target, and by position."""
        x = self._attended(x, mask, causal=False)
        if self.positional:
            x = x + self._dropped(self.position_projection(self._by_position(x, mask, positions)))
        return x

    def source_states(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (n, heads, S, width of a head) of the encoder's states (n, S, width)."""
        keys, values = self.source_keys_values(encoded).chunk(2, -1)
        return self._heads(keys), self._heads(values)

    def position_weights(self, positions: Tensor, mask: Tensor) -> Tensor:
        """How much (n or 1, heads, T, T) each position attends to each, by the vectors (T, width) alone."""
        queries, keys = self.position_queries_keys(positions)[None].chunk(2, -1)
        return attention_weights(self._heads(queries), self._heads(keys), mask)

    def source_weights(self, x: Tensor, source: tuple[Tensor, Tensor], source_mask: Tensor) -> Tensor:
        """How much (n, heads, T, S) each position of the stream attends to each of the source."""
        queries = self._heads(self.source_queries(self.source_norm(x)))
        return attention_weights(queries, source[0], source_mask)

    def _by_position(self, x: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        values = self._heads(self.position_values(self.position_norm(x)))
        weights = self.position_weights(positions, mask)
        return joined(weights.to(values.dtype) @ values)

    def _from_source(self, x: Tensor, source: tuple[Tensor, Tensor], source_mask: Tensor) -> Tensor:
        queries = self._heads(self.source_queries(self.source_norm(x)))
        return joined(attend(queries, *source, source_mask))

    def _heads(self, x: Tensor) -> Tensor:
        """(n, T, width) as (n, heads, T, width of a head)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Attention (n, heads, T, size) of queries over keys and values (n, heads, S, size); `mask` is added to scores."""
    return attention_weights(q, k, mask).to(v.dtype) @ v


def attention_weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """Return the attention (n, heads, T, S) of queries (n, heads, T, size) to keys; `mask` is added to scores."""
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    if mask is not None:
        scores = scores + mask.to(scores.dtype)
    return scores.softmax(-1)


def joined(x: Tensor) -> Tensor:
    """(n, heads, T, width of a head) as (n, T, width)."""
    return x.transpose(1, 2).flatten(2)


def unseen(allowed: Tensor) -> Tensor:
    """What is added to scores where `allowed` is False: enough to hide a key, and finite in every type."""
    return torch.zeros(allowed.shape, device=allowed.device).masked_fill_(~allowed, -1e4)
