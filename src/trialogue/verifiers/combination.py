"""Verifiers combined: the product of their values, and whether all of them are positive."""

import math
from collections.abc import Sequence
from copy import copy
from typing import Self

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding, Verifier
from trialogue.verifiers.function import Scope, VerifierLike, as_verifier
from trialogue.verifiers.wrapping import WrappingVerifier


class Product(Verifier):
    """The product of the values of `verifiers`, each a verifier or a function of a prefix.

    A part is asked only about what the parts before it give a positive value, so put the cheap ones first. Samplers
    that need the values of all children look at `parts`: those that answer for all children at once narrow down what
    the others are asked about. The first part that knows what texts stand for is what `parser` is of.
    """

    def __init__(self, *verifiers: VerifierLike) -> None:
        if not verifiers:
            raise InputError("verifiers", (), "give at least one")
        self.parts = tuple(as_verifier(verifier) for verifier in verifiers)
        whole = any(part.scope == "sequence" for part in self.parts)
        self.scope = "sequence" if whole else "completion"
        self.has_mask = any(part.has_mask for part in self.parts)
        self.most = math.prod(part.most for part in self.parts)
        self.layers = tuple(dict.fromkeys(layer for part in self.parts for layer in part.layers))
        self.notes = tuple(note for part in self.parts for note in part.notes)
        self.parser = next((part.parser for part in self.parts if part.parser is not None), None)

    def up_to(self, stop: str | Sequence[str]) -> Self:
        """The same of parts that judge, where they judge text, what comes before the first of the strings `stop`."""
        stopped = copy(self)
        stopped.parts = tuple(part.up_to(stop) for part in self.parts)
        return stopped

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Products (n,) float64 for the sequences in `rows` (n,)."""
        values = torch.ones(len(rows), dtype=torch.float64)
        for part in self.parts:
            # What is no number is not zero: it stays, to be reported.
            open_ = values.nonzero()[:, 0]
            if len(open_):
                values[open_] *= part.values(decoding, rows[open_]).double()
        return values

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Products (n, vocab) for all one-token continuations, or None where a part answers `values` only."""
        product: Tensor | None = None
        for part in self.parts:
            values = part.children(decoding, rows)
            if values is None:
                return None
            both = product is not None and product.dtype == values.dtype == torch.bool
            product = values if product is None else product & values if both else product.double() * values
        return product


class All(Product):
    """1 where every one of `verifiers` gives a positive value, else 0."""

    def __init__(self, *verifiers: VerifierLike) -> None:
        super().__init__(*verifiers)
        self.parts = tuple(_Positive(factor) for factor in factors(self))
        self.most = 1.0


class Anything(Verifier):
    """1 for everything: the product of no verifiers."""

    scope: Scope = "completion"
    most = 1.0

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Ones (n,) float64 for the sequences in `rows` (n,)."""
        del decoding
        return torch.ones(len(rows), dtype=torch.float64)

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """True (n, vocab) for all one-token continuations."""
        return torch.ones(len(rows), decoding.vocab_size, dtype=torch.bool)


class _Positive(WrappingVerifier):
    """1 where `verifier` gives a positive value, else 0."""

    def __init__(self, verifier: Verifier) -> None:
        super().__init__(verifier)
        self.most = 1.0

    def _converted(self, values: Tensor) -> Tensor:
        # A negative value or a NaN is no verdict: pass it on, to be reported.
        return torch.where(values > 0, torch.ones_like(values), values)


def factors(verifier: Verifier) -> list[Verifier]:
    """The verifiers that are no products themselves whose product `verifier` is: itself, unless it has parts."""
    if not verifier.parts:
        return [verifier]
    return [factor for part in verifier.parts for factor in factors(part)]
