"""Conversion of objects to autoregressive models, and next-token probabilities of given prefixes."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles.autoregressive import Autoregressive, Context, PrefixOracle
from trialogue.oracles.output_checks import require_features, require_log_probs


def as_oracle(thing: Any, field: str = "oracle") -> Autoregressive:
    """Convert an object to an `Autoregressive` model.

    Args:
        thing: An `Autoregressive` model, which is returned unchanged, or an object with the attribute `vocab_size` and
            a method `open` or `next_log_probs`. Missing attributes have the defaults of `Autoregressive` and `Context`.
        field: Name of the argument in error messages (default: "oracle").

    Raises:
        InputError: If the object has none of these methods.
    """
    if isinstance(thing, Autoregressive):
        return thing
    if not isinstance(thing, type) and hasattr(thing, "vocab_size"):
        if hasattr(thing, "open"):
            return _OpenAdapter(thing)
        if hasattr(thing, "next_log_probs"):
            return _NextLogProbsAdapter(thing)
    hint = "give an object with vocab_size and a method open or next_log_probs, as trialogue.oracles.Autoregressive"
    raise InputError(field, thing.__name__ if isinstance(thing, type) else type(thing).__name__, hint)


def _copy_attributes(adapter: Any, thing: Any, contract: type, names: Sequence[str]) -> None:
    """Copy the attributes `names` from `thing` to `adapter`. Missing ones get the defaults of `contract`."""
    for name in names:
        setattr(adapter, name, getattr(thing, name, getattr(contract, name)))


_ORACLE_FACTS = ("eos", "max_length", "cuts", "prompts_go_on", "empty_prompt", "batch_size", "tokenization")


class _OpenAdapter(Autoregressive):
    """Adapter that makes an object with a method `open` an `Autoregressive` model."""

    def __init__(self, thing: Any) -> None:
        self._thing, self.vocab_size = thing, thing.vocab_size
        _copy_attributes(self, thing, Autoregressive, _ORACLE_FACTS)

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        return as_context(self._thing.open(rows, capacity, layers))


class _NextLogProbsAdapter(PrefixOracle):
    """Adapter that makes an object with a method `next_log_probs` a `PrefixOracle`."""

    def __init__(self, thing: Any) -> None:
        self._thing, self.vocab_size = thing, thing.vocab_size
        _copy_attributes(self, thing, Autoregressive, _ORACLE_FACTS)

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        answers: Tensor = self._thing.next_log_probs(tokens, lengths)
        return answers


def as_context(thing: Any) -> Context:
    """Convert an object with the methods of a `Context` to a `Context`.

    Args:
        thing: A `Context`, which is returned unchanged, or an object with the same methods. Missing attributes have the
            defaults of `Context`.
    """
    return thing if isinstance(thing, Context) else _ContextAdapter(thing)


class _ContextAdapter(Context):
    """Adapter that makes an object with the methods of a `Context` a `Context`."""

    def __init__(self, thing: Any) -> None:
        self._thing = thing
        _copy_attributes(self, thing, Context, ("first", "recomputes", "passes"))

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        features: Tensor = self._thing.features(tokens, start, stop, rows)
        if self.passes is not None:
            self.passes = self._thing.passes
        return features

    def log_probs(self, features: Tensor) -> Tensor:
        answers: Tensor = self._thing.log_probs(features)
        return answers

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        states: Tensor = self._thing.hidden(features, layer)
        return states

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        self._thing.copy(source, rows, start, stop)

    def fork(self, rows: Tensor, stop: int) -> Context:
        return as_context(self._thing.fork(rows, stop))


def next_log_probs(
    oracle: Autoregressive, tokens: Tensor, lengths: Tensor | None = None, *, batch_size: int = 4096
) -> Tensor:
    """Compute the log-probabilities of the token that follows each prefix, without gradients.

    Args:
        oracle: Autoregressive model.
        tokens: Token sequences (n, capacity) int64.
        lengths: Lengths (n,) int64 of the prefixes (default: all tokens of each row).
        batch_size: Number of prefixes per call of the model.

    Returns:
        Log-probabilities (n, vocab), with the dtype and device of the model's output.

    Raises:
        InputError: If a length is out of range, if the model cannot evaluate the empty prefix, or if its output is NaN,
            not normalised or of another shape.
    """
    asked = as_oracle(oracle)
    lengths = torch.full((len(tokens),), tokens.shape[1]) if lengths is None else lengths
    if not len(lengths):
        return torch.zeros(0, asked.vocab_size)
    if not 0 <= int(lengths.min()) <= int(lengths.max()) <= tokens.shape[1]:
        wrong = int(lengths.min()) if int(lengths.min()) < 0 else int(lengths.max())
        raise InputError(
            "lengths", wrong, f"use lengths from 0 to {tokens.shape[1]}, the width of the tokens"
        )
    rows = min(batch_size, len(tokens))
    context = as_context(asked.open(rows, tokens.shape[1]))
    if int(lengths.min()) < context.first:
        raise InputError(
            "oracle",
            type(oracle).__name__,
            "the model cannot evaluate the empty prefix; use prefixes of at least one token",
        )
    answers: list[Tensor] = []
    with torch.no_grad():
        for begin in range(0, len(tokens), rows):
            stop = lengths[begin : begin + rows]
            prefixes, start = tokens[begin : begin + rows], torch.zeros_like(stop)
            features = context.features(prefixes, start, stop, torch.arange(len(stop)))
            if not answers:
                require_features(features, len(stop))
            answers.append(context.log_probs(features))
            if len(answers) == 1:
                require_log_probs("oracle", answers[0], (len(stop), asked.vocab_size))
    log_probs = torch.cat(answers)
    if bool(torch.isnan(log_probs).any()):
        raise InputError("oracle", math.nan, "the model returned NaN")
    return log_probs
