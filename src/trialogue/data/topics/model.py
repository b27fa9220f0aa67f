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
from trialogue.errors import InputError, positive_number, whole_number
from trialogue.oracles import Energy, Masked
from trialogue.randomness import Streams, seed_of

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

    def __init__(
        self,
        topics: int,
        words_per_topic: int,
        topics_per_document: int | None = None,
        *,
        concentration: float | None = None,
    ) -> None:
        self.topics = whole_number("topics", topics, 1)
        self.words_per_topic = whole_number("words_per_topic", words_per_topic, 1)
        if (topics_per_document is None) == (concentration is None):
            hint = "give either topics_per_document or the concentration of a Dirichlet distribution"
            raise InputError("topics_per_document", topics_per_document, hint)
        self.topics_per_document = (
            None
            if topics_per_document is None
            else whole_number("topics_per_document", topics_per_document, 1, self.topics)
        )
        self.concentration = (
            None if concentration is None else positive_number("concentration", concentration)
        )
        self.vocab_size = self.topics * self.words_per_topic

    def draw(self, documents: int, lengths: int | tuple[int, int], seed: int = 0) -> Documents:
        """Draw documents of a length, or of lengths drawn uniformly between two of them, both included.

        Document i depends on `seed`, the lengths and i alone: more documents begin with the same ones.
        """
        rows = torch.arange(whole_number("documents", documents, 0))
        least, most = self.checked_lengths(lengths)
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

    def expected_shares(self, inputs: Tensor, masking: BertMasking | None = None) -> Tensor:
        """The posterior mean (rows, T) float64 of the shares of topics, given what is read of documents.

        `inputs` (rows, N) are words, the mask T v, and -1 behind the end. Without `masking` words are taken as they
        are. With it a word may be a random one: of the restricted model the posterior is then a sum over all sets of
        tau topics, taken by elementary symmetric polynomials. tau times it is the probability that a document has the
        topic. Raises `InputError` for random words of the Dirichlet model, whose posterior has no closed form.
        """
        inputs = self._words(inputs, masks=True)
        counts = self._counts(inputs.masked_fill(inputs == self.vocab_size, PADDING))
        if masking is None or masking.p_mask * masking.p_random == 0:
            weights: Tensor = self._laws(counts)[:, :: self.words_per_topic].exp() * self.words_per_topic
            return weights
        if self.topics_per_document is None:
            hint = "with random words the posterior of Dirichlet shares has no closed form: use 0"
            raise InputError("p_random", masking.p_random, hint)
        _, inside, outside = self.rates(masking)
        return _included(counts * math.log(inside / outside), self.topics_per_document)

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

    def _words(self, tokens: Tensor, masks: bool = False) -> Tensor:
        words = whole_tensor("tokens", tokens, "give words (rows, N)")
        if words.ndim != 2:
            raise InputError("tokens", tuple(words.shape), "give words (rows, N)")
        wrong = words[(words < PADDING) | (words >= self.vocab_size + masks)]
        if len(wrong):
            raise InputError("tokens", int(wrong[0]), f"the words are 0 to {self.vocab_size - 1}")
        return words

    def checked_lengths(self, lengths: int | tuple[int, int]) -> tuple[int, int]:
        """Return the smallest and the largest length; raises `InputError` if `lengths` is invalid."""
        pair = lengths if isinstance(lengths, tuple) else (lengths, lengths)
        if len(pair) != 2:
            raise InputError("lengths", lengths, "give one length, or the least and the largest")
        least = whole_number("lengths", pair[0], 1)
        return least, whole_number("lengths", pair[1], least)


def _included(log_weights: Tensor, size: int) -> Tensor:
    """P(t is in S) / `size` (rows, T) of a set S of that size drawn in proportion to the product of its weights.

    By leaving one out: w_t e_(size - 1)(the others) / (size e_size(all)), in logarithms, without subtraction.
    """
    rows, topics = log_weights.shape
    below = log_weights.new_full((topics + 1, rows, size + 1), -torch.inf)
    above = below.clone()
    below[0, :, 0] = above[topics, :, 0] = 0
    for place in range(topics):
        mirrored = topics - 1 - place
        below[place + 1] = _joined(below[place], log_weights[:, place])
        above[mirrored] = _joined(above[mirrored + 1], log_weights[:, mirrored])
    total = below[topics, :, size]
    # Sets of the others: `taken` before t, the rest behind it.
    others = (below[:-1, :, :size] + above[1:, :, :size].flip(2)).logsumexp(2)
    return (log_weights + others.T - total[:, None]).exp() / size


def _joined(sums: Tensor, log_weight: Tensor) -> Tensor:
    """Log elementary symmetric polynomials (rows, size + 1) with one more variable."""
    grown = sums[:, :-1] + log_weight[:, None]
    return torch.cat((sums[:, :1], torch.logaddexp(sums[:, 1:], grown)), 1)
