"""Any oracle asked about any prefixes, whether it is one by name or only has the methods of one."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles.autoregressive import Autoregressive, Context, PrefixOracle
from trialogue.oracles.output_checks import require_features, require_log_probs


def as_oracle(thing: Any, field: str = "oracle") -> Autoregressive:
    """An oracle as it is; of an object with `vocab_size` and a method `open` or `next_log_probs` an oracle.

    What such an object does not say has the default that `Autoregressive` and `Context` state. Raises `InputError`,
    which names `field`, for anything else.
    """
    if isinstance(thing, Autoregressive):
        return thing
    if not isinstance(thing, type) and hasattr(thing, "vocab_size"):
        if hasattr(thing, "open"):
            return _Opening(thing)
        if hasattr(thing, "next_log_probs"):
            return _Answering(thing)
    hint = "give an Autoregressive oracle: one with vocab_size, and open or next_log_probs"
    raise InputError(field, thing.__name__ if isinstance(thing, type) else type(thing).__name__, hint)


def _take_facts(adapter: Any, thing: Any, contract: type, names: Sequence[str]) -> None:
    """Give `adapter` what `thing` says of itself, and of the rest what is the default of its `contract`."""
    for name in names:
        setattr(adapter, name, getattr(thing, name, getattr(contract, name)))


_ORACLE_FACTS = ("eos", "max_length", "cuts", "prompts_go_on", "empty_prompt", "batch_size", "tokenization")


class _Opening(Autoregressive):
    """An object that opens contexts, as an oracle."""

    def __init__(self, thing: Any) -> None:
        self._thing, self.vocab_size = thing, thing.vocab_size
        _take_facts(self, thing, Autoregressive, _ORACLE_FACTS)

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        return as_context(self._thing.open(rows, capacity, layers))


class _Answering(PrefixOracle):
    """An object that answers for prefixes, as an oracle."""

    def __init__(self, thing: Any) -> None:
        self._thing, self.vocab_size = thing, thing.vocab_size
        _take_facts(self, thing, Autoregressive, _ORACLE_FACTS)

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        answers: Tensor = self._thing.next_log_probs(tokens, lengths)
        return answers


def as_context(thing: Any) -> Context:
    """A context as it is, and an object with the methods of one as a context, its other facts the defaults."""
    return thing if isinstance(thing, Context) else _Evaluating(thing)


class _Evaluating(Context):
    """An object that evaluates prefixes, as a context."""

    def __init__(self, thing: Any) -> None:
        self._thing = thing
        _take_facts(self, thing, Context, ("first", "recomputes", "passes"))

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
    """Log-probabilities (n, vocab) of the token after the first `lengths` (n,) of `tokens` (n, capacity) int64.

    Whole rows where `lengths` is left out. Prefixes are evaluated from their first position on, `batch_size` at once,
    without gradients; the answers have the type and the device that the oracle gives them.

    Raises `InputError` for lengths outside of 0 to capacity, for the empty prefix where the oracle has no answer for
    it, for an answer that is NaN, and where the first answer has another shape or is not normalised.
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
        raise InputError("oracle", type(oracle).__name__, "it does not answer for the empty prefix")
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
        raise InputError("oracle", math.nan, "it answers with NaN")
    return log_probs
