"""Claims of the study `type-signature` about laws: exact numbers, without sampling error.

The boxed claims of the post are lost in the extraction; those named Claim 1 to 3 here are read from its text.
"""

import math
from collections.abc import Callable

from pandas import DataFrame

from trialogue.ledger import Claim
from trialogue.ledger.claims import Direction
from trialogue.ledger.replication import NOT_PRINTED, exact_claim
from trialogue.studies.rows import kind
from trialogue.studies.type_signature_rows import FACTORS_FIRST, HIDDEN, PRODUCT_FIRST

FACTORING = 'Section "Factoring"'
WAYS = 'Section "Ways to get around this"'
_PRIMES = 'Appendix, "Generating primes deterministically"'
_APPENDIX = "Appendix, Claim 3"
OURS = "not in the post"


def _exact(
    identity: str,
    statement: str,
    source: str,
    published: str,
    estimate: Callable[[DataFrame], float],
    threshold: float,
    direction: Direction = "below",
) -> Claim:
    return exact_claim(identity, statement, source, published, estimate, threshold, direction)


def _stream(stream: str) -> Callable[[DataFrame], float]:
    """The largest TV of an oracle's law from that of the tuples."""

    def largest(rows: DataFrame) -> float:
        laws = kind(rows, "law")
        return float(laws[laws.stream == stream].variation.max())

    return largest


def _unfactored(rows: DataFrame) -> float:
    chosen = kind(rows, "reduction")
    return float((chosen.semiprimes - chosen.factored).sum())


def _hidden_factorings(rows: DataFrame) -> float:
    laws = kind(rows, "law")
    return float(laws[laws.stream == HIDDEN].factorings.sum() + kind(rows, "seed").factorings.sum())


def _density(rows: DataFrame, counted: int) -> float:
    chosen = kind(rows, "density")
    chosen = chosen[(chosen.digits == chosen.digits.max()) & (chosen.counted == counted)]
    return float(chosen.sort_values("length").variation.iloc[-1])


def _share(rows: DataFrame) -> float:
    chosen = kind(rows, "support")
    return float(chosen[chosen.digits == chosen.digits.max()].share.max())


def _coins(rows: DataFrame, fresh: bool) -> float:
    chosen = kind(rows, "coins")
    return float(chosen[chosen.fresh == fresh].from_averaged.iloc[0])


LAW_CLAIMS = (
    _exact(
        "digits-of-a-random-prime",
        "A digit of a random n-digit prime takes at most n ln 10 trials, in expectation (largest ratio, n to 6).",
        'Section "Randomized Tasks"',
        "poly(n)",
        lambda rows: (kind(rows, "trials").trials / kind(rows, "trials").digits / math.log(10)).max(),
        1.0,
    ),
    _exact(
        "factors-first-is-exact",
        "Token by token, with multiplications only, [p, q, pq] has the right law (largest TV, n = 1, 2).",
        FACTORING,
        "perfectly matches",
        _stream(FACTORS_FIRST),
        1e-12,
    ),
    _exact(
        "product-first-is-exact-by-factoring",
        "Token by token, with a factoring routine, [pq, p, q] has the right law (largest TV, n = 1, 2).",
        f"{FACTORING}, converse of Claim 1",
        "0",
        _stream(PRODUCT_FIRST),
        1e-12,
    ),
    _exact(
        "generators-factor",
        "Prompted with the product, an exact generator of [pq, p, q] factors every semiprime (failures, n = 1, 2, 3).",
        f"{FACTORING}, Claim 1",
        "0",
        _unfactored,
        0.5,
    ),
    _exact(
        "hidden-tokens-are-exact",
        "With p and q in a hidden stream the public law of [pq, p, q] is unchanged (largest TV, n = 1, 2).",
        WAYS,
        "0",
        _stream(HIDDEN),
        1e-12,
    ),
    _exact(
        "work-arounds-never-factor",
        "Neither the hidden stream nor the random seed ever factors (number of factorings).",
        WAYS,
        "0",
        _hidden_factorings,
        0.5,
    ),
    _exact(
        "a-seed-suffices",
        "A random seed of b bits brings the law within TV N / 2^b, with nothing else random (largest excess).",
        WAYS,
        "not above 0",
        lambda rows: (kind(rows, "seed").variation - kind(rows, "seed").bound).max(),
        1e-12,
    ),
    _exact(
        "coins-can-be-averaged",
        "A randomized algorithm and its average over coins induce one law, if coins are fresh at every call (TV).",
        "Footnote 1",
        "0",
        lambda rows: _coins(rows, True),
        1e-12,
    ),
    _exact(
        "kept-coins-cannot-be-averaged",
        "With coins kept from call to call the average over them induces another law (TV above 0.5).",
        f"Footnote 1 (control {OURS})",
        NOT_PRINTED,
        lambda rows: _coins(rows, False),
        0.5,
        "above",
    ),
    _exact(
        "overlap-below-root",
        "No generator overlaps more than the root of its chance to factor (largest excess over random chances).",
        _APPENDIX,
        "not above 0",
        lambda rows: (kind(rows, "chances").overlap - kind(rows, "chances").bound).max(),
        1e-12,
    ),
    _exact(
        "root-is-attained",
        "Chances k/N on k semiprimes attain the root (largest gap).",
        _APPENDIX,
        "0",
        lambda rows: (kind(rows, "tight").overlap - kind(rows, "tight").bound).abs().max(),
        1e-12,
    ),
    _exact(
        "cheating-is-possible",
        "A generator that cheats best has the law with the overlap that was computed (largest error of 1 - TV).",
        _APPENDIX,
        "0",
        lambda rows: (kind(rows, "generator").reached - kind(rows, "generator").overlap).abs().max(),
        1e-12,
    ),
    _exact(
        "polynomial-budgets-lose",
        "Correct tuples alone, factored by trial division in n^4 to n^6 steps, overlap less than 0.01 (n = 7).",
        "Appendix, Claim 2",
        "o(1)",
        _share,
        0.01,
    ),
    _exact(
        "primes-without-coins",
        "With four digits counted, primes by density are within TV 0.01 of random ones (n = 6).",
        _PRIMES,
        "exponentially small",
        lambda rows: _density(rows, 4),
        0.01,
    ),
    _exact(
        "density-alone-is-not-enough",
        "With no digit counted they are further than TV 0.5 (n = 6).",
        _PRIMES,
        "not precise enough",
        lambda rows: _density(rows, 0),
        0.5,
        "above",
    ),
    _exact(
        "answers-without-an-object",
        "Answers by what fits the transcript have the law of a fixed object (largest TV).",
        'Section "Where this comes up"',
        "0",
        lambda rows: kind(rows, "questions").variation.max(),
        1e-12,
    ),
    _exact(
        "answers-without-an-object-cost",
        "They look at every object for every answer (least number of looks per object, by SHA-256 bits).",
        'Section "Where this comes up"',
        "much harder",
        lambda rows: (kind(rows, "questions").looked_up / kind(rows, "questions").objects).min(),
        0.999,
        "above",
    ),
    _exact(
        "polynomials-in-both-orders",
        "Polynomials have one law with the roots before or after the coefficients (largest TV).",
        'Section "Where this comes up"',
        "0",
        lambda rows: kind(rows, "polynomials").variation.max(),
        1e-12,
    ),
    _exact(
        "gpt-4-is-not-random",
        "The first digits of GPT-4's random numbers are not uniform (p-value).",
        "Footnote 2",
        "really bad at it",
        lambda rows: kind(rows, "gpt-4").first_p.iloc[0],
        1e-3,
    ),
)
