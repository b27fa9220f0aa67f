"""Brackets: does a model close the innermost one that is open, how deep, how far, and whatever was closed before?

Prefixes are those of `trialogue.data.Dyck`, whose exact distribution of the next bracket is known, each bracket one
token of the model; its answers are normalised over the brackets. A pair that is closed again changes nothing of what
may follow: what it changes of the model's distribution is a violation of balance as it can be seen from outside.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.data import Dyck
from trialogue.inspection.measures.measure import Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import Point, Quantity, curve, mean, number, share
from trialogue.inspection.subject import Subject
from trialogue.randomness import numpy_generator, seed_of

PAIRS = ("()", "[]")
DEPTH, LENGTH = 4, 256
_ROWS, _INSERTED = 16, 48
_SHORTEST, _LONGEST = 8, 32
"""Brackets before which, and among which, a pair is inserted."""


def spelled(subject: Subject) -> list[int] | None:
    """The tokens of the brackets, as `Dyck` numbers them, each behind a space or without; None where they have none."""
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
    """Prefixes of `length` brackets, types and opening alike likely."""
    return Dyck(length, (1 / len(PAIRS),) * len(PAIRS), 0.5, DEPTH, complete=False)


def inserted(strings: Tensor, random: np.random.Generator) -> Tensor:
    """`strings` (rows, N) with a pair of a random type at a random place of each that is not too deep (rows, N + 2)."""
    rows = []
    depths = bracket_distribution(strings.shape[1]).depth(strings)
    for string, depth in zip(strings.tolist(), depths.tolist(), strict=True):
        shallow = [place for place, opened in enumerate((0, *depth)) if opened < DEPTH]
        place, kind = int(random.choice(shallow)), 2 * int(random.integers(0, len(PAIRS)))
        rows.append([*string[:place], kind, kind + 1, *string[place:]])
    return torch.tensor(rows)


class Brackets(Measure):
    """Accuracy on closing brackets by how many were read and how many are open, and the violation of balance."""

    question = "Does it close brackets, at any depth and length?"
    reading = (
        "Right: of the brackets that close, the likeliest is the one that closes the innermost open one; chance is one "
        "in two. The excess loss is what the model's distribution over the four brackets costs more than the "
        "exact one. "
        "Balance: a pair that opens and closes is put anywhere into a prefix, and the distribution of the "
        "next bracket should "
        "not change; of a model that knows nothing it does not change either."
    )

    def model_refusal(self, subject: Subject) -> str | None:
        """Why it has no brackets, or no room for them."""
        if spelled(subject) is None:
            return f"its tokenizer has no token for each of {' '.join(''.join(PAIRS))}"
        if _room(subject) < 2 * _LONGEST:
            return f"it reads {subject.max_length} tokens, and this takes {2 * _LONGEST}"
        return None

    def tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Long strings once, shorter ones with and without a pair."""
        before = len(subject.frame[0])
        long = effort.rows(_ROWS) * (min(LENGTH, _room(subject)) + before)
        lengths = _lengths()
        pairs = sum(_per_length(effort) * (2 * length + 2 + 2 * before) for length in lengths)
        return long + pairs

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """All numbers of long strings, then the violation of balance."""
        length = min(LENGTH, _room(subject))
        distribution = bracket_distribution(length)
        rows = distribution.sample(effort.rows(_ROWS), seed_of(effort.seed, "brackets"))
        report(f"{len(rows)} strings of {length} brackets")
        found, mass = (answers[:, :-1] for answers in bracket_log_probs(subject, rows))
        exact = next_brackets(distribution, rows)
        target, depth = rows[:, 1:], distribution.depth(rows)[:, :-1]
        closing = (target % 2 == 1).numpy()
        right = (found[..., 1::2].argmax(-1) == target // 2).numpy()
        excess = (exact.exp() * (exact.clamp_min(-1e9) - found)).sum(-1).numpy()
        read = np.broadcast_to(np.arange(1, length), closing.shape)
        edges = [edge for edge in (1, 16, 32, 64, 128) if 2 * edge <= length]
        ends = [*edges[1:], length]
        spans = [(edge, (read >= edge) & (read < end)) for edge, end in zip(edges, ends, strict=True)]
        open_now = depth.numpy()
        report("a pair inserted")
        moved = self._moved(subject, effort)
        along, on_brackets = "brackets read", mean(mass.numpy().mean(1))
        by_length = [_share(right, closing & span, edge) for edge, span in spans]
        by_depth = [_share(right, closing & (open_now == deep), deep) for deep in range(1, DEPTH + 1)]
        losses = [mean(_row_means(excess, span), edge) for edge, span in spans]
        return [
            number(f"closes rightly, in strings of {length}", _share(right, closing), exact=1.0),
            number("moved by a pair", mean(moved), unit="total variation", exact=0.0),
            number(f"on brackets, in strings of {length}", on_brackets, unit="of the probability", exact=1.0),
            curve("closes rightly", by_length, along, exact=1.0),
            curve("closes rightly", by_depth, "brackets open", exact=1.0),
            curve("excess loss", losses, along, unit="nats a bracket", exact=0.0),
        ]

    def _moved(self, subject: Subject, effort: Effort) -> NDArray[np.float64]:
        """Total variations (n,) between the distributions behind prefixes and behind these with a pair."""
        random = numpy_generator(effort.seed, "a pair inserted")
        found = []
        for length in _lengths():
            seed = seed_of(effort.seed, "balance", length)
            rows = bracket_distribution(length).sample(_per_length(effort), seed)
            one, other = (
                bracket_log_probs(subject, strings)[0][:, -1].exp()
                for strings in (rows, inserted(rows, random))
            )
            found.append((one - other).abs().sum(-1) / 2)
        return torch.cat(found).double().numpy()


def bracket_log_probs(subject: Subject, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities (rows, N, brackets) of the next bracket behind each of `rows` (rows, N), among brackets.

    And the probability (rows, N) that the model gives to a bracket at all.
    """
    ids = torch.tensor(spelled(subject))
    distributions, mass = [], []
    for part in subject.batches(subject.framed(ids[rows])):
        logits = subject.logits(part)[:, len(subject.frame[0]) :]
        chosen = logits[..., ids].double()
        distributions.append(chosen.log_softmax(-1))
        mass.append((chosen.logsumexp(-1) - logits.logsumexp(-1)).exp())
    return torch.cat(distributions), torch.cat(mass)


def next_brackets(distribution: Dyck, rows: Tensor) -> Tensor:
    """The exact log-probabilities (rows, N - 1, brackets) of all but the first bracket of `rows` (rows, N)."""
    number, length = rows.shape
    lengths = torch.arange(1, length).repeat(number)
    return distribution.next_log_probs(rows.repeat_interleave(length - 1, 0), lengths).view(
        number, length - 1, -1
    )


def _row_means(values: NDArray[np.float64], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Means of each row that has any of the `chosen`."""
    counts = chosen.sum(1)
    return (values * chosen).sum(1)[counts > 0] / counts[counts > 0]


def _share(right: NDArray[np.bool_], chosen: NDArray[np.bool_], at: float | None = None) -> Point:
    return share(_row_means(right.astype(float), chosen), at)


def _room(subject: Subject) -> int:
    return subject.max_length - len(subject.frame[0])


def _lengths() -> range:
    return range(_SHORTEST, _LONGEST + 1, 8)


def _per_length(effort: Effort) -> int:
    return effort.rows(_INSERTED // len(_lengths()))
