"""Claims of the summaries of the chapter, and of what queries say about seconds.

Of the summaries' three sentences, that diversity does not suffer is the claim `diversity-kept`.
"""

from trialogue_lab.ledger import Claim
from trialogue_lab.studies.dyck_backtracking.config import CANDIDATES
from trialogue_lab.studies.dyck_backtracking.statistics import (
    gain,
    queries_ratio,
    queries_ratio_until_correct,
    speed,
)

SMALL_NETWORKS = "The networks are small (two layers of width 64; the source's have six of width 512)."
_COMPLETIONS = (
    "Completions take about five tokens and 97 to 99 % of them are correct without a verifier, so that a backtrack "
    "costs more queries than it can save; the source prints no query counts for Dyck strings."
)
_SUMMARY = "3.2 (first paragraph) and 3.7"
_EFFICIENCY = "3.4.1"

COST_CLAIMS = (
    *(
        Claim(
            f"summary-{identity}-{name}",
            f"On unseen prompts Algorithm 1 (Q = B = 4) {statement} at top-p {top_p:g}{how}.",
            quantity(top_p) > 0 if identity == "accuracy" else quantity(top_p) < 1,
            _SUMMARY,
            published,
            statement_id=f"thesis:V-SUM.{identity.partition('-')[0]}",
            setting=f"{SMALL_NETWORKS} {_COMPLETIONS}",
        )
        for identity, statement, how, quantity, published in (
            (
                "queries",
                "asks fewer queries than no verifier",
                " (as a ratio)",
                queries_ratio,
                "reduces query complexity",
            ),
            (
                "queries-until-correct",
                "asks fewer queries until a completion is correct",
                " (as a ratio)",
                queries_ratio_until_correct,
                "reduces query complexity, tokens generated to satisfactorily complete the task (3.4.1)",
            ),
            (
                "accuracy",
                "is more accurate than no verifier",
                "",
                gain,
                "improves accuracy (Table 3.3: by 0.006 at top-p 0.9 and 0.026 at top-p 1)",
            ),
        )
        for name, top_p in (("nucleus", 0.9), ("full", 1.0))
    ),
    Claim(
        "time-follows-queries",
        "Where sequences are generated one at a time, those that ask more take longer (rank correlation over the "
        "completions of Algorithm 1).",
        speed("trained", 1, "rank_correlation") > 0,
        _EFFICIENCY,
        "query complexity positively correlates with wall-clock time",
        statement_id="thesis:V-QE.time",
        setting=SMALL_NETWORKS,
    ),
    Claim(
        "candidates-of-a-batch-take-less",
        f"{CANDIDATES} candidates that are generated as one batch take less time than {CANDIDATES} generated one after "
        "another (ratio of processor seconds).",
        speed("best of n", 1) / (speed("none", 1) * CANDIDATES) < 1,
        _EFFICIENCY,
        "might be less than n multiplying the time of one (footnote 16)",
        statement_id="thesis:V-QE.batch",
        setting=SMALL_NETWORKS,
    ),
    Claim(
        "time-is-more-than-queries",
        "One sequence at a time, Algorithm 1 with the trained verifier raises the seconds by a larger factor than the "
        "queries (ratio of the two).",
        (speed("trained", 1, "microseconds_per_query") / speed("none", 1, "microseconds_per_query")) > 1,
        _EFFICIENCY,
        origin="ours",
    ),
)
