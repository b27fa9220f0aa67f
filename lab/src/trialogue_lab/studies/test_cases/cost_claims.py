"""Statements about cost: slopes (Figures 3.3 and 3.4), the summaries, and processor time (section 3.4.1).

The summaries (3.2 and 3.7) state that Algorithm 1 "reduces query complexity". This has two interpretations: the number
of queries, and, as section 3.4.1 defines it, the number of queries until the task is done, here per distinct correct
case. That a token may be a block is the claim `algorithm-beats-block-best-of-2`. The statements about the value-guided
random walk are claims of the study `value-guided`.
"""

from functools import partial

from trialogue_lab.ledger import Statistic
from trialogue_lab.studies.test_cases.config import Role
from trialogue_lab.studies.test_cases.decodings import (
    BASELINE,
    HOT,
    HOT_BASELINE,
    TRAINED,
    WIDE,
    WIDE_BASELINE,
    DecodingRule,
    make_block_best_of,
)
from trialogue_lab.studies.test_cases.draws import CANDIDATES
from trialogue_lab.studies.test_cases.statements import ModelStatement, more
from trialogue_lab.studies.test_cases.statistics import distinct_share, gain_per_query, ratio, timed

_summary = partial(ModelStatement, source="3.2 (first paragraph) and 3.7")
_efficiency = partial(ModelStatement, source="3.4.1")


def _make_time_ratio(first: DecodingRule, second: DecodingRule, role: Role) -> Statistic:
    return timed(first.name, "milliseconds", role) / timed(second.name, "milliseconds", role)


COSTS = (
    *(
        ModelStatement(
            f"steeper-than-{name}",
            f"As runs are added, distinct correct cases rise faster with queries under Algorithm 1 than under {words} "
            "(slopes of each repetition's least-squares lines).",
            more(first, second, "slope"),
            f"steeper lines (quotients of means in Table 3.13, cases per 100 queries: {printed})",
            f"Figure {figure}",
            "V-F33",
        )
        for name, words, figure, printed, first, second in (
            ("nucleus", "nucleus sampling at 0.95", "3.4", "1.448 against 1.381", TRAINED, BASELINE),
            ("sampling", "sampling at top-p 1 and T = 1", "3.4", "1.635 against 1.311", WIDE, WIDE_BASELINE),
            (
                "hot-sampling",
                "sampling at top-p 1 and T = 1.2",
                "3.4",
                "1.413 against 0.982",
                HOT,
                HOT_BASELINE,
            ),
            *(
                (f"block-best-of-{n}", f"block best-of-{n}", "3.3", printed, TRAINED, make_block_best_of(n))
                for n, printed in (
                    (2, "1.448 against 1.390"),
                    (4, "1.448 against 0.761"),
                    (8, "1.448 against 0.364"),
                )
            ),
        )
    ),
    _summary(
        "more-per-query",
        "Algorithm 1 has more distinct correct cases per 100 queries than nucleus sampling.",
        lambda role: gain_per_query(TRAINED, BASELINE, role) > 0,
        "1.448 against 1.381 (a quotient of means); reduces query complexity (3.4.1: until the task is completed)",
        source="Table 3.13 and 3.2 (first paragraph) and 3.7",
        entry="V-SUM.queries",
    ),
    _summary(
        "summary-queries",
        "Algorithm 1 asks fewer queries than nucleus sampling (as a ratio).",
        lambda role: ratio(TRAINED, BASELINE, "queries", role) < 1,
        "reduces query complexity (Table 3.13: 39443 against 38231)",
        entry="V-SUM.queries",
    ),
    _summary(
        "summary-accuracy",
        "Algorithm 1 writes a larger share of correct cases, equal ones counted again, than nucleus sampling.",
        more(TRAINED, BASELINE, "accuracy"),
        "improves accuracy",
        entry="V-SUM.accuracy",
    ),
    _summary(
        "summary-diversity",
        "Of its correct cases Algorithm 1 has the share of distinct ones that nucleus sampling has (ratio within 0.1).",
        lambda role: (distinct_share(TRAINED, role) / distinct_share(BASELINE, role)).near(1, 0.1),
        "does not hurt diversity",
        entry="V-SUM.diversity",
    ),
    _efficiency(
        "time-follows-queries",
        "Where completions are drawn one at a time, those that ask more take longer (rank correlation).",
        lambda role: timed("one at a time", "rank_correlation", role) > 0,
        "query complexity positively correlates with wall-clock time",
        entry="V-QE.time",
    ),
    _efficiency(
        "candidates-of-a-batch-take-less",
        f"The {CANDIDATES} candidates of block best-of-{CANDIDATES}, which move as one batch, take less time per query "
        "than a completion alone (ratio of processor seconds).",
        lambda role: _make_time_ratio(make_block_best_of(CANDIDATES), BASELINE, role) < 1,
        "might be less than n multiplying the time of one (footnote 16)",
        entry="V-QE.batch",
    ),
    _efficiency(
        "time-is-more-than-queries",
        "One completion at a time, a query of Algorithm 1 with the trained verifier takes longer than one of nucleus "
        "sampling (ratio of processor seconds).",
        lambda role: _make_time_ratio(TRAINED, BASELINE, role) > 1,
    ),
)
