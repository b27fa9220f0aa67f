"""The result of `generate`: samples, costs and the trace of moves."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, overload

import numpy as np
import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.samplers.inference_data import inference_data
from trialogue.samplers.prefix.output.reasons import explain_invalid_text
from trialogue.samplers.prefix.output.sample import Parser, Sample, format_samples


class Cost(NamedTuple):
    """Total cost of a run.

    Attributes:
        queries: Number of model calls. One call evaluates one prefix of one row (sequence of the batch).
        distinct_queries: Number of model calls on prefixes that occur for the first time in the run.
        forward_passes: Number of forward passes. Rows share passes, so it is less than the sum over samples.
        positions: Number of evaluated token positions.
        verifier_calls: Number of verifier calls.
        seconds: Wall time in seconds.
    """

    queries: int
    distinct_queries: int
    forward_passes: int
    positions: int
    verifier_calls: int
    seconds: float


_NUMBERS = ("index", "prompt", "accepted", "log_prob", "log_weight", *Cost._fields)
"""Columns of `Samples` with one number or bool per sample, which `Sample` has too."""
_ROWS = 1024
"""Number of samples that iteration converts from tensors at once."""


@dataclass(frozen=True)
class Trace:
    """Record of every change to a sequence during a run, ordered by step.

    The fields are columns of a table, tensors (moves,) int64. Each line describes how one row (sequence)
    changes in one step: it keeps some tokens, of its own or of another row of the same sample, and may
    receive a new one. All rows of a step change at the same time. Rows that stay the same are left out.

    Args:
        step: Step of the run.
        sample: Index of the sample.
        member: Index of the changed row among the rows of the sample.
        length: Length of the row before the move.
        source: Index, among the rows of the sample, of the row that it continues from.
        kept: Number of tokens of the source that are kept.
        token: Appended token, -1 for none.
    """

    step: Tensor
    sample: Tensor
    member: Tensor
    length: Tensor
    source: Tensor
    kept: Tensor
    token: Tensor


@dataclass(frozen=True)
class Samples:
    """The result of a run: all samples with their weights and costs, in the order of the prompts.

    `samples[i]` and iteration return a `Sample`. Slices, lists and tensors of indices or bools return
    `Samples`, whose `total` is the sum of their own costs. Below, n is the number of samples, and each has up
    to `capacity` tokens.
    """

    index: Tensor
    """Index (n,) int64 among the samples of the run."""
    tokens: Tensor
    """Prompt and completion (n, capacity) int64, right-padded with zeros."""
    lengths: Tensor
    """Length (n,) int64 of prompt plus completion."""
    prompt: Tensor
    """Index (n,) int64 of the prompt."""
    prompt_lengths: Tensor
    """Length (n,) int64 of the prompt."""
    accepted: Tensor
    """Whether (n,) bool the sample is complete, has positive weight, and a positive value if there is a verifier."""
    log_prob: Tensor
    """Log-probability (n,) float64 of the completion under the model, before truncation."""
    log_weight: Tensor
    """Log of target over proposal (n,) float64 for weighted samplers, otherwise the log-value of targets, or 0."""
    queries: Tensor
    """Number (n,) int64 of model calls. One call evaluates one prefix of one row."""
    distinct_queries: Tensor
    """Number (n,) int64 of model calls on prefixes that occur for the first time in the run."""
    forward_passes: Tensor
    """Number (n,) int64 of forward passes that included the sample."""
    positions: Tensor
    """Number (n,) int64 of positions evaluated for the sample. Shared positions count for the first row only."""
    verifier_calls: Tensor
    """Number (n,) int64 of verifier calls: one per distinct prefix, or one per visit for the values of all children."""
    seconds: Tensor
    """Wall time (n,) float64 in seconds. The time of each step is divided equally among the active samples."""
    stopped: list[str]
    """Why each sample ended early: "failed", "max_queries", "max_steps", or "" if it did not."""
    total: Cost
    """Cost of the whole run."""
    trace: Trace | None = None
    """The moves of the run, if they were requested."""
    decode: Callable[[Sequence[int]], str] | None = None
    """Function from completions to texts. None if the model has no tokenization."""
    parsers: Sequence[Parser | None] = ()
    """For each prompt, the function that converts an accepted text to a Python value, if its verifier defines one."""
    token_log_probs: Tensor | None = None
    """Log-probability (n, capacity) float64 of each token of the completion under the model, before truncation, if it
    was requested. 0 at other positions, and NaN from the first token that was appended without a model call."""
    errors: Sequence[str | None] = ()
    """Error message of the verifier or target for samples that it rejected by raising an error. Empty unless
    `on_error="reject"`."""
    remarks: Sequence[str | None] = ()
    """How the sampler ended each sample, where its documentation says so. Empty if there are no remarks."""

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[Sample]:
        for first in range(0, len(self), _ROWS):
            yield from self._rows(first, first + _ROWS)

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice | Sequence[int] | Sequence[bool] | Tensor) -> "Samples": ...

    def __getitem__(self, index: int | slice | Sequence[int] | Sequence[bool] | Tensor) -> "Sample | Samples":
        places = _places(index, len(self))
        if isinstance(places, int):
            return next(self._rows(places, places + 1))
        chosen = self.at(places)
        counts = {name: int(getattr(chosen, name).sum()) for name in Cost._fields if name != "seconds"}
        total = Cost(**counts, seconds=float(chosen.seconds.sum()))
        return replace(chosen, total=total, trace=None)

    def at(self, places: Tensor) -> "Samples":
        """Return selected samples, which may be repeated, with the `total` cost of the whole run.

        Args:
            places: Indices (k,) int64.
        """
        columns: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        columns |= {name: column[places] for name, column in columns.items() if isinstance(column, Tensor)}
        columns["stopped"] = [self.stopped[place] for place in places.tolist()]
        for name in ("errors", "remarks"):
            if columns[name]:
                columns[name] = [columns[name][place] for place in places.tolist()]
        return Samples(**columns | {"trace": None})

    def _rows(self, first: int, last: int) -> Iterator[Sample]:
        """Yield the samples from `first` to `last` - 1. Each column is converted to a list once."""
        numbers = {
            name: column[first:last].tolist()
            for name, column in vars(self).items()
            if isinstance(column, Tensor)
        }
        token_log_probs = numbers.get("token_log_probs")
        for row, place in enumerate(range(first, min(last, len(self)))):
            length, start, prompt = (numbers[name][row] for name in ("lengths", "prompt_lengths", "prompt"))
            completion = tuple(numbers["tokens"][row][start:length])
            yield Sample(
                tokens=completion,
                text=None if self.decode is None else self.decode(completion),
                stopped=self.stopped[place],
                error=self.errors[place] if self.errors else None,
                remark=self.remarks[place] if self.remarks else None,
                token_log_probs=None if token_log_probs is None else token_log_probs[row][start:length],
                parser=self.parsers[prompt] if self.parsers else None,
                **{name: numbers[name][row] for name in _NUMBERS},
            )

    def __repr__(self) -> str:
        return format_samples(self, len(self), int(self.accepted.sum()), self.total.queries)

    def sequences(self) -> list[tuple[int, ...]]:
        """Return prompt plus completion of each sample as a tuple of token ids."""
        rows = zip(self.tokens.tolist(), self.lengths.tolist(), strict=True)
        return [tuple(tokens[:length]) for tokens, length in rows]

    def completions(self) -> list[tuple[int, ...]]:
        """Return the completion of each sample as a tuple of token ids."""
        starts = self.prompt_lengths.tolist()
        return [tokens[start:] for tokens, start in zip(self.sequences(), starts, strict=True)]

    def texts(self) -> list[str]:
        """Return the text of each completion, up to the first stop string.

        Raises:
            InputError: If the model has no tokenization.
        """
        if self.decode is None:
            raise InputError("texts", None, "the model has no tokenization; use `completions`")
        return [self.decode(completion) for completion in self.completions()]

    def to_inference_data(self) -> Any:
        """Return the samples as ArviZ `InferenceData` (an xarray `DataTree`): one chain with a draw for each sample.

        The group "posterior" has the variable `tokens` with dimensions (chain, draw, position) and `length`. The group
        "sample_stats" has `log_weight`, `log_prob`, `accepted` and `prompt`. Samples that were not accepted have weight
        zero: their `log_weight` is -inf.

        Raises:
            InputError: If the extra `chains` is not installed.
        """
        posterior = {"tokens": self.tokens[None], "length": self.lengths[None]}
        stats = {name: getattr(self, name)[None] for name in ("log_prob", "accepted", "prompt")}
        stats["log_weight"] = torch.where(self.accepted, self.log_weight, -torch.inf)[None]
        return inference_data(posterior, stats, {"tokens": ["position"]})

    def parsed(self) -> list[Any]:
        """Return the Python value of each accepted sample, such as parsed JSON, and None for other samples.

        Raises:
            InputError: If no verifier of the run defines values, or if the model has no tokenization.
        """
        if not any(self.parsers):
            hint = "no verifier of the run defines values; use a JSON schema, a pydantic model or tools"
            raise InputError("parsed", None, hint)
        judged = zip(self._parsers(), self.texts(), self.accepted.tolist(), strict=True)
        return [parser(text) if accepted and parser else None for parser, text, accepted in judged]

    def refusals(self) -> list[str | None]:
        """Return, for each sample, why its complete text is invalid.

        An entry is None if the sample is accepted, its text is incomplete, or its verifier does not explain rejections.
        """
        if not any(self.parsers) or self.decode is None:
            return [None] * len(self)
        judged = zip(self._parsers(), self.texts(), self.accepted.tolist(), strict=True)
        return [
            None if accepted or parser is None else explain_invalid_text(parser, text)
            for parser, text, accepted in judged
        ]

    @property
    def calls(self) -> Tensor:
        """Number (n,) int64 of model calls, equal to `queries`."""
        return self.queries

    @property
    def parser(self) -> Parser | None:
        """The function in `parsers` that all prompts share, or None.

        Raises:
            InputError: If prompts have different functions.
        """
        first, *others = self.parsers or (None,)
        if any(other != first for other in others):
            raise InputError("parser", len(self.parsers), "prompts have different verifiers; use `parsers`")
        return first

    def _parsers(self) -> list[Parser | None]:
        return [self.parsers[prompt] for prompt in self.prompt.tolist()]


def _places(index: Any, count: int) -> int | Tensor:
    """Convert `index` (an int, slice, list or tensor) to one index, or to a tensor of indices, below `count`."""
    given = index.cpu().numpy() if isinstance(index, Tensor) else index
    try:
        places = np.arange(count)[list(given) if isinstance(given, tuple) else given]
    except (IndexError, TypeError, ValueError):
        if isinstance(index, int):
            # Iteration over a sequence ends at an IndexError.
            raise IndexError(f"sample index {index} is out of range for {count} samples") from None
        places = None
    if places is None or places.ndim > 1:
        hint = f"use indices from 0 to {count - 1}, or one bool per sample"
        raise InputError("index", index, hint if count else "there are no samples")
    return torch.from_numpy(places.copy()) if places.ndim else int(places)
