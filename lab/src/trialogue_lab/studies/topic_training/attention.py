"""What one layer attends to by topics: Tables 2.1 and 2.2 of the thesis."""

from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.data import TopicModel
from trialogue.errors import InputError, whole_number
from trialogue_lab.models.topic_transformer import TopicTransformer

PER_WORDS = 100.0
"""Attention is given as it would be in a document of so many words: its mean over all pairs is one over that."""
_AT_ONCE = 64


class AttentionByClass(NamedTuple):
    """Mean attention of a position to one of the same word, to one of another word of its topic, and to any other."""

    same_word: float
    same_topic: float
    other: float


def attention_by_class(
    network: TopicTransformer, tokens: Tensor, model: TopicModel, shift: int = 0
) -> AttentionByClass:
    """Mean attention of the first layer over pairs of positions of documents `tokens` (n, N), -1 behind their ends.

    Weights are multiplied by a document's length over 100, so that documents of different lengths compare. With a
    `shift` a word's topic is taken to be that of the word so many places on, as where ids of tokens are taken for
    words; the last words are then of no topic of the model, but one of their own. Raises `InputError` for another
    vocabulary.
    """
    if model.vocab_size != network.vocab_size:
        hint = f"the network has {network.vocab_size} words: give its topic model"
        raise InputError("model", model.vocab_size, hint)
    moved = torch.arange(model.vocab_size) + whole_number("shift", shift, 0, model.vocab_size)
    topic = moved // model.words_per_topic
    word = torch.eye(model.vocab_size, dtype=torch.bool)
    mate = (topic[:, None] == topic) & ~word
    classes = torch.stack((word, mate, ~(word | mate))).double()
    attended, pairs = torch.zeros(2, 3, dtype=torch.float64)
    with torch.no_grad():
        for part in tokens.split(_AT_ONCE):
            counts = network.counts(part)
            weights = network.attention(counts).double().mean(1)[:, 1:, 1:]
            present = counts[:, 1:].double()
            both = present[:, :, None] * present[:, None]
            scaled = weights * both * (counts.double().sum(1) / PER_WORDS)[:, None, None]
            attended += (classes * scaled.sum(0)).sum((1, 2))
            pairs += (classes * both.sum(0)).sum((1, 2))
    return AttentionByClass(*(attended / pairs).tolist())
