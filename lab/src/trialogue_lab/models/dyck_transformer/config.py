"""The shape of a transformer on Dyck languages."""

from dataclasses import dataclass
from typing import Literal

from trialogue.errors import InputError
from trialogue.validation import Count, NonNegative, Positive, Some, validated
from trialogue_lab.models.dyck_transformer.embeddings import Embedding


@validated
@dataclass(frozen=True, kw_only=True)
class DyckTransformerConfig:
    """Shape of a `DyckTransformer`. Raises `InputError` where a field is out of range.

    `types` k and `depth` D bound the language. `embedding` is (2.55) "pairs", (2.56) "sums", (2.57) "angles", which
    make the first layer of the thesis minimal, or that of "tokens" alone. `mlps` has an entry for each layer of
    attention: the widths of its ReLU network's layers behind the input, the output's last, none for no network.
    `width` is that of values, and of "tokens"; with a residual, values are as wide as what they are added to.
    `norm`, `norm_floor` (C of LN_C) and `learned_gain` are those of `DyckLayer`. "linear" `positions` append i / 6000
    to the embedding, or put it into the last coordinate of "tokens". `uniform` attention weighs all positions alike.
    `ends` adds a token that ends a word. Weights are of float64 if `double`; matrices are drawn with a standard
    deviation of `initial_scale`.
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
            raise InputError("width", self.width, f"tokens take {least} coordinates: use at least as many")

    @property
    def vocab_size(self) -> int:
        """Tokens that are answered for: brackets, and the end where there is one."""
        return 2 * self.types + self.ends
