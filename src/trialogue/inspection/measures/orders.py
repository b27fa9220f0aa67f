"""Measure of which reveal order suits a masked model: the log-likelihood of a text under each order.

If the order depends only on revealed tokens, the sampler that reveals tokens in this order has a distribution of its
own. The log-likelihood of a text is the sum of the log-probabilities of its tokens in the passes that reveal them.

References:
    DUEL: exact likelihood of masked diffusion models under deterministic orders (arXiv 2603.01367).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.errors import InputError
from trialogue.inspection.measures.measure import Effort, Material, Report
from trialogue.inspection.measures.passages import PassageMeasure
from trialogue.inspection.measures.quantities import (
    Point,
    Quantity,
    curve_quantity,
    mean_point,
    single_quantity,
)
from trialogue.inspection.subject import Passages, Subject
from trialogue.oracles import Masked
from trialogue.randomness import derive_seed
from trialogue.samplers.unmasking.likelihood import text_log_probs
from trialogue.samplers.unmasking.ordered import Ordered
from trialogue.samplers.unmasking.orders import Confidence, Entropy, LeftToRight, Margin, Order, Random
from trialogue.samplers.unmasking.sizes import Fixed

LENGTH = 32
POSITIONS = (1, 2, 4, 8)
"""Numbers of positions per pass."""
BLOCK = 8
RANDOM = "random order"
ORDERS: dict[str, tuple[Order, int | None]] = {
    RANDOM: (Random(), None),
    "left to right": (LeftToRight(), None),
    "confidence": (Confidence(), None),
    "entropy": (Entropy(), None),
    "margin": (Margin(), None),
    f"confidence in blocks of {BLOCK}": (Confidence(), BLOCK),
}
"""Order and width of the blocks, by name."""
COMPARED = f", compared with {RANDOM}"
"""End of the names of the differences from random order."""
_ROWS = 16
_FINDING = "Revealing by confidence gives the text {} nats per token more than " + RANDOM


def order_log_probs(
    model: Masked, tokens: Tensor, masked: Tensor, positions: int, seed: int
) -> dict[str, NDArray[np.float64]]:
    """Return the log-likelihood of each text under each order, in nats per masked token.

    Args:
        model: The masked model.
        tokens: Texts (rows, length) int64.
        masked: Positions (rows, length) bool that are masked and revealed again, at least one per row.
        positions: Number of positions per pass.
        seed: Seed of the random order. Its value is the log-probability of the text given the drawn order.

    Returns:
        Values (rows,) by the name of the order.
    """
    prompts, count = tokens.masked_fill(masked, -1), masked.sum(1).cpu().numpy()
    samplers = {
        name: Ordered(order, Fixed(positions), blocks=blocks) for name, (order, blocks) in ORDERS.items()
    }
    return {
        name: text_log_probs(sampler, model, tokens, prompts, seed=seed).cpu().numpy() / count
        for name, sampler in samplers.items()
    }


class RevealOrder(PassageMeasure):
    """Measure of which reveal order gives a text the highest log-likelihood.

    The tokens of a text are masked, and revealed again in an order, with the tokens of the text.
    """

    question = "Which reveal order suits the model?"
    reading = (
        f"The tokens of passages of {LENGTH} tokens are masked and revealed again. The sum of their log-probabilities "
        "is the log-likelihood of the passage under the sampler that reveals in this order, because the order depends "
        "on revealed tokens only. The sampler with the highest number is nearest to the text, and takes one pass per "
        f"token, or {LENGTH} / k passes with k tokens per pass. For {RANDOM}, each passage has one order drawn in "
        "advance. The mean of its log-likelihood is at most that of the sampler that draws its own order. The numbers "
        "of two orders are likelihoods under two distributions. Do not take the best order of each passage, because "
        "the highest of several likelihoods belongs to no distribution. With random weights, all orders are nearly "
        f"equal. Intervals are over documents. The intervals of the {len(ORDERS) - 1} differences from {RANDOM} hold "
        "together."
    )
    kinds = ("masked",)
    length, least_length, rows = LENGTH, BLOCK, _ROWS
    stream = ("orders", "passages")

    def refusal(self, subject: Subject, material: Material) -> str | None:
        """Return the reason why the measure does not apply, or None if it applies.

        Args:
            subject: Model to measure.
            material: Available texts. Samples of the model cannot replace them.
        """
        reason = super().refusal(subject, material)
        if reason and subject.kind in self.kinds and not material.has(self.needs):
            reason += ", because samples of the model would favour the order in which they were revealed"
        return reason

    def count_tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Return the number of tokens of all passes over the passages, for each order and number per pass.

        Args:
            subject: Model to measure.
            material: Texts on which the model is evaluated.
            effort: Sample sizes and seed.
        """
        length = self.passage_length(subject)
        passes = sum(-(-length // positions) for positions in POSITIONS)
        width = length + sum(map(len, subject.frame))
        return len(ORDERS) * passes * effort.rows(self.rows) * width

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Compute the log-likelihood of passages under each order.

        Tokens that the model never predicts, such as unknown words, are not masked.

        Args:
            subject: Masked model.
            material: Text from which the passages are sampled.
            effort: Number of passages and seed.
            report: Called with progress messages.

        Returns:
            A single number, the gain of the order by confidence over random order. Curves over the number of tokens
            per pass: the gain of each order over random order, and the log-likelihood under each order.

        Raises:
            InputError: If the text has too few passages, or the model predicts none of their tokens.
        """
        passages = self.sample_passages(subject, material, effort)
        tokens, first = subject.framed(passages.tokens, end=True), len(subject.frame[0])
        masked = torch.zeros_like(tokens, dtype=torch.bool)
        masked[:, first : first + passages.tokens.shape[1]] = True
        masked &= subject.masked.proposable(tokens)
        usable = masked.any(1)
        if not bool(usable.any()):
            raise InputError("model", subject.name, "it predicts none of the tokens of the text")
        tokens, masked = tokens[usable], masked[usable]
        documents = Passages(passages.tokens[usable], passages.documents[usable.numpy()])
        gains: dict[str, list[NDArray[np.float64]]] = {}
        scores: dict[str, list[NDArray[np.float64]]] = {}
        for positions in POSITIONS:
            report(f"{positions} {'token' if positions == 1 else 'tokens'} per pass")
            found = _evaluate(subject, tokens, masked, positions, effort.seed)
            for name, values in found.items():
                scores.setdefault(name, []).append(documents.document_means(values))
                gains.setdefault(name, []).append(documents.document_means(values - found[RANDOM]))
        del gains[RANDOM]
        along, unit, together = "tokens per pass", "nats per token", len(gains)

        def points(values: list[NDArray[np.float64]], intervals: int) -> Iterator[Point]:
            return (
                mean_point(one, at, intervals=intervals) for one, at in zip(values, POSITIONS, strict=True)
            )

        gain = mean_point(gains["confidence"][0], intervals=together)
        return [
            single_quantity(f"confidence{COMPARED}, one token per pass", gain, unit=unit, finding=_FINDING),
            *(
                curve_quantity(f"{name}{COMPARED}", points(values, together), along, unit=f"{unit} more")
                for name, values in gains.items()
            ),
            *(
                curve_quantity(f"log-likelihood, {name}", points(values, 1), along, unit=unit)
                for name, values in scores.items()
            ),
        ]


def _evaluate(
    subject: Subject, tokens: Tensor, masked: Tensor, positions: int, seed: int
) -> dict[str, NDArray[np.float64]]:
    """Return `order_log_probs` of all passages, in batches that fit into memory."""
    sizes = [len(batch) for batch in subject.batches(tokens)]
    found = [
        order_log_probs(subject.masked, *parts, positions, derive_seed(seed, "orders", number))
        for number, parts in enumerate(zip(tokens.split(sizes), masked.split(sizes), strict=True))
    ]
    return {name: np.concatenate([one[name] for one in found]) for name in ORDERS}
