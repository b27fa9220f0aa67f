"""Architecture of an encoder-decoder."""

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
    """Architecture of an `EncoderDecoder`.

    Args:
        vocab_size: Number of subword tokens of both languages, plus four special tokens.
        encoder_layers: Number of encoder blocks.
        decoder_layers: Number of decoder blocks.
        heads: Attention heads per block.
        width: Width of the residual stream, a multiple of `heads`.
        mlp_width: Hidden units of each MLP.
        max_length: Maximum number of tokens of a source or target, without EOS.
        causal: Whether the decoder is causal. A bidirectional decoder reads a complete target.
        positional_attention: Whether each block of a bidirectional decoder also has positional attention, where queries
            and keys are position embeddings and values are states (Gu et al. 2018, section 3.2).
        activation: Activation function of the MLPs. The thesis uses ReLU, as in T5.
        dropout: Dropout probability of embeddings and of terms added to the residual stream in training (Vaswani et al.
            2017, section 5.4).

    Raises:
        InputError: If a field is out of range.
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
            raise InputError("width", self.width, f"use a multiple of heads={self.heads}")
        if self.causal and self.positional_attention:
            raise InputError(
                "positional_attention", True, "a causal decoder has no positional attention; use False"
            )

    @property
    def positions(self) -> str:
        """Always "learned": position embeddings are added to token embeddings."""
        return "learned"

    @property
    def attention_window(self) -> None:
        """None: each position can attend to all others that the mask allows."""
        return None

    @property
    def scaled_attention(self) -> bool:
        """Whether attention scores are divided by the square root of the head width."""
        return True
