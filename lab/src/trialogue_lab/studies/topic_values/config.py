"""Settings of the study: documents, initial weights and training steps."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue_lab.ledger import Count, Positive, Seeds, Settings


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
        deviation: Standard deviation of initial weights. The default is the published standard deviation of the trained
            entries between words of different topics.
        library_deviation: Standard deviation of initial weights in the comparison. The default is the default of the
            library that the authors use.
        rate: Learning rate.
        steps: Number of steps.
        penalty: Coefficient lambda of the L2 penalty.
    """

    seeds: Seeds = tuple(range(601, 613))
    topics: Annotated[int, Ge(2)] = 10
    words_per_topic: Annotated[int, Ge(2)] = 10
    documents: Annotated[int, Ge(40)] = 10_000
    tests: Annotated[int, Ge(10)] = 500
    batch_size: Count = 40
    deviation: Positive = 0.0006
    library_deviation: Positive = 0.02
    rate: Positive = 0.01
    steps: Annotated[int, Ge(10)] = 700
    penalty: Positive = 1e-4


PRESETS = {
    "smoke": Config(
        seeds=(0, 10), topics=4, words_per_topic=3, documents=60, tests=10, batch_size=10, steps=10
    ),
    "pilot": Config(seeds=(1000, 1001, 1002)),
    "default": Config(),
    # Other seeds than `default`, which leaves a claim undecided.
    "night": Config(seeds=tuple(range(701, 749))),
}
