"""Claims of ours: section 3.1 as corrected, and controls of the closed forms."""

from trialogue_lab.ledger import Claim
from trialogue_lab.ledger.claims.extremes import RESOLVED, largest, smallest
from trialogue_lab.studies.query_complexity.measure import REJECTION, TOKENWISE
from trialogue_lab.studies.query_complexity.statistics import (
    calls_beyond,
    capped_error,
    growth,
    least_growth,
    power,
    searched_over,
    solved,
    walked_over_printed,
)

ROUNDING = 1e-9
"""Relative differences below this are rounding errors."""

LOW, ONE = 80, 20
"""Binary digits of 20 weights whose density is a quarter, and one."""

_HIDDEN = "Theorem 3.1.1"
_ZEROS, _LAW, _CALLS = "Proposition 3.1.1", "Proposition 3.1.2", 'Section 3.1.3, "|Sigma| D calls"'

OURS = (
    Claim(
        "hidden-string-corrected",
        "On the hidden string the best algorithm takes at least 2^(D-2) expected queries, for D of at least 2 (least "
        "over 2^(D-2), less 1).",
        smallest("optimum", "2 * inferred / printed - 1", where="length > 1") > -ROUNDING,
        f"{_HIDDEN}, corrected",
        "at least 2^(D-1)",
        "ours",
    ),
    Claim(
        "hidden-string-is-exponential",
        "The queries of the best searcher double with every token (binary digits per token, at the greatest D).",
        growth("optimum", "inferred").near(1, margin=0.01),
        f"{_HIDDEN}, corrected",
        "exponential",
        "ours",
    ),
    Claim(
        "fixed-order-at-worst",
        "A fixed order takes no more than 2^(D-1) queries at worst, if the hidden string must be asked about (largest "
        "difference).",
        largest("order", "most - printed", where="not inferred") < 0.5,
        "Remark 3.5.1",
        "2^(D-1) for a deterministic algorithm",
        "ours",
    ),
    *(
        Claim(
            f"searcher-{ending}",
            f"In random order the searcher takes {said} (mean queries over the optimum's, mean over lengths).",
            searched_over(column, inferred).near(1, margin=0.05),
            f"{_HIDDEN}, corrected",
            "at least 2^(D-1)",
            "ours",
        )
        for ending, said, column, inferred in (
            ("infers", "(M - 1)(M + 2) / (2 M) queries if it infers the last candidate", "inferred", True),
            ("asks", "(M + 1) / 2 queries if it must ask about the hidden string", "queried", False),
        )
    ),
    Claim(
        "searcher-takes-less-than-printed",
        "In random order the searcher takes less than 2^(D-1) queries (mean queries over that, mean over lengths).",
        searched_over("printed", True) < 1,
        f"{_HIDDEN}, corrected",
        "at least 2^(D-1)",
        "ours",
    ),
    Claim(
        "verifier-is-no-help-on-the-hidden-string",
        "With a perfect verifier and any cap on rejections, tokenwise rejection has an output with probability "
        "2^-(D-1), else FAIL (largest relative difference).",
        capped_error() < ROUNDING,
        f"Section 3.1.3, on the instance of {_HIDDEN}",
        "gets easier",
        "ours",
    ),
    Claim(
        "cost-of-an-output-on-the-hidden-string",
        "With a perfect verifier an output of tokenwise rejection costs twice as many calls with every token (binary "
        "digits per token, at the greatest D and a cap of 1).",
        growth("capped", "per_output", cap=1).near(1, margin=0.1),
        f"Section 3.1.3, on the instance of {_HIDDEN}",
        "gets easier",
        "ours",
    ),
    *(
        Claim(
            f"{ending}-of-zeros-simulated",
            f"As it runs, {walk} takes {said} calls on the string of zeros (mean over that, mean over lengths).",
            walked_over_printed(walk).near(1, margin=0.1),
            _ZEROS,
            said,
            "ours",
        )
        for ending, walk, said in (
            ("rejection", REJECTION, "2^D D"),
            ("tokenwise-rejection", TOKENWISE, "2 D"),
        )
    ),
    Claim(
        "rejection-on-dyck-strings-is-exponential",
        "The cost of rejection on Dyck strings grows by over half a binary digit per token (least between lengths).",
        least_growth("dyck", "rejection") > 0.5,
        _ZEROS,
        origin="ours",
    ),
    Claim(
        "tokenwise-rejection-on-dyck-strings-is-linear",
        "The cost of tokenwise rejection on Dyck strings grows in proportion to their length (power of the length, "
        "between the two greatest).",
        power("dyck", "tokenwise").near(1, margin=0.1),
        _ZEROS,
        origin="ours",
    ),
    Claim(
        "another-law-corrected",
        "For D of at least 2 the law of tokenwise rejection is not the restricted one (least total variation).",
        smallest("law", "variation", where="length > 1") > RESOLVED,
        f"{_LAW}, corrected",
        "not the restricted law",
        "ours",
    ),
    Claim(
        "variation-of-the-law",
        "It is (2^D - 2) / (2^D (2^D - 1)) away (largest difference of fractions, over a common denominator).",
        largest("law", "off") < 0.5,
        f"{_LAW}, corrected",
        origin="ours",
    ),
    Claim(
        "variation-of-the-walk",
        "The walk itself is as far from the restricted law (largest difference of total variations).",
        largest("law", "walked - variation", "variation - walked") < RESOLVED,
        f"{_LAW}, control",
        origin="ours",
    ),
    Claim(
        "masses-of-all-other-strings-of-a",
        "Tokenwise rejection gives every other string of A the probability 2^-D (largest difference, in these units).",
        largest("law", "1 - least_of_a", "most - 1") < ROUNDING,
        f"Proof of {_LAW}, corrected",
        "2^-D for all other strings",
        "ours",
    ),
    Claim(
        "verifier-calls-on-knapsacks",
        "Generating with a perfect verifier of knapsacks takes at most 2 D of its calls (calls beyond that, the most).",
        calls_beyond("knapsack") < 0.5,
        _CALLS,
        "|Sigma| D",
        "ours",
    ),
    Claim(
        "lattices-at-density-one",
        "At density 1 a reduced lattice solves a smaller share of knapsacks of 20 weights than at 1/4 (difference).",
        solved(LOW) - solved(ONE) > 0,
        "Section 3.5.1",
        origin="ours",
    ),
)
