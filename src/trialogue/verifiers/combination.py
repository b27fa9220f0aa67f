"""Combinations of verifiers: the product of their values, and the conjunction of their verdicts."""

import math
from collections.abc import Sequence
from copy import copy
from typing import Self

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding, Target, Verifier
from trialogue.verifiers.functions.function import Scope, VerifierLike, as_verifier
from trialogue.verifiers.wrapping import WrappingVerifier


class Product(Verifier):
    """Verifier whose value is the product of the values of several verifiers.

    The factors are evaluated in order. Each factor is evaluated only for sequences to which all earlier factors assign
    a nonzero value, so put cheap verifiers first. The attribute `parts` contains the factors. The attribute `parser` is
    the parser of the first factor that has one.

    Args:
        *verifiers: Verifiers or functions of a prefix (tuple of token ids). At least one is required.

    Raises:
        InputError: If no verifier is given.

    Example:
        >>> from trialogue.verifiers import Product
        >>> positive = Product(lambda prefix: 0 not in prefix, lambda prefix: 0.5 ** len(prefix))
    """

    def __init__(self, *verifiers: VerifierLike) -> None:
        if not verifiers:
            raise InputError("verifiers", (), "pass at least one verifier")
        self.parts = tuple(as_verifier(verifier) for verifier in verifiers)
        needs_prompt = any(part.scope == "sequence" for part in self.parts)
        self.scope = "sequence" if needs_prompt else "completion"
        self.has_mask = any(part.has_mask for part in self.parts)
        self.most = math.prod(part.most for part in self.parts)
        self.layers = tuple(dict.fromkeys(layer for part in self.parts for layer in part.layers))
        self.notes = tuple(note for part in self.parts for note in part.notes)
        self.parser = next((part.parser for part in self.parts if part.parser is not None), None)

    def up_to(self, stop: str | Sequence[str]) -> Self:
        """Return a copy whose factors ignore the text from the first stop string onwards.

        Args:
            stop: Stop string, or several of them.
        """
        stopped = copy(self)
        stopped.parts = tuple(part.up_to(stop) for part in self.parts)
        return stopped

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the product of the values of all factors.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Products (n,) float64, one for each index in `rows`.
        """
        values = torch.ones(len(rows), dtype=torch.float64)
        for part in self.parts:
            # NaN counts as nonzero, so it stays in the product and the caller reports it.
            remaining = values.nonzero()[:, 0]
            if len(remaining):
                values[remaining] *= part.values(decoding, rows[remaining]).double()
        return values

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Return the product of the factors for all sequences that extend a row by one token.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of rows of the batch.

        Returns:
            Products (n, vocab). Entry (i, t) belongs to row `rows[i]` followed by token t. None if the `children` of a
            factor are None.
        """
        product: Tensor | None = None
        for part in self.parts:
            values = part.children(decoding, rows)
            if values is None:
                return None
            both = product is not None and product.dtype == values.dtype == torch.bool
            product = values if product is None else product & values if both else product.double() * values
        return product


class All(Product):
    """Verifier that returns 1 if all of several verifiers assign a positive value to a sequence, else 0.

    Args:
        *verifiers: Verifiers or functions of a prefix (tuple of token ids). At least one is required.

    Raises:
        InputError: If no verifier is given, or one is a target.
    """

    def __init__(self, *verifiers: VerifierLike) -> None:
        super().__init__(*verifiers)
        if any(isinstance(factor, Target) for factor in list_factors(self)):
            raise InputError(
                "verifiers", "a target", "use Product, because a target neither accepts nor rejects"
            )
        self.parts = tuple(_Positive(factor) for factor in list_factors(self))
        self.most = 1.0


class Anything(Verifier):
    """Verifier that accepts every sequence, with the value 1."""

    scope: Scope = "completion"
    most = 1.0

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the value 1 for each sequence.

        Args:
            decoding: Batch of sequences (ignored).
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Ones (n,) float64.
        """
        del decoding
        return torch.ones(len(rows), dtype=torch.float64)

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return True for all sequences that extend a row by one token.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of rows of the batch.

        Returns:
            Bool tensor (n, vocab) with all entries True.
        """
        return torch.ones(len(rows), decoding.vocab_size, dtype=torch.bool)


class _Positive(WrappingVerifier):
    """Verifier that returns 1 where another verifier has a positive value, and 0 elsewhere."""

    def __init__(self, verifier: Verifier) -> None:
        super().__init__(verifier)
        self.most = 1.0

    def _converted(self, values: Tensor) -> Tensor:
        # Negative values and NaN are returned unchanged, because the caller reports them as errors.
        return torch.where(values > 0, torch.ones_like(values), values)


def list_factors(verifier: Verifier) -> list[Verifier]:
    """Return the factors of a verifier, including the factors of nested products.

    Args:
        verifier: A `Product` or another verifier.

    Returns:
        Verifiers that are not products themselves. If `verifier` is not a product, the list contains only `verifier`.
    """
    if not verifier.parts:
        return [verifier]
    return [factor for part in verifier.parts for factor in list_factors(part)]


def require_no_target(field: str, verifier: Verifier, hint: str) -> None:
    """Raise `InputError` if a factor of a verifier is a `Target`, whose values can be too small for a float.

    Args:
        field: Name of the argument in the error message.
        verifier: The verifier.
        hint: Instruction for the user.
    """
    for factor in list_factors(verifier):
        if isinstance(factor, Target):
            raise InputError(field, type(factor).__name__, hint)
