"""Claims, tables and figures of the study `dyck-backtracking`, computed from its rows alone.

Claims and thresholds were fixed before the reported runs; the pilots are runs of the preset `default` on the
training seeds 100 to 104.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame, Series

from trialogue.ledger import Claim, Figure, Pilot, Table

REPLICATIONS = 8
THESIS = "Thesis section 3.2.1"


def _rows(rows: DataFrame, table: str, **values: object) -> DataFrame:
    """The rows of one table whose columns have the given values."""
    chosen = rows[rows.table == table]
    for column, value in values.items():
        chosen = chosen[chosen[column] == value] if column in chosen else chosen.iloc[:0]
    return chosen


def _by_seed(rows: DataFrame, column: str) -> "Series[float]":
    """Mean of a column for each training, which is the unit of replication."""
    return rows.groupby("seed")[column].mean() if column in rows else pd.Series(dtype=float)


def _inducing(rows: DataFrame, walk: str, column: str = "accuracy", **values: object) -> "Series[float]":
    return _by_seed(_rows(rows, "inducing", walk=walk, **values), column)


def _errors(rows: DataFrame, verifier: str, top_p: float) -> "Series[float]":
    return _by_seed(_rows(rows, "unseen", verifier=verifier, top_p=top_p), "errors")


def _closing(rows: DataFrame, data: str) -> "Series[float]":
    return _by_seed(_rows(rows, "training", data=data), "closing_accuracy")


def _log_ratio(first: "Series[float]", second: "Series[float]") -> "Series[float]":
    """Logarithm of a ratio of error counts; half an error is added to each, as counts can be zero."""
    return ((first + 0.5) / (second + 0.5)).map(math.log)


def _reduction(rows: DataFrame, top_p: float) -> "Series[float]":
    return 1 - _errors(rows, "trained", top_p) / _errors(rows, "none", top_p)


def _remaining(rows: DataFrame) -> DataFrame:
    """The errors that Algorithm 1 leaves; there may be none, and then no row that names them."""
    columns = ["seed", "error", "prefix", "token", "token_prob", "best", "best_prob", "quota_left"]
    return _rows(rows, "unseen", kind="remaining error", verifier="trained").reindex(columns=columns)


def _share(rows: DataFrame, condition: Callable[[DataFrame], "Series[bool]"]) -> "Series[float]":
    remaining = _remaining(rows)
    return condition(remaining).astype(float).groupby(remaining.seed).mean()


def _gain_at_backtracks(rows: DataFrame) -> "Series[float]":
    """Accuracy with Algorithm 1 minus that without going back, over the cells where it went back at all."""
    cells = ["seed", "quota", "stride"]
    accuracy = {
        walk: _rows(rows, "inducing", walk=walk).set_index(cells).accuracy
        for walk in ("backtracking", "nucleus at backtracks")
    }
    gain = accuracy["backtracking"] - accuracy["nucleus at backtracks"]
    return gain.groupby("seed").mean()


def _diversity(rows: DataFrame, decoding: str) -> "Series[float]":
    return _by_seed(_rows(rows, "diversity", decoding=decoding), "distinct")


ALGORITHM, LOW = "Q=4, B=4, top-p 1.0", "Q=4, B=4, top-p 1.0, low threshold"
PILOT_SEEDS = (100, 101, 102, 103, 104)
PILOT: dict[str, tuple[float, ...]] = {
    "in-distribution-accuracy": (0.9992, 0.9976, 0.9994, 0.9968, 0.9996),
    "out-of-distribution-gap": (0.0215, 0.0111, 0.009, 0.013, 0.0104),
    "out-of-distribution-completion": (0.9913, 0.9863, 0.9888, 0.9707, 0.9767),
    "probe-accuracy": (0.8478, 0.8711, 0.8678, 0.7989, 0.9311),
    "forced-backtrack": (0.2317, 0.2256, 0.2866, 0.311, 0.3232),
    "longer-forced-backtracks-help": (0.2378, 0.2317, 0.2866, 0.3049, 0.2988),
    "verifier-at-errors": (0.1057, 0.0488, 0.0759, 0.0827, 0.1646),
    "longer-strides-help": (0.1585, 0.2541, 0.1728, 0.1382, 0.1463),
    "more-quota-helps": (0.0, 0.002, -0.002, 0.0061, 0.0061),
    "fewer-errors-nucleus": (0.3077, 0.2073, 0.0448, 0.3011, 0.4571),
    "fewer-errors-full": (0.7424, 0.5732, 0.2, 0.4257, 0.7148),
    "gain-survives-truncation": (0.4347, 0.3659, 0.1552, 0.1246, 0.2577),
    "random-is-as-good": (-0.0548, 0.0441, 0.1015, -0.0244, 0.0625),
    "greedy-is-as-good": (-0.0834, 0.0149, 0.0736, -0.0494, 0.0625),
    "exact-beats-trained": (-0.3472, -0.2556, -0.4807, -0.2757, -0.0395),
    "backtracks-were-necessary": (0.1038, 0.0385, 0.0529, 0.0626, 0.6556),
    "remaining-are-wrong-closers": (1.0, 1.0, 1.0, 0.9919, 0.9342),
    "remaining-have-no-quota": (0.0, 0.2615, 0.0469, 0.1382, 0.1184),
    "diversity-kept": (0.5256, 0.4632, 0.4476, 0.5202, 0.8962),
    "diversity-kept-low-threshold": (0.6758, 0.6687, 0.7778, 0.8162, 0.9717),
    "argmax-redo-matters": (0.392, 0.0864, -0.1303, 0.3879, 0.0625),
    "redo-is-the-whole-gain": (0.0367, -0.1413, -0.175, 0.0332, -0.5395),
}
"""Estimates of every claim from the pilot, one per training of `PILOT_SEEDS`."""


def _claim(
    identity: str,
    statement: str,
    source: str,
    published: str,
    estimate: Callable[[DataFrame], "Series[float]"],
    threshold: float,
    direction: str,
    margin: float = 0.0,
) -> Claim:
    def estimates(rows: DataFrame) -> Sequence[float]:
        return estimate(rows).tolist()

    return Claim(
        id=identity,
        statement=statement,
        source=f"{THESIS}, {source}",
        published=published,
        estimate=estimates,
        threshold=threshold,
        direction=direction,  # type: ignore[arg-type]
        margin=margin,
        unit="training",
        replications=REPLICATIONS,
        pilot=Pilot(seeds=PILOT_SEEDS, estimates=PILOT[identity]) if identity in PILOT else None,
    )


CLAIMS = (
    _claim(
        "in-distribution-accuracy",
        "The trained model closes brackets in-distribution with an accuracy of at least 0.999.",
        "3.2.1.1",
        "100 % in-distribution validation accuracy",
        lambda rows: _closing(rows, "in-distribution"),
        0.999,
        "above",
    ),
    _claim(
        "out-of-distribution-gap",
        "Its accuracy on closing brackets is lower where p = 0.8.",
        "3.2.1.1",
        "not printed",
        lambda rows: _closing(rows, "in-distribution") - _closing(rows, "out-of-distribution"),
        0.0,
        "above",
    ),
    _claim(
        "out-of-distribution-completion",
        "With nucleus sampling at 0.9 it completes 94.23 % (within 2 points) of the out-of-distribution prompts.",
        "Definition 3.2.2",
        "0.9423; Table 3.3 implies 0.976",
        lambda rows: _by_seed(_rows(rows, "unseen", verifier="none", top_p=0.9), "accuracy"),
        0.9423,
        "equal",
        margin=0.02,
    ),
    _claim(
        "probe-accuracy",
        "A linear probe tells erroneous from correct prefixes with a validation accuracy above 0.85.",
        "3.2.1.2",
        "0.93 ± 0.039",
        lambda rows: _by_seed(_rows(rows, "probe"), "validation_accuracy"),
        0.85,
        "above",
    ),
    _claim(
        "forced-backtrack",
        "At error-inducing prefixes one forced backtrack of 8 tokens gains more than 10 points of accuracy.",
        "Table 3.1",
        "0.331 to 0.790",
        lambda rows: _inducing(rows, "forced", stride=8) - _inducing(rows, "nucleus"),
        0.1,
        "above",
    ),
    _claim(
        "longer-forced-backtracks-help",
        "A forced backtrack of 8 tokens gains more than one of 1 token.",
        "Table 3.1",
        "0.366 to 0.790",
        lambda rows: _inducing(rows, "forced", stride=8) - _inducing(rows, "forced", stride=1),
        0.0,
        "above",
    ),
    _claim(
        "verifier-at-errors",
        "At error-inducing prefixes the trained verifier raises the accuracy, mean over Q and B.",
        "Table 3.2",
        "0.331 to 0.620 (mean of nine cells)",
        lambda rows: _inducing(rows, "backtracking") - _inducing(rows, "nucleus"),
        0.0,
        "above",
    ),
    _claim(
        "longer-strides-help",
        "With the trained verifier a stride of 6 is more accurate than one of 2, mean over quotas.",
        "Table 3.2",
        "0.465 to 0.762",
        lambda rows: _inducing(rows, "backtracking", stride=6) - _inducing(rows, "backtracking", stride=2),
        0.0,
        "above",
    ),
    _claim(
        "more-quota-helps",
        "With the trained verifier a quota of 4 gains more than 5 points over one of 1, mean over strides.",
        "Table 3.2",
        "0.508 to 0.734",
        lambda rows: _inducing(rows, "backtracking", quota=4) - _inducing(rows, "backtracking", quota=1),
        0.05,
        "above",
    ),
    _claim(
        "fewer-errors-nucleus",
        "On unseen prompts Algorithm 1 (Q = B = 4) makes fewer errors at top-p 0.9 (share removed).",
        "Table 3.3",
        "25.3 % (240.0 to 179.4 of 10,000)",
        lambda rows: _reduction(rows, 0.9),
        0.0,
        "above",
    ),
    _claim(
        "fewer-errors-full",
        "On unseen prompts Algorithm 1 (Q = B = 4) makes fewer errors at top-p 1 (share removed).",
        "Table 3.3",
        "56.7 % (461.8 to 200.0 of 10,000)",
        lambda rows: _reduction(rows, 1.0),
        0.0,
        "above",
    ),
    _claim(
        "gain-survives-truncation",
        "It removes a larger share of the errors at top-p 1 than at top-p 0.9.",
        "Table 3.3",
        "56.7 % against 25.3 %",
        lambda rows: _reduction(rows, 1.0) - _reduction(rows, 0.9),
        0.0,
        "above",
    ),
    _claim(
        "random-is-as-good",
        "A random verifier leaves as many errors as the trained one at top-p 0.9 (log ratio within 0.25).",
        "Table 3.3 (control not in the thesis)",
        "not printed",
        lambda rows: _log_ratio(_errors(rows, "random", 0.9), _errors(rows, "trained", 0.9)),
        0.0,
        "equal",
        margin=0.25,
    ),
    _claim(
        "greedy-is-as-good",
        "Greedy decoding without a verifier leaves as many errors as Algorithm 1 at top-p 0.9 (log ratio within 0.25).",
        "Table 3.3 (control not in the thesis)",
        "not printed",
        lambda rows: _log_ratio(
            _by_seed(_rows(rows, "unseen", verifier="greedy"), "errors"), _errors(rows, "trained", 0.9)
        ),
        0.0,
        "equal",
        margin=0.25,
    ),
    _claim(
        "exact-beats-trained",
        "The exact process verifier leaves fewer errors than the trained one at top-p 0.9 (log ratio).",
        "Table 3.3 (control not in the thesis)",
        "not printed",
        lambda rows: _log_ratio(_errors(rows, "exact", 0.9), _errors(rows, "trained", 0.9)),
        0.0,
        "below",
    ),
    _claim(
        "backtracks-were-necessary",
        "Where the verifier went back, completing without it is less accurate than with it, mean over Q and B.",
        "Table 3.4",
        "0.373 against 0.620 (means of nine cells)",
        _gain_at_backtracks,
        0.0,
        "above",
    ),
    _claim(
        "remaining-are-wrong-closers",
        "More than 90 % of the remaining errors are incorrect closing brackets.",
        "3.2.1.8",
        "222 of 225",
        lambda rows: _share(rows, lambda left: left.error == "INCORRECT_CLOSING_BRACKET"),
        0.9,
        "above",
    ),
    _claim(
        "remaining-have-no-quota",
        "In more than 90 % of the remaining errors the quota was used up.",
        "3.2.1.8",
        "225 of 225",
        lambda rows: _share(rows, lambda left: left.quota_left == 0),
        0.9,
        "above",
    ),
    _claim(
        "diversity-kept",
        "Algorithm 1 keeps the number of distinct completions within 10 % of sampling at top-p 1.",
        "Table 3.5",
        "5.52 against 5.84",
        lambda rows: _diversity(rows, ALGORITHM) / _diversity(rows, "no verifier, top-p 1.0"),
        1.0,
        "equal",
        margin=0.1,
    ),
    _claim(
        "diversity-kept-low-threshold",
        "With the low threshold it keeps the number within 10 %.",
        "Table 3.5 (threshold 0.1, not in the thesis)",
        "not printed",
        lambda rows: _diversity(rows, LOW) / _diversity(rows, "no verifier, top-p 1.0"),
        1.0,
        "equal",
        margin=0.1,
    ),
    _claim(
        "argmax-redo-matters",
        "Without the greedy redo more errors are left at top-p 0.9 (log ratio).",
        "Table 3.16",
        "179.4 against 245.8",
        lambda rows: _log_ratio(_errors(rows, "trained, no argmax", 0.9), _errors(rows, "trained", 0.9)),
        0.0,
        "above",
    ),
    _claim(
        "redo-is-the-whole-gain",
        "Without the greedy redo Algorithm 1 leaves at least as many errors as no verifier at top-p 0.9 (log ratio).",
        "Tables 3.16 and 3.3",
        "245.8 against 240.0",
        lambda rows: _log_ratio(_errors(rows, "trained, no argmax", 0.9), _errors(rows, "none", 0.9)),
        0.0,
        "above",
    ),
)


def _wide(values: dict[str, dict[str, "Series[float]"]], how: str) -> DataFrame:
    """Mean or standard deviation over trainings of each cell's series."""
    cells = {
        label: {
            head: float(series.mean() if how == "mean" else series.std()) for head, series in line.items()
        }
        for label, line in values.items()
    }
    return DataFrame.from_dict(cells, orient="index")


def _table(
    title: str,
    source: str,
    cells: Callable[[DataFrame], dict[str, dict[str, "Series[float]"]]],
    published: Mapping[str, Mapping[str, float]],
    note: str = "± one standard deviation over trainings",
) -> Table:
    return Table(
        title=title,
        source=f"{THESIS}, {source}",
        ours=lambda rows: _wide(cells(rows), "mean"),
        deviation=lambda rows: _wide(cells(rows), "std"),
        published=published,
        note=note,
    )


def _cells_training(rows: DataFrame) -> dict[str, dict[str, "Series[float]"]]:
    cells: dict[str, dict[str, Series[float]]] = {}
    for data in ("in-distribution", "out-of-distribution"):
        chosen = _rows(rows, "training", data=data)
        cells[data] = {
            "accuracy on closing brackets": _by_seed(chosen, "closing_accuracy"),
            "loss (nats a token)": _by_seed(chosen, "loss"),
            "entropy of the law": _by_seed(chosen, "entropy"),
        }
    probe = _rows(rows, "probe")
    probe = probe[probe.validation_accuracy.notna()]
    cells["probe, validation"] = {"accuracy": _by_seed(probe, "validation_accuracy")}
    cells["probe, spread over splits"] = {"accuracy": probe.groupby("seed").validation_accuracy.std()}
    return cells


def _cells_forced(rows: DataFrame) -> dict[str, dict[str, "Series[float]"]]:
    cells = {
        "nucleus 0.9": {"accuracy": _inducing(rows, "nucleus")},
        "greedy": {"accuracy": _inducing(rows, "greedy")},
    }
    return cells | {
        f"B = {stride}": {"accuracy": _inducing(rows, "forced", stride=stride)} for stride in (1, 2, 4, 8)
    }


PUBLISHED_GRID = {
    (1, 2): 0.421,
    (1, 4): 0.500,
    (1, 6): 0.604,
    (2, 2): 0.457,
    (2, 4): 0.634,
    (2, 6): 0.762,
    (4, 2): 0.518,
    (4, 4): 0.762,
    (4, 6): 0.921,
}
_GRID = tuple(PUBLISHED_GRID)


def _cells_verifier(rows: DataFrame) -> dict[str, dict[str, "Series[float]"]]:
    cells = {
        f"Q = {quota}, B = {stride}": {
            "accuracy": _inducing(rows, "backtracking", quota=quota, stride=stride)
        }
        for quota, stride in _GRID
    }
    cells["nucleus 0.9"] = {"accuracy": _inducing(rows, "nucleus")}
    return cells | {"greedy": {"accuracy": _inducing(rows, "greedy")}}


def _cells_backtracks(rows: DataFrame) -> dict[str, dict[str, "Series[float]"]]:
    return {
        f"Q = {quota}, B = {stride}": {
            "backtracks": _inducing(rows, "nucleus at backtracks", "backtracks", quota=quota, stride=stride),
            "nucleus 0.9": _inducing(rows, "nucleus at backtracks", quota=quota, stride=stride),
            "argmax": _inducing(rows, "greedy at backtracks", quota=quota, stride=stride),
            "with Algorithm 1": _inducing(rows, "backtracking", quota=quota, stride=stride),
        }
        for quota, stride in _GRID
    }


VERIFIERS = {
    "none": "no verifier",
    "trained": "trained",
    "trained, low threshold": "trained, low threshold",
    "random": "random",
    "random, low threshold": "random, low threshold",
    "exact": "exact",
    "trained, no argmax": "trained, no argmax redo",
    "trained, redo what was erased": "trained, redoing only what was erased",
}


PUBLISHED_ERRORS = {
    "top-p 0.9, no verifier": 240.0,
    "top-p 0.9, trained": 179.4,
    "top-p 0.9, trained, no argmax redo": 245.8,
    "top-p 1.0, no verifier": 461.8,
    "top-p 1.0, trained": 200.0,
}
PUBLISHED_FORCED = {1: 0.366, 2: 0.438, 4: 0.591, 8: 0.790}
PUBLISHED_NUCLEUS, PUBLISHED_GREEDY = 0.331, 0.334


def _cells_unseen(rows: DataFrame) -> dict[str, dict[str, "Series[float]"]]:
    cells: dict[str, dict[str, Series[float]]] = {}
    unseen = _rows(rows, "unseen")
    unseen = unseen[unseen.errors.notna()]
    unseen = unseen.assign(per_10000=1e4 * unseen.errors / unseen.n)
    for top_p in (0.9, 1.0):
        for verifier, label in VERIFIERS.items():
            chosen = unseen[(unseen.verifier == verifier) & (unseen.top_p == top_p)]
            cells[f"top-p {top_p}, {label}"] = {
                "errors in 10,000": _by_seed(chosen, "per_10000"),
                "queries a prompt": _by_seed(chosen, "queries"),
            }
    greedy = unseen[unseen.verifier == "greedy"]
    cells["greedy, no verifier"] = {
        "errors in 10,000": _by_seed(greedy, "per_10000"),
        "queries a prompt": _by_seed(greedy, "queries"),
    }
    return cells


def _cells_remaining(rows: DataFrame) -> dict[str, dict[str, "Series[float]"]]:
    left = _remaining(rows)

    def share(condition: "Series[bool]") -> dict[str, Series]:
        return {"share": condition.astype(float).groupby(left.seed).mean()}

    return {
        "incorrect closing bracket": share(left.error == "INCORRECT_CLOSING_BRACKET"),
        "end of sequence too early": share(left.error == "END_INCORRECT"),
        "quota used up": share(left.quota_left == 0),
        "the token was the most probable one": share(left.token == left.best),
    }


def _cells_diversity(rows: DataFrame) -> dict[str, dict[str, "Series[float]"]]:
    chosen = _rows(rows, "diversity")
    return {
        str(name): {
            "distinct completions": _by_seed(group, "distinct"),
            "deviation over prompts": _by_seed(group, "deviation"),
        }
        for name, group in chosen.groupby("decoding", sort=False)
    }


def _examples(rows: DataFrame) -> DataFrame:
    """The remaining errors with the largest probability, of the first training."""
    left = _remaining(rows).astype({"quota_left": int})
    left = left[left.seed == left.seed.min()].sort_values("token_prob", ascending=False, kind="stable")
    left = left.drop_duplicates(["prefix", "token"]).head(12)
    shown = left[["error", "prefix", "token", "token_prob", "best", "best_prob", "quota_left"]]
    shown.columns = pd.Index(["error", "prefix", "token", "p", "most probable", "its p", "quota left"])
    return shown.reset_index(drop=True)


TABLES = (
    _table(
        "The trained models and their probes",
        "3.2.1.1 and 3.2.1.2",
        _cells_training,
        {"in-distribution": {"accuracy on closing brackets": 1.0}, "probe, validation": {"accuracy": 0.93}}
        | {"probe, spread over splits": {"accuracy": 0.039}},
        note="± one standard deviation over trainings; the thesis calls 0.039 a standard error, it can only be ",
    ),
    _table(
        "Table 3.1. One forced backtrack at error-inducing prefixes",
        "Table 3.1",
        _cells_forced,
        {
            "nucleus 0.9": {"accuracy": PUBLISHED_NUCLEUS},
            "greedy": {"accuracy": PUBLISHED_GREEDY},
        }
        | {f"B = {stride}": {"accuracy": value} for stride, value in PUBLISHED_FORCED.items()},
    ),
    _table(
        "Table 3.2. Algorithm 1 with the trained verifier at error-inducing prefixes",
        "Table 3.2",
        _cells_verifier,
        {
            f"Q = {quota}, B = {stride}": {"accuracy": value}
            for (quota, stride), value in PUBLISHED_GRID.items()
        }
        | {"nucleus 0.9": {"accuracy": PUBLISHED_NUCLEUS}, "greedy": {"accuracy": PUBLISHED_GREEDY}},
    ),
    _table(
        "Tables 3.3 and 3.16. Errors on unseen prompts, with all controls (Q = B = 4)",
        "Tables 3.3 and 3.16",
        _cells_unseen,
        {label: {"errors in 10,000": errors} for label, errors in PUBLISHED_ERRORS.items()},
        note="± one standard deviation over trainings; thresholds 0.5 and 0.1; greedy decoding, random and exact "
        "verifiers, and the other reading of the redo are controls that the thesis does not have",
    ),
    _table(
        "Table 3.4. Completing without backtracking where the verifier went back",
        "Table 3.4",
        _cells_backtracks,
        {
            f"Q = {quota}, B = {stride}": {"backtracks": count, "nucleus 0.9": nucleus, "argmax": argmax}
            for (quota, stride), (count, nucleus, argmax) in zip(
                _GRID,
                (
                    (163, 0.313, 0.344),
                    (163, 0.337, 0.319),
                    (163, 0.331, 0.288),
                    (311, 0.347, 0.328),
                    (297, 0.357, 0.349),
                    (286, 0.374, 0.373),
                    (600, 0.371, 0.353),
                    (532, 0.419, 0.404),
                    (489, 0.509, 0.523),
                ),
                strict=True,
            )
        },
    ),
    _table(
        "The errors that Algorithm 1 leaves (top-p 0.9)",
        "3.2.1.8",
        _cells_remaining,
        {
            "incorrect closing bracket": {"share": 222 / 225},
            "end of sequence too early": {"share": 3 / 225},
            "quota used up": {"share": 1.0},
        },
    ),
    Table(
        title="Remaining errors of the first training",
        source=f"{THESIS}, Figure 3.2",
        ours=_examples,
        note="the most probable wrong tokens",
    ),
    _table(
        "Table 3.5. Distinct completions among ten",
        "Table 3.5",
        _cells_diversity,
        {
            ALGORITHM: {"distinct completions": 5.52, "deviation over prompts": 3.28},
            "no verifier, top-p 0.9": {"distinct completions": 5.47, "deviation over prompts": 3.06},
            "no verifier, top-p 1.0": {"distinct completions": 5.84, "deviation over prompts": 3.29},
        },
        note="the thesis prints standard deviations as standard errors, and its means do not fit prompts of 25 to "
        "31 tokens: the law itself gives fewer distinct completions",
    ),
)

_OURS, _THEIRS, _BAD = "#1f6feb", "#9a6700", "#cf222e"


def _draw_strides(rows: DataFrame) -> Drawing:
    drawing = Drawing(figsize=(8, 3.4), layout="constrained")
    left, right = drawing.subplots(1, 2, sharey=True)
    strides = list(PUBLISHED_FORCED)
    series = [_inducing(rows, "forced", stride=stride) for stride in strides]
    left.errorbar(
        strides, [s.mean() for s in series], [s.std() for s in series], fmt="o-", color=_OURS, label="ours"
    )
    left.plot(strides, list(PUBLISHED_FORCED.values()), "s--", color=_THEIRS, label="thesis")
    left.axhline(_inducing(rows, "nucleus").mean(), color=_OURS, lw=1, ls=":", label="ours, no backtrack")
    left.axhline(PUBLISHED_NUCLEUS, color=_THEIRS, lw=1, ls=":", label="thesis, no backtrack")
    left.set(xlabel="stride B of one forced backtrack", ylabel="accuracy", xticks=strides, title="Table 3.1")
    left.legend(fontsize=8)
    for shade, quota in ((0.35, 1), (0.65, 2), (1.0, 4)):
        values = [PUBLISHED_GRID[quota, stride] for stride in (2, 4, 6)]
        cells = [_inducing(rows, "backtracking", quota=quota, stride=stride) for stride in (2, 4, 6)]
        right.errorbar(
            [2, 4, 6],
            [s.mean() for s in cells],
            [s.std() for s in cells],
            fmt="o-",
            color=_OURS,
            alpha=shade,
            label=f"ours, Q = {quota}",
        )
        right.plot([2, 4, 6], values, "s--", color=_THEIRS, alpha=shade, label=f"thesis, Q = {quota}")
    right.set(xlabel="stride B, trained verifier", xticks=[2, 4, 6], title="Table 3.2")
    right.legend(fontsize=8, ncols=2)
    return drawing


def _draw_cost(rows: DataFrame) -> Drawing:
    """One line per decoding: errors on the left, queries on the right, one mark per top-p."""
    cells = {
        label: {head: s.mean() for head, s in line.items()} for label, line in _cells_unseen(rows).items()
    }
    labels = ["no verifier", "greedy", *(label for label in VERIFIERS.values() if label != "no verifier")]
    drawing = Drawing(figsize=(8, 3.8), layout="constrained")
    errors, queries = drawing.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    for top_p, color in (("0.9", _OURS), ("1.0", _BAD)):
        for place, label in enumerate(labels):
            ours = cells["greedy, no verifier" if label == "greedy" else f"top-p {top_p}, {label}"]
            shown = "#1a7f37" if label == "greedy" else color
            errors.plot(ours["errors in 10,000"], place, "o", color=shown)
            queries.plot(ours["queries a prompt"], place, "o", color=shown)
            published = PUBLISHED_ERRORS.get(f"top-p {top_p}, {label}")
            if published is not None:
                errors.plot(published, place, "x", color=color, ms=8)
    for color, marker, label in (
        (_OURS, "o", "top-p 0.9"),
        (_BAD, "o", "top-p 1.0"),
        ("#1a7f37", "o", "greedy"),
        ("#444444", "x", "thesis"),
    ):
        errors.plot([], [], marker, color=color, label=label)
    errors.set(
        xlabel="errors in 10,000 prompts", xlim=(0, None), yticks=range(len(labels)), yticklabels=labels
    )
    errors.invert_yaxis()
    errors.legend(fontsize=8, loc="lower left")
    queries.set(xlabel="queries a prompt", xlim=(0, None))
    for axes in (errors, queries):
        axes.grid(axis="y", color="#dddddd", lw=0.8)
    return drawing


def _draw_plane(rows: DataFrame) -> Drawing:
    drawing = Drawing(figsize=(4.6, 4.2), layout="constrained")
    axes = drawing.add_subplot()
    points = _rows(rows, "probe")
    points = points[points.x.notna()]
    for correct, color, label in ((True, "#8c959f", "correct"), (False, _BAD, "erroneous")):
        chosen = points[points.correct.astype(bool) == correct]
        axes.plot(chosen.x, chosen.y, ".", ms=4, color=color, label=label)
    axes.set(xticks=[], yticks=[], xlabel="t-SNE of the last hidden state")
    axes.legend(fontsize=8)
    return drawing


FIGURES = (
    Figure(
        name="strides",
        caption="Accuracy at error-inducing prefixes against the stride, beside the published numbers. Bars: one "
        "standard deviation over trainings.",
        draw=_draw_strides,
    ),
    Figure(
        name="errors-and-queries",
        caption="What each decoding of unseen prompts gets wrong, and what it asks for: means over trainings, crosses "
        "where the thesis prints a number. Greedy decoding needs no verifier at all.",
        draw=_draw_cost,
    ),
    Figure(
        name="hidden-states",
        caption="Figure 3.1: last hidden states of erroneous and correct prefixes, first training.",
        draw=_draw_plane,
    ),
)
