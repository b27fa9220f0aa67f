"""Coherence of a text: how long it follows one stored pattern before it switches to another.

Each window of a text is labelled with the pattern and phase that differ from it in the fewest tokens. A domain wall is
a position at which the next window has a different label. A run is the stretch between two walls, and it is censored
if the text ends first. Corollary 1.2.1 of the document on Potts chains describes these runs.
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


def nearest_labels(
    tokens: Tensor, patterns: Sequence[Sequence[int] | Tensor], window: int, vocab_size: int
) -> tuple[Tensor, Tensor]:
    """Return the nearest label of each window of tokens, and its Hamming distance from the window.

    Labels number the phases of all patterns consecutively, pattern by pattern. Unlike in `StoredPatterns`, the
    patterns may have different periods. Ties go to the lowest label.

    Args:
        tokens: Token ids, int64 of shape (n, L).
        patterns: One sequence of token ids per stored pattern, one period long.
        window: Number of tokens per window.
        vocab_size: Number of token ids.

    Returns:
        Labels and distances, both int64 of shape (n, L - window + 1).

    Raises:
        InputError: If a token id is out of range, the window is longer than the texts, or `patterns` is empty.
    """
    outside = tokens[(tokens < 0) | (tokens >= vocab_size)]
    if len(outside):
        raise InputError("tokens", int(outside[0]), f"use token ids from 0 to {vocab_size - 1}")
    if window > tokens.shape[1]:
        hint = f"use a window no longer than the longest text, which has {tokens.shape[1]} tokens"
        raise InputError("window", window, hint)
    label, smallest, offset = None, None, 0
    for pattern in patterns:
        stored = StoredPatterns([pattern], window, vocab_size)
        nearest, distance = stored.nearest(tokens)
        if label is None or smallest is None:
            label, smallest = nearest, distance
        else:
            label = torch.where(distance < smallest, nearest + offset, label)
            smallest = torch.minimum(distance, smallest)
        offset += stored.labels
    if label is None or smallest is None:
        raise InputError("patterns", [], "give at least one pattern")
    return label, smallest


class Runs(NamedTuple):
    """Lengths of runs, some of them right-censored.

    Attributes:
        lengths: Number of tokens of each run, shape (n,).
        ended: False for a run that was censored by the end of its text, shape (n,).
    """

    lengths: NDArray[np.int64]
    ended: NDArray[np.bool_]

    def take(self, rows: NDArray[np.int64]) -> Runs:
        """Return the runs with the indices `rows`."""
        return Runs(self.lengths[rows], self.ended[rows])

    def survival_curve(self) -> Any:
        """Return the Kaplan-Meier estimate of the probability that a run is longer than r.

        Returns:
            The `sf` attribute of the result of `scipy.stats.ecdf`. Its method `evaluate(r)` returns the probability,
            and `confidence_interval(method="log-log")` returns a lower and an upper curve.

        Raises:
            InputError: If the runs are empty.
        """
        if not len(self.lengths):
            raise InputError("runs", 0, "measure at least one text")
        return ecdf(CensoredData(uncensored=self.lengths[self.ended], right=self.lengths[~self.ended])).sf

    def survival(self, lengths: ArrayLike) -> NDArray[np.float64]:
        """Return the estimated probability that a run is longer than each of `lengths`.

        The probability is NaN beyond the longest observed run if that run was censored.
        """
        at = real_tensor("lengths", lengths, "give lengths of runs").numpy()
        curve = self.survival_curve()
        unknown = (at > self.lengths.max()) & (curve.evaluate(self.lengths.max()) > 0)
        values: NDArray[np.float64] = np.where(unknown, np.nan, curve.evaluate(at))
        return values

    def hazard(self) -> float:
        """Return the share of tokens that ended a run, NaN without tokens.

        This is the maximum likelihood estimate for a geometric distribution with censoring.
        """
        exposure = int(self.lengths.sum())
        return float(self.ended[self.lengths > 0].sum() / exposure) if exposure else float("nan")

    def restricted_mean(self) -> float:
        """Return the mean length of a run, restricted to the longest observed run.

        This is the area under the survival curve. It requires no assumption about the shape of the curve.

        Raises:
            InputError: If the runs are empty.
        """
        return float(self.survival(np.arange(int(self.lengths.max(initial=0)))).sum())


@dataclass(frozen=True)
class Coherence:
    """Labels of the windows of n texts.

    Args:
        labels: Nearest label of each window, int64 of shape (n, max windows). Entries beyond a text are undefined.
        distances: Number of tokens in which each window differs from its label, int64 of shape (n, max windows).
        start: Index of the first window that counts, shape (n,).
        windows: Number of windows of each text, shape (n,).
    """

    labels: Tensor
    distances: Tensor
    start: Tensor
    windows: Tensor

    @property
    def walls(self) -> Tensor:
        """Mask (n, max windows - 1) of the windows, from `start` on, whose next window has a different label."""
        index = torch.arange(self.labels.shape[1] - 1)
        within = (index >= self.start[:, None]) & (index + 1 < self.windows[:, None])
        return (self.labels[:, 1:] != self.labels[:, :-1]) & within

    def first_runs(self) -> Runs:
        """Return the first run of each text, which ends where the text loses its initial label."""
        walls, longest = self.walls, (self.windows - 1 - self.start).clamp_min(0)
        ended = walls.any(1)
        first = walls.long().argmax(1) + 1 - self.start if walls.shape[1] else longest
        return Runs(torch.where(ended, first, longest).numpy(), ended.numpy())

    def walls_per_token(self) -> float:
        """Return the share of tokens at which there is a wall, NaN without tokens after the start."""
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
    """Label each window of the given texts with the nearest stored pattern and phase.

    Args:
        tokens: Right-padded token ids, int64 of shape (n, L).
        patterns: One sequence of token ids per stored pattern, one period long. Periods may differ.
        window: Number of tokens per window. Choose it so long that noise in single tokens rarely changes the label.
        lengths: Number of tokens of each text, shape (n,). By default, all texts have length L.
        start: Index of the first window that counts, one number or shape (n,). For a text that continues a prompt,
            use the window of the last tokens of the prompt.
        vocab_size: Number of token ids. By default, the smallest vocabulary that contains the patterns.

    Returns:
        The label of each window and its distance.

    Raises:
        InputError: If an argument has the wrong shape, a token id is out of range, a length exceeds L, or `start` is
            not the index of a window.
    """
    units = [pattern_tokens(pattern) for pattern in patterns]
    if vocab_size is None:
        vocab_size = max(2, 1 + max((int(unit.max()) for unit in units), default=1))
    label, distance = nearest_labels(tokens, units, window, vocab_size)
    lengths = _expanded("lengths", tokens.shape[1] if lengths is None else lengths, tokens)
    if bool((lengths > tokens.shape[1]).any()):
        hint = f"use at most {tokens.shape[1]}, the padded length of the texts"
        raise InputError("lengths", int(lengths.max()), hint)
    first = _expanded("start", start, tokens)
    windows = lengths - window + 1
    if bool((first < 0).any() | (first >= windows).any()):
        row = int(((first < 0) | (first >= windows)).nonzero()[0])
        hint = f"text {row} has {int(lengths[row])} tokens and no such window. Use a shorter window or longer texts"
        raise InputError("start", int(first[row]), hint)
    return Coherence(label, distance, first, windows)


def _expanded(field: str, value: Tensor | int, tokens: Tensor) -> Tensor:
    """Return one integer per text as an int64 tensor of shape (n,)."""
    hint = f"give one integer, or one for each of the {len(tokens)} texts"
    numbers = whole_tensor(field, value, hint)
    if tuple(numbers.shape) not in ((), (len(tokens),)):
        raise InputError(field, tuple(numbers.shape), hint)
    return numbers.expand(len(tokens))


@validated
def measure_coherence(
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
    """Sample continuations of repeated patterns and measure how long they follow the patterns.

    Patterns given as text are compared with the samples byte by byte, which makes the result independent of how the
    model splits its output into tokens. Windows, runs and rates are then in UTF-8 bytes. A sample is censored at its
    end-of-sequence token or after `max_new_tokens`.

    Args:
        oracle: Model that continues the patterns.
        patterns: Token ids of each pattern, or texts if the oracle has a tokenization. Include the separator in a
            text. Most tokenizers join a space to the following word, so start the text with the space (" red green.").
        max_new_tokens: Maximum number of sampled tokens.
        window: Number of tokens (for texts: bytes) per window. By default, the longest period.
        temperature: Sampling temperature, 0 for greedy decoding.
        repeats: Number of repetitions of the pattern in the prompt.
        num_samples: Number of samples per pattern.
        seed: Random seed.
        batch_size: Number of samples per batch, as in `generate`.

    Returns:
        The labels of the windows, starting with the last window of the prompt.

    Raises:
        InputError: If texts are given for an oracle without a tokenization, or as for `generate` and `coherence`.
    """
    if isinstance(patterns, str) or not isinstance(patterns, Sequence | Tensor) or not len(patterns):
        raise InputError("patterns", patterns, "give a list of one or more patterns")
    texts = [pattern for pattern in patterns if isinstance(pattern, str)]
    sequences = [pattern_tokens(pattern) for pattern in patterns if not isinstance(pattern, str)]
    oracle = as_oracle(oracle)
    tokenization = oracle.tokenization
    if texts and (sequences or tokenization is None):
        hint = "give all patterns as token ids, or give all as texts and an oracle with a tokenization"
        raise InputError("patterns", list(patterns), hint)
    if not all(texts):
        raise InputError("patterns", texts, "remove the empty text")
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
        (tokens, lengths), prompted = _sample_bytes(samples, tokenization)
    else:
        units, prompted = sequences, samples.prompt_lengths
        tokens, lengths = samples.tokens, samples.lengths
        if oracle.eos is not None:
            last = tokens.gather(1, (lengths - 1).clamp_min(0)[:, None])[:, 0]
            lengths = lengths - ((last == oracle.eos) & (lengths > prompted)).long()
    window = max(map(len, units)) if window is None else window
    vocab_size = _BYTES if texts else oracle.vocab_size
    return coherence(tokens, units, window, lengths=lengths, start=prompted - window, vocab_size=vocab_size)


def _sample_bytes(samples: Samples, tokenization: Tokenizing) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Return the padded bytes of prompts with completions, their lengths, and the lengths of the prompts."""
    sequences, starts = samples.sequences(), samples.prompt_lengths.tolist()
    prompted = [
        len(tokenization.bytes(tokens[:start])) for tokens, start in zip(sequences, starts, strict=True)
    ]
    return padded([list(tokenization.bytes(tokens)) for tokens in sequences]), torch.tensor(prompted)
