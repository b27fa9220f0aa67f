"""Shape of a transformer on balanced brackets."""

from dataclasses import dataclass
from typing import Literal

from trialogue.errors import InputError
from trialogue.validation import Count, NonNegative, Positive, Some, validated
from trialogue_lab.models.dyck_transformer.embeddings import Embedding


@validated
@dataclass(frozen=True, kw_only=True)
class DyckTransformerConfig:
    """Shape of a `DyckTransformer`.

    Args:
        types: Number k of bracket types.
        depth: Largest number D of open brackets.
        embedding: Embedding of brackets. "pairs", "sums" and "angles" encode the type and the depth of a
            bracket (equations 2.55 to 2.57) and replace the first layer. "tokens" encodes the bracket only.
        mlps: For each layer, the widths of its ReLU network, from the first hidden layer to the output. An
            empty tuple means no network.
        width: Width of values and of the embedding "tokens". With a residual, values have the width of the
            stream.
        key_width: Width of keys and queries.
        residual: Whether the input of a layer is added to its output.
        norm: Input of the norm: "attention" for the attention output, or "sum" for its sum with the layer's
            input.
        norm_floor: Constant C of the norm x / max(|x|, C) (see `FlooredNorm`).
        learned_gain: Whether the norm has a learned gain and bias.
        positions: "linear" adds a coordinate i / 6000 for position i to the embedding, or replaces the last
            coordinate of "tokens" by it.
        causal: Whether attention is causal.
        uniform: Whether attention weights are equal for all positions.
        ends: Whether there is an end-of-sequence token.
        double: Whether weights are float64.
        initial_scale: Standard deviation of the initial matrices.

    Raises:
        InputError: If a field is out of range.
    """

    types: Count = 2
    depth: Count = 4
    embedding: Embedding = "pairs"
    mlps: Some[tuple[Count, ...]] = ((),)
    width: Count = 50
    key_width: Count = 50
    residual: bool = False
    norm: Literal["attention", "sum"] = "attention"
    norm_floor: NonNegative = 0.0
    learned_gain: bool = True
    positions: Literal["none", "linear"] = "none"
    causal: bool = True
    uniform: bool = False
    ends: bool = False
    double: bool = False
    initial_scale: Positive = 0.02

    def __post_init__(self) -> None:
        least = 2 * self.types + 1 + (self.positions == "linear")
        if self.embedding == "tokens" and self.width < least:
            raise InputError(
                "width", self.width, f"the embedding of tokens needs at least this many coordinates: {least}"
            )

    @property
    def vocab_size(self) -> int:
        """Number of tokens that the network predicts: all brackets, and the end token if there is one."""
        return 2 * self.types + self.ends
