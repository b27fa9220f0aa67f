"""Claims about the costs of backtracking in model calls and time, and about the summaries of the chapter.

The summaries contain three sentences. The claim `diversity-kept` is about the third one, on diversity.
"""

from collections.abc import Callable
from functools import partial

from trialogue_lab.ledger import Claim, Criterion, cited, ours
from trialogue_lab.studies.dyck_backtracking import statistics as stats
from trialogue_lab.studies.dyck_backtracking.config import CANDIDATES

SMALL_NETWORKS = (
    "The networks have two layers of width 64. The networks of the source have six layers of width 512."
)
_COMPLETIONS = (
    f"{SMALL_NETWORKS} Completions take about five tokens, and 97 to 99 % of them are correct without a verifier. A "
    "backtrack therefore costs more queries than it can save. The source prints no numbers of queries for Dyck strings."
)
thesis = partial(cited, setting=SMALL_NETWORKS)
_efficiency = partial(thesis, "3.4.1")
_SUMMARIES: tuple[tuple[str, str, Callable[[float], Criterion], str, str], ...] = (
    (
        "summary-queries",
        "asks fewer queries than no verifier at top-p {:g} (as a ratio).",
        lambda top_p: stats.queries_ratio(top_p) < 1,
        "reduces query complexity",
        "thesis:V-SUM.queries",
    ),
    (
        "summary-queries-until-correct",
        "asks fewer queries until a completion is correct at top-p {:g} (as a ratio).",
        lambda top_p: stats.queries_ratio(top_p, "queries_until_correct") < 1,
        "reduces query complexity, tokens generated to satisfactorily complete the task (3.4.1)",
        "thesis:V-SUM.queries",
    ),
    (
        "summary-accuracy",
        "is more accurate than no verifier at top-p {:g}.",
        lambda top_p: stats.gain(top_p) > 0,
        "improves accuracy (Table 3.3: by 0.006 at top-p 0.9 and 0.026 at top-p 1)",
        "thesis:V-SUM.accuracy",
    ),
)

COST_CLAIMS = (
    *(
        Claim(
            f"{identity}-{name}",
            f"On unseen prompts Algorithm 1 (Q = B = 4) {statement.format(top_p)}",
            criterion(top_p),
            **cited("3.2 (first paragraph) and 3.7", published, statement_id, setting=_COMPLETIONS),
        )
        for identity, statement, criterion, published, statement_id in _SUMMARIES
        for name, top_p in (("nucleus", 0.9), ("full", 1.0))
    ),
    Claim(
        "time-follows-queries",
        "Where sequences are generated one at a time, those that ask more take longer (rank correlation over the "
        "completions of Algorithm 1).",
        stats.speed("trained", 1, "rank_correlation") > 0,
        **_efficiency("query complexity positively correlates with wall-clock time", "thesis:V-QE.time"),
    ),
    Claim(
        "candidates-of-a-batch-take-less",
        f"{CANDIDATES} candidates that are generated as one batch take less time than {CANDIDATES} generated one after "
        "another (ratio of processor seconds).",
        stats.speed("best of n", 1) / (stats.speed("none", 1) * CANDIDATES) < 1,
        **_efficiency("might be less than n multiplying the time of one (footnote 16)", "thesis:V-QE.batch"),
    ),
    ours(
        "time-is-more-than-queries",
        "One sequence at a time, Algorithm 1 with the trained verifier raises the seconds by a larger factor than the "
        "queries (ratio of the two).",
        stats.speed("trained", 1, "microseconds_per_query") / stats.speed("none", 1, "microseconds_per_query")
        > 1,
        "3.4.1",
    ),
)
