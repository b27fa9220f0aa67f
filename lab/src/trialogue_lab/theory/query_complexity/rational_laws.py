"""Laws of tokenwise rejection as fractions, without rounding: what Proposition 3.1.2 compares."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from trialogue.data.puzzles.weighted_prefixes import Prefix
from trialogue.errors import InputError
from trialogue.validation import Count, validated

RationalLaw = dict[Prefix, Fraction]
Conditional = Callable[[Prefix], Sequence[int | Fraction]]
"""Weights of the next token after a prefix, whole numbers or fractions, not normalised."""

_MOST_STRINGS = 1 << 14


@validated
def tokenwise_law(conditional: Conditional, accepts: Callable[[Prefix], bool], length: Count) -> RationalLaw:
    """Law of the output of tokenwise rejection on strings of `length` tokens, prefixes and strings that are accepted.

    q(s) = prod_t p(s_t) V(s_1..t) / a(s_1..t-1), a being the probability that a drawn token is accepted; what reaches a
    prefix with a = 0 is missing. Raises `InputError` for a length below 1, where strings are more than 2^14, and for
    weights that are negative or no numbers.
    """
    return _law(conditional, length, accepts, tokenwise=True)


@validated
def restricted_law(conditional: Conditional, accepts: Callable[[Prefix], bool], length: Count) -> RationalLaw:
    """The law p of strings of `length` tokens, restricted to those that are accepted, whose sum is one.

    Raises `InputError` as `tokenwise_law` does, and where no string is accepted.
    """
    whole = _law(conditional, length, lambda prefix: len(prefix) < length or accepts(prefix), tokenwise=False)
    total = sum(whole.values(), Fraction(0))
    if not total:
        raise InputError("accepts", None, "accept at least one string that can occur")
    return {string: p / total for string, p in whole.items()}


def rational_variation(first: Mapping[Prefix, Fraction], second: Mapping[Prefix, Fraction]) -> Fraction:
    """Return the total variation of two distributions whose sums are one.

    Raises:
        InputError: If a probability is not a finite number.
    """
    p, q = (
        dict(zip(law, _fractions(field, law.values(), "give finite probabilities"), strict=True))
        for field, law in (("first", first), ("second", second))
    )
    zero = Fraction(0)
    return sum((abs(p.get(x, zero) - q.get(x, zero)) for x in p.keys() | q.keys()), zero) / 2


def _law(
    conditional: Conditional, length: int, accepts: Callable[[Prefix], bool], *, tokenwise: bool
) -> RationalLaw:
    law: RationalLaw = {(): Fraction(1)}
    for _ in range(length):
        longer: RationalLaw = {}
        for prefix, mass in law.items():
            weights = _weights(conditional, prefix)
            kept = {token: w for token, w in enumerate(weights) if w and accepts((*prefix, token))}
            total = sum(kept.values() if tokenwise else weights, Fraction(0))
            longer |= {(*prefix, token): mass * weight / total for token, weight in kept.items()}
            if len(longer) > _MOST_STRINGS:
                raise InputError("length", length, f"there are more than {_MOST_STRINGS} strings to list")
        law = longer
    return law


def _weights(conditional: Conditional, prefix: Prefix) -> list[Fraction]:
    """The weights of the tokens after `prefix`; raises `InputError` unless they are non-negative numbers."""
    given = conditional(prefix)
    hint = f"after {prefix} give one non-negative number for each token"
    weights = _fractions("conditional", given, hint)
    if any(weight < 0 for weight in weights):
        raise InputError("conditional", given, hint)
    return weights


def _fractions(field: str, numbers: Iterable[int | Fraction], hint: str) -> list[Fraction]:
    try:
        return [Fraction(number) for number in numbers]
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(field, numbers, hint) from error
