"""Tiny encoder-decoders whose outputs differ clearly."""

import torch

from trialogue.models.encoder_decoder.config import EncoderDecoderConfig
from trialogue.models.encoder_decoder.network import EncoderDecoder
from trialogue.randomness import generator

VOCAB, LONGEST = 9, 6


def small_network(
    *,
    causal: bool,
    seed: int = 1,
    layers: int = 2,
    vocab: int = VOCAB,
    longest: int = LONGEST,
    relu: bool = False,
    dropout: float = 0.0,
) -> EncoderDecoder:
    config = EncoderDecoderConfig(
        vocab_size=vocab,
        encoder_layers=layers,
        decoder_layers=layers,
        heads=2,
        width=8,
        mlp_width=16,
        max_length=longest,
        causal=causal,
        positional_attention=not causal,
        activation="relu" if relu else "gelu",
        dropout=dropout,
    )
    network = EncoderDecoder(config, seed).eval()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator(seed, "larger", name)) * 0.4)
    return network
