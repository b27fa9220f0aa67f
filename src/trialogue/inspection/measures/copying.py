"""Copying: random tokens are written twice, and the second time each could be looked up at one distance.

Nothing but its source tells what such a token is: it is uniform among the ordinary tokens, and costs the logarithm of
their number in nats, unless the model finds its source.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.inspection.measures.measure import Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import Point, Quantity, combined, curve, mean, number, share
from trialogue.inspection.subject import Subject
from trialogue.randomness import generator

DISTANCES = (4, 16, 64, 256)
_TOKENS, _MOST, _LEAST = 768, 48, 6
_ASKED = 4
"""Sites of a row at which a masked model is asked."""


def repeated(ordinary: Tensor, distance: int, rows: int, seed: int) -> Tensor:
    """Rows (rows, 2 distance) int64 of tokens drawn uniformly from `ordinary` (n,), each row twice."""
    places = torch.randint(len(ordinary), (rows, distance), generator=generator(seed, "copying", distance))
    return ordinary[places].repeat(1, 2)


class Copying(Measure):
    """Accuracy and loss of repeated random tokens by the distance to their source."""

    question = "How far back does it find the source of a token that it should copy?"
    reading = (
        "Random tokens, written twice. Right: the repeated token is the likeliest. Chance is one in the vocabulary. "
        "The first repeated token does not count for a causal model: nothing says that the repetition begins, and at a "
        "short distance little says so later."
    )
    kinds = ("causal", "masked")

    def model_refusal(self, subject: Subject) -> str | None:
        """Why it cannot be asked at any distance."""
        least = 2 * DISTANCES[0] + sum(map(len, subject.frame))
        if subject.max_length < least:
            return f"it reads {subject.max_length} tokens, and this takes {least}"
        return None

    def tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """All rows twice as long as their distance; of a masked model, once for every site asked about."""
        framed = sum(map(len, subject.frame))
        asked = 1 if subject.kind == "causal" else _ASKED
        return sum(_rows(d, effort) * (2 * d + framed) * min(asked, d) for d in _distances(subject))

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Accuracies and losses of all distances that fit into what the model reads."""
        right: list[Point] = []
        losses: list[Point] = []
        for distance in _distances(subject):
            report(f"distance {distance}")
            rows = repeated(subject.ordinary_tokens, distance, _rows(distance, effort), effort.seed)
            asked = _causal if subject.kind == "causal" else _masked
            found, cost = asked(subject, rows)
            right.append(share(found.mean(1), distance))
            losses.append(mean(cost.mean(1), distance))
        uniform = math.log(len(subject.ordinary_tokens))
        along, reach = "tokens to the source", f"mean over distances {right[0].at:g} to {right[-1].at:g}"
        return [
            number(f"copied, {reach}", combined(right), exact=1.0),
            curve("copied", right, along, exact=1.0),
            curve("loss", losses, along, unit="nats a token", exact=0.0),
            number("loss without the source", Point(uniform), unit="nats a token"),
        ]


def _distances(subject: Subject) -> list[int]:
    room = subject.max_length - sum(map(len, subject.frame))
    return [distance for distance in DISTANCES if 2 * distance <= room]


def _rows(distance: int, effort: Effort) -> int:
    return effort.rows(max(_LEAST, min(_MOST, _TOKENS // distance)))


def _causal(subject: Subject, rows: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Which of the repeated tokens but the first are right, and what they cost, both (rows, distance - 1)."""
    distance = rows.shape[1] // 2
    right, losses = [], []
    for part in subject.batches(subject.framed(rows)):
        asked = part[:, -(distance - 1) :]
        answers = subject.logits(part)[:, -distance:-1]
        right.append(answers.argmax(-1) == asked)
        losses.append(-answers.log_softmax(-1).gather(-1, asked[..., None])[..., 0])
    return torch.cat(right).double().numpy(), torch.cat(losses).double().numpy()


def _masked(subject: Subject, rows: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same of some sites of the second time, each masked in a copy of its own."""
    distance, framed = rows.shape[1] // 2, subject.framed(rows, end=True)
    every = torch.arange(len(rows))
    right, losses = [], []
    for step in range(min(_ASKED, distance)):
        site = len(subject.frame[0]) + distance + step * distance // min(_ASKED, distance)
        distributions = subject.masked.site_log_weights(framed, torch.full_like(every, site)).cpu()
        asked = framed[:, site]
        right.append(distributions.argmax(-1) == asked)
        losses.append(-distributions[every, asked])
    return torch.stack(right, 1).double().numpy(), torch.stack(losses, 1).double().numpy()
