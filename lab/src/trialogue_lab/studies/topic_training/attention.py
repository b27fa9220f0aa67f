"""Mean attention of one layer within and between topics (Tables 2.1 and 2.2 of the thesis).

A topic is a group of words that occur in the same documents.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.data import TopicModel
from trialogue.errors import InputError
from trialogue.validation import check, integer_range
from trialogue_lab.models.topic_transformer import TopicTransformer

REFERENCE_LENGTH = 100.0
"""Number of words of a document to which attention is scaled. The mean weight is then 1 / 100."""
_BATCH_SIZE = 64


class AttentionByClass(NamedTuple):
    """Mean attention weights of a transformer between words, for the same word, the same topic and other topics.

    Attributes:
        same_word: Mean weight between positions with the same word.
        same_topic: Mean weight between positions with different words of the same topic.
        other: Mean weight between positions with words of different topics.
    """

    same_word: float
    same_topic: float
    other: float


def compute_attention_by_class(
    network: TopicTransformer, tokens: Tensor, model: TopicModel, shift: int = 0
) -> AttentionByClass:
    """Return the mean attention weights of the first layer, for the same word, the same topic and other topics.

    Weights are rescaled to documents of 100 words.

    Args:
        network: The transformer.
        tokens: Documents (n, N), padded with -1.
        model: Topic model of the documents, which assigns a topic to every word.
        shift: Number of words by which topics are shifted (default: 0). A word is then assigned the topic of
            the word `shift` places later, as in the authors' code.

    Returns:
        The mean weights for the same word, for other words of the same topic, and for words of other topics.

    Raises:
        InputError: If the network and the topic model have different vocabularies.
    """
    if model.vocab_size != network.vocab_size:
        hint = f"use a topic model with {network.vocab_size} words, like the network"
        raise InputError("model", model.vocab_size, hint)
    shifted = torch.arange(model.vocab_size) + check("shift", shift, integer_range(0, model.vocab_size))
    topic = shifted // model.words_per_topic
    same_word = torch.eye(model.vocab_size, dtype=torch.bool)
    same_topic = (topic[:, None] == topic) & ~same_word
    classes = torch.stack((same_word, same_topic, ~(same_word | same_topic))).double()
    attended, pairs = torch.zeros(2, 3, dtype=torch.float64)
    with torch.no_grad():
        for batch in tokens.split(_BATCH_SIZE):
            counts = network.counts(batch)
            weights = network.attention(counts).double().mean(1)[:, 1:, 1:]
            present = counts[:, 1:].double()
            both = present[:, :, None] * present[:, None]
            scaled = weights * both * (counts.double().sum(1) / REFERENCE_LENGTH)[:, None, None]
            attended += (classes * scaled.sum(0)).sum((1, 2))
            pairs += (classes * both.sum(0)).sum((1, 2))
    return AttentionByClass(*(attended / pairs).tolist())
