"""Any small oracle, written down: a function of the prefix, or an array with one axis per position."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import PrefixOracle


class Table(PrefixOracle):
    """An autoregressive oracle whose next-token probabilities are given.

    `law` is either a function from a prefix (tuple of ints) to `vocab_size` probabilities, or an array of shape
    (vocab, ..., vocab) holding the joint probabilities of sequences of that many tokens, from which the
    conditionals follow. A function is called once per prefix. `eos` names the token that ends a sequence, and
    `max_length` the longest one: for an array at most, and by default, its number of axes.

    Raises `InputError` where a law is not `vocab_size` non-negative finite numbers of positive sum; laws are
    normalised.
    """

    def __init__(
        self,
        law: Callable[[tuple[int, ...]], Sequence[float]] | ArrayLike,
        vocab_size: int | None = None,
        *,
        eos: int | None = None,
        max_length: int | None = None,
    ) -> None:
        if callable(law):
            if vocab_size is None or vocab_size < 1:
                raise InputError(
                    "vocab_size", vocab_size, "give the number of tokens the function answers for"
                )
            self._law: Callable[[tuple[int, ...]], Sequence[float]] = law
            self.vocab_size, self.max_length = vocab_size, max_length
        else:
            joint = _joint_law(law)
            if vocab_size not in (None, joint.shape[0]):
                raise InputError(
                    "vocab_size", vocab_size, f"the array has {joint.shape[0]} tokens: leave it out"
                )
            if max_length is not None and max_length > joint.ndim:
                raise InputError(
                    "max_length", max_length, f"the array has {joint.ndim} positions: use no more"
                )
            self._law = lambda prefix: joint[prefix].reshape(joint.shape[0], -1).sum(1).tolist()
            self.vocab_size = joint.shape[0]
            self.max_length = joint.ndim if max_length is None else max_length
        if eos is not None and not 0 <= eos < self.vocab_size:
            raise InputError("eos", eos, f"name a token below vocab_size={self.vocab_size}")
        self.eos = eos
        self._rows: dict[tuple[int, ...], Tensor] = {}

    def _log_probs(self, prefix: tuple[int, ...]) -> Tensor:
        if prefix not in self._rows:
            answer = self._law(prefix)
            try:
                law = torch.as_tensor(answer, dtype=torch.float64)
            except (TypeError, ValueError):
                law = torch.empty(0)
            if law.shape != (self.vocab_size,) or not bool((law >= 0).all() & torch.isfinite(law).all()):
                raise InputError("law", answer, f"after {prefix} give {self.vocab_size} probabilities")
            if float(law.sum()) == 0.0:
                raise InputError("law", answer, f"after {prefix} every next token has probability zero")
            self._rows[prefix] = (law / law.sum()).log()
        return self._rows[prefix]

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) float64 after the first `lengths` (n,) of `tokens` (n, capacity)."""
        prefixes = [
            tuple(row[:length]) for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)
        ]
        return torch.stack([self._log_probs(prefix) for prefix in prefixes])


def _joint_law(law: ArrayLike) -> NDArray[np.float64]:
    try:
        joint = np.asarray(law, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("law", law, "give a function, or an array of probabilities") from None
    if joint.ndim == 0 or len(set(joint.shape)) != 1:
        raise InputError("law", joint.shape, "an array needs the shape (vocab,) * length")
    wrong = joint[~(np.isfinite(joint) & (joint >= 0))]
    if wrong.size or joint.sum() == 0:
        value = float(wrong[0]) if wrong.size else 0.0
        raise InputError("law", value, "give non-negative finite probabilities that are not all zero")
    return joint
