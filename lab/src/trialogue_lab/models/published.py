"""Shapes of the networks that the document on the distributional simplicity bias follows through training."""

from typing import Annotated, Any

from annotated_types import Interval

from trialogue.models.transformer import TransformerConfig
from trialogue.validation import Count, validated

GPT_NEO_WINDOW = 256
"""Positions that every second block of GPT-Neo attends to."""


def bert(vocab_size: int, max_length: int, *, width: int = 768, **changes: Any) -> TransformerConfig:
    """The encoder of that document: blocks with the norm before, and an MLP of twice the width unless it is given.

    By default its published size: 4 layers, 16 heads, width 768, MLP 1536. `changes` are fields of the config. Raises
    `InputError` as the config does.
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
    """The decoder of that document: GPT-Neo, whose scores of attention are not scaled; an MLP of four times the width.

    By default its published size: 2 layers, 16 heads, width 768. `changes` are fields of the config. Every second block
    of GPT-Neo attends to the last `GPT_NEO_WINDOW` positions alone, BOS among them; sequences must be shorter, so that
    this is all of them. Its output embeddings are those of the input, and queries, keys and values have no biases: here
    they are learned apart, and have some. Raises `InputError` as the config does, and for a longer `max_length`.
    """
    published: dict[str, Any] = {"layers": 2, "heads": 16, "mlp_width": 4 * width, "scaled_attention": False}
    return TransformerConfig(vocab_size=vocab_size, max_length=max_length, width=width, **published | changes)
