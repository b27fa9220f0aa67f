"""Decoding rules, and the law that the users of each believe they sample."""

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
from trialogue.samplers.prefix.sampler import Sampler

RESTRICTED = "the model, given the rule"
SHARPENED = "p(x)^(1/T), given the rule"
TEMPERED = "the tempered model, given the rule"
KEPT = "the model, given the rule and the cut"
LIKELIEST = "the likeliest valid output"
LIKELIEST_OF_ALL = "the likeliest output"

VERDICTS = "verdicts"
EXACT = "exact values"
NOISY = "noisy values"
TEMPERATURE, TOP_P, TOP_K = 0.7, 0.8, 2
QUOTA, STRIDE = 4, 2
BLOCK = 2


@dataclass(frozen=True)
class Rule:
    """A decoding rule: a `walk` on the oracle as `cut` truncates it, told verdicts of prefixes or values.

    `believed` is the law that it is held against: the model's law p given that an output is valid; that with p(x)^(1/T)
    in place of p(x), or with the law of the model at temperature T; or given too that all tokens are within the cut.
    `exact` says that it is proved to sample that, `weighs` that its outputs, drawn by their weights, are proved to.
    """

    walk: Sampler[Any]
    believed: str = RESTRICTED
    guide: str = VERDICTS
    cut: dict[str, Any] = field(default_factory=dict)
    exact: bool = False
    weighs: bool = False


NO_RULE, REJECTION, MASK = "no rule", "rejection", "mask"
RULES: dict[str, Rule] = {
    NO_RULE: Rule(Ancestral()),
    REJECTION: Rule(Rejection(), exact=True),
    "tokenwise rejection": Rule(TokenwiseRejection()),
    MASK: Rule(MaskedDecoding(), weighs=True),
    "backtracking": Rule(Backtracking(QUOTA, STRIDE)),
    "backtracking, as released": Rule(Backtracking.released(QUOTA, STRIDE)),
    "backtracking, redo sampled": Rule(Backtracking(QUOTA, STRIDE, argmax_redo=False)),
    "block best of 2": Rule(BlockBestOfN(2, block_tokens=BLOCK)),
    "particles, 2": Rule(SequentialMonteCarlo(2, 1.0, "mask"), weighs=True),
    "action level, exact values": Rule(ActionLevel(), guide=EXACT, exact=True),
    "action level, noisy values": Rule(ActionLevel(), guide=NOISY),
    "first leaf, verdicts": Rule(ValueGuided(lazy=False)),
    "first leaf, exact values": Rule(ValueGuided(lazy=False), guide=EXACT),
    "first leaf, noisy values": Rule(ValueGuided(lazy=False), guide=NOISY),
    "first leaf with momentum, verdicts": Rule(ValueGuided(lazy=False, momentum=1.0), exact=True),
    "first leaf by blocks, verdicts": Rule(BlockValueGuided(2, BLOCK)),
    "temperature, rejection": Rule(Rejection(), SHARPENED, cut={"temperature": TEMPERATURE}),
    "temperature, mask": Rule(MaskedDecoding(), TEMPERED, cut={"temperature": TEMPERATURE}, weighs=True),
    "top-p, rejection": Rule(Rejection(), KEPT, cut={"top_p": TOP_P}),
    "top-p, then mask": Rule(MaskedDecoding(mask_first=False), KEPT, cut={"top_p": TOP_P}),
    "mask, then top-p": Rule(MaskedDecoding(), KEPT, cut={"top_p": TOP_P}, weighs=True),
    "top-k, rejection": Rule(Rejection(), KEPT, cut={"top_k": TOP_K}),
    "top-k, then mask": Rule(MaskedDecoding(mask_first=False), KEPT, cut={"top_k": TOP_K}),
    "mask, then top-k": Rule(MaskedDecoding(), KEPT, cut={"top_k": TOP_K}, weighs=True),
    "greedy": Rule(Ancestral(), LIKELIEST_OF_ALL, cut={"temperature": 0.0}),
    "greedy, mask": Rule(MaskedDecoding(), LIKELIEST, cut={"temperature": 0.0}),
}
"""By name. Rejection finishes every draft. The first leaf with momentum 1 under verdicts is that of rejection that
begins again at the first refusal: its first token is masked, and it asks at every node that it passes on the way back
up."""
