"""Value functions with errors of known size, for experiments on how samplers react to value errors."""

import math
from typing import Literal

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding, Verifier
from trialogue.randomness import derive_seed
from trialogue.validation import NonNegative, Positive, validated
from trialogue.verifiers.combination import require_no_target
from trialogue.verifiers.functions.function import VerifierLike, as_verifier
from trialogue.verifiers.random import prefix_uniforms


@validated
class NoisyValues(Verifier):
    """Value function that multiplies the values of another one by random factors, to test samplers with wrong values.

    The value of a prefix is f V*, where V* is its value under the other function. The factor f depends only
    on `seed` and the prefix. Complete sequences keep their value. There are three kinds of errors:

    - "uniform": f is 1 + `error` or its inverse, each for half of the prefixes.
    - "average": f is `spread` or its inverse for a small share of the prefixes, and 1 for all others. The
      means of f and of 1/f are 1 + `error`, so errors are small on average, but large for some prefixes.
    - "last token": f is 1 + `error` if the last token is 0, and its inverse otherwise. These errors favour
      the same sequences at every length.

    Args:
        values: Verifier or function of a prefix that returns V*.
        error: Size of the errors, at least 0.
        kind: Kind of errors: "uniform" (default), "average" or "last token".
        spread: Factor of the affected prefixes, only used by "average" (default: 10).
        seed: Random seed (default: 0).

    Raises:
        InputError: If `error` is negative, or greater than (spread + 1/spread)/2 - 1 for "average".
    """

    def __init__(
        self,
        values: VerifierLike,
        error: NonNegative,
        kind: Literal["uniform", "average", "last token"] = "uniform",
        *,
        spread: Positive = 10.0,
        seed: int = 0,
    ) -> None:
        self._of, self._kind = as_verifier(values), kind
        require_no_target("values", self._of, "give a verifier; a target can be a factor of Product")
        self._seed = derive_seed(seed, "noisy values")
        self._share, factor = 1.0, 1.0 + error
        if kind == "average":
            factor = spread
            most = (factor + 1 / factor) / 2 - 1
            if error > most:
                raise InputError(
                    "error", error, f"use at most {most:.6g}, the largest error of spread={factor:g}"
                )
            self._share = error / most if error else 0.0
        self._log_factor = math.log(factor)
        self.layers = self._of.layers
        self.most = self._of.most * max(factor, 1 / factor)

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the values of complete sequences, and the values of prefixes multiplied by random factors.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Values (n,) float64, one for each index in `rows`.
        """
        values = self._of.values(decoding, rows).double()
        inner = (~decoding.complete[rows]).nonzero()[:, 0]
        if len(inner):
            values[inner] = (
                values[inner] * (self._error_exponents(decoding, rows[inner]) * self._log_factor).exp()
            )
        return values

    def _error_exponents(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the exponent (n,) of the error factor of each prefix in `rows` (n,): 1, -1 or 0."""
        if self._kind == "last token":
            last = decoding.tokens[rows].gather(1, (decoding.lengths[rows] - 1).clamp_min(0)[:, None])[:, 0]
            return torch.where(last == 0, 1.0, -1.0).double() * (decoding.lengths[rows] > 0)
        uniform = prefix_uniforms(self._seed, decoding, rows)
        greater, less = uniform < self._share / 2, uniform >= 1 - self._share / 2
        return greater.double() - less.double()
