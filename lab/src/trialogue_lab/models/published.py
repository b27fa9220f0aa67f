"""Shapes of the networks that the document on the distributional simplicity bias follows through training."""

from trialogue.errors import InputError, whole_number
from trialogue.models.transformer import TransformerConfig

GPT_NEO_WINDOW = 256
"""Positions that every second block of GPT-Neo attends to."""


def bert(
    vocab_size: int,
    max_length: int,
    *,
    layers: int = 4,
    heads: int = 16,
    width: int = 768,
    mlp_width: int | None = None,
) -> TransformerConfig:
    """The encoder of that document: blocks with the norm before, and an MLP of twice the width unless it is given.

    By default its published size: 4 layers, 16 heads, width 768, MLP 1536. Raises `InputError` as the config does.
    """
    return TransformerConfig(
        vocab_size=vocab_size,
        max_length=max_length,
        layers=layers,
        heads=heads,
        width=width,
        mlp_width=2 * width if mlp_width is None else mlp_width,
        causal=False,
    )


def gpt_neo(
    vocab_size: int,
    max_length: int,
    *,
    layers: int = 2,
    heads: int = 16,
    width: int = 768,
    mlp_width: int | None = None,
) -> TransformerConfig:
    """The decoder of that document: GPT-Neo, whose scores of attention are not scaled; an MLP of four times the width.

    By default its published size: 2 layers, 16 heads, width 768. Every second block of GPT-Neo attends to the last
    `GPT_NEO_WINDOW` positions alone: sequences are shorter here, so that this is all of them. Its output embeddings
    are those of the input, and queries, keys and values have no biases: here they are learned apart, and have some.
    Raises `InputError` as the config does, and for a `max_length` that the window does not hold.
    """
    hint = f"every second block attends to {GPT_NEO_WINDOW} positions, BOS among them: use less"
    whole_number("max_length", max_length, 1)
    if max_length >= GPT_NEO_WINDOW:
        raise InputError("max_length", max_length, hint)
    return TransformerConfig(
        vocab_size=vocab_size,
        max_length=max_length,
        layers=layers,
        heads=heads,
        width=width,
        mlp_width=4 * width if mlp_width is None else mlp_width,
        scaled_attention=False,
    )
