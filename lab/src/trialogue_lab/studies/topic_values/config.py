"""Settings of the study: documents, initial weights, and steps of training."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue_lab.ledger import Count, Positive, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run. Documents are those of `topic-training`; each seed is a set of them with its networks."""

    seeds: Seeds = tuple(range(601, 613))
    topics: Annotated[int, Ge(2)] = 10
    words_per_topic: Annotated[int, Ge(2)] = 10
    documents: Annotated[int, Ge(40)] = 10_000
    tests: Annotated[int, Ge(10)] = 500
    batch_size: Count = 40
    deviation: Positive = 0.0006
    """Standard deviation of initial weights: that of the printed entries outside blocks."""
    library_deviation: Positive = 0.02
    """Standard deviation of initial weights in the library that the authors use."""
    rate: Positive = 0.01
    steps: Annotated[int, Ge(10)] = 700
    penalty: Positive = 1e-4
    """lambda, where there is an L2 penalty."""


PRESETS = {
    "smoke": Config(
        seeds=(0, 10), topics=4, words_per_topic=3, documents=60, tests=10, batch_size=10, steps=10
    ),
    "pilot": Config(seeds=(1000, 1001, 1002)),
    "default": Config(),
}
