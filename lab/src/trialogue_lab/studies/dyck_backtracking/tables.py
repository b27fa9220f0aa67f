"""Tables of the study, with the published numbers of the thesis."""

from functools import partial

from pandas import DataFrame

from trialogue_lab.ledger import Cells, ResultTable, Rows, result_table
from trialogue_lab.studies.dyck_backtracking import statistics as stats
from trialogue_lab.studies.dyck_backtracking.config import BATCHES, CANDIDATES, CLUSTERS

_THESIS = "Thesis section 3.2.1"
_SPREAD = "Means ± one standard deviation over trainings."
GRID = {
    (1, 2): (0.421, 163, 0.313, 0.344),
    (1, 4): (0.500, 163, 0.337, 0.319),
    (1, 6): (0.604, 163, 0.331, 0.288),
    (2, 2): (0.457, 311, 0.347, 0.328),
    (2, 4): (0.634, 297, 0.357, 0.349),
    (2, 6): (0.762, 286, 0.374, 0.373),
    (4, 2): (0.518, 600, 0.371, 0.353),
    (4, 4): (0.762, 532, 0.419, 0.404),
    (4, 6): (0.921, 489, 0.509, 0.523),
}
"""Published numbers by quota and stride.

Accuracy (Table 3.2), number of backtracks, and accuracy of nucleus sampling and greedy decoding (Table 3.4).
"""
FORCED = {1: 0.366, 2: 0.438, 4: 0.591, 8: 0.790}
"""Published accuracy by stride of a forced backtrack (Table 3.1)."""
NUCLEUS, _GREEDY = 0.331, 0.334
"""Published accuracy without a backtrack (Table 3.1)."""
ERRORS = {
    ("none", 0.9): 240.0,
    ("trained", 0.9): 179.4,
    ("trained, no argmax", 0.9): 245.8,
    ("none", 1.0): 461.8,
    ("trained", 1.0): 200.0,
}
"""Published errors per 10,000 prompts by verifier and top-p (Tables 3.3 and 3.16)."""
_PREFIXES = {
    "accuracy": ("backtracking", "accuracy"),
    "as released": ("released", "accuracy"),
    "as released, once per prefix": ("released, once", "accuracy"),
    "same as at Q = 1": ("backtracking", "same_as_at_first_quota"),
    "backtracks": ("nucleus at backtracks", "backtracks"),
    "nucleus at backtracks": ("nucleus at backtracks", "accuracy"),
    "argmax at backtracks": ("greedy at backtracks", "accuracy"),
}
"""Sampler and column of the statistics at error-inducing prefixes, by label."""
_DECODINGS = (stats.ALGORITHM, stats.LOW, "no verifier, top-p 0.9", stats.SAMPLING, "the law itself")
"""Decoding methods in the table of distinct completions."""


def _make_decoding_label(verifier: str, top_p: float) -> str:
    return f"{verifier}, top-p {top_p}" if top_p else "greedy, no verifier"


@result_table(
    "Tables 3.3 and 3.16. Errors on unseen prompts, with all controls (Q = B = 4)",
    f"{_THESIS}, Tables 3.3 and 3.16",
    published={_make_decoding_label(*key): {"errors per 10,000": errors} for key, errors in ERRORS.items()},
    row_heading="verifier",
    note=f"{_SPREAD} Thresholds are 0.5, and 0.1 as the low threshold. Greedy decoding, random and exact verifiers, "
    "and other variants of the redo are controls that are not in the thesis.",
)
def _unseen_table(rows: Rows) -> Cells:
    decodings = rows["unseen"][["verifier", "top_p"]].dropna().drop_duplicates()
    return {
        _make_decoding_label(verifier, top_p): {
            "errors per 10,000": stats.unseen(verifier, top_p, "per_10000"),
            "queries per prompt": stats.unseen(verifier, top_p, "queries"),
        }
        for verifier, top_p in decodings.itertuples(index=False)
    }


@result_table(
    "Remaining errors of the first training",
    f"{_THESIS}, Figure 3.2",
    note="The most probable wrong tokens, p is their probability.",
)
def _examples(rows: Rows) -> DataFrame:
    left = stats.select_remaining_errors(rows).astype({"quota_left": int})
    left = left[left.seed == left.seed.min()].sort_values("token_prob", ascending=False, kind="stable")
    left = left.drop_duplicates(["prefix", "token"]).head(12).drop(columns="seed")
    heads = ["error", "prefix", "token", "p", "most probable", "its p", "remaining quota"]
    return left.set_axis(heads, axis=1).reset_index(drop=True)


_table = partial(ResultTable, note=_SPREAD)

TABLES = (
    _table(
        title="The trained models and their probes",
        source=f"{_THESIS}, 3.2.1.1, 3.2.1.2 and Figure 3.1",
        cells={
            data: {
                "accuracy on closing brackets": stats.learned("closing_accuracy", data),
                "loss (nats per token)": stats.learned("loss", data),
                "entropy of the distribution": stats.learned("entropy", data),
            }
            for data in ("in-distribution", "out-of-distribution")
        }
        | {
            "trainings above 0.999 in distribution": {"share": stats.prepared()},
            "probe, validation": {"accuracy": stats.probe()},
            "probe, standard deviation over splits": {"accuracy": stats.probe("std")},
        }
        | {
            f"{count} clusters of hidden states": {
                "purity": stats.clustered(count),
                "purity with shuffled labels": stats.clustered(count, "shuffled_purity"),
            }
            for count in CLUSTERS
        },
        published={
            "in-distribution": {"accuracy on closing brackets": 1.0},
            "probe, validation": {"accuracy": 0.93},
            "probe, standard deviation over splits": {"accuracy": 0.039},
        },
        note=f"{_SPREAD} The thesis calls 0.039 a standard error, but it can only be a standard deviation. Clusters "
        "are found by k-means without the labels.",
    ),
    _table(
        title="Tables 3.2 and 3.4. Algorithm 1 with the trained verifier at error-inducing prefixes",
        source=f"{_THESIS}, Tables 3.1, 3.2 and 3.4",
        cells={
            f"Q = {quota}, B = {stride}": {
                head: stats.inducing(sampler, column, quota=quota, stride=stride)
                for head, (sampler, column) in _PREFIXES.items()
            }
            for quota, stride in GRID
        }
        | {
            "no verifier, nucleus 0.9": {"accuracy": stats.inducing("nucleus")},
            "no verifier, greedy": {"accuracy": stats.inducing("greedy")},
        },
        published={
            f"Q = {quota}, B = {stride}": dict(zip(("accuracy", *list(_PREFIXES)[-3:]), numbers, strict=True))
            for (quota, stride), numbers in GRID.items()
        }
        | {"no verifier, nucleus 0.9": {"accuracy": NUCLEUS}, "no verifier, greedy": {"accuracy": _GREEDY}},
        note=f"{_SPREAD} As printed, a second backtrack erases all but the first redone token and redoes the others "
        "greedily again. It extends the same greedy path by one token. Same as at Q = 1: share of completions that do "
        "not change with the quota. At backtracks: accuracy of completing the rejected prefixes without a verifier.",
    ),
    _unseen_table,
    _table(
        title="Errors that remain with Algorithm 1 (top-p 0.9)",
        source=f"{_THESIS}, 3.2.1.8",
        cells={
            label: {"share": stats.share_of_remaining(column, value)}
            for label, column, value in (
                ("incorrect closing bracket", "error", "INCORRECT_CLOSING_BRACKET"),
                ("end of sequence too early", "error", "END_INCORRECT"),
                ("quota used up", "quota_left", 0),
                ("wrong token was the most probable one", "most_probable", True),
            )
        },
        published={
            "incorrect closing bracket": {"share": 222 / 225},
            "end of sequence too early": {"share": 3 / 225},
            "quota used up": {"share": 1.0},
        },
    ),
    _examples,
    _table(
        title="Table 3.5. Distinct completions out of ten",
        source=f"{_THESIS}, Table 3.5",
        cells={
            {"the law itself": "exact distribution"}.get(decoding, decoding): {
                "distinct completions": stats.diversity(decoding),
                "standard deviation over prompts": stats.diversity(decoding, "deviation"),
            }
            for decoding in _DECODINGS
        },
        published={
            stats.ALGORITHM: {"distinct completions": 5.52, "standard deviation over prompts": 3.28},
            "no verifier, top-p 0.9": {"distinct completions": 5.47, "standard deviation over prompts": 3.06},
            stats.SAMPLING: {"distinct completions": 5.84, "standard deviation over prompts": 3.29},
        },
        note=f"{_SPREAD} The thesis calls the standard deviations standard errors. Its means do not fit prompts of 25 "
        "to 31 tokens, since the exact distribution has fewer distinct completions.",
    ),
    _table(
        title="Queries and time, by decoding and batch size (top-p 0.9)",
        source="Thesis section 3.4.1",
        cells={
            f"{decoding}, batch size {batch}": {
                "queries per prompt": stats.speed(decoding, batch, "queries"),
                "milliseconds per prompt": stats.speed(decoding, batch, "milliseconds"),
                "microseconds per query": stats.speed(decoding, batch, "microseconds_per_query"),
                "rank correlation": stats.speed(decoding, batch, "rank_correlation"),
            }
            for decoding in ("none", "trained", "trained, as released", "exact", "best of n")
            for batch in BATCHES
        },
        note=f"{_SPREAD} Processor time of one thread. The {CANDIDATES} candidates of best-of-n run together, also "
        "with a batch size of 1. Rank correlation: of queries and wall time over completions.",
    ),
)
