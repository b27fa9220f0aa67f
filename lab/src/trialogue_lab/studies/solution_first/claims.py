"""Claims of the study, and the numbers that documentation pages quote."""

from trialogue_lab.ledger import Claim, cited, largest, ours
from trialogue_lab.studies.solution_first.statistics import counted_fall, growth, leading_fall

_TASKS = 'Section "Randomized Tasks"'
_WHERE = 'Section "Where this comes up"'
_WAYS = 'Section "Ways to get around this"'
_PRIMES = 'Appendix, "Generating primes deterministically"'
_ROUNDING = 1e-12
_SMALL = (
    "Sizes n of one and two digits, whose tuples can be enumerated. The statement of the source is for any n."
)
_GROWTH = "Sizes n of four to seven digits. The statement of the source is for n that grows without bound."

CLAIMS = (
    Claim(
        "digits-and-then-stop",
        "Digits drawn one after the other and then [STOP] make a uniform number (largest TV, 1 to 4 digits).",
        largest("stop", "variation") < _ROUNDING,
        **cited(_TASKS, "a uniform distribution", "type-signature:A-RT"),
    ),
    Claim(
        "random-activations-are-exact",
        "With p and q in random activations the law of [pq, p, q] is unchanged (largest TV, n = 1, 2).",
        largest("activations", "variation") < _ROUNDING,
        **cited(_WAYS, "0", "type-signature:A-WORK", setting=_SMALL),
    ),
    Claim(
        "random-activations-never-factor",
        "Random activations take no factoring (number of factorings).",
        largest("activations", "factorings") < 0.5,
        **cited(_WAYS, "0", "type-signature:A-WORK", setting=_SMALL),
    ),
    ours(
        "sudoku-in-both-orders",
        "A player without memory who counts the grids that fit writes Sudoku puzzles and their solutions with one law "
        "in either order (largest error of the log-probability of a drawn sequence).",
        largest("sudoku", "error") < 1e-9,
        _WHERE,
    ),
    ours(
        "sudoku-by-sight-fails",
        "Who fills in the cells one by one with what those before allow comes to a dead end more than one time in ten "
        "(probability).",
        largest("dead ends", "probability") > 0.1,
        _WHERE,
        "will fail",
    ),
    ours(
        "an-index-keeps-the-law",
        "Answers by an index of what fits the transcript have the law of a fixed object (largest TV).",
        largest("question", "variation") < _ROUNDING,
        _WHERE,
        "0",
    ),
    Claim(
        "leading-digits-by-density-sharpen",
        "The first k digits of a random prime by density come closer to the truth with every further digit n (largest "
        "log ratio of TV at n + 1 and n).",
        leading_fall() < 0,
        **cited(_PRIMES, "exponentially small", "type-signature:A-PRIMEDET", setting=_GROWTH),
    ),
    ours(
        "whole-primes-by-density-sharpen",
        "Read with four digits counted, whatever n, whole primes by density come closer to random ones with every "
        "further digit n (largest log ratio of TV at n + 1 and n, from n = 5).",
        counted_fall(4) < 0,
        f"{_PRIMES} (its TV below 0.01 at n = 6 is counted as published in type-signature)",
        "exponentially small",
    ),
    ours(
        "the-product-is-dear-too",
        "Product first, by trial, the dearest digit of the product itself takes more than 10^0.9 times as many pairs "
        "of primes per digit of n.",
        growth("products") > 0.9,
        'Section "Factoring"',
    ),
    ours(
        "overlap-below-root-in-many-vectors",
        "No generator overlaps more than the root of its chance to factor (largest excess over the vectors of random "
        "chances).",
        largest("overlap", "excess") < _ROUNDING,
        "Appendix, Claim 3 (counted as published in type-signature)",
        "not above 0",
    ),
)

NUMBERS = {
    "dead ends": largest("dead ends", "probability"),
    "growth of products": growth("products"),
    "largest overlap over the root": largest("overlap", "ratio"),
}
