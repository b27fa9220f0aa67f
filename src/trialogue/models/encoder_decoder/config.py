"""The shape of an encoder-decoder."""

from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue.data.parallel.vocabulary import SPECIAL
from trialogue.errors import InputError
from trialogue.models.networks.transformer import Activation
from trialogue.validation import Count, validated


@validated
@dataclass(frozen=True, kw_only=True)
class EncoderDecoderConfig:
    """Shape of an `EncoderDecoder`. Raises `InputError` where a field is out of range.

    `vocab_size` counts the pieces of both languages and the four tokens that are none. `max_length` is that of the
    longest source and of the longest target, without the EOS at their ends. A `causal` decoder writes from left to
    right; another one reads a whole target, and with `positional_attention` each of its layers also attends by
    position alone (Gu et al. 2018, section 3.2): queries and keys are positions, values are states. `activation` is
    that of the MLPs: ReLU in the thesis (T5's), GELU in the project's other transformers. In training, `dropout` is
    the probability with which each number that is embedded, or added to a residual stream, is zero (Vaswani et al.
    2017, section 5.4).
    """

    vocab_size: Annotated[int, Ge(len(SPECIAL) + 1)]
    encoder_layers: Count = 2
    decoder_layers: Count = 2
    heads: Count = 4
    width: Count = 192
    mlp_width: Count = 768
    max_length: Count = 64
    causal: bool = False
    positional_attention: bool = True
    activation: Activation = "gelu"
    dropout: Annotated[float, Interval(ge=0, lt=1)] = field(default=0.0, metadata={"added": True})

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise InputError("width", self.width, f"must be a multiple of heads={self.heads}")
        if self.causal and self.positional_attention:
            raise InputError("positional_attention", True, "a causal decoder has none: set it to False")

    @property
    def positions(self) -> str:
        """Vectors of positions are added to the embeddings (`AttentionShape`)."""
        return "learned"

    @property
    def attention_window(self) -> None:
        """Every position attends to all that it may (`AttentionShape`)."""
        return None

    @property
    def scaled_attention(self) -> bool:
        """Scores are divided by the square root of a head's width (`AttentionShape`)."""
        return True
