"""How long text stays in one stored pattern: runs between domain walls, censored where the text ends first.

A window of a text follows the label (a pattern and its phase) whose predictions differ from it in the fewest tokens; a
wall is where the next window follows another. What is measured is any text, and what generates it any autoregressive
oracle, a pretrained one among them. Corollary 1.2.1 of the document on Potts chains is about these runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from annotated_types import Ge
from numpy.typing import ArrayLike, NDArray
from scipy.stats import CensoredData, ecdf
from torch import Tensor

from trialogue.arrays import Integers, real_tensor, whole_tensor
from trialogue.data.potts.patterns import StoredPatterns, pattern_tokens
from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, Tokenizing, as_oracle, padded
from trialogue.samplers import Samples, generate, truncated
from trialogue.validation import Count, NonNegative, Several, validated

_BYTES = 256


def followed(
    tokens: Tensor, patterns: Sequence[Sequence[int] | Tensor], window: int, vocab_size: int
) -> tuple[Tensor, Tensor]:
    """The label that each window of `tokens` (rows, L) follows, and in how many tokens it differs from the window.

    Both (rows, L - window + 1) int64. Labels are numbered pattern by pattern, phase by phase, as those of
    `StoredPatterns`, but patterns may have different periods; the lowest label wins ties. Raises `InputError` for what
    are no token ids, and where the window is longer than the texts.
    """
    outside = tokens[(tokens < 0) | (tokens >= vocab_size)]
    if len(outside):
        raise InputError("tokens", int(outside[0]), f"use token ids from 0 to {vocab_size - 1}")
    if window > tokens.shape[1]:
        raise InputError("window", window, f"the texts have up to {tokens.shape[1]} tokens: use no more")
    label, least, before = None, None, 0
    for pattern in patterns:
        stored = StoredPatterns([pattern], window, vocab_size)
        nearest, distance = stored.nearest(tokens)
        if label is None or least is None:
            label, least = nearest, distance
        else:
            label = torch.where(distance < least, nearest + before, label)
            least = torch.minimum(distance, least)
        before += stored.labels
    if label is None or least is None:
        raise InputError("patterns", [], "give at least one pattern")
    return label, least


class Runs(NamedTuple):
    """Lengths of n runs, and which of them ended: the others were still going on where the text stopped."""

    lengths: NDArray[np.int64]
    ended: NDArray[np.bool_]

    def chosen(self, rows: NDArray[np.int64]) -> Runs:
        """Return the runs numbered `rows`."""
        return Runs(self.lengths[rows], self.ended[rows])

    def curve(self) -> Any:
        """The Kaplan-Meier estimate of the probability that a run is longer than r (`scipy.stats.ecdf`'s `sf`).

        `.evaluate(r)` gives it, `.confidence_interval(method="log-log")` two curves around it. Raises `InputError`
        where there are no runs.
        """
        if not len(self.lengths):
            raise InputError("runs", 0, "there are none: generate or read some text")
        return ecdf(CensoredData(uncensored=self.lengths[self.ended], right=self.lengths[~self.ended])).sf

    def survival(self, lengths: ArrayLike) -> NDArray[np.float64]:
        """Probability that a run is longer than each of `lengths`; NaN beyond the longest one seen, if it went on."""
        at = real_tensor("lengths", lengths, "give lengths of runs").numpy()
        curve = self.curve()
        unknown = (at > self.lengths.max()) & (curve.evaluate(self.lengths.max()) > 0)
        values: NDArray[np.float64] = np.where(unknown, np.nan, curve.evaluate(at))
        return values

    def hazard(self) -> float:
        """Return the share of tokens that ended a run, NaN if there are no tokens.

        This is the maximum likelihood estimate for a geometric distribution with censoring.
        """
        exposure = int(self.lengths.sum())
        return float(self.ended[self.lengths > 0].sum() / exposure) if exposure else float("nan")

    def restricted_mean(self) -> float:
        """Mean length up to the longest run that was seen: the area under the survival curve, whatever its shape.

        Raises `InputError` where there are no runs.
        """
        return float(self.survival(np.arange(int(self.lengths.max(initial=0)))).sum())


@dataclass(frozen=True)
class Coherence:
    """What each window of n texts follows, from window `start` (n,) on, of `windows` (n,) that lie within the text."""

    labels: Tensor
    """(n, most windows) int64: what lies beyond a text means nothing"""
    distances: Tensor
    """(n, most windows) int64: in how many tokens the window differs from its label"""
    start: Tensor
    windows: Tensor

    @property
    def walls(self) -> Tensor:
        """Where the next window follows another label (n, most windows - 1) bool; none before the start."""
        place = torch.arange(self.labels.shape[1] - 1)
        within = (place >= self.start[:, None]) & (place + 1 < self.windows[:, None])
        return (self.labels[:, 1:] != self.labels[:, :-1]) & within

    def first_runs(self) -> Runs:
        """How many tokens each text went on before the label it started with was lost."""
        walls, going = self.walls, (self.windows - 1 - self.start).clamp_min(0)
        ended = walls.any(1)
        first = walls.long().argmax(1) + 1 - self.start if walls.shape[1] else going
        return Runs(torch.where(ended, first, going).numpy(), ended.numpy())

    def walls_per_token(self) -> float:
        """Walls over the tokens that could have made one; NaN where there are none."""
        tokens = int((self.windows - 1 - self.start).clamp_min(0).sum())
        return int(self.walls.sum()) / tokens if tokens else float("nan")


@validated
def coherence(
    tokens: Annotated[Tensor, Integers("rows length")],
    patterns: Several[Any],
    window: Count,
    *,
    lengths: Tensor | None = None,
    start: Tensor | int = 0,
    vocab_size: Annotated[int, Ge(2)] | None = None,
) -> Coherence:
    """Measure texts `tokens` (n, L) int64 by windows of `window` tokens.

    `lengths` (n,) are theirs where they are right-padded. `start` (n,), or one number, is the first window that counts:
    that of the last tokens of a prompt. A window should be long enough that noise in the tokens alone does not bring
    another label nearest. Raises `InputError` as `followed` does, for lengths and starts that are not one whole number
    for each text, lengths beyond `tokens`, and a start that is not one of a text's windows.
    """
    units = [pattern_tokens(pattern) for pattern in patterns]
    if vocab_size is None:
        vocab_size = max(2, 1 + max((int(unit.max()) for unit in units), default=1))
    label, distance = followed(tokens, units, window, vocab_size)
    lengths = _of_texts("lengths", tokens.shape[1] if lengths is None else lengths, tokens)
    if bool((lengths > tokens.shape[1]).any()):
        hint = f"the texts are padded to {tokens.shape[1]} tokens: use no more"
        raise InputError("lengths", int(lengths.max()), hint)
    first = _of_texts("start", start, tokens)
    windows = lengths - window + 1
    if bool((first < 0).any() | (first >= windows).any()):
        row = int(((first < 0) | (first >= windows)).nonzero()[0])
        hint = f"text {row} has {int(lengths[row])} tokens and no window there: use a shorter window or longer texts"
        raise InputError("start", int(first[row]), hint)
    return Coherence(label, distance, first, windows)


def _of_texts(field: str, value: Tensor | int, tokens: Tensor) -> Tensor:
    """One number (n,) int64 for each of the texts `tokens` (n, L)."""
    hint = f"give one whole number, or one for each of {len(tokens)} texts"
    numbers = whole_tensor(field, value, hint)
    if tuple(numbers.shape) not in ((), (len(tokens),)):
        raise InputError(field, tuple(numbers.shape), hint)
    return numbers.expand(len(tokens))


@validated
def coherence_of(
    oracle: Autoregressive,
    patterns: Sequence[str] | Sequence[Sequence[int] | Tensor],
    *,
    max_new_tokens: int,
    window: Count | None = None,
    temperature: NonNegative = 1.0,
    repeats: Count = 3,
    num_samples: int = 100,
    seed: int = 0,
    batch_size: int | None = None,
) -> Coherence:
    """Let `oracle` continue each pattern, `repeats` times repeated, `num_samples` times, and measure what it writes.

    Patterns are tokens of the oracle's, or texts where it has a tokenization. Texts are matched byte by byte, so that
    it does not matter how the model cuts what it writes into tokens: windows, runs and rates are then in bytes of
    UTF-8. A text is repeated exactly as it is given, and should hold the separator; most tokenizers join a space with
    the word behind it, so that it belongs at the beginning (" red green.", as a prompt that ends with a space is one
    that the model would not have written). `window` is by default the longest pattern's period. A text that ends by
    itself, or after `max_new_tokens`, is censored there.
    `temperature` 0 is greedy.

    Raises `InputError` as `generate` and `coherence` do, and for texts where the oracle has no tokenization.
    """
    if isinstance(patterns, str) or not isinstance(patterns, Sequence | Tensor) or not len(patterns):
        raise InputError("patterns", patterns, "give a list of one or more patterns")
    texts = [pattern for pattern in patterns if isinstance(pattern, str)]
    sequences = [pattern_tokens(pattern) for pattern in patterns if not isinstance(pattern, str)]
    oracle = as_oracle(oracle)
    tokenization = oracle.tokenization
    if texts and (sequences or tokenization is None):
        hint = "give all patterns as texts, and an oracle with a tokenization, or all as tokens"
        raise InputError("patterns", list(patterns), hint)
    if not all(texts):
        raise InputError("patterns", texts, "leave out the empty text")
    samples = generate(
        truncated(oracle, temperature) if temperature != 1 else oracle,
        [text * repeats for text in texts] or [pattern.repeat(repeats).tolist() for pattern in sequences],
        max_new_tokens=max_new_tokens,
        num_samples=num_samples,
        seed=seed,
        batch_size=batch_size,
    )
    if texts and tokenization is not None:
        units: Sequence[Sequence[int] | Tensor] = [list(text.encode()) for text in texts]
        (tokens, lengths), prompted = _bytes(samples, tokenization)
    else:
        units, prompted = sequences, samples.prompt_lengths
        tokens, lengths = samples.tokens, samples.lengths
        if oracle.eos is not None:
            last = tokens.gather(1, (lengths - 1).clamp_min(0)[:, None])[:, 0]
            lengths = lengths - ((last == oracle.eos) & (lengths > prompted)).long()
    window = max(map(len, units)) if window is None else window
    vocab_size = _BYTES if texts else oracle.vocab_size
    return coherence(tokens, units, window, lengths=lengths, start=prompted - window, vocab_size=vocab_size)


def _bytes(samples: Samples, tokenization: Tokenizing) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Prompts and completions as bytes (n, most), how many each has (n,), and how many of its prompt's (n,)."""
    sequences, starts = samples.sequences(), samples.prompt_lengths.tolist()
    prompted = [
        len(tokenization.bytes(tokens[:start])) for tokens, start in zip(sequences, starts, strict=True)
    ]
    return padded([list(tokenization.bytes(tokens)) for tokens in sequences]), torch.tensor(prompted)
