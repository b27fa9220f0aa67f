"""Random polynomials with integer roots, written as sequences of coefficients and roots.

The roots are independent and uniform on the integers from -largest to largest. The polynomial is the product
of the factors (x - root). Token k stands for the integer k - offset. If the roots are written first, the
coefficients follow from them. If the coefficients come first, next-token probabilities require a list of all
choices of roots.

Source: "Theoretical Limitations of Autoregressive Models", section "Where this comes up".
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import product
from math import comb
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.data.enumerable import ENUMERABLE_STATES
from trialogue.data.puzzles.weighted_prefixes import ListedDistribution, Prefix, WeightedPrefixes, token_rows
from trialogue.errors import InputError
from trialogue.randomness import Streams, derive_seed
from trialogue.validation import Count, Natural, validated

Order = Literal["coefficients-first", "roots-first"]


class RootedPolynomials(WeightedPrefixes):
    """Distribution of polynomials with random integer roots, with exact probabilities and a sampler.

    A sequence contains the `degree` coefficients of the polynomial, without the leading 1, and its `degree` roots. The
    roots are independent and uniform on the integers from -`largest` to `largest`. Token k stands for the integer k -
    `offset`. `sample` works for any number of choices of roots, while other methods list all choices.

    Args:
        degree: Degree of the polynomial.
        largest: Largest absolute value of a root.
        order: Whether a sequence starts with the coefficients, "coefficients-first" (default), or the roots,
            "roots-first".

    Attributes:
        offset: Largest absolute value of a coefficient.

    Raises:
        InputError: If coefficients exceed 62 bits. The oracle, `states` and `probabilities` raise it if there are too
            many choices of roots to list.
    """

    @validated
    def __init__(self, degree: Count = 2, largest: Count = 3, order: Order = "coefficients-first") -> None:
        self.degree, self.largest, self.order = degree, largest, order
        self.max_length = 2 * degree
        # The k-th coefficient is largest if all roots have the largest absolute value and equal signs.
        self.offset: int = max(comb(degree, k) * largest**k for k in range(1, degree + 1))
        if self.offset >= 1 << 62:
            hint = (
                f"use a smaller degree, because roots up to {largest} give coefficients of more than 62 bits"
            )
            raise InputError("degree", degree, hint)
        self.vocab_size = 2 * self.offset + 1

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Count the choices of roots that continue `prefix` with each token.

        Args:
            prefix: Previous tokens.

        Returns:
            Weights (vocab_size,), the unnormalized probabilities of the next token.
        """
        return self._as_list.weights(prefix)

    def states(self) -> Tensor:
        """Return all sequences, one per choice of the roots.

        Returns:
            Tokens ((2 * largest + 1)^degree, 2 * degree) int64.
        """
        return self._as_list.states()

    def probabilities(self) -> Tensor:
        """Return the probabilities of `states`, a float64 tensor with equal entries."""
        return self._as_list.probabilities()

    @cached_property
    def _as_list(self) -> ListedDistribution:
        choices = (2 * self.largest + 1) ** self.degree
        if choices > ENUMERABLE_STATES:
            hint = f"use a smaller degree, because {choices} choices of roots exceed {ENUMERABLE_STATES}"
            raise InputError("degree", self.degree, hint)
        roots = np.array(list(product(range(-self.largest, self.largest + 1), repeat=self.degree)))
        return ListedDistribution(self._encode(roots), torch.ones(choices), self.vocab_size)

    @validated
    def sample(self, n: Natural, seed: int = 0) -> Tensor:
        """Sample independent sequences.

        Args:
            n: Number of sequences.
            seed: Random seed (default: 0). Sequence i depends on the seed and on i only.

        Returns:
            Tokens (n, 2 * degree) int64.
        """
        rows = torch.arange(n)
        streams = Streams(derive_seed(seed, "roots"), rows)
        values = 2 * self.largest + 1
        roots = [(streams.uniform(rows) * values).long() - self.largest for _ in range(self.degree)]
        return self._encode(torch.stack(roots, 1).numpy())

    def decode(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Convert sequences of tokens to coefficients and roots.

        Args:
            tokens: Tokens (n, 2 * degree).

        Returns:
            Coefficients and roots, each (n, degree) int64.
        """
        tokens = token_rows(tokens, 2 * self.degree)
        first, second = (tokens.long() - self.offset).split(self.degree, 1)
        return (first, second) if self.order == "coefficients-first" else (second, first)

    def valid(self, tokens: Tensor) -> Tensor:
        """Check each sequence for allowed roots and the coefficients that belong to them.

        Args:
            tokens: Tokens (n, 2 * degree).

        Returns:
            Bools (n,).
        """
        coefficients, roots = self.decode(tokens)
        allowed = (roots.abs() <= self.largest).all(1)
        # Clipping the roots avoids integer overflow in the coefficients.
        roots = roots.clamp(-self.largest, self.largest)
        return allowed & (torch.from_numpy(_coefficients(roots.numpy())) == coefficients).all(1)

    def _encode(self, roots: NDArray[np.int64]) -> Tensor:
        parts = [_coefficients(roots), roots]
        ordered = parts if self.order == "coefficients-first" else parts[::-1]
        return torch.from_numpy(np.concatenate(ordered, 1) + self.offset)


def _coefficients(roots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return coefficients (n, degree) of prod (x - root) without the leading one, for `roots` (n, degree)."""
    n, degree = roots.shape
    coefficients = np.zeros((n, degree + 1), dtype=np.int64)
    coefficients[:, 0] = 1
    for index in range(degree):
        coefficients[:, 1 : index + 2] -= roots[:, [index]] * coefficients[:, : index + 1].copy()
    return coefficients[:, 1:]
