"""Shapes of the networks in the document on the distributional simplicity bias."""

from typing import Annotated, Any

from annotated_types import Interval

from trialogue.models.networks.transformer import TransformerConfig
from trialogue.validation import Count, validated

GPT_NEO_WINDOW = 256
"""Attention window of every second block of GPT-Neo."""


def bert(vocab_size: int, max_length: int, *, width: int = 768, **changes: Any) -> TransformerConfig:
    """Return the encoder of that document: pre-norm blocks, with an MLP of twice the width by default.

    The published size is 4 layers, 16 heads, width 768 and MLP 1536.

    Args:
        vocab_size: Number of tokens.
        max_length: Largest number of tokens.
        width: Width of the stream.
        changes: Fields of the config to override.
    """
    published: dict[str, Any] = {"layers": 4, "heads": 16, "mlp_width": 2 * width, "causal": False}
    return TransformerConfig(vocab_size=vocab_size, max_length=max_length, width=width, **published | changes)


@validated
def gpt_neo(
    vocab_size: Count,
    max_length: Annotated[int, Interval(ge=1, lt=GPT_NEO_WINDOW)],
    *,
    width: Count = 768,
    **changes: Any,
) -> TransformerConfig:
    """Return the decoder of that document: GPT-Neo with unscaled attention and an MLP of four times the width.

    The published size is 2 layers, 16 heads and width 768. Every second block of GPT-Neo attends to the last
    `GPT_NEO_WINDOW` positions only, including BOS. Sequences must be shorter, so that the window covers all
    of them. GPT-Neo ties its embeddings and has no biases in queries, keys and values; here the output
    embeddings are separate and these biases are learned.

    Args:
        vocab_size: Number of tokens.
        max_length: Largest number of tokens, below `GPT_NEO_WINDOW`.
        width: Width of the stream.
        changes: Fields of the config to override.
    """
    published: dict[str, Any] = {"layers": 2, "heads": 16, "mlp_width": 4 * width, "scaled_attention": False}
    return TransformerConfig(vocab_size=vocab_size, max_length=max_length, width=width, **published | changes)
