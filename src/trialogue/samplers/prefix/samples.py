"""What a run returns: the samples, what they cost, and how the rows moved."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, overload

import numpy as np
import torch
from torch import Tensor

from trialogue.errors import InputError, NotValidError
from trialogue.samplers.inference_data import inference_data
from trialogue.samplers.prefix.sample import Parser, Sample, shown


class Cost(NamedTuple):
    """What a run cost in all: counts, and seconds of wall time.

    Rows share a forward pass, so that this many passes are fewer than the rows' own numbers add up to.
    """

    queries: int
    distinct_queries: int
    forward_passes: int
    positions: int
    verifier_calls: int
    seconds: float


@dataclass(frozen=True)
class Trace:
    """What the moves of a run were, one entry per row and step in which it changed, in the order of the steps.

    All (moves,) int64: the step of the run, the sample, the member of its group, the length before, the member it
    continued from, the length it kept of that, and the token it appended (-1 for none). Entries of one step happen
    at once: a source is meant as it was before the step.
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
    """What a run returns, in the order of its prompts; n samples of up to `capacity` tokens.

    `accepted` says that a sample is complete, has positive weight, and that the verifier, if there is one, gives
    it a positive value. `stopped` tells why a sample was cut off ("" where it was not): "failed" (no way on),
    "max_queries" or "max_steps". `queries` counts tokens asked of the oracle, `distinct_queries` those for
    prefixes never asked about before in this run, `verifier_calls` questions to the verifier: one per prefix judged,
    once per run, or one per visit for the values of all children where it gives them at once. `total` holds the same
    for the whole run.

    `samples[i]` is a `Sample`, as is what iterating gives; `samples[2:5]`, and an index by a list or a tensor of places
    or of truth values, are `Samples` again, whose `total` adds up what they cost themselves.
    """

    index: Tensor
    """(n,) int64: place among the samples of the run"""
    tokens: Tensor
    """(n, capacity) int64: prompt and completion, right-padded with zeros"""
    lengths: Tensor
    """(n,) int64: length of prompt and completion"""
    prompt: Tensor
    """(n,) int64: index of the prompt"""
    prompt_lengths: Tensor
    """(n,) int64"""
    accepted: Tensor
    """(n,) bool"""
    log_prob: Tensor
    """(n,) float64: log-probability of the completion under the oracle, before truncation"""
    log_weight: Tensor
    """(n,) float64: log of target over proposal where the sampler knows it, else 0"""
    queries: Tensor
    """(n,) int64"""
    distinct_queries: Tensor
    """(n,) int64"""
    forward_passes: Tensor
    """(n,) int64: passes of the oracle that the sample took part in"""
    positions: Tensor
    """(n,) int64: positions the oracle evaluated for the sample; what rows share counts for the one that asked first"""
    verifier_calls: Tensor
    """(n,) int64"""
    seconds: Tensor
    """(n,) float64: wall time, every step shared equally among the samples that were under way"""
    stopped: list[str]
    total: Cost
    trace: Trace | None = None
    decode: Callable[[Sequence[int]], str] | None = None
    """The text of a completion, where the oracle has a tokenization"""
    parsers: Sequence[Parser | None] = ()
    """By prompt the function from an accepted text to its value, where its verifier knows what texts stand for"""
    token_log_probs: Tensor | None = None
    """(n, capacity) float64, where they were asked for: the log-probability of each token of the completion under the
    oracle, before truncation; 0 elsewhere, and NaN from where a token was appended without asking for its
    distribution"""
    errors: Sequence[str | None] = ()
    """What the verifier raised about each sample that was rejected for that, or, of one that failed, about its
    continuations; empty unless `on_error="reject"`"""

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[Sample]:
        return (self[place] for place in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice | Sequence[int] | Sequence[bool] | Tensor) -> "Samples": ...

    def __getitem__(self, index: int | slice | Sequence[int] | Sequence[bool] | Tensor) -> "Sample | Samples":
        places = _places(index, len(self))
        if isinstance(places, int):
            return self._sample(places)
        chosen = self.at(places)
        counts = {name: int(getattr(chosen, name).sum()) for name in Cost._fields if name != "seconds"}
        total = Cost(**counts, seconds=float(chosen.seconds.sum()))
        return replace(chosen, total=total, trace=None)

    def at(self, places: Tensor) -> "Samples":
        """The samples at `places` (k,) int64, any of which may come again, with the `total` of the whole run."""
        columns: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        columns |= {name: column[places] for name, column in columns.items() if isinstance(column, Tensor)}
        columns["stopped"] = [self.stopped[place] for place in places.tolist()]
        if self.errors:
            columns["errors"] = [self.errors[place] for place in places.tolist()]
        return Samples(**columns | {"trace": None})

    def _sample(self, place: int) -> Sample:
        length, start = int(self.lengths[place]), int(self.prompt_lengths[place])
        prompt, sequence = int(self.prompt[place]), tuple(self.tokens[place, :length].tolist())
        counts = {name: int(getattr(self, name)[place]) for name in Cost._fields if name != "seconds"}
        scores = None if self.token_log_probs is None else self.token_log_probs[place, start:length].tolist()
        return Sample(
            index=int(self.index[place]),
            prompt=prompt,
            tokens=sequence[start:],
            text=None if self.decode is None else self.decode(sequence[start:]),
            accepted=bool(self.accepted[place]),
            stopped=self.stopped[place],
            error=self.errors[place] if self.errors else None,
            log_prob=float(self.log_prob[place]),
            log_weight=float(self.log_weight[place]),
            token_log_probs=scores,
            seconds=float(self.seconds[place]),
            parser=self.parsers[prompt] if self.parsers else None,
            **counts,  # type: ignore[arg-type]
        )

    def __repr__(self) -> str:
        return shown(self, len(self), int(self.accepted.sum()), self.total.queries)

    def sequences(self) -> list[tuple[int, ...]]:
        """Prompt and completion of each sample as a tuple of token ids."""
        rows = zip(self.tokens.tolist(), self.lengths.tolist(), strict=True)
        return [tuple(tokens[:length]) for tokens, length in rows]

    def completions(self) -> list[tuple[int, ...]]:
        """The completion of each sample as a tuple of token ids."""
        starts = self.prompt_lengths.tolist()
        return [tokens[start:] for tokens, start in zip(self.sequences(), starts, strict=True)]

    def texts(self) -> list[str]:
        """The text of each completion, up to the stop string where there is one.

        Raises `InputError` where the oracle has no tokenization.
        """
        if self.decode is None:
            raise InputError("texts", None, "the oracle has no tokenization: use `completions`")
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
        """What the text of each accepted sample stands for: JSON values, instances of a model, calls; None of others.

        Raises `InputError` where no verifier of the run knows what texts stand for, or the oracle has no tokenization.
        """
        if not any(self.parsers):
            hint = "no verifier of the run knows what texts stand for: give a schema, a model or tools"
            raise InputError("parsed", None, hint)
        judged = zip(self._parsers(), self.texts(), self.accepted.tolist(), strict=True)
        return [parser(text) if accepted and parser else None for parser, text, accepted in judged]

    def refusals(self) -> list[str | None]:
        """What is wrong with the text of each sample that is whole and not valid, where its verifier can tell."""
        if not any(self.parsers) or self.decode is None:
            return [None] * len(self)
        judged = zip(self._parsers(), self.texts(), self.accepted.tolist(), strict=True)
        return [
            None if accepted or parser is None else _refusal(parser, text)
            for parser, text, accepted in judged
        ]

    @property
    def parser(self) -> Parser | None:
        """The one of `parsers` where all prompts are under one rule, None where that knows of no values.

        Raises `InputError` where prompts have several.
        """
        first, *others = self.parsers or (None,)
        if any(other != first for other in others):
            raise InputError("parser", len(self.parsers), "prompts are under several rules: use `parsers`")
        return first

    def _parsers(self) -> list[Parser | None]:
        return [self.parsers[prompt] for prompt in self.prompt.tolist()]


def _places(index: Any, count: int) -> int | Tensor:
    """Return the place, or the places (k,) int64, that `index` selects among `count` samples."""
    given = index.cpu().numpy() if isinstance(index, Tensor) else index
    try:
        places = np.arange(count)[list(given) if isinstance(given, tuple) else given]
    except (IndexError, TypeError, ValueError):
        if isinstance(index, int):
            # The error of sequences, on which loops over places rely.
            raise IndexError(f"there is no sample at {index}: there are {count}") from None
        places = None
    if places is None or places.ndim > 1:
        hint = f"use places from 0 to {count - 1}, or one truth value for each"
        raise InputError("index", index, hint if count else "there are no samples")
    return torch.from_numpy(places.copy()) if places.ndim else int(places)


def _refusal(parser: Parser, text: str) -> str | None:
    try:
        parser(text)
    except NotValidError as error:
        return str(error)
    except ValueError:
        pass
    return None
