"""Integers at which no polynomial with small integer coefficients vanishes (Lemma 3)."""

from trialogue.validation import Count, validated


@validated
def independent_integers(count: Count, degree: Count, coefficient: Count) -> tuple[int, ...]:
    """Return integers x_1, ..., x_n at which all polynomials with small integer coefficients are nonzero.

    The polynomials have degree at most D in each variable and integer coefficients from -C to C. With x_i =
    (2 C + 1)^((D + 1)^(i - 1)), the value of such a polynomial determines its coefficients.

    Args:
        count: Number n of integers.
        degree: Degree D.
        coefficient: Largest absolute coefficient C.

    Returns:
        Positive integers.
    """
    base = 2 * coefficient + 1
    return tuple(base ** ((degree + 1) ** place) for place in range(count))
