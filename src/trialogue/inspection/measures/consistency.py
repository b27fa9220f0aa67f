"""Masked conditionals: do both orders of filling in two tokens come to one joint distribution?

Of a joint distribution p(x_i | rest) p(x_j | x_i, rest) is p(x_j | rest) p(x_i | x_j, rest), whatever the tokens; a
masked model answers for either side, and need not agree with itself. The mean of the logarithm of their ratio over
pairs drawn in the first order is the divergence KL(first order, second order) in nats, zero where the orders agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.errors import InputError
from trialogue.inspection.measures.measure import Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import Quantity, curve, mean, number
from trialogue.inspection.subject import Passages, Subject
from trialogue.oracles import Masked
from trialogue.randomness import Choose, Streams, numpy_generator

LENGTH = 48
DISTANCES = (1, 2, 4, 8, 16)
_ROWS = 32


class Orders(NamedTuple):
    """What the two orders make of the two tokens of each row, all (rows,) float64 in nats."""

    text: NDArray[np.float64]
    """log of first over second order at the tokens of the text"""
    drawn: NDArray[np.float64]
    """the same at tokens drawn in the first order"""
    told: NDArray[np.float64]
    """what the first token drawn tells of the second: log p(x_j | x_i, rest) / p(x_j | rest)"""


def compared_orders(masked: Masked, tokens: Tensor, first: Tensor, second: Tensor, choose: Choose) -> Orders:
    """Both orders at the sites `first` and `second` (rows,) of `tokens` (rows, N)."""
    every = torch.arange(len(tokens))
    hidden = torch.zeros_like(tokens, dtype=torch.bool)
    hidden[every, first] = hidden[every, second] = True
    both = masked.log_probs(tokens, hidden).double()
    before, behind = both[every, first], both[every, second]

    def ratio(x: Tensor) -> tuple[Tensor, Tensor]:
        one, other = x[every, first], x[every, second]
        given_one = masked.site_log_weights(x, second).double()[every, other]
        given_other = masked.site_log_weights(x, first).double()[every, one]
        ahead = before[every, one] + given_one
        return ahead - behind[every, other] - given_other, given_one - behind[every, other]

    drawn = tokens.clone()
    drawn[every, first] = choose(before, every)
    drawn[every, second] = choose(masked.site_log_weights(drawn, second), every)
    (at_text, _), (at_drawn, told) = ratio(tokens), ratio(drawn)
    return Orders(*(part.numpy() for part in (at_text, at_drawn, told)))


class MaskedConsistency(Measure):
    """How much the two orders of filling in two tokens disagree."""

    question = "Do its masked conditionals agree on a joint distribution?"
    reading = (
        "Two tokens of a text are masked and filled in, one given the other, in both orders. A joint "
        "distribution gives the "
        "same either way: a difference of 0 nats. Random weights disagree little because they tell little: "
        "beside it stands what one token tells of the other. Intervals are over documents."
    )
    kinds = ("masked",)
    needs = "text"

    def model_refusal(self, subject: Subject) -> str | None:
        """Why no two tokens can be masked."""
        if subject.tokenizer.mask_token_id is None:
            return "its tokenizer has no mask token"
        return None if _length(subject) >= 4 else f"it reads {subject.max_length} tokens"

    def require(self, subject: Subject, material: Material, effort: Effort) -> None:
        """Raise `InputError` for a text with too few stretches."""
        _stretches(subject, material, effort)

    def tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Six times each stretch: both masked, and one of them five times."""
        width = _length(subject) + sum(map(len, subject.frame))
        return 6 * len(_distances(subject)) * effort.rows(_ROWS) * width

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Differences of all pairs, and the divergence by how far apart they are."""
        random = numpy_generator(effort.seed, "consistency")
        stretches, distances = _stretches(subject, material, effort), _distances(subject)
        tokens = subject.framed(stretches.tokens, end=True)
        streams = Streams(effort.seed, torch.arange(len(tokens)))
        found = {}
        for distance in distances:
            report(f"{distance} apart")
            last = stretches.tokens.shape[1] - distance
            first = len(subject.frame[0]) + torch.from_numpy(random.integers(0, last, len(tokens)))
            found[distance] = compared_orders(subject.masked, tokens, first, first + distance, streams.choose)
        text, drawn, told = (np.stack(part) for part in zip(*found.values(), strict=True))
        # Of a token that the model never proposes there is no such number.
        known = np.isfinite(text)
        some = known.any(0)
        if not some.any():
            raise InputError("model", subject.name, "it proposes none of the tokens of the text")
        differences = np.abs(np.where(known, text, 0.0)).sum(0)[some] / known.sum(0)[some]
        of_text = Passages(stretches.tokens[torch.from_numpy(some)], stretches.documents[some])
        differing = mean(of_text.document_means(differences))
        document_means, unit, along = stretches.document_means, "nats a pair", "tokens apart"
        divergences = [mean(document_means(one.drawn), distance) for distance, one in found.items()]
        gains = [mean(document_means(one.told), distance) for distance, one in found.items()]
        reach = f", mean over {distances[0]} to {distances[-1]} apart"
        divergence, tells = "divergence of the orders", "one token tells of the other"
        return [
            number(f"orders differ on the text{reach}", differing, unit=unit, exact=0.0),
            number(f"{divergence}{reach}", mean(document_means(drawn.mean(0))), unit=unit, exact=0.0),
            number(f"{tells}{reach}", mean(document_means(told.mean(0))), unit=unit),
            curve(divergence, divergences, along, unit=unit, exact=0.0),
            curve(tells, gains, along, unit=unit),
        ]


def _stretches(subject: Subject, material: Material, effort: Effort) -> Passages:
    random = numpy_generator(effort.seed, "consistency", "stretches")
    return subject.sample_passages(material.documents, _length(subject), effort.rows(_ROWS), random)


def _length(subject: Subject) -> int:
    return min(LENGTH, subject.max_length - sum(map(len, subject.frame)))


def _distances(subject: Subject) -> list[int]:
    return [distance for distance in DISTANCES if 2 * distance <= _length(subject)]
