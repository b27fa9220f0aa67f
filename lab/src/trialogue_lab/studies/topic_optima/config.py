"""Settings of the study: sizes of topic models, and numbers of random matrices and documents."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Increasing, Probability, Seeds, Settings, Some

TopicsInDocuments = Annotated[int, Ge(2)]


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run, by default with the masking of the thesis' experiments.

    In a topic model, every topic has v words of its own, and a document contains a few topics.

    Args:
        seeds: Seeds of random optimal matrices and of simulated documents.
        p_mask: Share of tokens that are masked.
        p_correct: Share of masked tokens that keep their word.
        p_random: Share of masked tokens that are replaced by a random word. The others become [MASK].
        sizes: Sizes (topics, words per topic, topics per document) of the models whose documents are enumerated.
        words: Number of words of a simulated document.
        taus: Numbers tau of topics per document, in models with tau^2 topics and `many` words per topic.
        many: Number of words per topic in the models of `taus`.
        landscape: Numbers of topics and of words per topic in Figures 2.7 and 2.8.
        landscape_taus: Numbers of topics per document in these figures.
        points: Number of values of each of the two attention weights at which the loss is computed. They form a grid.
        drawn: Number of values of each weight in a plot of the loss.
        lengths: Numbers of words of the documents for which the optimal value matrix is computed.
    """

    seeds: Seeds = tuple(range(1, 9))
    p_mask: Probability = 0.15
    p_correct: Probability = 0.1
    p_random: Probability = 0.1
    sizes: Some[tuple[Count, Count, Count]] = (
        (4, 3, 2),
        (5, 2, 1),
        (5, 2, 4),
        (2, 3, 1),
        (7, 1, 3),
        (6, 5, 3),
        (10, 10, 3),
    )
    words: Count = 100_000
    taus: Increasing[TopicsInDocuments] = (10, 30, 100, 300, 1000)
    many: Annotated[int, Ge(5)] = 20
    landscape: tuple[Count, Count] = (100, 300)
    landscape_taus: Increasing[TopicsInDocuments] = (20, 40, 60, 80)
    points: Annotated[int, Ge(20)] = 200
    drawn: Annotated[int, Ge(10)] = 48
    lengths: Increasing[Count] = (10, 30, 100, 300, 1000, 10_000)

    def check(self) -> None:
        """Raise `InputError` if fields are inconsistent."""
        for size in self.sizes:
            if size[2] >= size[0]:
                raise InputError("sizes", size, "use fewer topics per document than topics")
        if self.landscape_taus[-1] >= self.landscape[0]:
            raise InputError(
                "landscape_taus", self.landscape_taus, f"use numbers below T = {self.landscape[0]}"
            )
        if self.p_correct + self.p_random >= 1:
            raise InputError(
                "p_random", self.p_random, f"use a value below 1 - p_correct = {1 - self.p_correct:g}"
            )


PRESETS = {
    "smoke": Config(
        seeds=(0, 10), sizes=((3, 2, 1),), words=1000, taus=(10, 30), points=40, drawn=12, lengths=(10, 100)
    ),
    "pilot": Config(seeds=(1000, 1001, 1002)),
    "default": Config(),
    "night": Config(seeds=tuple(range(1, 101)), words=1_000_000, points=1000),
}
