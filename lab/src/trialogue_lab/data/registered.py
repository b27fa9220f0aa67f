"""Distributions over decimal numbers for `trialogue distribution`."""

from collections.abc import Sequence
from typing import Any

from trialogue.oracles import Autoregressive
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.random_primes import RandomNumbers, RandomPrimes

_DIGITS = tuple("0123456789")


def numbers(**arguments: Any) -> tuple[Autoregressive, Sequence[str]]:
    """Return the distribution `RandomNumbers` and the text of its tokens, the ten digits."""
    return RandomNumbers(**arguments), _DIGITS


def primes(**arguments: Any) -> tuple[Autoregressive, Sequence[str]]:
    """Return the distribution `RandomPrimes` and the text of its tokens, the ten digits."""
    return RandomPrimes(**arguments), _DIGITS


def semiprimes(**arguments: Any) -> tuple[Autoregressive, Sequence[str]]:
    """Return the distribution `SemiprimeTuples` and the text of its tokens, the ten digits."""
    return SemiprimeTuples(**arguments), _DIGITS
