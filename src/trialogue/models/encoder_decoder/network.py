"""Encoder-decoder network with a causal or bidirectional decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trialogue.data.parallel.vocabulary import BOS, EOS, PAD
from trialogue.errors import InputError
from trialogue.models.encoder_decoder.config import EncoderDecoderConfig
from trialogue.models.encoder_decoder.layers import DecoderBlock, EncoderBlock, attention_bias
from trialogue.models.networks.registry import register_network
from trialogue.models.networks.transformer import draw_weights, empty_embedding
from trialogue.validation import Natural, Several, validated


def append_eos(rows: Sequence[Sequence[int]]) -> Tensor:
    """Append EOS to each row, and pad the rows with PAD to a tensor (n, T) int64."""
    tokens = torch.full((len(rows), max(map(len, rows), default=0) + 1), PAD)
    for place, row in enumerate(rows):
        tokens[place, : len(row) + 1] = torch.tensor([*row, EOS])
    return tokens


@validated
def pad_sources(sources: Several[Several[Natural]], max_length: int, vocab_size: int) -> Tensor:
    """Convert tokenized sources to the input of the encoder.

    Args:
        sources: Token ids of each source, without EOS.
        max_length: Maximum number of tokens per source.
        vocab_size: Number of tokens.

    Returns:
        Token ids with EOS and PAD, (n, S) int64.

    Raises:
        InputError: If a source is too long, or if a token is outside the vocabulary.
    """
    max_token = max((token for source in sources for token in source), default=0)
    if max_token >= vocab_size:
        raise InputError("source", max_token, f"use token ids from 0 to {vocab_size - 1}")
    longest = max(map(len, sources), default=0)
    if longest > max_length:
        hint = f"the model reads at most {max_length} tokens; shorten the text"
        raise InputError("source", f"{longest} tokens", hint)
    return append_eos(sources)


class EncodedSources(NamedTuple):
    """Output of the encoder for n source sentences, with the keys and values of cross-attention.

    Attributes:
        states: Encoder states, (n, S, width).
        mask: Bias of the cross-attention scores, (n, 1, 1, S), which is 0 except at padding.
        keys_values: Keys and values for each decoder block, each (n, heads, S, head width).
    """

    states: Tensor
    mask: Tensor
    keys_values: tuple[tuple[Tensor, Tensor], ...]

    def rows(self, rows: Tensor) -> EncodedSources:
        """Return the sources with indices `rows` (m,)."""
        pairs = tuple((keys[rows], values[rows]) for keys, values in self.keys_values)
        return EncodedSources(self.states[rows], self.mask[rows], pairs)

    def repeat(self, rows: int) -> EncodedSources:
        """Repeat a single source for a number of rows, without copying memory."""
        pairs = tuple(
            (keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1))
            for keys, values in self.keys_values
        )
        return EncodedSources(self.states.expand(rows, -1, -1), self.mask, pairs)


@register_network("encoder-decoder", EncoderDecoderConfig)
class EncoderDecoder(nn.Module):
    """Transformer encoder-decoder for translation.

    It shares one embedding matrix between source, target and output. If the decoder is not causal,
    `length_head` predicts the length of the target. Weights are initialized as in GPT-2.

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
        # Modules are created on the meta device, because the default initialisation uses the global generator.
        with torch.device("meta"):
            self.token_embedding = empty_embedding(config.vocab_size, config.width)
            self.source_position_embedding = empty_embedding(config.max_length + 1, config.width)
            self.position_embedding = empty_embedding(config.max_length + 1, config.width)
            self.encoder = nn.ModuleList(EncoderBlock(config) for _ in range(config.encoder_layers))
            self.encoder_norm = nn.LayerNorm(config.width)
            self.blocks = nn.ModuleList(DecoderBlock(config) for _ in range(config.decoder_layers))
            self.final_norm = nn.LayerNorm(config.width)
            self.head = nn.Linear(config.width, config.vocab_size, bias=False)
            if not config.causal:
                self.length_head = nn.Linear(config.width, config.max_length + 1)
        draw_weights(self, config.encoder_layers + config.decoder_layers, seed, "encoder-decoder")
        self.head.weight = self.token_embedding.weight

    def embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Embed decoder inputs `tokens` (...) at `positions` (...) as a residual stream (..., width)."""
        x = F.embedding(tokens, self.token_embedding.weight)
        return self._apply_dropout(x + F.embedding(positions, self.position_embedding.weight))

    def encode(self, sources: Tensor) -> EncodedSources:
        """Encode sources for the decoder.

        Args:
            sources: Source tokens with EOS and padded with PAD, (n, S) int64.

        Raises:
            InputError: If S exceeds the maximum length.
        """
        self._require_length("sources", sources)
        mask = attention_bias(sources != PAD)[:, None, None]
        positions = self.source_position_embedding.weight[: sources.shape[1]]
        x = self._apply_dropout(F.embedding(sources, self.token_embedding.weight) + positions)
        for block in self.encoder:
            x = block(x, mask, False)
        states = self.encoder_norm(x)
        return EncodedSources(states, mask, tuple(block.source_states(states) for block in self._decoder()))

    def length_logits(self, sources: Tensor, encoded: EncodedSources) -> Tensor:
        """Compute logits of the target length without EOS.

        Args:
            sources: Source tokens with EOS and padded with PAD, (n, S) int64.
            encoded: Encoded sources.

        Returns:
            Logits of the lengths 0 to max_length, (n, max_length + 1).
        """
        ends = (sources == EOS).long().argmax(1)
        states = encoded.states[torch.arange(len(sources), device=sources.device), ends]
        logits: Tensor = self.length_head(states)
        return logits

    def decode(self, inputs: Tensor, encoded: EncodedSources, lengths: Tensor | None = None) -> Tensor:
        """Compute the hidden states of the decoder, which are the input of the output head.

        Args:
            inputs: Decoder inputs padded with PAD, (n, T) int64. A causal decoder reads BOS and the target without EOS.
                A bidirectional decoder reads the target with EOS.
            encoded: Encoded sources.
            lengths: Lengths of the rows of a bidirectional decoder, (n,) int64. Inferred from PAD by default.

        Returns:
            Hidden states, (n, T, width).

        Raises:
            InputError: If T exceeds the maximum length.
        """
        x, mask, vectors = self._decoder_inputs(inputs, lengths)
        for block, source in zip(self._decoder(), encoded.keys_values, strict=True):
            x = block.read(x, mask, vectors, source, encoded.mask)
        states: Tensor = self.final_norm(x)
        return states

    def last_attention(
        self, inputs: Tensor, encoded: EncodedSources, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute the attention weights of the last decoder block, for the same arguments as `decode`.

        Returns:
            Self-attention weights (n, heads, T, T) and cross-attention weights (n, heads, T, S).
        """
        x, mask, vectors = self._decoder_inputs(inputs, lengths)
        *before, last = zip(self._decoder(), encoded.keys_values, strict=True)
        for block, source in before:
            x = block.read(x, mask, vectors, source, encoded.mask)
        return last[0].weights(x, mask, vectors, last[1], encoded.mask)

    def _decoder_inputs(self, inputs: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return the embeddings, the mask added to attention scores, and the position embeddings."""
        self._require_length("targets", inputs)
        length = inputs.shape[1]
        positions = torch.arange(length, device=inputs.device)
        if self.config.causal:
            mask = attention_bias(torch.ones(length, length, dtype=torch.bool, device=inputs.device).tril())
        else:
            mask = attention_bias(inputs != PAD if lengths is None else positions < lengths[:, None])[
                :, None, None
            ]
        return self.embed(inputs, positions), mask, self.position_embedding.weight[:length]

    def forward(self, sources: Tensor, inputs: Tensor) -> Tensor:
        """Compute logits (n, T, vocab_size) at each position. See `encode` and `decode` for the arguments."""
        logits: Tensor = self.head(self.decode(inputs, self.encode(sources)))
        return logits

    def _apply_dropout(self, embedded: Tensor) -> Tensor:
        return F.dropout(embedded, self.config.dropout, self.training) if self.config.dropout else embedded

    def _decoder(self) -> list[DecoderBlock]:
        return [block for block in self.blocks if isinstance(block, DecoderBlock)]

    def _require_length(self, field: str, tokens: Tensor) -> None:
        if tokens.shape[1] > self.config.max_length + 1:
            hint = f"the model reads at most {self.config.max_length} tokens and EOS; shorten the text"
            raise InputError(field, tokens.shape[1] - 1, hint)
