"""Task of a run: the cosine similarity of every pair of the named words."""

from functools import partial
from itertools import combinations
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import normalize

from trialogue.errors import InputError
from trialogue.models.hub.attention_weights import AttentionModel, load_attention_model
from trialogue_lab.ledger import MeasuredRows, Part, record_model
from trialogue_lab.studies.topic_pretrained.tiny import make_tiny_model
from trialogue_lab.studies.topic_words.config import Config


def parts(config: Config) -> list[Part]:
    """Return the task (`Part`) of a run, which compares the embeddings of all pairs of the named words.

    Args:
        config: Settings of the run.
    """
    return [Part("words", partial(_measure_words, config))]


def find_tokens(model: AttentionModel, words: list[str]) -> Tensor:
    """Return the token of each word.

    Args:
        model: Model with a tokenizer.
        words: Words (n).

    Returns:
        Token ids (n,) int64.

    Raises:
        InputError: A word is not exactly one token of the model, or is its unknown token.
    """
    tokens = []
    for word in words:
        found = model.tokenizer(word, add_special_tokens=False)["input_ids"]
        if len(found) != 1 or found[0] == model.tokenizer.unk_token_id:
            raise InputError("topics", word, f"use words that are one token of {model.name}")
        tokens += found
    return torch.tensor(tokens)


def _measure_words(config: Config, _: Path) -> MeasuredRows:
    if config.tiny:
        model = make_tiny_model("minilm", causal=False)
    else:
        model = load_attention_model(config.model)
        record_model({"model": config.model, "files": model.files})
    topic_of = {word: topic for topic, words in enumerate(config.topics) for word in words}
    vectors = normalize(model.embeddings(find_tokens(model, list(topic_of))).double(), dim=1)
    cosines = (vectors @ vectors.T).tolist()
    for (first, one), (second, other) in combinations(enumerate(topic_of), 2):
        topics = topic_of[one], topic_of[other]
        yield {
            "kind": "pair",
            "first": one,
            "second": other,
            "first_topic": topics[0],
            "second_topic": topics[1],
            "same": topics[0] == topics[1],
            "cosine": cosines[first][second],
        }
