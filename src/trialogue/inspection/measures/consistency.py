"""Measure of whether the predictions of a masked model belong to one joint distribution.

For a joint distribution, p(x_i | rest) p(x_j | x_i, rest) = p(x_j | rest) p(x_i | x_j, rest) for all tokens. A masked
model computes both sides separately, and they may differ. The mean log-ratio over pairs sampled in the first order is
the divergence KL(first order, second order) in nats. It is zero if the orders agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.errors import InputError
from trialogue.inspection.measures.measure import Effort, Material, Report
from trialogue.inspection.measures.passages import PassageMeasure
from trialogue.inspection.measures.quantities import Quantity, curve_quantity, mean_point, single_quantity
from trialogue.inspection.subject import Passages, Subject
from trialogue.oracles import Masked
from trialogue.randomness import Choose, Streams, numpy_generator

LENGTH = 48
DISTANCES = (1, 2, 4, 8, 16)
_ROWS = 32
_FINDING = "The two orders of filling in two masked tokens of the text differ by {} nats"


class OrderLogRatios(NamedTuple):
    """Comparison of the two orders in which two masked tokens of a row can be filled in.

    The tokens are at positions i and j. The first order fills in position i and then j, and the second order
    fills in j and then i. All arrays are float64 of shape (n,) in nats, with one entry per row.

    Attributes:
        text: Log-probability of the tokens of the text in the first order minus the one in the second order.
        sampled: The same difference for tokens that are sampled in the first order.
        information: log p(x_j | x_i, rest) - log p(x_j | rest) for the sampled tokens, where "rest" is the row
            without both tokens.
    """

    text: NDArray[np.float64]
    sampled: NDArray[np.float64]
    information: NDArray[np.float64]


def compare_orders(
    masked: Masked, tokens: Tensor, first: Tensor, second: Tensor, choose: Choose
) -> OrderLogRatios:
    """Compare the two orders in which two masked tokens of each row can be filled in.

    Args:
        masked: Masked oracle.
        tokens: Token ids of shape (n, L).
        first: Position of one of the two tokens in each row, shape (n,).
        second: Position of the other token in each row, shape (n,).
        choose: Function that samples a token for each row, given log-probabilities (n, vocab) and row indices
            (n,).

    Returns:
        Differences of log-probabilities between both orders.
    """
    rows = torch.arange(len(tokens))
    mask = torch.zeros_like(tokens, dtype=torch.bool)
    mask[rows, first] = mask[rows, second] = True
    both = masked.log_probs(tokens, mask).double()
    first_log_probs, second_log_probs = both[rows, first], both[rows, second]

    def ratio(x: Tensor) -> tuple[Tensor, Tensor]:
        one, other = x[rows, first], x[rows, second]
        given_one = masked.site_log_weights(x, second).double()[rows, other]
        given_other = masked.site_log_weights(x, first).double()[rows, one]
        first_order = first_log_probs[rows, one] + given_one
        other_alone = second_log_probs[rows, other]
        return first_order - other_alone - given_other, given_one - other_alone

    sampled = tokens.clone()
    sampled[rows, first] = choose(first_log_probs, rows)
    sampled[rows, second] = choose(masked.site_log_weights(sampled, second), rows)
    (at_text, _), (at_sampled, information) = ratio(tokens), ratio(sampled)
    return OrderLogRatios(*(values.numpy() for values in (at_text, at_sampled, information)))


class MaskedConsistency(PassageMeasure):
    """Measure of whether the conditional distributions of a masked model belong to one joint distribution.

    Two masked tokens are filled in one after the other, in both orders. For a joint distribution, both orders
    have the same probability.
    """

    question = "Are the masked conditionals consistent with a joint distribution?"
    reading = (
        "Two tokens of a text are masked and filled in one after the other, in both orders. For a joint distribution, "
        "both orders have the same probability, so the difference is 0 nats. The difference is also small for random "
        "weights, because their tokens are nearly independent. Compare it with the information that one token has "
        "about the other. Intervals are over documents."
    )
    kinds = ("masked",)
    length, least_length, rows = LENGTH, 4, _ROWS
    stream = ("consistency", "stretches")

    def count_tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Return the number of tokens of six forward passes over each passage at each distance.

        One pass has both tokens masked, and five passes have one of them masked.

        Args:
            subject: Model to measure.
            material: Texts on which the model is evaluated.
            effort: Sample sizes and seed.
        """
        width = self.passage_length(subject) + sum(map(len, subject.frame))
        return 6 * len(_distances(self.passage_length(subject))) * effort.rows(self.rows) * width

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Compare both orders of filling in two masked tokens, at distances from 1 to 16 between them.

        For each order, the probability of a pair of tokens is the probability of the first token times that of the
        second given the first. Both orders agree if the model is consistent.

        Args:
            subject: Masked model.
            material: Text from which the passages are sampled.
            effort: Number of passages and seed.
            report: Called with progress messages.

        Returns:
            Three single numbers and two curves over the distance between the tokens. The numbers are means over
            distances: the absolute log-ratio of both orders on the text, the divergence of both orders, and the
            information that one token has about the other. The curves are the divergence and the information at each
            distance.

        Raises:
            InputError: If the text has too few passages, or all of its tokens have probability zero.
        """
        random = numpy_generator(effort.seed, "consistency")
        passages, distances = (
            self.sample_passages(subject, material, effort),
            _distances(self.passage_length(subject)),
        )
        tokens = subject.framed(passages.tokens, end=True)
        streams = Streams(effort.seed, torch.arange(len(tokens)))
        found = {}
        for distance in distances:
            report(f"distance {distance}")
            last = passages.tokens.shape[1] - distance
            first = len(subject.frame[0]) + torch.from_numpy(random.integers(0, last, len(tokens)))
            found[distance] = compare_orders(subject.masked, tokens, first, first + distance, streams.choose)
        text, sampled, information = (np.stack(values) for values in zip(*found.values(), strict=True))
        # The difference is not finite for tokens of probability zero, for instance special tokens.
        known = np.isfinite(text)
        usable = known.any(0)
        if not usable.any():
            raise InputError("model", subject.name, "all tokens of the text have probability zero")
        differences = np.abs(np.where(known, text, 0.0)).sum(0)[usable] / known.sum(0)[usable]
        usable_passages = Passages(passages.tokens[torch.from_numpy(usable)], passages.documents[usable])
        difference = mean_point(usable_passages.document_means(differences))
        document_means, unit, along = passages.document_means, "nats per pair", "tokens apart"
        divergences = [mean_point(document_means(one.sampled), distance) for distance, one in found.items()]
        gains = [mean_point(document_means(one.information), distance) for distance, one in found.items()]
        reach = f", mean over {distances[0]} to {distances[-1]} apart"
        divergence, gain = "divergence of the orders", "information of one token about the other"
        return [
            single_quantity(
                f"orders differ on the text{reach}", difference, unit=unit, exact=0.0, finding=_FINDING
            ),
            single_quantity(
                f"{divergence}{reach}", mean_point(document_means(sampled.mean(0))), unit=unit, exact=0.0
            ),
            single_quantity(f"{gain}{reach}", mean_point(document_means(information.mean(0))), unit=unit),
            curve_quantity(divergence, divergences, along, unit=unit, exact=0.0),
            curve_quantity(gain, gains, along, unit=unit),
        ]


def _distances(length: int) -> list[int]:
    return [distance for distance in DISTANCES if 2 * distance <= length]
