"""Tables of the study: its quantities beside the numbers of the thesis."""

from collections.abc import Callable, Mapping
from functools import partial

from pandas import DataFrame

from trialogue_lab.ledger import Cells, ResultTable, Rows, Statistic, result_table
from trialogue_lab.studies.dyck_backtracking import statistics as stats
from trialogue_lab.studies.dyck_backtracking.config import (
    BATCHES,
    CANDIDATES,
    CLUSTERS,
    STRIDES_FORCED,
    TOP_PS,
)

_SPREAD = "± one standard deviation over trainings"
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
"""By quota and stride: accuracy (Table 3.2), backtracks, and accuracy of nucleus and greedy decoding (Table 3.4)."""
_LEARNED = {
    "accuracy on closing brackets": "closing_accuracy",
    "loss (nats a token)": "loss",
    "entropy of the law": "entropy",
}
FORCED = {1: 0.366, 2: 0.438, 4: 0.591, 8: 0.790}
NUCLEUS, _GREEDY = 0.331, 0.334
_CELLS_WITHOUT = {
    "nucleus 0.9": {"accuracy": stats.inducing("nucleus")},
    "greedy": {"accuracy": stats.inducing("greedy")},
}
_WITHOUT = {"nucleus 0.9": {"accuracy": NUCLEUS}, "greedy": {"accuracy": _GREEDY}}
VERIFIERS = {
    "none": "no verifier",
    "trained": "trained",
    "trained, low threshold": "trained, low threshold",
    "random": "random",
    "random, low threshold": "random, low threshold",
    "exact": "exact",
    "trained, no argmax": "trained, no argmax redo",
    "trained, redo what was erased": "trained, redoing only what was erased",
    "trained, as released": "trained, as released",
    "trained, as released, once": "trained, as released, once per prefix",
}
DECODINGS = {
    f"top-p {top_p}, {label}": (verifier, top_p) for top_p in TOP_PS for verifier, label in VERIFIERS.items()
} | {"greedy, no verifier": ("greedy", 0.0)}
"""Verifier and top-p by label."""
ERRORS = {
    "top-p 0.9, no verifier": 240.0,
    "top-p 0.9, trained": 179.4,
    "top-p 0.9, trained, no argmax redo": 245.8,
    "top-p 1.0, no verifier": 461.8,
    "top-p 1.0, trained": 200.0,
}
"""Tables 3.3 and 3.16: errors in 10,000 prompts."""
_TIMED = ("none", "trained", "trained, as released", "exact", "best of n")


def _sentence(words: str, quantity: Callable[[float], Statistic], read_as: str, claims: str) -> Cells:
    """Return the lines of a sentence of the summaries: a quantity by top-p, and the claims about it."""
    return {
        f"{words}, top-p {top_p}": {"measured": quantity(top_p), "read as": read_as, "claims": claims}
        for top_p in TOP_PS
    }


def _at_inducing(columns: Mapping[str, tuple[str, str]]) -> dict[str, dict[str, Statistic]]:
    """Return a column of the tables on error-inducing prefixes by head, for every quota and stride."""
    return {
        _cell(quota, stride): {
            head: stats.inducing(walk, column, quota=quota, stride=stride)
            for head, (walk, column) in columns.items()
        }
        for quota, stride in GRID
    }


def _cell(quota: int, stride: int) -> str:
    return f"Q = {quota}, B = {stride}"


@result_table(
    "Remaining errors of the first training",
    f"{stats.THESIS}, Figure 3.2",
    note="the most probable wrong tokens",
)
def _examples(rows: Rows) -> DataFrame:
    """The remaining errors with the largest probability, of the first training."""
    left = stats.remaining(rows).astype({"quota_left": int})
    left = left[left.seed == left.seed.min()].sort_values("token_prob", ascending=False, kind="stable")
    left = left.drop_duplicates(["prefix", "token"]).head(12).drop(columns="seed")
    heads = ["error", "prefix", "token", "p", "most probable", "its p", "quota left"]
    return left.set_axis(heads, axis=1).reset_index(drop=True)


_table = partial(ResultTable, note=_SPREAD)

TABLES = (
    _table(
        title="The trained models and their probes",
        source=f"{stats.THESIS}, 3.2.1.1 and 3.2.1.2",
        cells={
            **{
                data: {head: stats.learned(column, data) for head, column in _LEARNED.items()}
                for data in ("in-distribution", "out-of-distribution")
            },
            "trainings above 0.999 in distribution": {"share": stats.prepared()},
            "probe, validation": {"accuracy": stats.probe()},
            "probe, spread over splits": {"accuracy": stats.probe("std")},
        },
        published={
            "in-distribution": {"accuracy on closing brackets": 1.0},
            "probe, validation": {"accuracy": 0.93},
            "probe, spread over splits": {"accuracy": 0.039},
        },
        note=f"{_SPREAD}; what the thesis calls a standard error of 0.039 can only be a standard deviation",
    ),
    _table(
        title="Clusters of the hidden states of erroneous and correct prefixes",
        source=f"{stats.THESIS}, Figure 3.1",
        cells={
            f"{count} clusters": {
                "purity": stats.clustered(count),
                "purity with shuffled labels": stats.clustered(count, "shuffled_purity"),
            }
            for count in CLUSTERS
        },
        note=f"k-means without the labels; {_SPREAD}",
    ),
    _table(
        title="Table 3.1. One forced backtrack at error-inducing prefixes",
        source=f"{stats.THESIS}, Table 3.1",
        cells=_CELLS_WITHOUT
        | {
            f"B = {stride}": {"accuracy": stats.inducing("forced", stride=stride)}
            for stride in STRIDES_FORCED
        },
        published=_WITHOUT | {f"B = {stride}": {"accuracy": value} for stride, value in FORCED.items()},
    ),
    _table(
        title="Table 3.2. Algorithm 1 with the trained verifier at error-inducing prefixes",
        source=f"{stats.THESIS}, Table 3.2",
        cells=_at_inducing(
            {
                "accuracy": ("backtracking", "accuracy"),
                "as released": ("released", "accuracy"),
                "as released, once per prefix": ("released, once", "accuracy"),
                "same as at Q = 1": ("backtracking", "same_as_at_first_quota"),
            }
        )
        | _CELLS_WITHOUT,
        published={_cell(*place): {"accuracy": value} for place, (value, *_) in GRID.items()} | _WITHOUT,
        note=f"{_SPREAD}; as printed, a further backtrack erases what was redone but for its first token and redoes it "
        "greedily again: it extends the same greedy path by one token; the last column is the share of completions "
        "that are those at Q = 1",
    ),
    _table(
        title="Tables 3.3 and 3.16. Errors on unseen prompts, with all controls (Q = B = 4)",
        source=f"{stats.THESIS}, Tables 3.3 and 3.16",
        cells={
            label: {
                "errors in 10,000": stats.unseen(*decoding, "per_10000"),
                "queries a prompt": stats.unseen(*decoding, "queries"),
            }
            for label, decoding in DECODINGS.items()
        },
        published={label: {"errors in 10,000": errors} for label, errors in ERRORS.items()},
        note=f"{_SPREAD}; thresholds 0.5 and 0.1; greedy decoding, random and exact verifiers, and the other reading "
        "of the redo are controls that the thesis does not have",
    ),
    _table(
        title="Table 3.4. Completing without backtracking where the verifier went back",
        source=f"{stats.THESIS}, Table 3.4",
        cells=_at_inducing(
            {
                "backtracks": ("nucleus at backtracks", "backtracks"),
                "nucleus 0.9": ("nucleus at backtracks", "accuracy"),
                "argmax": ("greedy at backtracks", "accuracy"),
                "with Algorithm 1": ("backtracking", "accuracy"),
            }
        ),
        published={
            _cell(*place): {"backtracks": count, "nucleus 0.9": nucleus, "argmax": argmax}
            for place, (_, count, nucleus, argmax) in GRID.items()
        },
    ),
    _table(
        title="The errors that Algorithm 1 leaves (top-p 0.9)",
        source=f"{stats.THESIS}, 3.2.1.8",
        cells={
            label: {"share": stats.share_of_remaining(column, value)}
            for label, column, value in (
                ("incorrect closing bracket", "error", "INCORRECT_CLOSING_BRACKET"),
                ("end of sequence too early", "error", "END_INCORRECT"),
                ("quota used up", "quota_left", 0),
                ("the token was the most probable one", "most_probable", True),
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
        title="Table 3.5. Distinct completions among ten",
        source=f"{stats.THESIS}, Table 3.5",
        cells={
            decoding: {
                "distinct completions": stats.diversity(decoding),
                "deviation over prompts": stats.diversity(decoding, "deviation"),
            }
            for decoding in (
                stats.ALGORITHM,
                stats.LOW,
                "no verifier, top-p 0.9",
                stats.SAMPLING,
                "the law itself",
            )
        },
        published={
            stats.ALGORITHM: {"distinct completions": 5.52, "deviation over prompts": 3.28},
            "no verifier, top-p 0.9": {"distinct completions": 5.47, "deviation over prompts": 3.06},
            stats.SAMPLING: {"distinct completions": 5.84, "deviation over prompts": 3.29},
        },
        note="the thesis prints standard deviations as standard errors, and its means do not fit prompts of 25 to "
        "31 tokens: the law itself gives fewer distinct completions",
    ),
    _table(
        title="Queries and seconds, by decoding and rows at once (top-p 0.9)",
        source="Thesis section 3.4.1",
        cells={
            f"{decoding}, {batch} at once": {
                "queries a prompt": stats.speed(decoding, batch, "queries"),
                "milliseconds a prompt": stats.speed(decoding, batch, "milliseconds"),
                "microseconds a query": stats.speed(decoding, batch, "microseconds_per_query"),
                "rank correlation": stats.speed(decoding, batch, "rank_correlation"),
            }
            for decoding in _TIMED
            for batch in BATCHES
        },
        note=f"processor time of one thread; {CANDIDATES} candidates of best of n move together, so that 1 at once is "
        f"one prompt at a time; rank correlation of a completion's queries with its wall time; {_SPREAD}",
    ),
    _table(
        title="The sentences of the summaries",
        source="Thesis sections 3.2 and 3.7",
        cells={
            **_sentence(
                "reduces query complexity",
                stats.queries_ratio,
                "queries, over those without a verifier",
                "summary-queries",
            ),
            **_sentence(
                "reduces query complexity, to a correct completion",
                stats.queries_ratio_until_correct,
                "queries over accuracy, over the same without a verifier",
                "summary-queries-until-correct",
            ),
            **_sentence(
                "improves accuracy", stats.gain, "accuracy, less that without a verifier", "summary-accuracy"
            ),
            "does not hurt diversity, top-p 1.0": {
                "measured": stats.diversity(stats.ALGORITHM) / stats.diversity(stats.SAMPLING),
                "read as": "distinct completions, over those of sampling",
                "claims": "diversity-kept",
            },
        },
    ),
)
