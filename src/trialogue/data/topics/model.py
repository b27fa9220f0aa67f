"""Topic models whose topics share no words, with exact distributions and conditionals of documents.

The model is Definition 2.1.1 in section 2.1.1 of the thesis. There are T topics with v equally likely words each. The
share of a topic in a document is the probability that a word of the document belongs to the topic. A document has tau
distinct, uniformly sampled topics with equal shares 1 / tau. Alternatively, as in section 2.1.5.1, the shares have a
symmetric Dirichlet distribution. The topic of each word is sampled from the shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from scipy.special import gammaincinv
from torch import Tensor

from trialogue.arrays import integer_tensor, require_bools
from trialogue.data.topics.masking import BertMasking
from trialogue.errors import InputError
from trialogue.oracles import Energy, Masked
from trialogue.randomness import Streams, derive_seed
from trialogue.validation import Count, Natural, Positive, check, integer_range, validated

MAX_NUMBERS = 2**31
"""Maximum number of words, or of topic shares, that are sampled at once."""
PADDING = -1
"""Padding token after the end of a document."""


class Documents(NamedTuple):
    """Sampled documents, with the topic shares from which their words were drawn.

    The share of a topic is the probability that a word of the document belongs to it. With T topics of v words each,
    the vocabulary has T * v words.

    Attributes:
        tokens: Words (n, N) int64 from 0 to T * v - 1, right-padded with -1.
        shares: Topic shares (n, T) float64 of each document.
    """

    tokens: Tensor
    shares: Tensor


class TopicModel(Masked, Energy):
    """Distribution of documents of any length whose words come from a few topics.

    There are T topics with v equally likely words each, and word i belongs to topic i // v. The share of a
    topic in a document is the probability that a word of the document belongs to it. Either tau random topics
    have equal shares 1 / tau, or the shares of all topics have a symmetric Dirichlet distribution.

    Args:
        topics: Number T of topics.
        words_per_topic: Number v of words of a topic.
        topics_per_document: Number tau of topics of a document.
        concentration: Concentration of the Dirichlet distribution of the shares, as alternative to
            `topics_per_document`.

    Raises:
        InputError: If a number is out of range, or not exactly one of `topics_per_document` and
            `concentration` is given.
    """

    device = torch.device("cpu")

    @validated
    def __init__(
        self,
        topics: Count,
        words_per_topic: Count,
        topics_per_document: Count | None = None,
        *,
        concentration: Positive | None = None,
    ) -> None:
        if (topics_per_document is None) == (concentration is None):
            hint = "give either topics_per_document or the concentration of a Dirichlet distribution"
            raise InputError("topics_per_document", topics_per_document, hint)
        if topics_per_document is not None and topics_per_document > topics:
            raise InputError("topics_per_document", topics_per_document, f"use at most {topics}")
        self.topics, self.words_per_topic = topics, words_per_topic
        self.topics_per_document, self.concentration = topics_per_document, concentration
        self.vocab_size = topics * words_per_topic

    @validated
    def draw(self, documents: Natural, lengths: int | tuple[int, int], seed: Natural = 0) -> Documents:
        """Sample independent documents.

        Args:
            documents: Number n of documents.
            lengths: Length of all documents, or the minimum and maximum of uniformly distributed lengths.
            seed: Random seed (default: 0). Document i depends on the seed, `lengths` and i only.

        Returns:
            Words (n, maximum length), right-padded with -1, and topic shares (n, T).

        Raises:
            InputError: If the lengths are invalid or there are too many documents.
        """
        shortest, longest = self.checked_lengths(lengths)
        if documents * max(longest, self.topics) > MAX_NUMBERS:
            hint = f"sample at most {MAX_NUMBERS // max(longest, self.topics)} documents at once"
            raise InputError("documents", documents, hint)
        rows = torch.arange(documents)
        streams = Streams(derive_seed(seed, "topics", "documents"), rows)

        def uniform(count: int) -> Tensor:
            """Return `count` new uniform random numbers in [0, 1) for each document, shape (n, count)."""
            return streams.uniform(rows.repeat_interleave(count)).view(-1, count)

        sizes = shortest + (uniform(1) * (longest - shortest + 1)).long()
        shares = self._sample_shares(uniform)
        cumulative = shares.cumsum(1)
        total = cumulative[:, -1:]
        # A product that is rounded up to the total would select a topic with share 0.
        target = (uniform(longest) * total).minimum(total.nextafter(torch.zeros(())))
        topic = torch.searchsorted(cumulative, target, right=True)
        tokens = topic * self.words_per_topic + (uniform(longest) * self.words_per_topic).long()
        return Documents(tokens.masked_fill(torch.arange(longest) >= sizes, PADDING), shares)

    def same_topic(self) -> Tensor:
        """Return a matrix that marks the pairs of words of the same topic.

        Returns:
            Matrix (V, V) float64, 1 for two words of the same topic and 0 otherwise, where V is the vocabulary size.
        """
        topic = torch.arange(self.vocab_size) // self.words_per_topic
        return (topic[:, None] == topic).double()

    def share_moments(self) -> tuple[float, float]:
        """Return the second moments of the topic shares of a document.

        Returns:
            The expected square of the share of a topic, and the expected product of the shares of two different topics.
            The second is 0 if there is only one topic.
        """
        topics = self.topics
        if self.topics_per_document is not None:
            tau = self.topics_per_document
            return 1 / (tau * topics), (tau - 1) / (tau * topics * max(1, topics - 1))
        assert self.concentration is not None
        total = self.concentration * topics
        scale = topics * (total + 1)
        return (self.concentration + 1) / scale, self.concentration / scale if topics > 1 else 0.0

    def rates(self, masking: BertMasking) -> tuple[float, float, float]:
        """Return the probabilities of the tokens that BERT reads after masking, given the topics of a document.

        They are p_0, p_1 and p_2 of Proposition 2.1.1 of the thesis.

        Args:
            masking: Probabilities of the masking.

        Returns:
            Probability of [MASK], of each word of the document's topics, and of each other word.

        Raises:
            InputError: If the shares have a Dirichlet distribution.
        """
        if self.topics_per_document is None:
            raise InputError("model", "Dirichlet", "give a TopicModel with topics_per_document")
        random = masking.p_mask * masking.p_random / self.vocab_size
        original = (1 - (1 - masking.p_correct) * masking.p_mask) / (
            self.words_per_topic * self.topics_per_document
        )
        return masking.p_mask * masking.p_hidden, original + random, random

    def log_prob(self, tokens: Tensor) -> Tensor:
        """Return the log-probability of the words of each document given its length.

        Args:
            tokens: Documents (rows, N), right-padded with -1.

        Returns:
            Log-probabilities (rows,) float64.
        """
        counts = self._counts(self._words(tokens))
        words = counts.sum(1)
        within = -words * math.log(self.words_per_topic)
        if self.topics_per_document is None:
            assert self.concentration is not None
            concentration, total = self.concentration, self.concentration * self.topics
            gammas = (torch.lgamma(concentration + counts) - math.lgamma(concentration)).sum(1)
            return within + gammas + math.lgamma(total) - torch.lgamma(total + words)
        tau, seen = self.topics_per_document, (counts > 0).sum(1)
        # Fraction of the sets of tau topics that contain k given topics.
        fractions = [
            math.comb(self.topics - k, tau - k) / math.comb(self.topics, tau) for k in range(tau + 1)
        ]
        probability = torch.tensor([*fractions, 0.0], dtype=torch.float64)[seen.clamp_max(tau + 1)]
        return within - words * math.log(tau) + probability.log()

    def energy(self, tokens: Tensor) -> Tensor:
        """Return the negative log-probability of each document. See `log_prob`.

        Args:
            tokens: Documents (rows, N), right-padded with -1.

        Returns:
            Energies (rows,) float64.
        """
        return -self.log_prob(tokens)

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return the log-probabilities of the word at a masked site, given the words outside the mask.

        They are equal for all sites of a row, because the words of a document are exchangeable.

        Args:
            tokens: Documents (rows, N) int64, right-padded with -1. Words at masked sites are ignored.
            masked: Mask (rows, N) bool.

        Returns:
            Log-probabilities (rows, N, V) float64, where V is the vocabulary size.
        """
        tokens = self._words(tokens)
        require_bools("masked", masked, tuple(tokens.shape), "give one bool for each token")
        counts = self._counts(tokens.masked_fill(masked, PADDING))
        return self._word_log_probs(counts)[:, None].expand(-1, tokens.shape[1], -1)

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """Return log p(x_i | all other words) for every site i.

        Args:
            tokens: Documents (rows, N) int64, right-padded with -1.

        Returns:
            Log-probabilities (rows, N, V) float64, where V is the vocabulary size.
        """
        tokens = self._words(tokens)
        own = torch.nn.functional.one_hot((tokens // self.words_per_topic).clamp_min(0), self.topics)
        own = own * (tokens != PADDING)[:, :, None]
        return self._word_log_probs(own.sum(1, keepdim=True).double() - own)

    def _sample_shares(self, uniform: Callable[[int], Tensor]) -> Tensor:
        """Sample shares (n, T) float64. `uniform(k)` returns the next uniform random numbers (n, k)."""
        if self.topics_per_document is not None:
            return self.equal_shares(uniform(self.topics))
        assert self.concentration is not None
        shape = self.concentration
        # A gamma variate of this shape is one of shape + 1 times U^(1 / shape). Logarithms avoid underflow.
        first, second = (uniform(self.topics).clamp_min(2.0**-54) for _ in range(2))
        scaled = shape * torch.from_numpy(gammaincinv(shape + 1, first.numpy())).log() + second.log()
        return ((scaled - scaled.amax(1, keepdim=True)) / shape).softmax(1)

    def equal_shares(self, order: Tensor) -> Tensor:
        """Select tau topics per document and return their equal shares 1 / tau.

        Args:
            order: One number (n, T) per topic. The tau topics with the largest numbers are selected.

        Returns:
            Shares (n, T) float64, 0 for topics that are not selected.
        """
        tau = self.topics_per_document
        assert tau is not None
        shares = torch.zeros(order.shape, dtype=torch.float64)
        return shares.scatter_(1, order.topk(tau, 1).indices, 1 / tau)

    def _word_log_probs(self, counts: Tensor) -> Tensor:
        """Return the log-probabilities (..., V) of another word given the topic `counts` (..., T) of some words."""
        if self.topics_per_document is None:
            weights = counts + (self.concentration or 0.0)
        else:
            seen = (counts > 0).sum(-1, keepdim=True)
            unseen = (self.topics_per_document - seen).clamp_min(0).double()
            unseen = unseen / (self.topics - seen).clamp_min(1)
            weights = torch.where(counts > 0, torch.ones_like(counts), unseen)
        distributions = weights / weights.sum(-1, keepdim=True) / self.words_per_topic
        return distributions.log().repeat_interleave(self.words_per_topic, -1)

    def _counts(self, tokens: Tensor) -> Tensor:
        """Return the number (rows, T) float64 of words of each topic, without padding."""
        topic = torch.where(tokens < 0, self.topics, tokens // self.words_per_topic)
        counts = torch.zeros(len(tokens), self.topics + 1, dtype=torch.float64)
        return counts.scatter_add_(1, topic, torch.ones_like(topic, dtype=torch.float64))[:, :-1]

    def _words(self, tokens: Tensor) -> Tensor:
        words = integer_tensor("tokens", tokens, "give words (rows, N)")
        if words.ndim != 2:
            raise InputError("tokens", tuple(words.shape), "give words (rows, N)")
        wrong = words[(words < PADDING) | (words >= self.vocab_size)]
        if len(wrong):
            raise InputError("tokens", int(wrong[0]), f"use words from 0 to {self.vocab_size - 1}")
        return words

    def checked_lengths(self, lengths: int | tuple[int, int]) -> tuple[int, int]:
        """Return the minimum and maximum length of documents, or raise `InputError` if they are not valid.

        Args:
            lengths: Length of all documents, or the minimum and the maximum length.

        Raises:
            InputError: If a length is not positive, or the minimum exceeds the maximum.
        """
        pair = lengths if isinstance(lengths, tuple) else (lengths, lengths)
        if len(pair) != 2:
            raise InputError("lengths", lengths, "give one length, or the minimum and the maximum length")
        shortest = check("lengths", pair[0], Count)
        return shortest, check("lengths", pair[1], integer_range(shortest))
