"""Shapes of the networks in the document on the distributional simplicity bias."""

from typing import Annotated, Any

from annotated_types import Interval

from trialogue.models.networks.transformer import TransformerConfig
from trialogue.validation import Count, validated

GPT_NEO_WINDOW = 256
"""Attention window of every second block of GPT-Neo."""


def bert(vocab_size: int, max_length: int, *, width: int = 768, **changes: Any) -> TransformerConfig:
    """Return the shape of the BERT encoder in the document on the distributional simplicity bias.

    It has pre-norm blocks and an MLP of twice the width. The published size is 4 layers, 16 heads, width 768 and MLP
    width 1536.

    Args:
        vocab_size: Number of tokens.
        max_length: Largest number of tokens of a sequence.
        width: Width of the residual stream.
        **changes: Fields of the config that differ from the published ones, for example `layers=2`.
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
    """Return the shape of the GPT-Neo decoder in the document on the distributional simplicity bias.

    Attention is not scaled, and the MLP has four times the width. The published size is 2 layers, 16 heads
    and width 768. Unlike GPT-Neo, the output embeddings are separate from the input embeddings, and attention
    has biases.

    Args:
        vocab_size: Number of tokens.
        max_length: Largest number of tokens of a sequence. It must be below `GPT_NEO_WINDOW`, so that local
            attention covers the whole sequence.
        width: Width of the residual stream.
        **changes: Fields of the config that differ from the published ones, for example `layers=2`.
    """
    published: dict[str, Any] = {"layers": 2, "heads": 16, "mlp_width": 4 * width, "scaled_attention": False}
    return TransformerConfig(vocab_size=vocab_size, max_length=max_length, width=width, **published | changes)
