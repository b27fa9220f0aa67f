"""Settings of the study and its presets."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue_lab.ledger import Count, Increasing, Positive, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run. The defaults are the preset `default`.

    The networks are transformers whose weights are constructed, not trained. A network is balanced if each opening
    bracket and its matching closing bracket cancel in the attention sums. A balanced network predicts the exact
    probabilities of the next bracket.

    Args:
        seeds: Seeds of the balanced networks to which noise is added, and of their prefixes.
        exact_seeds: Seeds of the balanced networks whose predictions are compared with the exact distribution.
        chain_seeds: Seeds of the networks on which the inequalities of Theorem 2.2.2 are tested. Three in ten are
            balanced networks with noise, and the others are random.
        types: Number of bracket types.
        depth: Largest number of brackets that are open at the same time.
        logits_std: Standard deviation of the attention scores.
        prefixes: Number of prefixes for the comparison with the exact distribution.
        longest: Largest length of these prefixes, in brackets.
        disturbances: Standard deviations of the noise that is added to the attention scores.
        disturbed_prefixes: Number of prefixes on which networks with noise are tested, for each range of lengths.
    """

    seeds: Seeds = tuple(range(101, 111))
    exact_seeds: Seeds = (1, 2, 3)
    chain_seeds: Seeds = tuple(range(1000, 1500))
    types: Annotated[int, Ge(2)] = 3
    depth: Annotated[int, Ge(2)] = 4
    logits_std: Positive = 2.0
    prefixes: Count = 1000
    longest: Count = 5000
    disturbances: Increasing[Positive] = (0.001, 0.01, 0.1, 1.0)
    disturbed_prefixes: Count = 100


PRESETS = {
    "smoke": Config(
        seeds=(0,),
        exact_seeds=(0,),
        chain_seeds=(0, 1, 2, 3),
        prefixes=8,
        longest=200,
        disturbed_prefixes=5,
    ),
    "pilot": Config(
        seeds=tuple(range(3000, 3004)),
        exact_seeds=(3010,),
        chain_seeds=tuple(range(3100, 3120)),
        prefixes=100,
    ),
    "default": Config(),
}
