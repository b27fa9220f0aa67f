"""Context: what a token of real text costs by how many tokens before it a model may read."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from trialogue.inspection.interaction_order.reading import TOLERANCE, saturation_step
from trialogue.inspection.measures.measure import Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import Quantity, curve, mean, number, resampled
from trialogue.inspection.subject import Passages, Subject
from trialogue.randomness import numpy_generator

LENGTH = 256
_ROWS = 48


def edges_of(length: int) -> list[int]:
    """Context lengths 1, 2, 4, ... at which those of a stretch of `length` tokens are parted: each up to the next."""
    return [2**power for power in range(length.bit_length()) if 2 ** (power + 1) <= length]


def by_context(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means (rows, edges) of `losses` (rows, N - 1) of all but the first token of a stretch, by tokens before them."""
    edges = edges_of(losses.shape[1] + 1)
    return np.stack([losses[:, edge - 1 : 2 * edge - 1].mean(1) for edge in edges], 1)


class ContextLength(Measure):
    """The loss of a token of real text by the length of its context."""

    question = "How far back does context still make real text cheaper?"
    reading = (
        "Passages of the text begin anywhere in it: their first tokens have little context, their last ones much. "
        "Each point is the mean from that many tokens to twice as many. The length that matters is the first whose "
        f"loss is within {TOLERANCE:.0%} of the whole drop of the least. Intervals are over documents."
    )
    needs = "text"

    def model_refusal(self, subject: Subject) -> str | None:
        """Why it has no context to speak of."""
        return None if _length(subject) >= 8 else f"it reads {subject.max_length} tokens"

    def require(self, subject: Subject, material: Material, effort: Effort) -> None:
        """Raise `InputError` for a text with too few stretches."""
        _stretches(subject, material, effort)

    def tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Each stretch once."""
        return effort.rows(_ROWS) * (_length(subject) + len(subject.frame[0]))

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Losses by the length of the context, and the length that matters."""
        stretches = _stretches(subject, material, effort)
        rows = stretches.tokens
        losses = []
        for part in subject.batches(subject.framed(rows)):
            asked = part[:, len(subject.frame[0]) + 1 :]
            distributions = subject.logits(part)[:, -asked.shape[1] - 1 : -1].log_softmax(-1)
            losses.append(-distributions.gather(-1, asked[..., None])[..., 0].double())
            report(f"{sum(map(len, losses))} of {len(rows)} stretches")
        parted = stretches.document_means(by_context(torch.cat(losses).numpy()))
        edges = edges_of(rows.shape[1])

        def matters(chosen: NDArray[np.int64]) -> float:
            return float(saturation_step(edges, parted[chosen].mean(0).tolist()))

        unit = "nats a token"
        losses_by_edge = [mean(parted[:, place], edge) for place, edge in enumerate(edges)]
        length = resampled(matters, len(parted), effort.seed)
        return [
            number(f"context that matters, of up to {edges[-1]}", length, unit="tokens"),
            number(f"gained by {edges[-1]} tokens of context", mean(parted[:, 0] - parted[:, -1]), unit=unit),
            curve("loss", losses_by_edge, "tokens of context", unit=unit),
        ]


def _stretches(subject: Subject, material: Material, effort: Effort) -> Passages:
    random = numpy_generator(effort.seed, "context")
    return subject.sample_passages(material.documents, _length(subject), effort.rows(_ROWS), random)


def _length(subject: Subject) -> int:
    return min(LENGTH, subject.max_length - len(subject.frame[0]))
