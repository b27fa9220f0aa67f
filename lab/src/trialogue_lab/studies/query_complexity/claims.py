"""Claims of the study: section 3.1 as printed; those as corrected are in `our_claims`."""

from trialogue_lab.ledger import Claim
from trialogue_lab.ledger.claims.extremes import RESOLVED, largest, smallest
from trialogue_lab.studies.query_complexity.exact import DYCK, HIDDEN
from trialogue_lab.studies.query_complexity.our_claims import LOW, ONE, OURS, ROUNDING
from trialogue_lab.studies.query_complexity.statistics import (
    at_length,
    calls_beyond,
    largest_error,
    solved,
    unsolved,
    wrong,
)

_HIDDEN, _KNAPSACK = "Theorem 3.1.1", "Theorem 3.1.2"
_ZEROS, _LAW, _CALLS = "Proposition 3.1.1", "Proposition 3.1.2", 'Section 3.1.3, "|Sigma| D calls"'

PUBLISHED = (
    Claim(
        "hidden-string-as-printed",
        "On the hidden string any algorithm takes at least 2^(D-1) expected queries (least of the best one's over "
        "2^(D-1), less 1, for D of at least 2).",
        smallest("optimum", "inferred / printed - 1", where="length > 1") > -ROUNDING,
        _HIDDEN,
        "at least 2^(D-1)",
        statement_id="thesis:V-T311",
    ),
    Claim(
        "hidden-string-as-in-the-proof",
        "To ask about the hidden string itself takes 2^(D-1) expected queries (least of the best searcher's over "
        "2^(D-1), less 1).",
        smallest("optimum", "queried / printed - 1") > -ROUNDING,
        f"Proof of {_HIDDEN}",
        "2^(D-1)",
        statement_id="thesis:V-T311.proof",
    ),
    Claim(
        "generation-solves-knapsacks",
        "A generator of the strings of A solves the knapsack, and gives FAIL where there is no solution (wrong "
        "answers, all random instances).",
        wrong("knapsack", "generated_wrong") < 0.5,
        _KNAPSACK,
        "a reduction",
        statement_id="thesis:V-T312",
    ),
    Claim(
        "rejection-of-all-but-zeros",
        "Rejection sampling of the string of zeros takes 2^D D expected calls (largest relative difference).",
        largest_error("zeros", "rejection", "rejection_printed") < ROUNDING,
        f"{_ZEROS} (1)",
        "2^D D",
        statement_id="thesis:V-P311",
    ),
    Claim(
        "tokenwise-rejection-of-all-but-zeros",
        "Tokenwise rejection of the string of zeros takes 2 D expected calls (largest relative difference).",
        largest_error("zeros", "tokenwise", "tokenwise_printed") < ROUNDING,
        f"{_ZEROS} (2)",
        "2 D",
        statement_id="thesis:V-P311",
    ),
    Claim(
        "verifier-calls-suffice-on-dyck-strings",
        "Trying every token at every position yields a Dyck string (largest share of failures).",
        unsolved(DYCK) < ROUNDING,
        _CALLS,
        "solves the task",
        statement_id="thesis:V-SIGMAD",
    ),
    Claim(
        "verifier-calls-on-dyck-strings",
        "Trying every token at every position takes at most |Sigma| D calls of a perfect verifier of Dyck strings "
        "(calls beyond that, the most).",
        calls_beyond("verifier", task=DYCK) < 0.5,
        _CALLS,
        "|Sigma| D",
        statement_id="thesis:V-SIGMAD",
    ),
    Claim(
        "verifier-calls-suffice-on-the-hidden-string",
        "What |Sigma| D calls of a perfect verifier yield on the hidden string is a string that the oracle can give "
        "(largest share of hidden strings where it is none, for the lengths tried).",
        unsolved(HIDDEN) < ROUNDING,
        f"{_CALLS}, on the instance of {_HIDDEN}",
        "solves the task",
        statement_id="thesis:V-SIGMAD",
    ),
    Claim(
        "another-law-as-printed",
        "For every D the law of tokenwise rejection is not the restricted one (least total variation).",
        smallest("law", "variation") > RESOLVED,
        _LAW,
        "not the restricted law",
        statement_id="thesis:V-P312",
    ),
    Claim(
        "mass-of-the-last-string",
        "Tokenwise rejection gives the string of ones with a zero behind the probability 2^-(D-1) (largest difference, "
        "in units of 2^-D).",
        largest("law", "last - 2", "2 - last") < ROUNDING,
        f"Proof of {_LAW}",
        "2^-(D-1)",
        statement_id="thesis:V-P312.proof",
    ),
    Claim(
        "masses-of-all-other-strings",
        "Tokenwise rejection gives every other string of Sigma^D the probability 2^-D (least, in these units, less 1).",
        smallest("law", "least - 1") > -ROUNDING,
        f"Proof of {_LAW}",
        "2^-D for all other strings",
        statement_id="thesis:V-P312.proof",
    ),
    Claim(
        "tables-solve-knapsacks",
        "The dynamic program solves knapsacks (wrong answers, all random instances).",
        wrong("knapsack", "table_wrong") < 0.5,
        "Section 3.5.1",
        statement_id="thesis:V-KNAP.tables",
    ),
    Claim(
        "greedy-solves-superincreasing-knapsacks",
        "A greedy pass solves knapsacks with X_i >= sum_{j<i} X_j (wrong answers, all totals of random instances).",
        wrong("greedy", "wrong") < 0.5,
        "Section 3.5.1",
        statement_id="thesis:V-KNAP.greedy",
    ),
    Claim(
        "lattices-solve-low-density",
        "At density 1/4 a reduced lattice solves more than nine of ten knapsacks of 20 weights.",
        solved(LOW) > 0.9,
        "Section 3.5.1",
        "approximately solved in polynomial time",
        grade=True,
        statement_id="thesis:V-KNAP.lattices",
    ),
)

CLAIMS = PUBLISHED + OURS

NUMBERS = {
    "queries of the best searcher, D = 8": at_length("optimum", "inferred", 8),
    "rejection on Dyck strings, D = 32": at_length("dyck", "rejection", 32),
    "tokenwise rejection on Dyck strings, D = 32": at_length("dyck", "tokenwise", 32),
    "rejection on Dyck strings, D = 8": at_length("dyck", "rejection", 8),
    "tokenwise rejection on Dyck strings, D = 8": at_length("dyck", "tokenwise", 8),
    "lattices at density 1/4": solved(LOW),
    "lattices at density 1": solved(ONE),
}
