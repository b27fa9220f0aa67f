"""Any small oracle, written down: a function of the prefix, or an array with one axis per position."""

import dis
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.errors import InputError, reason
from trialogue.oracles import PrefixOracle
from trialogue.validation import Count, Natural, check, integer_range, validated

_NONE = -1


class Table(PrefixOracle):
    """An autoregressive oracle whose next-token probabilities are given.

    `distribution` is either a function from a prefix (tuple of ints) to `vocab_size` probabilities, or an array of
    shape (vocab, ..., vocab) holding the joint probabilities of sequences of that many tokens, from which the
    conditionals follow. A function is called once per prefix, or, with `memory`, once per what the last so many tokens
    of a prefix are, of which it is told. One whose code never reads its argument remembers none. `eos` names the token
    that ends a sequence, and `max_length` the longest one: for an array at most, and by default, its number of axes.

    Raises `InputError` where a distribution is not `vocab_size` non-negative numbers of positive finite sum, or the
    function raises; distributions are normalised.
    """

    @validated
    def __init__(
        self,
        distribution: Callable[[tuple[int, ...]], Sequence[float]] | ArrayLike,
        vocab_size: int | None = None,
        *,
        eos: int | None = None,
        max_length: Natural | None = None,
        memory: Natural | None = None,
    ) -> None:
        self.memory = memory
        if callable(distribution):
            if memory is None and not _reads_its_argument(distribution):
                self.memory = 0
            hint = "give the number of tokens the function answers for"
            self._law: Callable[[tuple[int, ...]], Sequence[float]] = distribution
            self.vocab_size = check("vocab_size", vocab_size, Count, hint)
            self.max_length = max_length
        else:
            joint = _joint_law(distribution)
            if memory is not None:
                raise InputError(
                    "memory", memory, "leave it out for an array, which has a distribution of whole sequences"
                )
            if vocab_size is not None:
                hint = f"the array has {joint.shape[0]} tokens: leave it out"
                check("vocab_size", vocab_size, integer_range(joint.shape[0], joint.shape[0]), hint)
            if max_length is not None:
                hint = f"the array has {joint.ndim} positions: use a whole number, and no more"
                max_length = check("max_length", max_length, integer_range(0, joint.ndim), hint)
            self._law = lambda prefix: joint[prefix].reshape(joint.shape[0], -1).sum(1).tolist()
            self.vocab_size = joint.shape[0]
            self.max_length = joint.ndim if max_length is None else max_length
        if eos is not None:
            hint = f"name a token below vocab_size={self.vocab_size}"
            eos = check("eos", eos, integer_range(0, self.vocab_size - 1), hint)
        self.eos = eos
        self._rows: dict[tuple[int, ...], Tensor] = {}

    def sufficient(self, tokens: Tensor, lengths: Tensor) -> Tensor | None:
        """The `memory` latest tokens (n, memory) int64, -1 before the first; None where that is unknown."""
        if self.memory is None:
            return None
        before = torch.nn.functional.pad(tokens, (self.memory, 0), value=_NONE)
        return before.gather(1, lengths[:, None] + torch.arange(self.memory))

    def _log_probs(self, told: tuple[int, ...], prefix: tuple[int, ...]) -> Tensor:
        """Log-probabilities (vocab,) by what the distribution answers when it is `told` so much of `prefix`."""
        try:
            answer = self._law(told)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                "distribution", prefix, f"after this prefix it raised {reason(error)}"
            ) from error
        hint = f"after {prefix} give {self.vocab_size} probabilities"
        distribution = real_tensor("distribution", answer, hint)
        if distribution.shape != (self.vocab_size,) or not bool(
            (distribution >= 0).all() & torch.isfinite(distribution.sum())
        ):
            raise InputError("distribution", answer, hint)
        if float(distribution.sum()) == 0.0:
            raise InputError("distribution", answer, f"after {prefix} every next token has probability zero")
        return (distribution / distribution.sum()).log()

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) float64 after the first `lengths` (n,) of `tokens` (n, capacity)."""
        latest = self.sufficient(tokens, lengths)
        if latest is None:
            prefixes = [
                tuple(row[:length]) for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)
            ]
            self._ask((prefix, prefix) for prefix in prefixes)
            return torch.stack([self._rows[prefix] for prefix in prefixes])
        # What the distribution tells apart are few; there may be no column at all.
        different, place = torch.nn.functional.pad(latest, (1, 0)).unique(dim=0, return_inverse=True)
        told = [tuple(token for token in row[1:] if token != _NONE) for row in different.tolist()]
        rows = torch.empty_like(different[:, 0]).scatter_(0, place, torch.arange(len(place)))
        self._ask(
            (known, tuple(tokens[row, : int(lengths[row])].tolist()))
            for known, row in zip(told, rows.tolist(), strict=True)
        )
        return torch.stack([self._rows[known] for known in told])[place]

    def _ask(self, prefixes: Iterable[tuple[tuple[int, ...], tuple[int, ...]]]) -> None:
        """Ask for the distributions that are not known, by what the distribution is told of a prefix, and the
        prefix.
        """
        for told, prefix in prefixes:
            if told not in self._rows:
                self._rows[told] = self._log_probs(told, prefix)


def _reads_its_argument(function: Callable[..., Any]) -> bool:
    """Whether what `function` answers may depend on its one argument, as far as can be told from its code."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_argcount != 1 or {"locals", "vars", "eval", "exec"} & set(code.co_names):
        return True
    # Some instructions of later versions of Python name several variables.
    named = [instruction.argval for instruction in dis.get_instructions(code)]
    return any(code.co_varnames[0] in (each if isinstance(each, tuple) else (each,)) for each in named)


def _joint_law(distribution: ArrayLike) -> NDArray[np.float64]:
    array = real_tensor("distribution", distribution, "give a function, or an array of probabilities")
    joint: NDArray[np.float64] = array.detach().cpu().numpy()
    if joint.ndim == 0 or len(set(joint.shape)) != 1 or not joint.size:
        raise InputError("distribution", joint.shape, "an array needs the shape (vocab,) * length")
    wrong = joint[~(np.isfinite(joint) & (joint >= 0))]
    with np.errstate(over="ignore"):
        total = float(joint.sum())
    if wrong.size or not 0 < total < np.inf:
        value = float(wrong[0]) if wrong.size else total
        hint = "give non-negative probabilities that are not all zero, and whose sum is finite"
        raise InputError("distribution", value, hint)
    return joint
