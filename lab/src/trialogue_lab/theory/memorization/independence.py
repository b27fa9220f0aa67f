"""Numbers that no polynomial with small whole coefficients makes zero: Lemma 3, and its two ways to have them."""

from trialogue.validation import Count, validated


@validated
def independent_integers(count: Count, degree: Count, coefficient: Count) -> tuple[int, ...]:
    """Positive integers x_1, ..., x_n at which no such polynomial is zero but the zero polynomial.

    Of `degree` D at most in each variable, with whole coefficients from -C to C: x_i = B^((D + 1)^(i - 1)) with
    B = 2 C + 1 gives every monomial a power of B of its own, so that a value is its coefficients' digits. Generic reals
    do as well with probability one: polynomials with whole coefficients are countable, and each vanishes on a null set.
    """
    base = 2 * coefficient + 1
    return tuple(base ** ((degree + 1) ** place) for place in range(count))
