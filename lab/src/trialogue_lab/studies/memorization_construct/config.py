"""Settings of the study: draws of laws and weights, and sizes."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Increasing, Positive, Seeds, Settings

CONTEXT = 2
"""Tokens of a context"""


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run; the defaults are those of the preset `default`."""

    seeds: Seeds = tuple(range(101, 113))
    """Laws, associations, priors and generic heads are drawn by seed."""
    vocab_size: Annotated[int, Ge(4)] = 20
    """Tokens of the laws that are held exactly, after all pairs of tokens."""
    width: Annotated[int, Ge(2)] = 10
    """Width of the narrow network; the wide one has one less than the vocabulary."""
    head_width: Count = 3
    """That of heads which hold all laws: small ones, so that features come in small steps."""
    provisions: Increasing[Annotated[float, Interval(ge=0, le=3)]] = (0.0, 0.02, 0.05, 0.1, 0.3)
    """Features beyond the number of contexts, as a share of it: at least so many, and fewer than one head more."""
    small_vocab_size: Annotated[int, Ge(4)] = 10
    """Tokens where only some contexts are stored, and where encoders are compared."""
    association_heads: Increasing[Count] = (5, 10, 20, 30, 40, 49)
    """Heads of two numbers each, in two dimensions."""
    kept_heads: Increasing[Count] = (2, 4, 6, 8, 10)
    """Heads of networks that hold the likeliest contexts."""
    prior_exponent: Positive = 1.5
    """The r-th likeliest context has a prior in proportion to r to the minus this."""
    widths: Increasing[Count] = (2, 3, 5, 7, 8)
    """Widths of encoders, all below the rank of the laws."""
    look_up_width: Count = 600
    """Width of the encoders of Theorem 2, whose vectors are then nearly orthogonal."""

    def check(self) -> None:
        """Raise `InputError` where fields do not go together."""
        if self.width >= self.vocab_size - 1:
            raise InputError("width", self.width, f"use less than vocab_size - 1 = {self.vocab_size - 1}")
        if self.widths[-1] >= self.small_vocab_size - 1:
            raise InputError("widths", self.widths, f"use less than {self.small_vocab_size - 1}")


PRESETS = {
    "smoke": Config(seeds=(0, 1), vocab_size=8, width=4, association_heads=(5, 20), kept_heads=(4, 8)),
    "pilot": Config(seeds=tuple(range(3000, 3006))),
    "default": Config(),
    "paper": Config(seeds=tuple(range(101, 141)), vocab_size=50, provisions=(0.0, 0.05, 0.1)),
}
