"""Measure of the loss of a model on real text by the number of preceding tokens (context length)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from trialogue.inspection.interaction_order.reading import TOLERANCE, saturation_step
from trialogue.inspection.measures.measure import Effort, Material, Report
from trialogue.inspection.measures.passages import PassageMeasure
from trialogue.inspection.measures.quantities import (
    Quantity,
    bootstrap_point,
    curve_quantity,
    mean_point,
    single_quantity,
)
from trialogue.inspection.subject import Subject

LENGTH = 256
_ROWS = 48


def context_bin_edges(length: int) -> list[int]:
    """Return the smallest context length of each bin, which is 1, 2, 4 and so on.

    The bin that starts at k contains the context lengths from k to 2k - 1. The context length of a token is the
    number of tokens before it.

    Args:
        length: Number of tokens of a passage. Bins that do not fit into it are left out.
    """
    return [2**power for power in range(length.bit_length()) if 2 ** (power + 1) <= length]


def mean_loss_by_context_length(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average the losses of each passage over bins of the context length.

    The context length of a token is the number of tokens before it in the passage.

    Args:
        losses: Loss of each token except the first, shape (n, L - 1), for n passages of L tokens.

    Returns:
        Mean loss of each passage in each bin of `context_bin_edges`, shape (n, bins).
    """
    edges = context_bin_edges(losses.shape[1] + 1)
    return np.stack([losses[:, edge - 1 : 2 * edge - 1].mean(1) for edge in edges], 1)


class ContextLength(PassageMeasure):
    """Measure of the loss on real text as a function of the context length.

    The context length of a token is the number of tokens before it. The measure also finds the context length
    from which more context hardly reduces the loss.
    """

    question = "Up to which length does context reduce the loss on real text?"
    reading = (
        "Passages start at random positions of the text, so their first tokens have a short context. Each point is the "
        "mean over context lengths from the given number of tokens to twice that number. The context that matters is "
        f"the shortest one whose loss exceeds the minimum by at most {TOLERANCE:.0%} of the total decrease. A gain "
        "below 0 means that the loss with the longest context is the higher one. Intervals are over documents."
    )
    length, least_length, rows = LENGTH, 8, _ROWS
    stream = ("context",)

    def count_tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Return the number of tokens of all passages, each of which the model processes once.

        Args:
            subject: Model to measure.
            material: Texts on which the model is evaluated.
            effort: Sample sizes and seed.
        """
        return effort.rows(self.rows) * (self.passage_length(subject) + len(subject.frame[0]))

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Measure the loss by context length.

        Args:
            subject: Causal model.
            material: Text from which the passages are sampled.
            effort: Number of passages and seed.
            report: Called with progress messages.

        Returns:
            Two single numbers and a curve. The numbers are the context length from which the loss is saturated,
            and the decrease of the loss from the shortest contexts to the longest ones. The curve is the loss
            by context length, in nats per token.
        """
        passages = self.sample_passages(subject, material, effort)
        rows = passages.tokens
        losses = []
        for batch in subject.batches(subject.framed(rows)):
            targets = batch[:, len(subject.frame[0]) + 1 :]
            distributions = subject.logits(batch)[:, -targets.shape[1] - 1 : -1].log_softmax(-1)
            losses.append(-distributions.gather(-1, targets[..., None])[..., 0].double())
            report(f"{sum(map(len, losses))} of {len(rows)} passages")
        binned = passages.document_means(mean_loss_by_context_length(torch.cat(losses).numpy()))
        edges = context_bin_edges(rows.shape[1])

        def saturation_length(documents: NDArray[np.int64]) -> float:
            return float(saturation_step(edges, binned[documents].mean(0).tolist()))

        unit = "nats per token"
        losses_by_edge = [mean_point(binned[:, index], edge, lowest=0.0) for index, edge in enumerate(edges)]
        length = bootstrap_point(saturation_length, len(binned), effort.seed)
        return [
            single_quantity(f"context that matters, of up to {edges[-1]}", length, unit="tokens"),
            single_quantity(
                f"gained by {edges[-1]} tokens of context",
                mean_point(binned[:, 0] - binned[:, -1]),
                unit=unit,
            ),
            curve_quantity("loss", losses_by_edge, "tokens of context", unit=unit),
        ]
