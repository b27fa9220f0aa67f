"""Measure of how well a model closes nested brackets, by nesting depth and length of the text.

Prefixes are sampled from `trialogue.data.Dyck`, for which the exact distribution of the next bracket is known. Each
bracket is one token of the model, and the model's distribution is normalized over the brackets. A matched pair does not
change the possible continuations of a prefix. The measure therefore also reports how much the model's distribution
changes if a matched pair is inserted.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.data import Dyck
from trialogue.inspection.measures.measure import Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import (
    Point,
    Quantity,
    curve_quantity,
    mean_point,
    share_point,
    single_quantity,
)
from trialogue.inspection.subject import Subject
from trialogue.randomness import derive_seed, numpy_generator

PAIRS = ("()", "[]")
DEPTH, LENGTH = 4, 256
_ROWS, _INSERTED = 16, 48
_SHORTEST, _LONGEST = 8, 32
"""Minimum and maximum number of brackets of the strings into which a pair is inserted."""


def bracket_tokens(subject: Subject) -> list[int] | None:
    """Return the token ids of the brackets ( ) [ ], or None if one of them is not a single token.

    The tokens have a leading space if all four brackets exist with a leading space as single tokens. Otherwise
    they have none.

    Args:
        subject: Model with its tokenizer.
    """
    for space in (" ", ""):
        ids = [
            subject.tokenizer(space + bracket, add_special_tokens=False)["input_ids"]
            for bracket in "".join(PAIRS)
        ]
        single = [one[0] for one in ids if len(one) == 1]
        if len(set(single)) == len(ids) and set(single) <= set(subject.ordinary_tokens.tolist()):
            return single
    return None


def bracket_distribution(length: int) -> Dyck:
    """Return a uniform distribution of prefixes of bracket strings.

    Both types of brackets are equally likely, and so are opening and closing wherever both are possible. At
    most four brackets are open at once.

    Args:
        length: Number of brackets of a prefix.
    """
    return Dyck(length, (1 / len(PAIRS),) * len(PAIRS), 0.5, DEPTH, complete=False)


def insert_pairs(strings: Tensor, random: np.random.Generator) -> Tensor:
    """Insert an adjacent pair of brackets, () or [], at a random position of each string.

    Args:
        strings: Bracket indices (0 to 3), int64 of shape (n, L).
        random: Random number generator.

    Returns:
        Bracket indices, int64 of shape (n, L + 2). The inserted pair never exceeds the maximum depth.
    """
    rows = []
    depths = bracket_distribution(strings.shape[1]).depth(strings)
    for string, depth in zip(strings.tolist(), depths.tolist(), strict=True):
        allowed = [position for position, is_open in enumerate((0, *depth)) if is_open < DEPTH]
        position, kind = int(random.choice(allowed)), 2 * int(random.integers(0, len(PAIRS)))
        rows.append([*string[:position], kind, kind + 1, *string[position:]])
    return torch.tensor(rows)


class Brackets(Measure):
    """Measure of how well a model predicts the next bracket in nested strings of ( ) [ ].

    The measure reports the accuracy on closing brackets by the length of the prefix and by the number of open
    brackets. It also inserts a matched pair into strings. The pair should not change the prediction of the next
    bracket.
    """

    question = "Does the model close nested brackets?"
    reading = (
        "A closing bracket is predicted correctly if the type of the innermost open bracket is the most likely of the "
        "closing types. A guess has one half. At most four brackets are open. With four open, only closing is "
        "possible, so a model may do better there than with three. “Brackets read” counts the brackets before the "
        "predicted one, and a point is for this number up to that of the next point. The excess loss is the "
        "Kullback-Leibler divergence of the model's distribution over the four brackets from the exact distribution. "
        "The probability of brackets is their total probability among all tokens. The change by an inserted pair is "
        "the total variation by which a matched pair, inserted into a string, changes the distribution of the next "
        "bracket. It should be 0. Random weights may also leave the distribution unchanged."
    )

    def model_refusal(self, subject: Subject) -> str | None:
        """Return the reason why the model cannot be measured, or None.

        A reason is that a bracket is not a single token, or that the model's maximum length is too short.

        Args:
            subject: Model to measure.
        """
        if bracket_tokens(subject) is None:
            return f"its tokenizer does not have a single token for each of {' '.join(''.join(PAIRS))}"
        if _max_brackets(subject) < 2 * _LONGEST:
            return (
                f"its maximum length is {subject.max_length} tokens, but the measure requires {2 * _LONGEST}"
            )
        return None

    def count_tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Return the number of tokens of all strings of brackets.

        These are the long strings, and the short strings with and without an inserted pair.

        Args:
            subject: Model to measure.
            material: Texts on which the model is evaluated.
            effort: Sample sizes and seed.
        """
        before = len(subject.frame[0])
        long = effort.rows(_ROWS) * (min(LENGTH, _max_brackets(subject)) + before)
        lengths = _lengths()
        pairs = sum(_per_length(effort) * (2 * length + 2 + 2 * before) for length in lengths)
        return long + pairs

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Measure how well a model predicts brackets, and how an inserted pair changes its predictions.

        The predictions are measured on long strings, and the effect of a pair on short strings.

        Args:
            subject: Causal model.
            material: Not used.
            effort: Number of strings and seed.
            report: Called with progress messages.

        Returns:
            Three single numbers and three curves. The numbers are the accuracy on closing brackets, the total variation
            by which an inserted pair changes the next-bracket distribution, and the total probability of brackets. The
            curves are the accuracy by position, the accuracy by number of open brackets, and the excess loss over the
            exact distribution by position.
        """
        length = min(LENGTH, _max_brackets(subject))
        distribution = bracket_distribution(length)
        rows = distribution.sample(effort.rows(_ROWS), derive_seed(effort.seed, "brackets"))
        report(f"{len(rows)} strings of {length} brackets")
        log_probs, mass = (values[:, :-1] for values in bracket_log_probs(subject, rows))
        exact = next_brackets(distribution, rows)
        target, depth = rows[:, 1:], distribution.depth(rows)[:, :-1].numpy()
        closing = (target % 2 == 1).numpy()
        correct = (log_probs[..., 1::2].argmax(-1) == target // 2).numpy()
        excess = (exact.exp() * (exact.clamp_min(-1e9) - log_probs)).sum(-1).numpy()
        read = np.broadcast_to(np.arange(1, length), closing.shape)
        edges = [edge for edge in (1, 16, 32, 64, 128) if 2 * edge <= length]
        ends = [*edges[1:], length]
        spans = [(edge, (read >= edge) & (read < end)) for edge, end in zip(edges, ends, strict=True)]
        report("strings with an inserted pair")
        distances = self._distances(subject, effort)
        along, on_brackets = "brackets read", mean_point(mass.numpy().mean(1))
        by_length = [_share(correct, closing & span, edge) for edge, span in spans]
        by_depth = [_share(correct, closing & (depth == level), level) for level in range(1, DEPTH + 1)]
        losses = [mean_point(_row_means(excess, span), edge) for edge, span in spans]
        return [
            single_quantity(
                f"correct closing brackets, in strings of {length}",
                _share(correct, closing),
                exact=1.0,
                finding="Of the closing brackets in nested strings, the model predicts a fraction of {} correctly",
            ),
            single_quantity(
                "change by an inserted pair", mean_point(distances), unit="total variation", exact=0.0
            ),
            single_quantity(f"probability of brackets, in strings of {length}", on_brackets, exact=1.0),
            curve_quantity("correct closing brackets", by_length, along, exact=1.0),
            curve_quantity("correct closing brackets", by_depth, "brackets open", exact=1.0),
            curve_quantity("excess loss", losses, along, unit="nats per bracket", exact=0.0),
        ]

    def _distances(self, subject: Subject, effort: Effort) -> NDArray[np.float64]:
        """Return the total variation by which an inserted pair changes each next-bracket distribution."""
        random = numpy_generator(effort.seed, "a pair inserted")
        found = []
        for length in _lengths():
            seed = derive_seed(effort.seed, "balance", length)
            rows = bracket_distribution(length).sample(_per_length(effort), seed)
            one, other = (
                bracket_log_probs(subject, strings)[0][:, -1].exp()
                for strings in (rows, insert_pairs(rows, random))
            )
            found.append((one - other).abs().sum(-1) / 2)
        return torch.cat(found).double().numpy()


def bracket_log_probs(subject: Subject, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the model's distribution of the next bracket after each prefix.

    Args:
        subject: Causal model.
        rows: Bracket indices (0 to 3), int64 of shape (n, L).

    Returns:
        Two arrays. The first has the log-probabilities of the four brackets, normalized over the brackets,
        shape (n, L, 4). The second has the total probability of the four brackets among all tokens, shape (n,
        L).
    """
    ids = torch.tensor(bracket_tokens(subject))
    distributions, mass = [], []
    for batch in subject.batches(subject.framed(ids[rows])):
        logits = subject.logits(batch)[:, len(subject.frame[0]) :]
        selected = logits[..., ids].double()
        distributions.append(selected.log_softmax(-1))
        mass.append((selected.logsumexp(-1) - logits.logsumexp(-1)).exp())
    return torch.cat(distributions), torch.cat(mass)


def next_brackets(distribution: Dyck, rows: Tensor) -> Tensor:
    """Compute the exact log-probabilities of the next bracket after each non-empty prefix.

    Args:
        distribution: Exact distribution of bracket strings.
        rows: Bracket indices (0 to 3), int64 of shape (n, L).

    Returns:
        Log-probabilities of the four brackets, shape (n, L - 1, 4). Entry [i, t] is for the bracket that
        follows the first t + 1 brackets of row i.
    """
    number, length = rows.shape
    lengths = torch.arange(1, length).repeat(number)
    return distribution.next_log_probs(rows.repeat_interleave(length - 1, 0), lengths).view(
        number, length - 1, -1
    )


def _row_means(values: NDArray[np.float64], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the mean of the masked values of each row that has any."""
    counts = mask.sum(1)
    return (values * mask).sum(1)[counts > 0] / counts[counts > 0]


def _share(correct: NDArray[np.bool_], mask: NDArray[np.bool_], at: float | None = None) -> Point:
    return share_point(_row_means(correct.astype(float), mask), at)


def _max_brackets(subject: Subject) -> int:
    return subject.max_length - len(subject.frame[0])


def _lengths() -> range:
    return range(_SHORTEST, _LONGEST + 1, 8)


def _per_length(effort: Effort) -> int:
    return effort.rows(_INSERTED // len(_lengths()))
