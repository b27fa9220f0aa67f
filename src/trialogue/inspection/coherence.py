"""Measurement of how long a text follows a repeating pattern before it switches to another pattern.

Each window of a text is labelled with the pattern and phase that differ from it in the fewest tokens. A domain wall is
a position at which the next window has a different label. A run is the stretch between two walls, and it is censored if
the text ends first. Corollary 1.2.1 of the document on Potts chains describes these runs.
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

from trialogue.arrays import Integers, integer_tensor, real_tensor
from trialogue.data.potts.patterns import StoredPatterns, pattern_tokens
from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, Tokenizing, as_oracle, pad_sequences
from trialogue.samplers import Samples, generate, truncated
from trialogue.validation import Count, NonNegative, Several, validated

_BYTES = 256


def nearest_labels(
    tokens: Tensor, patterns: Sequence[Sequence[int] | Tensor], window: int, vocab_size: int
) -> tuple[Tensor, Tensor]:
    """Assign each window of tokens to the stored pattern and phase that differ from it in the fewest tokens.

    A window is a stretch of `window` consecutive tokens. A label is an index of a pattern and a phase, which is
    the position of the pattern at which the window starts. Labels are numbered consecutively, first over the
    phases of the first pattern. Unlike in `StoredPatterns`, the patterns may have different periods. The lowest
    label is chosen among equally near ones.

    Args:
        tokens: Token ids, int64 of shape (n, L).
        patterns: Token ids of one period of each pattern.
        window: Number of tokens per window.
        vocab_size: Number of token ids.

    Returns:
        Two int64 tensors of shape (n, L - window + 1). The first has the label of each window. The second has
        the number of tokens in which the window differs from the pattern at this phase (Hamming distance).

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
    """Lengths of runs (stretches of text that follow one pattern), some of them right-censored.

    A run ends with a change of the pattern or its phase. It is censored if the text ends before the run does.

    Attributes:
        lengths: Number of tokens of each run, shape (n,).
        ended: True for a run that ended with a change of pattern or phase, False for a censored run, shape (n,).
    """

    lengths: NDArray[np.int64]
    ended: NDArray[np.bool_]

    def take(self, rows: NDArray[np.int64]) -> Runs:
        """Select runs by index.

        Args:
            rows: Indices of the runs, which may repeat, shape (m,).

        Returns:
            The selected runs.
        """
        return Runs(self.lengths[rows], self.ended[rows])

    def survival_curve(self) -> Any:
        """Compute the Kaplan-Meier estimate of the probability that a run is longer than r, as a function of r.

        Returns:
            The attribute `sf` of the result of `scipy.stats.ecdf`. Its method `evaluate(r)` returns the
            probability, and `confidence_interval(method="log-log")` returns a lower and an upper curve.

        Raises:
            InputError: If there are no runs.
        """
        if not len(self.lengths):
            raise InputError("runs", 0, "measure at least one text")
        return ecdf(CensoredData(uncensored=self.lengths[self.ended], right=self.lengths[~self.ended])).sf

    def survival(self, lengths: ArrayLike) -> NDArray[np.float64]:
        """Estimate the probability that a run is longer than given lengths (Kaplan-Meier).

        Args:
            lengths: Lengths in tokens, any shape.

        Returns:
            Probabilities in the shape of `lengths`. If the longest run was censored, the probability is NaN
            beyond its length.

        Raises:
            InputError: If there are no runs.
        """
        at = real_tensor("lengths", lengths, "give lengths of runs").numpy()
        curve = self.survival_curve()
        unknown = (at > self.lengths.max()) & (curve.evaluate(self.lengths.max()) > 0)
        values: NDArray[np.float64] = np.where(unknown, np.nan, curve.evaluate(at))
        return values

    def hazard(self) -> float:
        """Estimate the probability that a run ends at a given token.

        The result is the number of runs that ended divided by the number of tokens of all runs. It is the
        maximum likelihood estimate for geometric lengths with censoring. The result is NaN if all runs are
        empty.
        """
        exposure = int(self.lengths.sum())
        return float(self.ended[self.lengths > 0].sum() / exposure) if exposure else float("nan")

    def restricted_mean(self) -> float:
        """Estimate the mean of min(length, m), where m is the length of the longest observed run.

        The result is the area under the survival curve from 0 to m. It requires no assumption about the
        distribution of the lengths.

        Raises:
            InputError: If there are no runs.
        """
        return float(self.survival(np.arange(int(self.lengths.max(initial=0)))).sum())


@dataclass(frozen=True)
class Coherence:
    """The pattern that each window of some texts follows, and the phase of the pattern at which the window starts.

    A window is a stretch of consecutive tokens. Its label identifies the pattern and the phase from which it
    differs in the fewest tokens.

    Args:
        labels: Label of each window, int64 of shape (n, max windows). Entries beyond the end of a text are
            undefined.
        distances: Number of tokens in which each window differs from its label, int64 of shape (n, max
            windows).
        start: Index of the first window of each text from which runs are counted, shape (n,).
        windows: Number of windows of each text, shape (n,).
    """

    labels: Tensor
    distances: Tensor
    start: Tensor
    windows: Tensor

    @property
    def walls(self) -> Tensor:
        """Boolean mask (n, max windows - 1) of domain walls, where a text changes to another pattern or phase.

        Entry [i, j] is True if windows j and j + 1 of text i have different labels. Windows before `start` and beyond
        the end of the text are False.
        """
        index = torch.arange(self.labels.shape[1] - 1)
        within = (index >= self.start[:, None]) & (index + 1 < self.windows[:, None])
        return (self.labels[:, 1:] != self.labels[:, :-1]) & within

    def first_runs(self) -> Runs:
        """Return the first run of each text.

        The run starts at window `start`. It ends at the first window with another label, or is censored at the
        end of the text.
        """
        walls, longest = self.walls, (self.windows - 1 - self.start).clamp_min(0)
        ended = walls.any(1)
        first = walls.long().argmax(1) + 1 - self.start if walls.shape[1] else longest
        return Runs(torch.where(ended, first, longest).numpy(), ended.numpy())

    def walls_per_token(self) -> float:
        """Return the number of domain walls divided by the number of tokens after the start windows.

        A domain wall is a position at which two neighbouring windows have different labels. The result is NaN
        if no text has tokens after its start window.
        """
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
    """Find the stored pattern and phase that each window of the given texts follows.

    A window is a stretch of `window` consecutive tokens. It is assigned to the pattern and phase that differ
    from it in the fewest tokens.

    Args:
        tokens: Right-padded token ids of n texts, int64 of shape (n, L).
        patterns: Token ids of one period of each pattern. Periods may differ.
        window: Number of tokens per window. Use a window long enough that noise in single tokens rarely changes
            the nearest pattern.
        lengths: Number of tokens of each text, shape (n,). By default, all texts have length L.
        start: Index of the first window from which runs are counted, one number or shape (n,). For a text that
            continues a prompt, use the window of the last tokens of the prompt.
        vocab_size: Number of token ids. By default, the smallest vocabulary that contains the patterns.

    Returns:
        The nearest pattern and phase of each window, and the number of tokens that differ.

    Raises:
        InputError: If an argument has the wrong shape, a token id is out of range, a length exceeds L, or
            `start` is not the index of a window.
    """
    units = [pattern_tokens(pattern) for pattern in patterns]
    if vocab_size is None:
        vocab_size = max(2, 1 + max((int(unit.max()) for unit in units), default=1))
    label, distance = nearest_labels(tokens, units, window, vocab_size)
    lengths = _expand_per_text("lengths", tokens.shape[1] if lengths is None else lengths, tokens)
    if bool((lengths > tokens.shape[1]).any()):
        hint = f"use at most {tokens.shape[1]}, the padded length of the texts"
        raise InputError("lengths", int(lengths.max()), hint)
    first = _expand_per_text("start", start, tokens)
    windows = lengths - window + 1
    if bool((first < 0).any() | (first >= windows).any()):
        row = int(((first < 0) | (first >= windows)).nonzero()[0])
        hint = f"text {row} has {int(lengths[row])} tokens and no such window. Use a shorter window or longer texts"
        raise InputError("start", int(first[row]), hint)
    return Coherence(label, distance, first, windows)


def _expand_per_text(field: str, value: Tensor | int, tokens: Tensor) -> Tensor:
    """Return one integer per text as an int64 tensor (n,), given a single integer or one per text."""
    hint = f"give one integer, or one for each of the {len(tokens)} texts"
    numbers = integer_tensor(field, value, hint)
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
    """Sample continuations of repeated patterns and find how long they follow the patterns.

    Each prompt repeats one pattern. If patterns are given as texts, prompts and continuations are compared byte by
    byte, so that the result does not depend on the tokenizer. Lengths and rates are then in UTF-8 bytes. A continuation
    is censored at its end-of-sequence token or after `max_new_tokens`.

    Args:
        oracle: Model that continues the patterns.
        patterns: Token ids of each pattern, or texts if the oracle has a tokenization. A text includes its separator.
            Most tokenizers join a space to the following word, so start the text with the space (" red green.").
        max_new_tokens: Maximum number of sampled tokens per continuation.
        window: Number of tokens (for texts: bytes) that are compared with the patterns at once. By default, the longest
            period.
        temperature: Sampling temperature, 0 for greedy decoding.
        repeats: Number of repetitions of the pattern in the prompt.
        num_samples: Number of continuations per pattern.
        seed: Random seed.
        batch_size: Number of continuations that are sampled at the same time.

    Returns:
        The nearest pattern and phase of each window. Runs are counted from the last window of the prompt.

    Raises:
        InputError: If texts are given for an oracle without a tokenization, or if `generate` or `coherence` raise it.
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
    return pad_sequences([list(tokenization.bytes(tokens)) for tokens in sequences]), torch.tensor(prompted)
