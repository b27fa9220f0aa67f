"""Sampling of topic-model documents with the random numbers that the committed topic studies used."""

import torch

from trialogue.data.topics.model import PADDING, Documents, TopicModel
from trialogue.randomness import generator, numpy_generator
from trialogue.validation import Natural, validated


@validated
def sample_document_batch(
    model: TopicModel, documents: Natural, lengths: int | tuple[int, int], seed: int = 0
) -> Documents:
    """Sample documents of a topic model, exactly as in the studies whose results are already stored.

    This function only exists so that those results can be reproduced. Use `TopicModel.draw` for new studies: there, a
    document stays the same if more documents are sampled. Here, all documents change with `documents`.

    Args:
        model: Distribution of the documents.
        documents: Number of documents n.
        lengths: Length of all documents, or the smallest and the largest length, both included.
        seed: Seed of the random streams.

    Returns:
        Words (n, longest length), padded with -1, and the share of each topic in each document (n, T).

    Raises:
        InputError: If the number of documents or a length is out of range.
    """
    least, most = model.checked_lengths(lengths)
    random = generator(seed, "topics", "words")
    sizes = torch.randint(least, most + 1, (documents,), generator=random)
    if model.topics_per_document is None:
        concentrations = [model.concentration or 0.0] * model.topics
        drawn = numpy_generator(seed, "topics", "shares").dirichlet(concentrations, documents)
        shares = torch.from_numpy(drawn)
    else:
        order = torch.rand(documents, model.topics, generator=generator(seed, "topics", "shares"))
        shares = model.equal_shares(order)
    if not documents:
        return Documents(torch.empty(0, most, dtype=torch.int64), shares)
    topic = torch.multinomial(shares, most, replacement=True, generator=random)
    word = torch.randint(model.words_per_topic, topic.shape, generator=random)
    tokens = topic * model.words_per_topic + word
    return Documents(tokens.masked_fill(torch.arange(most) >= sizes[:, None], PADDING), shares)
