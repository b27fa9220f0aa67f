"""Integers at which no polynomial with small integer coefficients vanishes (Lemma 3)."""

from trialogue.validation import Count, validated


@validated
def independent_integers(count: Count, degree: Count, coefficient: Count) -> tuple[int, ...]:
    """Return integers x_1, ..., x_n at which no non-zero polynomial with small integer coefficients vanishes.

    The polynomials have degree at most D in each variable and integer coefficients from -C to C. The function returns
    x_i = B^((D + 1)^(i - 1)) with B = 2 C + 1. Each monomial then has a different power of B as its value, so the value
    of a polynomial determines its coefficients.

    Random real numbers also work with probability one. There are countably many such polynomials, and each vanishes
    only on a set of probability zero.

    Args:
        count: Number n of integers.
        degree: Degree D.
        coefficient: Largest absolute coefficient C.

    Returns:
        Positive integers.
    """
    base = 2 * coefficient + 1
    return tuple(base ** ((degree + 1) ** place) for place in range(count))
