"""Settings of the study: the documents of the thesis' experiments, and how long networks are trained."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue_lab.ledger import Count, Positive, Seeds, Settings

RATES = {"adam": (0.003, 0.01, 0.03), "sgd": (0.01, 0.03)}
"""Learning rates of Table 2.1"""
SETTINGS = [(optimizer, rate) for optimizer, rates in RATES.items() for rate in rates]
"""Optimiser and rate of each row of that table"""
DIAGONAL_RATES = (0.003, 0.01)
"""Those of Table 2.2"""
FIGURE_RATE = 0.01
"""That of the figures"""
SGD_RATES = {
    "embeddings": {"CE": 3.0, "squared": 0.5},
    "values": {"CE": 30.0, "squared": 0.3},
    "attention": {"CE": 30.0},
}
"""Rates of ours by what is trained and loss, at which SGD comes far in `slower` times the steps of Adam.

At those of the source it hardly moves. They were tried on the documents of the pilot, by losses: of the rates 1, 3, 10
and 30 (squared loss: 0.1, 0.3, 0.5, 1) those at which the loss fell most; of larger ones some diverge.
"""


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Every seed is one set of documents, with networks trained on it by cross-entropy or squared loss, Adam or SGD.

    Documents are those of section 2.1.5.1: shares from a Dirichlet law, 100 to 150 words, masks drawn once.
    """

    seeds: Seeds = tuple(range(41, 49))
    topics: Annotated[int, Ge(2)] = 10
    words_per_topic: Annotated[int, Ge(2)] = 10
    concentration: Positive = 0.1
    lengths: tuple[Count, Count] = (100, 150)
    documents: Annotated[int, Ge(40)] = 4000
    tests: Annotated[int, Ge(10)] = 500
    """Documents on which losses and attention are measured."""
    batch_size: Count = 40
    deviation: Positive = 0.02
    """Standard deviation of initial weights: that of the library which the authors' code uses."""
    value_steps: Annotated[int, Ge(10)] = 500
    """Steps that train values alone"""
    embedding_steps: Annotated[int, Ge(10)] = 300
    attention_steps: Annotated[int, Ge(10)] = 500
    slower: Count = 5
    """So many times these steps SGD takes at `SGD_RATES`."""
    penalty: Positive = 1e-4
    """lambda, where there is an L2 penalty."""
    stage_steps: Annotated[int, Ge(20)] = 1000
    stage_rate: Positive = 3.0
    """Learning rate of SGD in two stages."""
    stage_deviation: Positive = 0.01
    deep_steps: Annotated[int, Ge(20)] = 200
    deep_width: Annotated[int, Ge(4)] = 48
    """Width of four layers of four heads."""
    deep_rate: Positive = 0.003


PRESETS = {
    "smoke": Config(
        seeds=(0, 10),
        topics=4,
        words_per_topic=3,
        lengths=(8, 12),
        documents=60,
        tests=10,
        batch_size=10,
        value_steps=10,
        embedding_steps=10,
        attention_steps=10,
        slower=1,
        stage_steps=20,
        deep_steps=20,
        deep_width=8,
    ),
    "pilot": Config(seeds=(1000, 1001), slower=3),
    "default": Config(),
    "night": Config(
        seeds=tuple(range(41, 61)),
        documents=10_000,
        value_steps=2500,
        embedding_steps=2500,
        attention_steps=2500,
        stage_steps=2000,
        deep_steps=400,
        deep_width=104,
    ),
}
