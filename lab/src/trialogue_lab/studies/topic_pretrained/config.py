"""Settings of the study: models, texts, topics, and the passages in which attention is measured."""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, get_args

from annotated_types import Ge

from trialogue.errors import InputError
from trialogue.inspection.topic_structure.measure import TopicSettings
from trialogue_lab.ledger import Count, Different, Increasing, Seeds, Settings

Name = Literal["minilm", "smollm2", "gemma3", "bert", "albert", "bart", "electra", "roberta"]


class Model(NamedTuple):
    """A pretrained language model.

    Attributes:
        location: Folder, file, or name in the catalogue or on the hub.
        name: Name of the model in tables.
        kind: Description, for example "a decoder".
    """

    location: str
    name: str
    kind: str = ""

    @property
    def label(self) -> str:
        """Name and description of the model, as used in claims."""
        return f"{self.name}, {self.kind}"


MODELS: dict[Name, Model] = {
    "minilm": Model("sentence-transformers/all-MiniLM-L6-v2", "MiniLM-L6", "a sentence encoder"),
    "smollm2": Model("smollm2", "SmolLM2-135M", "a decoder"),
    "gemma3": Model("gemma-3-270m-q4_k_m.gguf", "Gemma 3 270M", "a decoder"),
    "bert": Model("google-bert/bert-base-uncased", "BERT"),
    "albert": Model("albert/albert-base-v2", "ALBERT"),
    "bart": Model("facebook/bart-base", "BART"),
    "electra": Model("google/electra-base-discriminator", "ELECTRA"),
    "roberta": Model("FacebookAI/roberta-base", "RoBERTa"),
}
HERE: tuple[Name, ...] = ("minilm", "smollm2", "gemma3")
"""Models that are available without the hub"""
PUBLISHED: tuple[Name, ...] = tuple(name for name in get_args(Name) if name not in HERE)
"""Models of the publication"""
WORDS = (15, 30, 61)
"""Numbers of words of a topic. They are the publication's shares of the 30,522 tokens of BERT."""


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    Each seed samples passages of the texts and fits topics to them. A topic is a distribution over words. It is
    represented by its most likely words. The embeddings of these words and the attention between them are measured in
    pretrained models.

    Args:
        seeds: One seed per sample of passages.
        models: Names of the models.
        tiny: Whether to replace the models by small ones with random weights, for tests.
        texts: Files, folders or corpora of the hub, in this order of precedence. Empty for synthetic documents, for
            tests.
        sample: Number of passages that are sampled from a text.
        passage: Number of words per passage.
        topics: Number of topics that are fitted to a sample.
        passes: Passes over the passages when topics are fitted.
        least: A topic only has words that occur in at least this many passages.
        words: Numbers of words that represent a topic.
        read: Number of passages in which attention is measured.
        control_read: Number of passages of the first text in which attention of models with random weights is measured.
        shortest: Minimum length, in tokens, to which these passages are truncated.
        length: Maximum length, in tokens, to which these passages are truncated.
    """

    seeds: Seeds = (0, 1, 2, 3, 4)
    models: Different[Name] = HERE
    tiny: bool = False
    texts: Different[str] = ("brown", "wikitext-2")
    sample: Annotated[int, Ge(2)] = 1500
    passage: Annotated[int, Ge(10)] = 200
    topics: Annotated[int, Ge(2)] = 100
    passes: Count = 5
    least: Count = 5
    words: Increasing[Annotated[int, Ge(2)]] = WORDS
    read: Count = 24
    control_read: Count = 8
    shortest: Annotated[int, Ge(8)] = 20
    length: Annotated[int, Ge(8)] = 128

    def check(self) -> None:
        """Raise `InputError` if fields are inconsistent."""
        if self.shortest > self.length:
            raise InputError("shortest", self.shortest, f"use at most length={self.length}")

    def topic_settings(self, seed: int) -> TopicSettings:
        """Return the settings for fitting topics and measuring attention.

        Args:
            seed: Seed of the topics.
        """
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
    # Attention varies with its documents. This preset has more of them than `default`.
    "night": Config(seeds=tuple(range(200, 210)), read=200, control_read=64),
    # The settings of `night` with new seeds, enough for two of its undecided claims to have a power of 0.8.
    "weekend": Config(seeds=tuple(range(300, 330)), read=200, control_read=64),
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
