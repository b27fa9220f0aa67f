"""Claims of the study: statements of section 3.1 as printed, then corrected statements and controls of this project."""

from functools import partial

from trialogue_lab.ledger import NOT_PRINTED, RESOLVED, Claim, cited, largest, ours, smallest
from trialogue_lab.studies.query_complexity import statistics
from trialogue_lab.studies.query_complexity.exact import DYCK, HIDDEN
from trialogue_lab.studies.query_complexity.measure import REJECTION, TOKENWISE
from trialogue_lab.studies.query_complexity.statistics import growth, solved

ROUNDING = 1e-9
"""Relative differences below this are rounding errors."""

LOW, ONE = 80, 20
"""Numbers of binary digits at which 20 weights have density 1/4 and density 1."""

_HIDDEN, _KNAPSACK = "Theorem 3.1.1", "Theorem 3.1.2"
_ZEROS, _LAW, _CALLS = "Proposition 3.1.1", "Proposition 3.1.2", 'Section 3.1.3, "|Sigma| D calls"'
_corrected = partial(ours, source=f"{_HIDDEN}, corrected", published="at least 2^(D-1)")
_no_help = partial(ours, source=f"Section 3.1.3, on the instance of {_HIDDEN}", published="gets easier")
_zeros = partial(ours, source=_ZEROS)
_law = partial(ours, source=f"{_LAW}, corrected", published="not the restricted law")

PUBLISHED = (
    Claim(
        "hidden-string-as-printed",
        "On the hidden string any algorithm takes at least 2^(D-1) expected queries (least of the best one's over "
        "2^(D-1), less 1, for D of at least 2).",
        smallest("optimum", "inferred / printed - 1", where="length > 1") > -ROUNDING,
        **cited(_HIDDEN, "at least 2^(D-1)", "thesis:V-T311"),
    ),
    Claim(
        "hidden-string-as-in-the-proof",
        "To ask about the hidden string itself takes 2^(D-1) expected queries (least of the best searcher's over "
        "2^(D-1), less 1).",
        smallest("optimum", "queried / printed - 1") > -ROUNDING,
        **cited(f"Proof of {_HIDDEN}", "2^(D-1)", "thesis:V-T311.proof"),
    ),
    Claim(
        "generation-solves-knapsacks",
        "A generator of the strings of A solves the knapsack, and gives FAIL where there is no solution (wrong "
        "answers, all random instances).",
        statistics.wrong("knapsack", "generated_wrong") < 0.5,
        **cited(_KNAPSACK, "a reduction", "thesis:V-T312"),
    ),
    *(
        Claim(
            f"{name}-of-all-but-zeros",
            f"{sampler} of the string of zeros takes {calls} expected calls (largest relative difference).",
            statistics.largest_error("zeros", column, f"{column}_printed") < ROUNDING,
            **cited(f"{_ZEROS} ({part})", calls, "thesis:V-P311"),
        )
        for part, name, sampler, column, calls in (
            (1, "rejection", "Rejection sampling", "rejection", "2^D D"),
            (2, "tokenwise-rejection", "Tokenwise rejection", "tokenwise", "2 D"),
        )
    ),
    Claim(
        "verifier-calls-suffice-on-dyck-strings",
        "Trying every token at every position yields a Dyck string (largest share of failures).",
        statistics.unsolved(DYCK) < ROUNDING,
        **cited(_CALLS, "solves the task", "thesis:V-SIGMAD"),
    ),
    Claim(
        "verifier-calls-on-dyck-strings",
        "Trying every token at every position takes at most |Sigma| D calls of a perfect verifier of Dyck strings "
        "(calls beyond that, the most).",
        statistics.calls_beyond("verifier", task=DYCK) < 0.5,
        **cited(_CALLS, "|Sigma| D", "thesis:V-SIGMAD"),
    ),
    Claim(
        "verifier-calls-suffice-on-the-hidden-string",
        "What |Sigma| D calls of a perfect verifier yield on the hidden string is a string that the oracle can give "
        "(largest share of hidden strings where it is none, for the lengths tried).",
        statistics.unsolved(HIDDEN) < ROUNDING,
        **cited(f"{_CALLS}, on the instance of {_HIDDEN}", "solves the task", "thesis:V-SIGMAD"),
    ),
    Claim(
        "another-law-as-printed",
        "For every D the law of tokenwise rejection is not the restricted one (least total variation).",
        smallest("law", "variation") > RESOLVED,
        **cited(_LAW, "not the restricted law", "thesis:V-P312"),
    ),
    Claim(
        "mass-of-the-last-string",
        "Tokenwise rejection gives the string of ones with a zero behind the probability 2^-(D-1) (largest difference, "
        "in units of 2^-D).",
        largest("law", "last - 2", "2 - last") < ROUNDING,
        **cited(f"Proof of {_LAW}", "2^-(D-1)", "thesis:V-P312.proof"),
    ),
    Claim(
        "masses-of-all-other-strings",
        "Tokenwise rejection gives every other string of Sigma^D the probability 2^-D (least, in these units, less 1).",
        smallest("law", "least - 1") > -ROUNDING,
        **cited(f"Proof of {_LAW}", "2^-D for all other strings", "thesis:V-P312.proof"),
    ),
    Claim(
        "tables-solve-knapsacks",
        "The dynamic program solves knapsacks (wrong answers, all random instances).",
        statistics.wrong("knapsack", "table_wrong") < 0.5,
        **cited("Section 3.5.1", NOT_PRINTED, "thesis:V-KNAP.tables"),
    ),
    Claim(
        "greedy-solves-superincreasing-knapsacks",
        "A greedy pass solves knapsacks with X_i >= sum_{j<i} X_j (wrong answers, all totals of random instances).",
        statistics.wrong("greedy", "wrong") < 0.5,
        **cited("Section 3.5.1", NOT_PRINTED, "thesis:V-KNAP.greedy"),
    ),
    Claim(
        "lattices-solve-low-density",
        "At density 1/4 a reduced lattice solves more than nine of ten knapsacks of 20 weights.",
        solved(LOW) > 0.9,
        **cited(
            "Section 3.5.1", "approximately solved in polynomial time", "thesis:V-KNAP.lattices", grade=True
        ),
    ),
)

OURS = (
    _corrected(
        "hidden-string-corrected",
        "On the hidden string the best algorithm takes at least 2^(D-2) expected queries, for D of at least 2 (least "
        "over 2^(D-2), less 1).",
        smallest("optimum", "2 * inferred / printed - 1", where="length > 1") > -ROUNDING,
    ),
    _corrected(
        "hidden-string-is-exponential",
        "The queries of the best searcher double with every token (binary digits per token, at the greatest D).",
        growth("optimum", "inferred").near(1, margin=0.01),
    ),
    ours(
        "fixed-order-at-worst",
        "A fixed order takes no more than 2^(D-1) queries at worst, if the hidden string must be asked about (largest "
        "difference).",
        largest("order", "most - printed", where="not inferred") < 0.5,
        "Remark 3.5.1",
        "2^(D-1) for a deterministic algorithm",
    ),
    *(
        _corrected(
            f"searcher-{ending}",
            f"In random order the searcher takes {cost} (mean queries over the optimum's, mean over lengths).",
            statistics.searched_over(column, inferred).near(1, margin=0.05),
        )
        for ending, cost, column, inferred in (
            ("infers", "(M - 1)(M + 2) / (2 M) queries if it infers the last candidate", "inferred", True),
            ("asks", "(M + 1) / 2 queries if it must ask about the hidden string", "queried", False),
        )
    ),
    _corrected(
        "searcher-takes-less-than-printed",
        "In random order the searcher takes less than 2^(D-1) queries (mean queries over that, mean over lengths).",
        statistics.searched_over("printed", True) < 1,
    ),
    _no_help(
        "verifier-is-no-help-on-the-hidden-string",
        "With a perfect verifier and any cap on rejections, tokenwise rejection has an output with probability "
        "2^-(D-1), else FAIL (largest relative difference).",
        statistics.capped_error() < ROUNDING,
    ),
    _no_help(
        "cost-of-an-output-on-the-hidden-string",
        "With a perfect verifier an output of tokenwise rejection costs twice as many calls with every token (binary "
        "digits per token, at the greatest D and a cap of 1).",
        growth("capped", "per_output", cap=1).near(1, margin=0.1),
    ),
    *(
        _zeros(
            f"{sampler.replace(' ', '-')}-of-zeros-simulated",
            f"As it runs, {sampler} takes {cost} calls on the string of zeros (mean over that, mean over lengths).",
            statistics.walked_over_printed(sampler).near(1, margin=0.1),
            published=cost,
        )
        for sampler, cost in ((REJECTION, "2^D D"), (TOKENWISE, "2 D"))
    ),
    _zeros(
        "rejection-on-dyck-strings-is-exponential",
        "The cost of rejection on Dyck strings grows by over half a binary digit per token (least between lengths).",
        statistics.least_growth("dyck", "rejection") > 0.5,
    ),
    _zeros(
        "tokenwise-rejection-on-dyck-strings-is-linear",
        "The cost of tokenwise rejection on Dyck strings grows in proportion to their length (power of the length, "
        "between the two greatest).",
        statistics.power("dyck", "tokenwise").near(1, margin=0.1),
    ),
    _law(
        "another-law-corrected",
        "For D of at least 2 the law of tokenwise rejection is not the restricted one (least total variation).",
        smallest("law", "variation", where="length > 1") > RESOLVED,
    ),
    _law(
        "variation-of-the-law",
        "It is (2^D - 2) / (2^D (2^D - 1)) away (largest difference of fractions, over a common denominator).",
        largest("law", "off") < 0.5,
    ),
    _law(
        "variation-of-the-walk",
        "The walk itself is as far from the restricted law (largest difference of total variations).",
        largest("law", "walked - variation", "variation - walked") < RESOLVED,
    ),
    ours(
        "masses-of-all-other-strings-of-a",
        "Tokenwise rejection gives every other string of A the probability 2^-D (largest difference, in these units).",
        largest("law", "1 - least_of_a", "most - 1") < ROUNDING,
        f"Proof of {_LAW}, corrected",
        "2^-D for all other strings",
    ),
    ours(
        "verifier-calls-on-knapsacks",
        "Generating with a perfect verifier of knapsacks takes at most 2 D of its calls (calls beyond that, the most).",
        statistics.calls_beyond("knapsack") < 0.5,
        _CALLS,
        "|Sigma| D",
    ),
    ours(
        "lattices-at-density-one",
        "At density 1 a reduced lattice solves a smaller share of knapsacks of 20 weights than at 1/4 (difference).",
        solved(LOW) - solved(ONE) > 0,
        "Section 3.5.1",
    ),
)

CLAIMS = PUBLISHED + OURS

NUMBERS = {
    "queries of the best searcher, D = 8": statistics.at_length("optimum", "inferred", 8),
    **{
        f"{label} on Dyck strings, D = {length}": statistics.at_length("dyck", column, length)
        for length in (32, 8)
        for label, column in (("rejection", "rejection"), ("tokenwise rejection", "tokenwise"))
    },
    "lattices at density 1/4": solved(LOW),
    "lattices at density 1": solved(ONE),
}
