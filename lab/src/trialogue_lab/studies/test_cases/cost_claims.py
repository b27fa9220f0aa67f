"""Claims on what decodings cost: slopes (Figures 3.3, 3.4), the summaries' sentences, and seconds (section 3.4.1).

Of the summaries' sentences (3.2 and 3.7), "reduces query complexity" is read both as raw queries and, as section 3.4.1
defines it, as queries until the task is done: here, per distinct correct case. That a token may be a block is the claim
`algorithm-beats-block-best-of-2`; the value-guided walk's are claims of the study `value-guided`.
"""

from collections.abc import Callable

from trialogue_lab.ledger import Claim, Criterion
from trialogue_lab.studies.test_cases.decodings import (
    BASELINE,
    HOT,
    HOT_BASELINE,
    TRAINED,
    WIDE,
    WIDE_BASELINE,
    DecodingRule,
    block_best_of,
)
from trialogue_lab.studies.test_cases.speed import CANDIDATES
from trialogue_lab.studies.test_cases.statistics import distinct_share, gain, gain_per_query, ratio, timed
from trialogue_lab.studies.test_cases.subjects import Role
from trialogue_lab.studies.test_cases.twins import Statement, on_both

_EFFICIENCY = "3.4.1"
_SUMMARY = "3.2 (first paragraph) and 3.7"


def _steeper(first: DecodingRule, second: DecodingRule) -> Callable[[Role], Criterion]:
    return lambda role: gain(first, second, role, "slope") > 0


_SLOPES = tuple(
    Statement(
        f"steeper-than-{name}",
        f"As runs are added, distinct correct cases rise faster with queries under Algorithm 1 than under {words} "
        "(slopes of each repetition's least-squares lines).",
        _steeper(first, second),
        f"Figure {figure}",
        f"steeper lines (quotients of means in Table 3.13, cases per 100 queries: {printed})",
        entry="V-F33",
    )
    for name, words, figure, printed, first, second in (
        ("nucleus", "nucleus sampling at 0.95", "3.4", "1.448 against 1.381", TRAINED, BASELINE),
        ("sampling", "sampling at top-p 1 and T = 1", "3.4", "1.635 against 1.311", WIDE, WIDE_BASELINE),
        ("hot-sampling", "sampling at top-p 1 and T = 1.2", "3.4", "1.413 against 0.982", HOT, HOT_BASELINE),
        *(
            (
                f"block-best-of-{n}",
                f"block best-of-{n}",
                "3.3",
                f"1.448 against {other}",
                TRAINED,
                block_best_of(n),
            )
            for n, other in ((2, "1.390"), (4, "0.761"), (8, "0.364"))
        ),
    )
)

_SUMMARIES = (
    Statement(
        "more-per-query",
        "Algorithm 1 has more distinct correct cases per 100 queries than nucleus sampling.",
        lambda role: gain_per_query(TRAINED, BASELINE, role) > 0,
        f"Table 3.13 and {_SUMMARY}",
        "1.448 against 1.381 (a quotient of means); reduces query complexity (3.4.1: until the task is completed)",
        entry="V-SUM.queries",
    ),
    Statement(
        "summary-queries",
        "Algorithm 1 asks fewer queries than nucleus sampling (as a ratio).",
        lambda role: ratio(TRAINED, BASELINE, "queries", role) < 1,
        _SUMMARY,
        "reduces query complexity (Table 3.13: 39443 against 38231)",
        entry="V-SUM.queries",
    ),
    Statement(
        "summary-accuracy",
        "Algorithm 1 writes a larger share of correct cases, equal ones counted again, than nucleus sampling.",
        lambda role: gain(TRAINED, BASELINE, role, "accuracy") > 0,
        _SUMMARY,
        "improves accuracy",
        entry="V-SUM.accuracy",
    ),
    Statement(
        "summary-diversity",
        "Of its correct cases Algorithm 1 has the share of distinct ones that nucleus sampling has (ratio within 0.1).",
        lambda role: (distinct_share(TRAINED, role) / distinct_share(BASELINE, role)).near(1, 0.1),
        _SUMMARY,
        "does not hurt diversity",
        entry="V-SUM.diversity",
    ),
)

_SECONDS = (
    Statement(
        "time-follows-queries",
        "Where completions are drawn one at a time, those that ask more take longer (rank correlation).",
        lambda role: timed("one at a time", "rank_correlation", role) > 0,
        _EFFICIENCY,
        "query complexity positively correlates with wall-clock time",
        entry="V-QE.time",
    ),
    Statement(
        "candidates-of-a-batch-take-less",
        f"The {CANDIDATES} candidates of block best-of-{CANDIDATES}, which move as one batch, take less time per query "
        "than a completion alone (ratio of processor seconds).",
        lambda role: (
            (
                timed(block_best_of(CANDIDATES).name, "milliseconds", role)
                / timed(BASELINE.name, "milliseconds", role)
            )
            < 1
        ),
        _EFFICIENCY,
        "might be less than n multiplying the time of one (footnote 16)",
        entry="V-QE.batch",
    ),
    Statement(
        "time-is-more-than-queries",
        "One completion at a time, a query of Algorithm 1 with the trained verifier takes longer than one of nucleus "
        "sampling (ratio of processor seconds).",
        lambda role: (
            (timed(TRAINED.name, "milliseconds", role) / timed(BASELINE.name, "milliseconds", role)) > 1
        ),
        _EFFICIENCY,
        origin="ours",
    ),
)

COST_CLAIMS: tuple[Claim, ...] = tuple(
    claim for statement in (*_SLOPES, *_SUMMARIES, *_SECONDS) for claim in on_both(statement)
)
