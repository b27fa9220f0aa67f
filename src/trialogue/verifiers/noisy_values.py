"""Value functions with errors of a size that is known: what samplers make of them can be held against it."""

import math
from typing import Literal

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding, Verifier
from trialogue.randomness import seed_of
from trialogue.validation import NonNegative, Positive, validated
from trialogue.verifiers.function import VerifierLike, as_verifier
from trialogue.verifiers.random import uniform_of_prefixes


@validated
class NoisyValues(Verifier):
    """`values`, of prefixes multiplied by a factor f; complete sequences keep theirs, the outcome.

    "uniform": f is 1 + `error` or its inverse, each for half of the prefixes, so that V/V* is between 1/(1 + error) and
    1 + error everywhere. "average": f is `spread` or its inverse for a few prefixes, and 1 for the others, so many that
    at every length the means of V/V* and of V*/V are 1 + error, by any distribution of prefixes that has not seen them:
    errors that are small on average and great here and there. "last token": 1 + error after token 0 and its inverse
    after any other, errors that agree along a sequence, and favour the same sequences at every length.

    Which prefixes have which factor depends on `seed` and the prefix alone. Raises `InputError` for an `error` that is
    negative, or greater than a `spread` can make it: (spread + 1/spread)/2 - 1.
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
        self._seed = seed_of(seed, "noisy values")
        self._share, factor = 1.0, 1.0 + error
        if kind == "average":
            factor = spread
            most = (factor + 1 / factor) / 2 - 1
            if error > most:
                raise InputError("error", error, f"a factor of {factor:g} makes it at most {most:.6g}")
            self._share = error / most if error else 0.0
        self._log_factor = math.log(factor)
        self.layers = self._of.layers
        self.most = self._of.most * max(factor, 1 / factor)

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Values (n,) float64 of the sequences in `rows` (n,)."""
        values = self._of.values(decoding, rows).double()
        inner = (~decoding.complete[rows]).nonzero()[:, 0]
        if len(inner):
            values[inner] = values[inner] * (self._signs(decoding, rows[inner]) * self._log_factor).exp()
        return values

    def _signs(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Whether the values of prefixes in `rows` (n,) are multiplied (1), divided (-1) or left as they are (0)."""
        if self._kind == "last token":
            last = decoding.tokens[rows].gather(1, (decoding.lengths[rows] - 1).clamp_min(0)[:, None])[:, 0]
            return torch.where(last == 0, 1.0, -1.0).double() * (decoding.lengths[rows] > 0)
        uniform = uniform_of_prefixes(self._seed, decoding, rows)
        greater, less = uniform < self._share / 2, uniform >= 1 - self._share / 2
        return greater.double() - less.double()
