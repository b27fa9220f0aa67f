"""Settings of the study: models, texts, topics, and where attention is read."""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, get_args

from annotated_types import Ge

from trialogue.errors import InputError
from trialogue.inspection.topic_structure.measure import TopicSettings
from trialogue_lab.ledger import Count, Different, Increasing, Seeds, Settings

Name = Literal["minilm", "smollm2", "gemma3", "bert", "albert", "bart", "electra", "roberta"]


class Model(NamedTuple):
    """Where a model is, and what claims call it: its name, and behind a comma what it is."""

    place: str
    said: str

    @property
    def name(self) -> str:
        """The name alone."""
        return self.said.partition(",")[0]


MODELS: dict[Name, Model] = {
    "minilm": Model("sentence-transformers/all-MiniLM-L6-v2", "MiniLM-L6, a sentence encoder"),
    "smollm2": Model("smollm2", "SmolLM2-135M, a decoder"),
    "gemma3": Model("gemma-3-270m-q4_k_m.gguf", "Gemma 3 270M, a decoder"),
    "bert": Model("google-bert/bert-base-uncased", "BERT"),
    "albert": Model("albert/albert-base-v2", "ALBERT"),
    "bart": Model("facebook/bart-base", "BART"),
    "electra": Model("google/electra-base-discriminator", "ELECTRA"),
    "roberta": Model("FacebookAI/roberta-base", "RoBERTa"),
}
HERE: tuple[Name, ...] = ("minilm", "smollm2", "gemma3")
"""The models that can be had without the hub."""
PUBLISHED: tuple[Name, ...] = tuple(name for name in get_args(Name) if name not in HERE)
"""Those of the source."""
WORDS = (15, 30, 61)
"""Words of a topic: the source's shares of the 30,522 tokens of BERT."""


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Every seed is a draw from the texts: passages, topics fitted to them, and texts that attention is read in."""

    seeds: Seeds = (0, 1, 2, 3, 4)
    models: Different[Name] = HERE
    tiny: bool = False
    """Small models with random weights in place of all these, for tests"""
    texts: Different[str] = ("brown", "wikitext-2")
    """Corpora of the hub, or files or folders, which go first; empty for made-up documents, for tests."""
    sample: Annotated[int, Ge(2)] = 1500
    """Passages of a text that a draw holds"""
    passage: Annotated[int, Ge(10)] = 200
    """Words of a passage"""
    topics: Annotated[int, Ge(2)] = 100
    passes: Count = 5
    least: Count = 5
    words: Increasing[Annotated[int, Ge(2)]] = WORDS
    read: Count = 24
    """Passages of a draw that attention is read in"""
    control_read: Count = 8
    """As many of these, of the first text, a model with random weights reads"""
    shortest: Annotated[int, Ge(8)] = 20
    length: Annotated[int, Ge(8)] = 128
    """They are cut to lengths between these, in tokens."""

    def check(self) -> None:
        """Raise `InputError` where fields do not go together."""
        if self.shortest > self.length:
            raise InputError("shortest", self.shortest, f"use at most length={self.length}")

    def topic_settings(self, seed: int) -> TopicSettings:
        """How the topics of a draw are found, and attention is read."""
        return TopicSettings(**self.shared(TopicSettings), seed=seed)


PRESETS = {
    "smoke": Config(
        seeds=(0, 1),
        models=HERE,
        tiny=True,
        texts=("",),
        sample=60,
        passage=20,
        topics=4,
        passes=3,
        least=2,
        words=(3, 5),
        read=16,
        control_read=16,
        length=24,
        shortest=10,
    ),
    "pilot": Config(seeds=(100, 101), read=100, control_read=32),
    "default": Config(),
    # Documents of a draw are what attention is noisy by: they are many here, the rest is as in default.
    "night": Config(seeds=tuple(range(200, 210)), read=200, control_read=64),
    "paper": Config(
        seeds=tuple(range(10)),
        models=PUBLISHED,
        texts=("wikitext-103",),
        sample=100_000,
        passes=10,
        read=2000,
        control_read=500,
    ),
}
