"""Measure of how well a model repeats random tokens, by the distance to their first occurrence.

The tokens are uniform over the tokens that are not special. A model that does not find the first occurrence of a token
has a loss of at least the logarithm of the number of these tokens, in nats.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.inspection.measures.measure import Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import (
    Point,
    Quantity,
    curve_quantity,
    mean_of_points,
    mean_point,
    share_point,
    single_quantity,
)
from trialogue.inspection.subject import Subject
from trialogue.randomness import generator

DISTANCES = (4, 16, 64, 256)
_TOKENS, _MAX_ROWS, _MIN_ROWS = 768, 48, 6
_MASKED_SITES = 4
"""Number of positions per row that a masked model predicts."""


def sample_repeated_tokens(ordinary: Tensor, distance: int, rows: int, seed: int) -> Tensor:
    """Sample sequences that consist of two equal halves of random tokens.

    Args:
        ordinary: Token ids to sample from uniformly, shape (n,).
        distance: Number of tokens of a half, which is the distance of a repeated token from its first
            occurrence.
        rows: Number of sequences.
        seed: Random seed.

    Returns:
        Token ids, int64 of shape (rows, 2 * distance).
    """
    indices = torch.randint(len(ordinary), (rows, distance), generator=generator(seed, "copying", distance))
    return ordinary[indices].repeat(1, 2)


class Copying(Measure):
    """Measure of how well a model predicts random tokens that occurred before.

    A sequence of random tokens is repeated once. Accuracy and loss on the repetition are measured by the
    distance of a token from its first occurrence.
    """

    question = "Up to which distance does the model copy tokens from their source?"
    reading = (
        "Random tokens are repeated once. A repeated token is copied if it is the most likely token. A guess has one "
        "over the vocabulary size. For a causal model, the first repeated token does not count, because the start of "
        "the repetition cannot be predicted. At a short distance, there are too few tokens to recognize the "
        "repetition, so most models copy little. The loss without copying is the loss of a uniform guess."
    )
    kinds = ("causal", "masked")

    def model_refusal(self, subject: Subject) -> str | None:
        """Return a reason if the model's maximum length is too short, and None otherwise.

        The model must accept two halves of the smallest distance, and the special tokens of its tokenizer.

        Args:
            subject: Model to measure.
        """
        required = 2 * DISTANCES[0] + sum(map(len, subject.frame))
        if subject.max_length < required:
            return f"its maximum length is {subject.max_length} tokens, but the measure requires {required}"
        return None

    def count_tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Return the number of tokens of all forward passes.

        A causal model needs one pass per sequence. A masked model needs one pass for each of four predicted
        positions.

        Args:
            subject: Model to measure.
            material: Texts on which the model is evaluated.
            effort: Sample sizes and seed.
        """
        framed = sum(map(len, subject.frame))
        passes = 1 if subject.kind == "causal" else _MASKED_SITES
        return sum(_rows(d, effort) * (2 * d + framed) * min(passes, d) for d in _distances(subject))

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Measure how well a model predicts the second copy of random tokens, by the distance from the first copy.

        All distances that fit into the model's maximum length are measured.

        Args:
            subject: Causal or masked model.
            material: Not used.
            effort: Number of sequences and seed.
            report: Called with progress messages.

        Returns:
            Two single numbers and two curves over the distance of a token from its first occurrence. The numbers are
            the accuracy averaged over distances, and the loss of a model that guesses uniformly. The curves are
            accuracy and loss.
        """
        accuracies: list[Point] = []
        losses: list[Point] = []
        evaluate = _evaluate_causal if subject.kind == "causal" else _evaluate_masked
        for distance in _distances(subject):
            report(f"distance {distance}")
            rows = sample_repeated_tokens(
                subject.ordinary_tokens, distance, _rows(distance, effort), effort.seed
            )
            correct, loss = evaluate(subject, rows)
            accuracies.append(share_point(correct.mean(1), distance))
            losses.append(mean_point(loss.mean(1), distance, lowest=0.0))
        uniform = math.log(len(subject.ordinary_tokens))
        along = "tokens since the first occurrence"
        reach = f"mean over distances {accuracies[0].at:g} to {accuracies[-1].at:g}"
        return [
            single_quantity(
                f"copied, {reach}",
                mean_of_points(accuracies),
                exact=1.0,
                finding=(
                    "When random tokens are repeated, the model predicts a fraction of {} of the repeated tokens "
                    "correctly"
                ),
            ),
            curve_quantity("copied", accuracies, along, exact=1.0),
            curve_quantity("loss", losses, along, unit="nats per token", exact=0.0),
            single_quantity("loss without copying", Point(uniform), unit="nats per token"),
        ]


def _distances(subject: Subject) -> list[int]:
    available = subject.max_length - sum(map(len, subject.frame))
    return [distance for distance in DISTANCES if 2 * distance <= available]


def _rows(distance: int, effort: Effort) -> int:
    return effort.rows(max(_MIN_ROWS, min(_MAX_ROWS, _TOKENS // distance)))


def _evaluate_causal(subject: Subject, rows: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return correctness and loss (n, distance - 1) of all repeated tokens but the first."""
    distance = rows.shape[1] // 2
    correct, losses = [], []
    for batch in subject.batches(subject.framed(rows)):
        targets = batch[:, -(distance - 1) :]
        logits = subject.logits(batch)[:, -distance:-1]
        correct.append(logits.argmax(-1) == targets)
        losses.append(-logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0])
    return torch.cat(correct).double().numpy(), torch.cat(losses).double().numpy()


def _evaluate_masked(subject: Subject, rows: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return correctness and loss (n, sites) of some repeated tokens, with a single token masked per pass."""
    distance, framed = rows.shape[1] // 2, subject.framed(rows, end=True)
    indices = torch.arange(len(rows))
    correct, losses = [], []
    for step in range(min(_MASKED_SITES, distance)):
        site = len(subject.frame[0]) + distance + step * distance // min(_MASKED_SITES, distance)
        distributions = subject.masked.site_log_weights(framed, torch.full_like(indices, site)).cpu()
        targets = framed[:, site]
        correct.append(distributions.argmax(-1) == targets)
        losses.append(-distributions[indices, targets])
    return torch.stack(correct, 1).double().numpy(), torch.stack(losses, 1).double().numpy()
