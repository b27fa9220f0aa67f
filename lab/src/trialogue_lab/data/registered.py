"""Distributions registered for `trialogue distribution`: decimal numbers with a given property."""

from collections.abc import Sequence
from typing import Any

from trialogue.oracles import Autoregressive
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.random_primes import RandomNumbers, RandomPrimes

_DIGITS = tuple("0123456789")


def numbers(**arguments: Any) -> tuple[Autoregressive, Sequence[str]]:
    """Return the distribution `RandomNumbers` with the given arguments, and the digits that its tokens stand for."""
    return RandomNumbers(**arguments), _DIGITS


def primes(**arguments: Any) -> tuple[Autoregressive, Sequence[str]]:
    """Return the distribution `RandomPrimes` with the given arguments, and the digits that its tokens stand for."""
    return RandomPrimes(**arguments), _DIGITS


def semiprimes(**arguments: Any) -> tuple[Autoregressive, Sequence[str]]:
    """Return the distribution `SemiprimeTuples` with the given arguments, and the digits that its tokens stand for."""
    return SemiprimeTuples(**arguments), _DIGITS
