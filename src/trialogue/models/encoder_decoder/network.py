"""The network: an encoder of the source, and a decoder that reads a target, or writes one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trialogue.data.parallel.vocabulary import BOS, EOS, PAD
from trialogue.errors import InputError
from trialogue.models.encoder_decoder.config import EncoderDecoderConfig
from trialogue.models.encoder_decoder.layers import DecoderBlock, EncoderBlock, unseen
from trialogue.models.networks.registry import register_network
from trialogue.models.networks.transformer import draw_weights
from trialogue.validation import Natural, Several, validated


def ended(rows: Sequence[Sequence[int]]) -> Tensor:
    """Token ids with EOS at their ends (n, T) int64, filled up with PAD to the longest."""
    tokens = torch.full((len(rows), max(map(len, rows), default=0) + 1), PAD)
    for place, row in enumerate(rows):
        tokens[place, : len(row) + 1] = torch.tensor([*row, EOS])
    return tokens


@validated
def source_rows(sources: Several[Several[Natural]], max_length: int, vocab_size: int) -> Tensor:
    """Encoded texts as the encoder reads them (n, S): each with EOS, filled up with PAD.

    Raises `InputError` for a text of more than `max_length` tokens, or with a token that is not below `vocab_size`.
    """
    greatest = max((token for source in sources for token in source), default=0)
    if greatest >= vocab_size:
        raise InputError("source", greatest, f"use token ids from 0 to {vocab_size - 1}")
    longest = max(map(len, sources), default=0)
    if longest > max_length:
        hint = f"the model reads at most {max_length} tokens: shorten or cut the text"
        raise InputError("source", f"{longest} tokens", hint)
    return ended(sources)


class Encoded(NamedTuple):
    """What a decoder reads of sources, which do not change while it does; row i is source i."""

    states: Tensor
    """(n, S, width)"""
    mask: Tensor
    """(n, 1, 1, S), added to scores: 0 where a token of the source stands"""
    keys_values: tuple[tuple[Tensor, Tensor], ...]
    """Of each layer of the decoder, keys and values (n, heads, S, width of a head)"""

    def rows(self, rows: Tensor) -> Encoded:
        """The sources numbered `rows` (m,), in that order."""
        pairs = tuple((keys[rows], values[rows]) for keys, values in self.keys_values)
        return Encoded(self.states[rows], self.mask[rows], pairs)

    def repeated(self, rows: int) -> Encoded:
        """The one source, for each of so many rows; nothing is copied."""
        pairs = tuple(
            (keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1))
            for keys, values in self.keys_values
        )
        return Encoded(self.states.expand(rows, -1, -1), self.mask, pairs)


@register_network("encoder-decoder", EncoderDecoderConfig)
class EncoderDecoder(nn.Module):
    """Transformer encoder-decoder with the initialization of GPT-2.

    The network consists of the pre-norm blocks of `trialogue.models.networks.transformer` and shares one embedding
    matrix between source, target and output. If the decoder is not causal, `length_head` predicts the length of the
    target from the encoder's state of the EOS token of the source.

    Args:
        config: Sizes of the network.
        seed: Seed of the initial weights.

    Raises:
        InputError: If `config` is not an `EncoderDecoderConfig`.
    """

    def __init__(self, config: EncoderDecoderConfig, seed: int = 0) -> None:
        if not isinstance(config, EncoderDecoderConfig):
            raise InputError("config", config, "give an EncoderDecoderConfig")
        super().__init__()
        self.config, self.bos = config, BOS
        with torch.device("meta"):  # weights that torch would draw by itself come from the global generator
            self.token_embedding = nn.Embedding(config.vocab_size, config.width)
            self.source_position_embedding = nn.Embedding(config.max_length + 1, config.width)
            self.position_embedding = nn.Embedding(config.max_length + 1, config.width)
            self.encoder = nn.ModuleList(EncoderBlock(config) for _ in range(config.encoder_layers))
            self.encoder_norm = nn.LayerNorm(config.width)
            self.blocks = nn.ModuleList(DecoderBlock(config) for _ in range(config.decoder_layers))
            self.final_norm = nn.LayerNorm(config.width)
            self.head = nn.Linear(config.width, config.vocab_size, bias=False)
            if not config.causal:
                self.length_head = nn.Linear(config.width, config.max_length + 1)
            self.head.weight = self.token_embedding.weight
        self.to_empty(device=torch.get_default_device())
        self.head.weight = self.token_embedding.weight
        draw_weights(self, config.encoder_layers + config.decoder_layers, seed, "encoder-decoder")

    def embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """The decoder's residual stream (..., width) at layer 0 of ids `tokens` (...) at `positions` (...)."""
        x = F.embedding(tokens, self.token_embedding.weight)
        return self._dropped(x + F.embedding(positions, self.position_embedding.weight))

    def encode(self, sources: Tensor) -> Encoded:
        """What the decoder reads of `sources` (n, S), each with EOS at its end, filled up with PAD.

        Raises `InputError` where S is longer than the model's positions.
        """
        self._require_length("sources", sources)
        mask = unseen(sources != PAD)[:, None, None]
        positions = self.source_position_embedding.weight[: sources.shape[1]]
        x = self._dropped(F.embedding(sources, self.token_embedding.weight) + positions)
        for block in self.encoder:
            x = block(x, mask, False)
        states = self.encoder_norm(x)
        return Encoded(states, mask, tuple(block.source_states(states) for block in self._decoder()))

    def length_logits(self, sources: Tensor, encoded: Encoded) -> Tensor:
        """Logits (n, max_length + 1) of the number of tokens of the target, its EOS not counted."""
        ends = (sources == EOS).long().argmax(1)
        states = encoded.states[torch.arange(len(sources), device=sources.device), ends]
        logits: Tensor = self.length_head(states)
        return logits

    def decode(self, inputs: Tensor, encoded: Encoded, lengths: Tensor | None = None) -> Tensor:
        """What the head reads (n, T, width) at every position of `inputs` (n, T), which may hold PAD at their ends.

        Position i of a causal decoder reads what lies before it and itself: give it BOS and the target. Another one
        reads all tokens: give it the target with EOS at its end, and the `lengths` (n,) of the rows, where they are not
        to be told by PAD. Raises `InputError` for too long a row.
        """
        x, mask, vectors = self._opened(inputs, lengths)
        for block, source in zip(self._decoder(), encoded.keys_values, strict=True):
            x = block.read(x, mask, vectors, source, encoded.mask)
        states: Tensor = self.final_norm(x)
        return states

    def last_attention(
        self, inputs: Tensor, encoded: Encoded, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """How the last layer of the decoder attends where `decode` is given the same: to itself, and to the source.

        (n, heads, T, T) and (n, heads, T, S), distributions over the last dimension.
        """
        x, mask, vectors = self._opened(inputs, lengths)
        *before, last = zip(self._decoder(), encoded.keys_values, strict=True)
        for block, source in before:
            x = block.read(x, mask, vectors, source, encoded.mask)
        return last[0].weights(x, mask, vectors, last[1], encoded.mask)

    def _opened(self, inputs: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The decoder's residual stream at layer 0, what is added to scores, and the vectors of the positions."""
        self._require_length("targets", inputs)
        length = inputs.shape[1]
        positions = torch.arange(length, device=inputs.device)
        if self.config.causal:
            mask = unseen(torch.ones(length, length, dtype=torch.bool, device=inputs.device).tril())
        else:
            mask = unseen(inputs != PAD if lengths is None else positions < lengths[:, None])[:, None, None]
        return self.embed(inputs, positions), mask, self.position_embedding.weight[:length]

    def forward(self, sources: Tensor, inputs: Tensor) -> Tensor:
        """Logits (n, T, vocab) at every position of `inputs`; see `encode` and `decode`."""
        logits: Tensor = self.head(self.decode(inputs, self.encode(sources)))
        return logits

    def _dropped(self, embedded: Tensor) -> Tensor:
        return F.dropout(embedded, self.config.dropout, self.training) if self.config.dropout else embedded

    def _decoder(self) -> list[DecoderBlock]:
        return [block for block in self.blocks if isinstance(block, DecoderBlock)]

    def _require_length(self, field: str, tokens: Tensor) -> None:
        if tokens.shape[1] > self.config.max_length + 1:
            hint = f"the model reads at most {self.config.max_length} tokens and EOS; shorten or cut the text"
            raise InputError(field, tokens.shape[1] - 1, hint)
