"""Claims of the study: equations 8 to 13 and appendix B, and their corrections.

The verdict on `skewed-example-is-not-definite` follows from arithmetic. For independent tokens with third moment gamma,
the published matrix is diagonal with G_kk = gamma A2_0k (delta_0k - A2_0k). The document states that it is not negative
definite for a generic choice. Token 0 is the masked one, so that k is at least 1 and G_kk = -gamma A2_0k^2. This is
negative for every last layer if gamma is positive. The statement of the document is therefore a misprint, and random
data can only confirm this. Our own claims cover the corrected example, by the signs of gamma and of the last layer.
"""

from functools import partial

from trialogue_lab.ledger import Claim, cited, graded, largest, ours, smallest
from trialogue_lab.studies.gradient_flow import statistics as stats

_DOCUMENT = "Distributional simplicity bias"
_APPENDIX = f"{_DOCUMENT}, appendix B"
_INSTABILITY = f"{_DOCUMENT}, equation 13"
_CORRECTED = f"{_INSTABILITY}, corrected"
_EXAMPLE = f"{_DOCUMENT}, example after equation 13"
_ROUNDING = 1e-12
_bound = partial(graded, source=_APPENDIX, statement_id="clones:S1-lower-bound")
_gamma = partial(graded, source=f"{_APPENDIX}, Gamma", statement_id="clones:S1-lower-bound.gamma")
_equation_13 = partial(graded, source=_INSTABILITY, statement_id="clones:S1-eq13")
_corrected = partial(ours, source=_CORRECTED)


def _make_example_claim(identity: str, *, positive: bool, both_signs: bool) -> Claim:
    """Return a claim about whether a network's first layer grows or vanishes on independent skewed tokens.

    Args:
        identity: End of the claim's id. Its last word is "grows" or "dies".
        positive: Whether the third moments of the tokens are positive.
        both_signs: Whether the entries of the last layer have both signs.
    """
    rate = stats.example(positive=positive, both_signs=both_signs)
    moments, signs = "above 0" if positive else "below 0", "both signs" if both_signs else "one sign"
    does = identity.rpartition("-")[2]
    return ours(
        f"example-{identity}",
        f"With third moments {moments} and a last layer of {signs} the first layer of the example {does} (greatest "
        "rate of the corrected matrix, mean over laws).",
        rate > 0 if does == "grows" else rate < 0,
        f"{_EXAMPLE}, corrected",
    )


CLAIMS = (
    Claim(
        "flow-is-the-gradient",
        "Equations 8 and 9 are the gradient of the loss (largest error against automatic differentiation, all laws).",
        largest("gradient", "sample_error") < 1e-8,
        **cited(f"{_DOCUMENT}, equations 8 and 9", "equal", "clones:S1-eq8", grade=True),
    ),
    Claim(
        "zero-stays-zero",
        "A first layer at zero stays there for all times (largest entry along the flow, all laws).",
        largest("two-body", "first_most") < _ROUNDING,
        **cited(f"{_DOCUMENT}, text after equation 9", "A1 = 0 for all t", "clones:S1-eq8", grade=True),
    ),
    Claim(
        "gaussian-moments",
        "Equations 10 and 11 with Gaussian moments are the mean of the flow over draws (largest deviation of an entry, "
        "in standard errors, all laws).",
        largest("gradient", "z") < 4,
        **cited(f"{_DOCUMENT}, equations 10 and 11", "equal", "clones:S1-eq10", grade=True),
        chance=0.016,  # at most 240 independent normal deviations, 2 * 240 * P(Z > 4)
    ),
    Claim(
        "two-bodies-in-closed-form",
        "Without a first layer the last one follows the printed solution, mode by mode (largest error, all laws and "
        "times).",
        largest("two-body", "closed_error") < 1e-6,
        **cited(f"{_DOCUMENT}, equation 12 and appendix B", "equal", "clones:S1-eq12", grade=True),
    ),
    Claim(
        "ends-at-the-conditional-mean",
        "Its fixed point is the conditional mean of x_0 given the others (largest error, all laws).",
        largest("two-body", "mean_error") < 1e-8,
        **cited(f"{_DOCUMENT}, text after equation 12", "equal", "clones:S1-eq12", grade=True),
    ),
    _bound(
        "first-layer-only-adds",
        "On Gaussian tokens a first layer adds to the expected error: it is least without one (smallest addition, all "
        "laws).",
        smallest("bound", "added") > -_ROUNDING,
        published="not below 0",
    ),
    _gamma(
        "printed-gamma",
        "What it adds is the printed sum with Gamma = A1 C A1 (largest relative error, all laws).",
        largest("bound", "printed_error") < 0.01,
        published="equal",
    ),
    _gamma(
        "printed-gamma-is-not-negative",
        "The printed sum with Gamma = A1 C A1 is never negative (smallest, all laws).",
        smallest("bound", "printed") > -_ROUNDING,
        published="not below 0",
    ),
    _bound(
        "decay-kills-the-first-layer",
        "With a decay of weights the first layer vanishes on Gaussian tokens (largest norm at the end, all laws).",
        largest("decay", "size", where="decays") < 1e-3,
        published="A1 = 0 is the only stable fixed point",
    ),
    _bound(
        "decay-leaves-two-bodies",
        "The last layer then ends at (C + decay)^-1 h (largest error, all laws).",
        largest("decay", "last_error", where="decays") < 1e-3,
        published="equal",
    ),
    _equation_13(
        "printed-growth",
        "On tokens of three bodies, from A1 = eps times the identity, the diagonal of A1 moves as equation 13 prints "
        "(largest error of the ratio of norms, all laws).",
        largest("growth", "abs(diagonal - 1)") < 0.02,
        published="equal",
    ),
    _equation_13(
        "diagonal-is-kept",
        "From there A1 stays diagonal (largest share of its derivative off the diagonal, all laws).",
        largest("growth", "off_diagonal") < _ROUNDING,
        published="delta_kl on the left",
    ),
    Claim(
        "skewed-example-is-not-definite",
        "In the printed example, of independent tokens whose third moments are positive, G is not negative definite "
        "(its greatest eigenvalue, mean over laws and last layers of both signs).",
        stats.example(positive=True, both_signs=True, column="printed_rate") > 0,
        **cited(_EXAMPLE, "not negative definite for a generic choice", "clones:S1-eq13.example"),
    ),
    ours(
        "closed-moments-are-exact",
        "Gaussian moments in closed form are those of a quadrature that is exact (largest error, all laws).",
        largest("gradient", "gaussian_error") < 1e-9,
        f"{_DOCUMENT}, equations 10 and 11",
    ),
    ours(
        "corrected-gamma",
        "What a first layer adds is the sum with Gamma = A1 C A1^T (largest relative error, all laws).",
        largest("bound", "error") < 1e-9,
        f"{_APPENDIX}, Gamma corrected",
    ),
    ours(
        "decay-shrinks-at-every-time",
        "With a decay the first layer's norm falls from each time to the next (largest ratio, all laws).",
        largest("decay", "step", where="decays") < 1,
        f"{_APPENDIX}: the addition is of degree 4 in A1",
    ),
    ours(
        "without-decay-it-survives",
        "Without a decay, on the same tokens, more than a tenth of the first layer's norm is left at that time, its "
        "squares cancelling under a last layer of both signs (share, mean over laws).",
        stats.kept() > 0.1,
        f"{_DOCUMENT}: the first layer's weights vanish during the optimisation",
    ),
    _corrected(
        "corrected-factor",
        "The diagonal moves twice as fast as printed (largest error of the ratio of norms, all laws).",
        largest("growth", "abs(diagonal - 2)") < 1e-3,
    ),
    _corrected(
        "corrected-growth",
        "The first layer grows, or dies, at 2 max over k of the greatest eigenvalue of A2_0k E[r x x^T] (largest "
        "relative error of the fitted rate, all laws).",
        largest("growth", "error") < 0.02,
    ),
    _corrected(
        "three-bodies-wake-the-first-layer",
        "On tokens of three bodies the first layer grows out of the two-body plateau (fitted rate, mean over laws).",
        stats.growth("fitted") > 0,
    ),
    _make_example_claim("of-one-sign-dies", positive=True, both_signs=False),
    _make_example_claim("of-both-signs-grows", positive=True, both_signs=True),
    _make_example_claim("of-negative-skew-grows", positive=False, both_signs=False),
)

NUMBERS = {
    "share of the first layer left without decay": stats.kept(),
    "share of the first layer left with decay": stats.kept(decays=True),
    "smallest printed sum": smallest("bound", "printed"),
    "ratio of the diagonal's growth to the printed one": stats.growth("diagonal"),
    "largest error of the corrected rate": largest("growth", "error"),
    "rate of the example, positive skew, one sign": stats.example(positive=True, both_signs=False),
    "rate of the example, positive skew, both signs": stats.example(positive=True, both_signs=True),
    "printed matrix of the example": stats.example(positive=True, both_signs=True, column="printed_rate"),
}
