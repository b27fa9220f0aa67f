"""Models defined by a function of the prefix, or by an array of joint probabilities."""

import dis
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.errors import InputError, describe_error
from trialogue.oracles import PrefixOracle
from trialogue.validation import Count, Natural, check, integer_range, validated

_NO_TOKEN = -1


class Table(PrefixOracle):
    """Autoregressive model with next-token probabilities given by a function or an array.

    Args:
        distribution: Function from a prefix (a tuple of ints) to the probabilities (vocab_size,) of the next
            token, or array (vocab_size, ..., vocab_size) of joint probabilities with one axis per position.
            Probabilities are normalized, and results of the function are cached.
        vocab_size: Number of tokens. Required for a function, and not needed for an array.
        eos: Token that ends a sequence (default: none).
        max_length: Maximum length of a sequence (default: no maximum for a function, the number of axes for
            an array).
        memory: Number of last tokens on which the function depends. The function then receives only these
            tokens. The default is all tokens, or 0 if the code of the function does not use its argument.

    Raises:
        InputError: If an argument is invalid. Methods raise it if the function fails or returns invalid
            probabilities.

    Example:
        >>> from trialogue.data import Table
        >>> oracle = Table([[0.1, 0.4], [0.2, 0.3]])
        >>> oracle.vocab_size, oracle.max_length
        (2, 2)
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
            if memory is None and not _uses_argument(distribution):
                self.memory = 0
            hint = "give the number of probabilities that the function returns"
            self._distribution: Callable[[tuple[int, ...]], Sequence[float]] = distribution
            self.vocab_size = check("vocab_size", vocab_size, Count, hint)
            self.max_length = max_length
        else:
            joint = checked_joint(distribution)
            if memory is not None:
                raise InputError("memory", memory, "omit it if the distribution is an array")
            if vocab_size is not None:
                hint = f"omit it, because the array has {joint.shape[0]} tokens"
                check("vocab_size", vocab_size, integer_range(joint.shape[0], joint.shape[0]), hint)
            if max_length is not None:
                hint = f"use an integer from 0 to {joint.ndim}, the number of axes of the array"
                max_length = check("max_length", max_length, integer_range(0, joint.ndim), hint)
            self._distribution = lambda prefix: joint[prefix].reshape(joint.shape[0], -1).sum(1).tolist()
            self.vocab_size = joint.shape[0]
            self.max_length = joint.ndim if max_length is None else max_length
        if eos is not None:
            hint = f"use a token below vocab_size={self.vocab_size}"
            eos = check("eos", eos, integer_range(0, self.vocab_size - 1), hint)
        self.eos = eos
        self._rows: dict[tuple[int, ...], Tensor] = {}

    def sufficient(self, tokens: Tensor, lengths: Tensor) -> Tensor | None:
        """Return the last `memory` tokens of each prefix, on which the next-token distribution depends.

        Args:
            tokens: Prefixes (n, capacity) int64, right-padded.
            lengths: Lengths (n,) int64 of the prefixes.

        Returns:
            Tokens (n, memory) int64, left-padded with -1 if a prefix is shorter, or None if `memory` is None.
        """
        if self.memory is None:
            return None
        padded = torch.nn.functional.pad(tokens, (self.memory, 0), value=_NO_TOKEN)
        return padded.gather(1, lengths[:, None] + torch.arange(self.memory))

    def _log_probs(self, suffix: tuple[int, ...], prefix: tuple[int, ...]) -> Tensor:
        """Return the log-probabilities (vocab,) after `prefix`. The function receives its last tokens, `suffix`."""
        try:
            probs = self._distribution(suffix)
        except InputError:
            raise
        except Exception as error:
            hint = f"correct the function, which raised {describe_error(error)} after this prefix"
            raise InputError("distribution", prefix, hint) from error
        hint = f"after {prefix} give {self.vocab_size} probabilities"
        distribution = real_tensor("distribution", probs, hint)
        if distribution.shape != (self.vocab_size,) or not bool(
            (distribution >= 0).all() & torch.isfinite(distribution.sum())
        ):
            raise InputError("distribution", probs, hint)
        if float(distribution.sum()) == 0.0:
            raise InputError("distribution", probs, f"after {prefix} give a token a positive probability")
        return (distribution / distribution.sum()).log()

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the log-probabilities of the next token after each prefix.

        Args:
            tokens: Prefixes (n, capacity) int64, right-padded.
            lengths: Lengths (n,) int64 of the prefixes.

        Returns:
            Log-probabilities (n, vocab_size) float64.
        """
        suffixes = self.sufficient(tokens, lengths)
        if suffixes is None:
            prefixes = [
                tuple(row[:length]) for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)
            ]
            self._compute((prefix, prefix) for prefix in prefixes)
            return torch.stack([self._rows[prefix] for prefix in prefixes])
        # The padding column allows `unique` to work if `memory` is 0.
        distinct, inverse = torch.nn.functional.pad(suffixes, (1, 0)).unique(dim=0, return_inverse=True)
        keys = [tuple(token for token in row[1:] if token != _NO_TOKEN) for row in distinct.tolist()]
        rows = torch.empty_like(distinct[:, 0]).scatter_(0, inverse, torch.arange(len(inverse)))
        self._compute(
            (key, tuple(tokens[row, : int(lengths[row])].tolist()))
            for key, row in zip(keys, rows.tolist(), strict=True)
        )
        return torch.stack([self._rows[key] for key in keys])[inverse]

    def _compute(self, prefixes: Iterable[tuple[tuple[int, ...], tuple[int, ...]]]) -> None:
        """Compute and cache the missing distributions, given pairs of a suffix and its prefix."""
        for suffix, prefix in prefixes:
            if suffix not in self._rows:
                self._rows[suffix] = self._log_probs(suffix, prefix)


def _uses_argument(function: Callable[..., Any]) -> bool:
    """Return whether the result of `function` may depend on its only argument, based on its bytecode."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_argcount != 1 or {"locals", "vars", "eval", "exec"} & set(code.co_names):
        return True
    # In recent versions of Python, one instruction can use several variables.
    used = [instruction.argval for instruction in dis.get_instructions(code)]
    return any(code.co_varnames[0] in (each if isinstance(each, tuple) else (each,)) for each in used)


def checked_joint(distribution: ArrayLike) -> NDArray[np.float64]:
    """Return joint probabilities as an array, after a check of their shape and their values.

    Args:
        distribution: Array (vocab_size, ..., vocab_size) of non-negative numbers with a positive sum.

    Raises:
        InputError: If the array has another shape, or other values.
    """
    array = real_tensor("distribution", distribution, "give a function, or an array of probabilities")
    joint: NDArray[np.float64] = array.detach().cpu().numpy()
    if joint.ndim == 0 or len(set(joint.shape)) != 1 or not joint.size:
        raise InputError("distribution", joint.shape, "give an array of shape (vocab,) * length")
    wrong = joint[~(np.isfinite(joint) & (joint >= 0))]
    with np.errstate(over="ignore"):
        total = float(joint.sum())
    if wrong.size or not 0 < total < np.inf:
        value = float(wrong[0]) if wrong.size else total
        hint = "give non-negative probabilities whose sum is positive and finite"
        raise InputError("distribution", value, hint)
    return joint
