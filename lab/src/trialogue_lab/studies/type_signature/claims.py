"""Claims of the study, and numbers that the documentation quotes.

The boxed claims of the post are lost in its extraction. Claims 1 to 3 are reconstructed from its text.
"""

from functools import partial

from trialogue_lab.ledger import Claim, Precondition, Statistic, cited, ours
from trialogue_lab.studies.type_signature import config, statistics
from trialogue_lab.studies.type_signature.config import FACTORS_FIRST, HIDDEN, PRODUCT_FIRST
from trialogue_lab.studies.type_signature.statistics import growth, growth_factor, largest, learned

_TASKS = 'Section "Randomized Tasks"'
_FACTORING = 'Section "Factoring"'
_WAYS = 'Section "Ways to get around this"'
_WHERE = 'Section "Where this comes up"'
_PRIMES = 'Appendix, "Generating primes deterministically"'
_APPENDIX = "Appendix, Claim 3"
_network = partial(ours, source=f"{_FACTORING}, {_WAYS} (networks not in the post)")
_hard = partial(ours, source=_FACTORING, published="hard, for any algorithm (assumed)")
_appendix = partial(ours, source=_APPENDIX)
_ROUNDING = 1e-12
_SMALL = "Sizes n of one and two digits, whose tuples can be enumerated. The source is about any n."
_GROWTH = "Sizes n of at most seven digits. The source is about n that grows without bound."


def _gain(column: str, first: str, second: str, digits: int) -> Statistic:
    return learned(column, first, digits) - learned(column, second, digits)


CLAIMS = (
    Claim(
        "digits-of-a-random-prime",
        "A digit of a random n-digit prime takes at most n ln 10 trials, in expectation (largest ratio, n to 6).",
        statistics.trials_over_bound() < 1,
        **cited(_TASKS, "poly(n)", "type-signature:A-PRIME", grade=True, setting=_GROWTH),
    ),
    Claim(
        "factors-first-is-exact",
        "Token by token, with multiplications only, [p, q, pq] has the right law (largest TV, n = 1, 2).",
        largest("law", stream=FACTORS_FIRST) < _ROUNDING,
        **cited(_FACTORING, "perfectly matches", "type-signature:A-PQ", setting=_SMALL),
    ),
    ours(
        "product-first-is-exact-by-factoring",
        "Token by token, with a factoring routine, [pq, p, q] has the right law (largest TV, n = 1, 2).",
        largest("law", stream=PRODUCT_FIRST) < _ROUNDING,
        f"{_FACTORING}, converse of Claim 1",
    ),
    Claim(
        "generators-factor",
        "Prompted with the product, an exact generator of [pq, p, q] factors every semiprime (failures, n = 1, 2, 3).",
        statistics.unfactored() < 0.5,
        **cited(f"{_FACTORING}, Claim 1", "0", "type-signature:A-REV"),
    ),
    Claim(
        "hidden-tokens-are-exact",
        "With p and q in a hidden stream the public law of [pq, p, q] is unchanged (largest TV, n = 1, 2).",
        largest("law", stream=HIDDEN) < _ROUNDING,
        **cited(_WAYS, "0", "type-signature:A-WORK", setting=_SMALL),
    ),
    Claim(
        "work-arounds-never-factor",
        "Neither the hidden stream nor the random seed ever factors (number of factorings).",
        statistics.hidden_factorings() < 0.5,
        **cited(_WAYS, "0", "type-signature:A-WORK", setting=_SMALL),
    ),
    Claim(
        "a-seed-suffices",
        "A random seed of b bits brings the law within TV N / 2^b, with nothing else random (largest excess).",
        statistics.largest_excess("seed", "variation") < _ROUNDING,
        **cited(_WAYS, "removes all other forms of randomness", "type-signature:A-WORK", grade=True),
    ),
    Claim(
        "coins-can-be-averaged",
        "A randomized algorithm and its average over coins induce one law, if coins are fresh at every call (TV).",
        largest("coins", "from_averaged", fresh=True) < _ROUNDING,
        **cited("Footnote 1", "0", "type-signature:A-DET"),
    ),
    ours(
        "kept-coins-cannot-be-averaged",
        "With coins kept from call to call the average over them induces another law (TV above 0.5).",
        largest("coins", "from_averaged", fresh=False) > 0.5,
        "Footnote 1 (control not in the post)",
    ),
    Claim(
        "overlap-below-root",
        "No generator overlaps more than the root of its chance to factor (largest excess over random chances).",
        statistics.largest_excess("chances", "overlap") < _ROUNDING,
        **cited(_APPENDIX, "not above 0", "type-signature:A-TVD"),
    ),
    _appendix(
        "root-is-attained",
        "Chances k/N on k semiprimes attain the root (largest gap).",
        statistics.largest_gap("tight", "overlap", "bound") < _ROUNDING,
    ),
    _appendix(
        "cheating-is-possible",
        "A generator that cheats best has the law with the overlap that was computed (largest error of 1 - TV).",
        statistics.largest_gap("generator", "reached", "overlap") < _ROUNDING,
    ),
    Claim(
        "polynomial-budgets-lose-from-two-digits",
        "Correct tuples alone, factored by trial division in n^4 to n^6 steps, overlap less with every further digit "
        "from n = 2 on (largest quotient at n + 1 and n, where the budget factors some tuples and not all; at n = 1 "
        "every budget is one step).",
        statistics.largest_fall(2) < 1,
        **cited("Appendix, Claim 2", "o(1)", "type-signature:A-SUPP", setting=_GROWTH),
    ),
    Claim(
        "primes-without-coins",
        "With four digits counted, primes by density are within TV 0.01 of random ones (n = 6).",
        statistics.density_error(4) < 0.01,
        **cited(_PRIMES, "exponentially small", "type-signature:A-PRIMEDET", grade=True, setting=_GROWTH),
    ),
    Claim(
        "density-alone-is-not-enough",
        "With no digit counted they are further than TV 0.5 (n = 6).",
        statistics.density_error(0) > 0.5,
        **cited(_PRIMES, "not precise enough", "type-signature:A-PRIMEDET", grade=True, setting=_GROWTH),
    ),
    Claim(
        "answers-without-an-object",
        "Answers by what fits the transcript have the law of a fixed object (largest TV).",
        largest("questions") < _ROUNDING,
        **cited(_WHERE, "0", "type-signature:A-GAMES"),
    ),
    ours(
        "polynomials-in-both-orders",
        "Polynomials have one law with the roots before or after the coefficients (largest TV).",
        largest("polynomials") < _ROUNDING,
        _WHERE,
    ),
    Claim(
        "gpt-4-is-not-random",
        "The first digits of GPT-4's random numbers are not uniform (p-value).",
        largest("gpt-4", "first_p") < 1e-3,
        **cited("Footnote 2", "really bad at it", "type-signature:A-GPT4", grade=True),
    ),
    _hard(
        "trial-division-is-exponential",
        "Product first, a digit of a factor costs more than 10^0.9 times as many trial divisions per digit of n.",
        growth(config.TRIAL_DIVISION) > 0.9,
    ),
    _hard(
        "rho-is-exponential",
        "By Pollard's rho it costs more than 10^0.4 times as many iterations per digit of n.",
        growth(config.RHO) > 0.4,
    ),
    Claim(
        "factors-first-is-cheap",
        "Factors first, a digit of a prime costs less than 10^0.25 times as many primality tests per digit of n.",
        growth(config.TESTS) < 0.25,
        **cited(_FACTORING, "poly(n)", "type-signature:A-PQ", grade=True, setting=_GROWTH),
    ),
    _network(
        "networks-can-learn-small-tuples",
        "With one-digit primes more than 90 % of the tuples emitted are valid in every order (least share).",
        statistics.least_valid(1) > 0.9,
    ),
    _network(
        "networks-do-better-factors-first",
        "With two-digit primes the share of valid tuples is higher by more than 0.2 factors first.",
        _gain("valid", FACTORS_FIRST, PRODUCT_FIRST, 2) > 0.2,
    ),
    _network(
        "networks-do-better-with-a-hidden-stream",
        "With two-digit primes a hidden stream raises the share of valid tuples, product first, by more than 0.2.",
        _gain("valid", HIDDEN, PRODUCT_FIRST, 2) > 0.2,
    ),
    _network(
        "a-hidden-stream-is-no-worse-than-the-easy-order",
        "With two-digit primes the hidden stream loses less than 0.05 against factors first (share of valid tuples).",
        _gain("valid", HIDDEN, FACTORS_FIRST, 2) > -0.05,
    ),
    _network(
        "a-hidden-stream-is-as-good-as-the-easy-order",
        "With two-digit primes the hidden stream is within 0.1 of factors first (share of valid tuples).",
        _gain("valid", HIDDEN, FACTORS_FIRST, 2).near(0, margin=0.1),
    ),
    *(
        _network(
            f"three-digits-are-closer-{where.replace(' ', '-')}",
            f"With three-digit primes the law learned is closer in KL {where} (difference in nats, below 0).",
            _gain("excess", stream, PRODUCT_FIRST, 3) < 0,
            preconditions=(
                Precondition(
                    f"networks have learned three-digit tuples, {stream}: a tenth of those emitted are valid",
                    learned("valid", stream, 3) > 0.1,
                ),
            ),
        )
        for where, stream in (("factors first", FACTORS_FIRST), ("with a hidden stream", HIDDEN))
    ),
)

NUMBERS = {
    "products of three digits factored": statistics.factored(3),
    "growth of trial division": growth_factor(config.TRIAL_DIVISION),
    "growth of rho": growth_factor(config.RHO),
    "growth of primality tests": growth_factor(config.TESTS),
    **{f"valid tuples of two digits, {stream}": learned("valid", stream, 2) for stream in config.STREAMS},
}
