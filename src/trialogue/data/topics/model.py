"""Topic models whose topics share no word: documents, their exact distribution, conditionals and posteriors of topics.

Section 2.1.1 of the thesis, Definition 2.1.1: T topics of v words each, all equally likely within a topic. A document
has tau distinct topics, drawn uniformly, each with the share 1 / tau; or, as in section 2.1.5.1, shares from a
symmetric Dirichlet distribution. Every word draws its topic by these shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from scipy.special import gammaincinv
from torch import Tensor

from trialogue.arrays import require_bools, whole_tensor
from trialogue.data.topics.masking import BertMasking
from trialogue.errors import InputError
from trialogue.oracles import Energy, Masked
from trialogue.randomness import Streams, seed_of
from trialogue.validation import Count, Natural, Positive, check, integer_range, validated

MAX_NUMBERS = 2**31
"""Documents of more words, or more shares of topics, are not drawn at once."""
PADDING = -1
"""What stands behind the end of the shorter ones of several documents."""


class Documents(NamedTuple):
    """Documents `tokens` (n, N) int64 of words 0, ..., T v - 1, then -1, and the `shares` (n, T) of their topics."""

    tokens: Tensor
    shares: Tensor


class TopicModel(Masked, Energy):
    """The distribution of documents of `topics` times `words_per_topic` words; word i is of the topic i // v.

    Give `topics_per_document`, tau, or the `concentration` of a Dirichlet distribution of shares. It is an energy and a
    masked oracle of documents of any length: words given topics are independent, so that conditionals are in closed
    form. Of documents that no draw gives, with more than tau topics, conditionals are those of their topics alone.

    Raises `InputError` for numbers out of range, and unless one of the two is given.
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
        """Draw documents of a length, or of lengths drawn uniformly between two of them, both included.

        Document i depends on `seed`, the lengths and i alone: more documents begin with the same ones.
        """
        least, most = self.checked_lengths(lengths)
        if documents * max(most, self.topics) > MAX_NUMBERS:
            hint = f"so many documents would not fit: draw at most {MAX_NUMBERS // max(most, self.topics)}"
            raise InputError("documents", documents, hint)
        rows = torch.arange(documents)
        streams = Streams(seed_of(seed, "topics", "documents"), rows)

        def uniform(each: int) -> Tensor:
            """Return the next numbers (n, each) of every document."""
            return streams.uniform(rows.repeat_interleave(each)).view(-1, each)

        sizes = least + (uniform(1) * (most - least + 1)).long()
        shares = self._shares(uniform)
        below = shares.cumsum(1)
        # Strictly below the sum, also where rounding lifts a product to it: else a topic without a share would be next.
        target = (uniform(most) * below[:, -1:]).minimum(below[:, -1:].nextafter(torch.zeros(())))
        topic = torch.searchsorted(below, target, right=True)
        tokens = topic * self.words_per_topic + (uniform(most) * self.words_per_topic).long()
        return Documents(tokens.masked_fill(torch.arange(most) >= sizes, PADDING), shares)

    def same_topic(self) -> Tensor:
        """Whether two words are of one topic (V, V) float64: 1 or 0."""
        topic = torch.arange(self.vocab_size) // self.words_per_topic
        return (topic[:, None] == topic).double()

    def share_moments(self) -> tuple[float, float]:
        """E[s_t^2] and E[s_t s_u] of the shares of a topic and of two different ones; the second is 0 where T is 1."""
        topics = self.topics
        if self.topics_per_document is not None:
            tau = self.topics_per_document
            return 1 / (tau * topics), (tau - 1) / (tau * topics * max(1, topics - 1))
        assert self.concentration is not None
        total = self.concentration * topics
        scale = topics * (total + 1)
        return (self.concentration + 1) / scale, self.concentration / scale if topics > 1 else 0.0

    def rates(self, masking: BertMasking) -> tuple[float, float, float]:
        """p_0, p_1, p_2 of Proposition 2.1.1: how often [MASK], a word of the document's topics, and any other is read.

        Raises `InputError` unless documents have a number of topics.
        """
        if self.topics_per_document is None:
            hint = "give a TopicModel with topics_per_document: shares of others differ by document"
            raise InputError("model", "Dirichlet", hint)
        random = masking.p_mask * masking.p_random / self.vocab_size
        own = (1 - (1 - masking.p_correct) * masking.p_mask) / (
            self.words_per_topic * self.topics_per_document
        )
        return masking.p_mask * masking.p_hidden, own + random, random

    def log_prob(self, tokens: Tensor) -> Tensor:
        """log p (rows,) float64 of documents `tokens` (rows, N) given their lengths; -1 stands behind their ends."""
        counts = self._counts(self._words(tokens))
        words = counts.sum(1)
        within = -words * math.log(self.words_per_topic)
        if self.topics_per_document is None:
            assert self.concentration is not None
            each, total = self.concentration, self.concentration * self.topics
            gammas = (torch.lgamma(each + counts) - math.lgamma(each)).sum(1)
            return within + gammas + math.lgamma(total) - torch.lgamma(total + words)
        tau, seen = self.topics_per_document, (counts > 0).sum(1)
        # Sets of tau topics that hold those seen, among all.
        sets = [math.comb(self.topics - k, tau - k) / math.comb(self.topics, tau) for k in range(tau + 1)]
        chance = torch.tensor([*sets, 0.0], dtype=torch.float64)[seen.clamp_max(tau + 1)]
        return within - words * math.log(tau) + chance.log()

    def energy(self, tokens: Tensor) -> Tensor:
        """-log p (rows,) float64 of documents of one length, `tokens` (rows, N)."""
        return -self.log_prob(tokens)

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p(x_i | x outside the mask) (rows, N, vocab) float64: one distribution for all masked sites of a row."""
        tokens = self._words(tokens)
        require_bools("masked", masked, tuple(tokens.shape), "give one bool for each token")
        counts = self._counts(tokens.masked_fill(masked, PADDING))
        return self._laws(counts)[:, None].expand(-1, tokens.shape[1], -1)

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """log p(x_i | all others) (rows, N, vocab) float64 of every site i."""
        tokens = self._words(tokens)
        own = torch.nn.functional.one_hot((tokens // self.words_per_topic).clamp_min(0), self.topics)
        own = own * (tokens != PADDING)[:, :, None]
        return self._laws(own.sum(1, keepdim=True).double() - own)

    def _shares(self, uniform: Callable[[int], Tensor]) -> Tensor:
        """Shares (n, T) float64 from uniform numbers in [0, 1), of which `uniform(k)` returns the next (n, k)."""
        if self.topics_per_document is not None:
            return self.equal_shares(uniform(self.topics))
        assert self.concentration is not None
        shape = self.concentration
        # A gamma variate of this shape is one of shape + 1 times U^(1 / shape), which would underflow.
        first, second = (uniform(self.topics).clamp_min(2.0**-54) for _ in range(2))
        scaled = shape * torch.from_numpy(gammaincinv(shape + 1, first.numpy())).log() + second.log()
        return ((scaled - scaled.amax(1, keepdim=True)) / shape).softmax(1)

    def equal_shares(self, order: Tensor) -> Tensor:
        """Shares (n, T) float64 of documents whose topics are the tau with the largest numbers in `order` (n, T)."""
        tau = self.topics_per_document
        assert tau is not None
        shares = torch.zeros(order.shape, dtype=torch.float64)
        return shares.scatter_(1, order.topk(tau, 1).indices, 1 / tau)

    def _laws(self, counts: Tensor) -> Tensor:
        """Log-laws (..., V) of a further word after words whose topics have the `counts` (..., T)."""
        if self.topics_per_document is None:
            weights = counts + (self.concentration or 0.0)
        else:
            seen = (counts > 0).sum(-1, keepdim=True)
            left = (self.topics_per_document - seen).clamp_min(0).double() / (self.topics - seen).clamp_min(1)
            weights = torch.where(counts > 0, torch.ones_like(counts), left)
        distributions = weights / weights.sum(-1, keepdim=True) / self.words_per_topic
        return distributions.log().repeat_interleave(self.words_per_topic, -1)

    def _counts(self, tokens: Tensor) -> Tensor:
        """How many words (rows, T) float64 of each topic there are, padding left out."""
        topic = torch.where(tokens < 0, self.topics, tokens // self.words_per_topic)
        counts = torch.zeros(len(tokens), self.topics + 1, dtype=torch.float64)
        return counts.scatter_add_(1, topic, torch.ones_like(topic, dtype=torch.float64))[:, :-1]

    def _words(self, tokens: Tensor) -> Tensor:
        words = whole_tensor("tokens", tokens, "give words (rows, N)")
        if words.ndim != 2:
            raise InputError("tokens", tuple(words.shape), "give words (rows, N)")
        wrong = words[(words < PADDING) | (words >= self.vocab_size)]
        if len(wrong):
            raise InputError("tokens", int(wrong[0]), f"the words are 0 to {self.vocab_size - 1}")
        return words

    def checked_lengths(self, lengths: int | tuple[int, int]) -> tuple[int, int]:
        """Return the smallest and the largest length; raises `InputError` if `lengths` is invalid."""
        pair = lengths if isinstance(lengths, tuple) else (lengths, lengths)
        if len(pair) != 2:
            raise InputError("lengths", lengths, "give one length, or the least and the largest")
        least = check("lengths", pair[0], Count)
        return least, check("lengths", pair[1], integer_range(least))
