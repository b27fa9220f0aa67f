"""Exact output distributions of tokenwise rejection as fractions, for Proposition 3.1.2."""

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
    """Return the output distribution of tokenwise rejection.

    q(s) = prod_t p(s_t) V(s_1..t) / a(s_1..t-1), where a is the acceptance probability of a sampled token.
    Probability that reaches a prefix with a = 0 is missing from the sum.

    Args:
        conditional: Weights of the next token.
        accepts: Verifier of prefixes and strings.
        length: Number of tokens.

    Raises:
        InputError: If there are more than 2^14 strings or a weight is negative.
    """
    return _law(conditional, length, accepts, tokenwise=True)


@validated
def restricted_distribution(
    conditional: Conditional, accepts: Callable[[Prefix], bool], length: Count
) -> RationalDistribution:
    """Return the distribution of strings restricted to accepted ones and normalized.

    Raises:
        InputError: If no string is accepted, or for the reasons of `tokenwise_distribution`.
    """
    whole = _law(conditional, length, lambda prefix: len(prefix) < length or accepts(prefix), tokenwise=False)
    total = sum(whole.values(), Fraction(0))
    if not total:
        raise InputError("accepts", None, "accept at least one string that can occur")
    return {string: p / total for string, p in whole.items()}


def rational_variation(first: Mapping[Prefix, Fraction], second: Mapping[Prefix, Fraction]) -> Fraction:
    """Return the total variation of two distributions."""
    zero = Fraction(0)
    return (
        sum((abs(first.get(x, zero) - second.get(x, zero)) for x in first.keys() | second.keys()), zero) / 2
    )


def _law(
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
