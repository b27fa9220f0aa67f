"""A plain Python function of a prefix as a verifier, and the threshold that turns a value into a verdict."""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding, Verifier


class FunctionVerifier:
    """Calls `function` row by row with the prefix as a tuple of ints: prompt and completion, no BOS.

    With `scope="completion"` it is given the completion alone. The function returns a truth value, a probability
    or any non-negative number.
    """

    layers: Sequence[int] = ()

    def __init__(
        self,
        function: Callable[[tuple[int, ...]], float | bool],
        scope: Literal["sequence", "completion"] = "sequence",
    ) -> None:
        self._function, self.scope = function, scope

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Values (n,) float64 of the sequences in `rows` (n,)."""
        lengths = decoding.lengths[rows].tolist()
        starts = decoding.start[rows].tolist() if self.scope == "completion" else [0] * len(rows)
        sequences = decoding.tokens[rows].tolist()
        prefixes = [
            tuple(tokens[start:length])
            for tokens, start, length in zip(sequences, starts, lengths, strict=True)
        ]
        return torch.tensor([_number(self._function(prefix)) for prefix in prefixes], dtype=torch.float64)

    def children(self, decoding: Decoding, rows: Tensor) -> None:
        """Only `values` can tell."""
        del decoding, rows


def _number(answer: float | bool) -> float:
    try:
        return float(answer)
    except (TypeError, ValueError, OverflowError):
        raise InputError("verifier", answer, "return one number or truth value per prefix") from None


class Threshold:
    """1 where the value of `verifier` is at least `threshold`, else 0."""

    def __init__(self, verifier: Verifier, threshold: float) -> None:
        if not 0 <= threshold < math.inf:
            raise InputError("threshold", threshold, "use a finite number of at least 0")
        self._verifier, self._threshold = verifier, threshold
        self.scope: Literal["sequence", "completion"] = verifier.scope
        self.layers: Sequence[int] = verifier.layers

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Verdicts (n,) float64 on the sequences in `rows` (n,)."""
        return self._verdicts(self._verifier.values(decoding, rows))

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Verdicts (n, vocab) on all one-token continuations, or None where only `values` can tell."""
        values = self._verifier.children(decoding, rows)
        return None if values is None else self._verdicts(values)

    def _verdicts(self, values: Tensor) -> Tensor:
        # A NaN is neither above nor below: pass it on, to be reported.
        return torch.where(values.isnan(), values, (values >= self._threshold).to(values.dtype))


def as_verifier(verifier: Verifier | Callable[[tuple[int, ...]], float | bool]) -> Verifier:
    """Return a verifier as it is, and a plain function of a prefix as a `FunctionVerifier`."""
    if isinstance(verifier, Verifier):
        return verifier
    if hasattr(verifier, "values"):
        missing = [name for name in ("scope", "layers", "children") if not hasattr(verifier, name)]
        raise InputError("verifier", type(verifier).__name__, f"a Verifier also needs {', '.join(missing)}")
    if callable(verifier):
        return FunctionVerifier(verifier)
    raise InputError("verifier", verifier, "give a Verifier or a function of a prefix (tuple of ints)")
