"""Exact output distributions of tokenwise rejection in rational arithmetic, for Proposition 3.1.2 of the thesis."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from trialogue.data.puzzles.weighted_prefixes import Prefix
from trialogue.errors import InputError
from trialogue.validation import Count, validated

RationalDistribution = dict[Prefix, Fraction]
Conditional = Callable[[Prefix], Sequence[int | Fraction]]
"""Unnormalized weights of the next token after a prefix, as integers or fractions."""

_MOST_STRINGS = 1 << 14


@validated
def tokenwise_distribution(
    conditional: Conditional, accepts: Callable[[Prefix], bool], length: Count
) -> RationalDistribution:
    """Return the output distribution of tokenwise rejection sampling as fractions.

    Tokenwise rejection draws the next token until the extended prefix is accepted. Probability that reaches a
    prefix without accepted tokens is missing from the sum.

    Args:
        conditional: Function from a prefix to the unnormalized weights of the next token.
        accepts: Function that returns whether a prefix or complete string is accepted.
        length: Number of tokens of a complete string.

    Returns:
        Probability of each complete string.

    Raises:
        InputError: If there are more than 2^14 strings or a weight is negative.
    """
    return _compute_string_probabilities(conditional, length, accepts, tokenwise=True)


@validated
def restricted_distribution(
    conditional: Conditional, accepts: Callable[[Prefix], bool], length: Count
) -> RationalDistribution:
    """Return the distribution of complete strings conditioned on acceptance, as fractions.

    Args:
        conditional: Function from a prefix to the unnormalized weights of the next token.
        accepts: Function that returns whether a complete string is accepted.
        length: Number of tokens of a complete string.

    Returns:
        Probability of each accepted string.

    Raises:
        InputError: If no string is accepted, there are more than 2^14 strings, or a weight is negative.
    """
    unrestricted = _compute_string_probabilities(
        conditional, length, lambda prefix: len(prefix) < length or accepts(prefix), tokenwise=False
    )
    total = sum(unrestricted.values(), Fraction(0))
    if not total:
        raise InputError("accepts", None, "accept at least one string that can occur")
    return {string: p / total for string, p in unrestricted.items()}


def rational_variation(first: Mapping[Prefix, Fraction], second: Mapping[Prefix, Fraction]) -> Fraction:
    """Return the total variation distance of two distributions as a fraction.

    Args:
        first: Probability of each string. Missing strings have probability zero.
        second: The same for the second distribution.
    """
    zero = Fraction(0)
    return (
        sum((abs(first.get(x, zero) - second.get(x, zero)) for x in first.keys() | second.keys()), zero) / 2
    )


def _compute_string_probabilities(
    conditional: Conditional, length: int, accepts: Callable[[Prefix], bool], *, tokenwise: bool
) -> RationalDistribution:
    distribution: RationalDistribution = {(): Fraction(1)}
    for _ in range(length):
        longer: RationalDistribution = {}
        for prefix, mass in distribution.items():
            weights = list(map(Fraction, conditional(prefix)))
            if min(weights) < 0:
                raise InputError("conditional", weights, f"give non-negative weights after {prefix}")
            kept = {token: w for token, w in enumerate(weights) if w and accepts((*prefix, token))}
            total = sum(kept.values() if tokenwise else weights, Fraction(0))
            longer |= {(*prefix, token): mass * weight / total for token, weight in kept.items()}
            if len(longer) > _MOST_STRINGS:
                raise InputError("length", length, f"there are more than {_MOST_STRINGS} strings to list")
        distribution = longer
    return distribution
