"""The decoding methods, with the distributions that their users expect."""

from dataclasses import dataclass, field
from typing import Any

from trialogue.samplers import (
    ActionLevel,
    Ancestral,
    Backtracking,
    BlockBestOfN,
    BlockValueGuided,
    MaskedDecoding,
    Rejection,
    SequentialMonteCarlo,
    TokenwiseRejection,
    ValueGuided,
)
from trialogue.samplers.prefix.contract.sampler import Sampler

RESTRICTED = "the model given the constraint"
SHARPENED = "p(x)^(1/T) given the constraint"
TEMPERED = "the tempered model given the constraint"
KEPT = "the model given constraint and truncation"
LIKELIEST = "the most probable valid output"
LIKELIEST_OF_ALL = "the most probable output"

VERDICTS = "verdicts"
EXACT = "exact values"
NOISY = "noisy values"
TEMPERATURE, TOP_P, TOP_K = 0.7, 0.8, 2
QUOTA, STRIDE = 4, 2
BLOCK = 2


@dataclass(frozen=True)
class DecodingMethod:
    """A decoding method under a constraint, with the distribution that its users expect.

    Args:
        sampler: The sampler.
        believed: Name of the expected distribution, for example `RESTRICTED`, the model given the constraint.
        guide: Function of prefixes that guides the sampler: `EXACT` for the probability that the model
            completes the prefix to a valid string, `NOISY` for the same with random errors, or `VERDICTS` for
            1 if this is possible and 0 if not.
        cut: Keyword arguments that truncate the model's next-token distributions, for example `{"top_p":
            0.8}`.
        exact: Whether the method provably samples from the expected distribution.
        weighs: Whether selecting one of many outputs by importance weight provably gives the expected
            distribution.
    """

    sampler: Sampler[Any]
    believed: str = RESTRICTED
    guide: str = VERDICTS
    cut: dict[str, Any] = field(default_factory=dict)
    exact: bool = False
    weighs: bool = False


UNCONSTRAINED, REJECTION, MASK = "no rule", "rejection", "mask"
METHODS: dict[str, DecodingMethod] = {
    UNCONSTRAINED: DecodingMethod(Ancestral()),
    REJECTION: DecodingMethod(Rejection(), exact=True),
    "tokenwise rejection": DecodingMethod(TokenwiseRejection()),
    MASK: DecodingMethod(MaskedDecoding(), weighs=True),
    "backtracking": DecodingMethod(Backtracking(QUOTA, STRIDE)),
    "backtracking, as released": DecodingMethod(Backtracking.released(QUOTA, STRIDE)),
    "backtracking, redo sampled": DecodingMethod(Backtracking(QUOTA, STRIDE, argmax_redo=False)),
    "block best of 2": DecodingMethod(BlockBestOfN(2, block_tokens=BLOCK)),
    "particles, 2": DecodingMethod(SequentialMonteCarlo(2, 1.0, "mask"), weighs=True),
    "action level, exact values": DecodingMethod(ActionLevel(), guide=EXACT, exact=True),
    "action level, noisy values": DecodingMethod(ActionLevel(), guide=NOISY),
    "first leaf, verdicts": DecodingMethod(ValueGuided(lazy=False)),
    "first leaf, exact values": DecodingMethod(ValueGuided(lazy=False), guide=EXACT),
    "first leaf, noisy values": DecodingMethod(ValueGuided(lazy=False), guide=NOISY),
    "first leaf with momentum, verdicts": DecodingMethod(ValueGuided(lazy=False, momentum=1.0), exact=True),
    "first leaf by blocks, verdicts": DecodingMethod(BlockValueGuided(2, BLOCK)),
    "temperature, rejection": DecodingMethod(Rejection(), SHARPENED, cut={"temperature": TEMPERATURE}),
    "temperature, mask": DecodingMethod(
        MaskedDecoding(), TEMPERED, cut={"temperature": TEMPERATURE}, weighs=True
    ),
    "top-p, rejection": DecodingMethod(Rejection(), KEPT, cut={"top_p": TOP_P}),
    "top-p, then mask": DecodingMethod(MaskedDecoding(mask_first=False), KEPT, cut={"top_p": TOP_P}),
    "mask, then top-p": DecodingMethod(MaskedDecoding(), KEPT, cut={"top_p": TOP_P}, weighs=True),
    "top-k, rejection": DecodingMethod(Rejection(), KEPT, cut={"top_k": TOP_K}),
    "top-k, then mask": DecodingMethod(MaskedDecoding(mask_first=False), KEPT, cut={"top_k": TOP_K}),
    "mask, then top-k": DecodingMethod(MaskedDecoding(), KEPT, cut={"top_k": TOP_K}, weighs=True),
    "greedy": DecodingMethod(Ancestral(), LIKELIEST_OF_ALL, cut={"temperature": 0.0}),
    "greedy, mask": DecodingMethod(MaskedDecoding(), LIKELIEST, cut={"temperature": 0.0}),
}
"""Decoding methods by name. Rejection checks finished outputs.

"First leaf" methods are value-guided random walks that stop at the first complete string. With momentum 1 and verdicts,
such a walk is rejection sampling that restarts at the first rejected prefix. It masks the first token, and calls the
model at every node on the way back to the root.
"""
