"""Settings of the study: seeds and sizes."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Increasing, Positive, Seeds, Settings

CONTEXT = 2
"""Number of tokens per context."""


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run. The defaults are the preset `default`.

    The weights of the networks, which have one attention layer, are computed instead of trained. A context is a
    sequence of two tokens.

    Args:
        seeds: Seeds of the random distributions, tokens and attention heads.
        vocab_size: Number of tokens N in the experiment in which a network stores the distributions of all contexts.
        width: Embedding width of the narrow network. The width of the wide network is `vocab_size` - 1.
        head_width: Head width of the networks that store all distributions. It is small, so that the number of features
            can be increased in small steps.
        provisions: Additional features of a network, beyond one per context, as shares of the number of contexts. They
            are rounded up to whole heads.
        small_vocab_size: Number of tokens in all other experiments.
        association_heads: Numbers of heads of the networks that store one token per context. Their embedding and head
            widths are 2.
        kept_heads: Numbers of heads of the networks that store the most likely contexts.
        prior_exponent: Exponent a of the probabilities of contexts: the r-th most likely one has a probability
            proportional to r^-a.
        widths: Ranks of the low-rank tables of logits (encoders) that approximate the distributions. All are below the
            rank of the distributions.
        look_up_width: Rank of the low-rank tables of logits in Theorem 2. It is large enough for nearly orthogonal
            vectors.
    """

    seeds: Seeds = tuple(range(101, 113))
    vocab_size: Annotated[int, Ge(4)] = 20
    width: Annotated[int, Ge(2)] = 10
    head_width: Count = 3
    provisions: Increasing[Annotated[float, Interval(ge=0, le=3)]] = (0.0, 0.02, 0.05, 0.1, 0.3)
    small_vocab_size: Annotated[int, Ge(4)] = 10
    association_heads: Increasing[Count] = (5, 10, 20, 30, 40, 49)
    kept_heads: Increasing[Count] = (2, 4, 6, 8, 10)
    prior_exponent: Positive = 1.5
    widths: Increasing[Count] = (2, 3, 5, 7, 8)
    look_up_width: Count = 600

    def check(self) -> None:
        """Raise `InputError` if a width is not smaller than the rank of the distributions."""
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
