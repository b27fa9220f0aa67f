"""Any small oracle, written down: a function of the prefix, or an array with one axis per position."""

import dis
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.errors import InputError, reason, whole_number
from trialogue.oracles import PrefixOracle


class Table(PrefixOracle):
    """An autoregressive oracle whose next-token probabilities are given.

    `law` is either a function from a prefix (tuple of ints) to `vocab_size` probabilities, or an array of shape
    (vocab, ..., vocab) holding the joint probabilities of sequences of that many tokens, from which the
    conditionals follow. A function is called once per prefix, or, with `memory`, once per what the last so many tokens
    of a prefix are, of which it is told. One whose code never reads its argument remembers none. `eos` names the token
    that ends a sequence, and `max_length` the longest one: for an array at most, and by default, its number of axes.

    Raises `InputError` where a law is not `vocab_size` non-negative numbers of positive finite sum, or the function
    raises; laws are normalised.
    """

    def __init__(
        self,
        law: Callable[[tuple[int, ...]], Sequence[float]] | ArrayLike,
        vocab_size: int | None = None,
        *,
        eos: int | None = None,
        max_length: int | None = None,
        memory: int | None = None,
    ) -> None:
        self._told = None if memory is None else whole_number("memory", memory, 0)
        self.memory = self._told
        if callable(law):
            if memory is None and not _reads_its_argument(law):
                self.memory = 0
            mend = "give the number of tokens the function answers for"
            self._law: Callable[[tuple[int, ...]], Sequence[float]] = law
            self.vocab_size = whole_number("vocab_size", vocab_size, 1, mend=mend)
            self.max_length = None if max_length is None else whole_number("max_length", max_length, 0)
        else:
            joint = _joint_law(law)
            if memory is not None:
                raise InputError(
                    "memory", memory, "leave it out for an array, which has a law of whole sequences"
                )
            if vocab_size is not None:
                mend = f"the array has {joint.shape[0]} tokens: leave it out"
                whole_number("vocab_size", vocab_size, joint.shape[0], joint.shape[0], mend)
            if max_length is not None:
                mend = f"the array has {joint.ndim} positions: use a whole number, and no more"
                max_length = whole_number("max_length", max_length, 0, joint.ndim, mend)
            self._law = lambda prefix: joint[prefix].reshape(joint.shape[0], -1).sum(1).tolist()
            self.vocab_size = joint.shape[0]
            self.max_length = joint.ndim if max_length is None else max_length
        if eos is not None:
            mend = f"name a token below vocab_size={self.vocab_size}"
            eos = whole_number("eos", eos, 0, self.vocab_size - 1, mend)
        self.eos = eos
        self._rows: dict[tuple[int, ...], Tensor] = {}

    def sufficient(self, tokens: Tensor, lengths: Tensor) -> Tensor | None:
        """The `memory` latest tokens (n, memory) int64, -1 before the first; None where that is unknown."""
        if self.memory is None:
            return None
        places = lengths[:, None] - self.memory + torch.arange(self.memory)
        return tokens.gather(1, places.clamp_min(0)).masked_fill(places < 0, -1)

    def _log_probs(self, prefix: tuple[int, ...]) -> Tensor:
        if prefix not in self._rows:
            try:
                answer = self._law(prefix)
            except InputError:
                raise
            except Exception as error:
                raise InputError("law", prefix, f"after this prefix it raised {reason(error)}") from error
            mend = f"after {prefix} give {self.vocab_size} probabilities"
            law = real_tensor("law", answer, mend)
            if law.shape != (self.vocab_size,) or not bool((law >= 0).all() & torch.isfinite(law.sum())):
                raise InputError("law", answer, mend)
            if float(law.sum()) == 0.0:
                raise InputError("law", answer, f"after {prefix} every next token has probability zero")
            self._rows[prefix] = (law / law.sum()).log()
        return self._rows[prefix]

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) float64 after the first `lengths` (n,) of `tokens` (n, capacity)."""
        latest = None if self._told is None else self.sufficient(tokens, lengths)
        if latest is None:
            rows = zip(tokens.tolist(), lengths.tolist(), strict=True)
            prefixes = [tuple(row[:length]) for row, length in rows]
        else:
            prefixes = [tuple(token for token in row if token >= 0) for row in latest.tolist()]
        return torch.stack([self._log_probs(prefix) for prefix in prefixes])


def _reads_its_argument(function: Callable[..., Any]) -> bool:
    """Whether what `function` answers may depend on its one argument, as far as can be told from its code."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_argcount != 1 or {"locals", "vars", "eval", "exec"} & set(code.co_names):
        return True
    # Some instructions of later versions of Python name several variables.
    named = [instruction.argval for instruction in dis.get_instructions(code)]
    return any(code.co_varnames[0] in (each if isinstance(each, tuple) else (each,)) for each in named)


def _joint_law(law: ArrayLike) -> NDArray[np.float64]:
    array = real_tensor("law", law, "give a function, or an array of probabilities")
    joint: NDArray[np.float64] = array.detach().cpu().numpy()
    if joint.ndim == 0 or len(set(joint.shape)) != 1 or not joint.size:
        raise InputError("law", joint.shape, "an array needs the shape (vocab,) * length")
    wrong = joint[~(np.isfinite(joint) & (joint >= 0))]
    with np.errstate(over="ignore"):
        total = float(joint.sum())
    if wrong.size or not 0 < total < np.inf:
        value = float(wrong[0]) if wrong.size else total
        mend = "give non-negative probabilities that are not all zero, and whose sum is finite"
        raise InputError("law", value, mend)
    return joint
