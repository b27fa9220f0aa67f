"""Settings of the study: documents, the scale of inputs and training steps."""

import math
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue_lab.ledger import Count, Different, Positive, Seeds, Settings

FIGURE_RATE = 0.01
"""Learning rate of Figures 2.5 and 2.6"""


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    For each seed, networks are trained on one set of documents of a topic model.

    Args:
        seeds: One seed per set of documents.
        topics: Number of topics, which are groups of words.
        words_per_topic: Number of words per topic.
        documents: Number of training documents.
        tests: Number of test documents.
        batch_size: Number of documents per batch.
        entries: Number of entries of a one-hot input of the released code. Its layer norm makes the largest entry equal
            to the square root of `entries - 1`.
        deviation: Standard deviation of initial weights. The default is the default of the library that the authors
            use.
        rates: Learning rates of SGD, as printed in Table 2.1.
        steps: Number of steps. The default is 20 passes over the documents, the largest number in the released code.
    """

    seeds: Seeds = tuple(range(701, 707))
    topics: Annotated[int, Ge(2)] = 10
    words_per_topic: Annotated[int, Ge(2)] = 10
    documents: Annotated[int, Ge(40)] = 10_000
    tests: Annotated[int, Ge(10)] = 500
    batch_size: Count = 40
    entries: Annotated[int, Ge(2)] = 104
    deviation: Positive = 0.02
    rates: Different[Positive] = (FIGURE_RATE, 0.03)
    steps: Annotated[int, Ge(10)] = 5000

    @property
    def input_scale(self) -> float:
        """Largest entry of a one-hot vector of `entries` entries after layer normalization."""
        return math.sqrt(self.entries - 1)


PRESETS = {
    "smoke": Config(
        seeds=(0, 10), topics=4, words_per_topic=3, documents=60, tests=10, batch_size=10, steps=10
    ),
    "pilot": Config(seeds=(1000, 1001, 1002), steps=1000),
    "default": Config(),
    # The settings of `default` with new seeds, enough to decide its undecided claim with a power of 0.8.
    "night": Config(seeds=tuple(range(2101, 2117))),
}
