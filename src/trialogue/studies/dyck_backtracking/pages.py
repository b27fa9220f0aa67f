"""Tables and figures of the study: its quantities beside the numbers of the thesis."""

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.ledger import Figure, ResultTable, Rows
from trialogue.ledger.pages.figures import BAD, GOOD, OURS, PUBLISHED, QUIET, panels, spread
from trialogue.studies.dyck_backtracking.config import STRIDES, STRIDES_FORCED, TOP_PS
from trialogue.studies.dyck_backtracking.quantities import (
    ALGORITHM,
    LOW,
    SAMPLING,
    THESIS,
    diversity,
    inducing,
    learned,
    probe,
    remaining,
    share_of_remaining,
    unseen,
)

_SPREAD = "± one standard deviation over trainings"
_GRID = {
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
_FORCED = {1: 0.366, 2: 0.438, 4: 0.591, 8: 0.790}
_NUCLEUS, _GREEDY = 0.331, 0.334
_CELLS_WITHOUT = {
    "nucleus 0.9": {"accuracy": inducing("nucleus")},
    "greedy": {"accuracy": inducing("greedy")},
}
_WITHOUT = {"nucleus 0.9": {"accuracy": _NUCLEUS}, "greedy": {"accuracy": _GREEDY}}
_VERIFIERS = {
    "none": "no verifier",
    "trained": "trained",
    "trained, low threshold": "trained, low threshold",
    "random": "random",
    "random, low threshold": "random, low threshold",
    "exact": "exact",
    "trained, no argmax": "trained, no argmax redo",
    "trained, redo what was erased": "trained, redoing only what was erased",
}
_DECODINGS = {
    f"top-p {top_p}, {label}": (verifier, top_p) for top_p in TOP_PS for verifier, label in _VERIFIERS.items()
} | {"greedy, no verifier": ("greedy", 0.0)}
"""Verifier and top-p by label."""
_ERRORS = {
    "top-p 0.9, no verifier": 240.0,
    "top-p 0.9, trained": 179.4,
    "top-p 0.9, trained, no argmax redo": 245.8,
    "top-p 1.0, no verifier": 461.8,
    "top-p 1.0, trained": 200.0,
}
"""Tables 3.3 and 3.16: errors in 10,000 prompts."""


def _cell(quota: int, stride: int) -> str:
    return f"Q = {quota}, B = {stride}"


def _examples(rows: Rows) -> DataFrame:
    """The remaining errors with the largest probability, of the first training."""
    left = remaining(rows).astype({"quota_left": int})
    left = left[left.seed == left.seed.min()].sort_values("token_prob", ascending=False, kind="stable")
    left = left.drop_duplicates(["prefix", "token"]).head(12).drop(columns="seed")
    heads = ["error", "prefix", "token", "p", "most probable", "its p", "quota left"]
    return left.set_axis(heads, axis=1).reset_index(drop=True)


TABLES = (
    ResultTable(
        title="The trained models and their probes",
        source=f"{THESIS}, 3.2.1.1 and 3.2.1.2",
        cells={
            **{
                data: {head: learned(column, data) for head, column in _LEARNED.items()}
                for data in ("in-distribution", "out-of-distribution")
            },
            "probe, validation": {"accuracy": probe()},
            "probe, spread over splits": {"accuracy": probe("std")},
        },
        published={
            "in-distribution": {"accuracy on closing brackets": 1.0},
            "probe, validation": {"accuracy": 0.93},
            "probe, spread over splits": {"accuracy": 0.039},
        },
        note=f"{_SPREAD}; what the thesis calls a standard error of 0.039 can only be a standard deviation",
    ),
    ResultTable(
        title="Table 3.1. One forced backtrack at error-inducing prefixes",
        source=f"{THESIS}, Table 3.1",
        cells=_CELLS_WITHOUT
        | {f"B = {stride}": {"accuracy": inducing("forced", stride=stride)} for stride in STRIDES_FORCED},
        published=_WITHOUT | {f"B = {stride}": {"accuracy": value} for stride, value in _FORCED.items()},
        note=_SPREAD,
    ),
    ResultTable(
        title="Table 3.2. Algorithm 1 with the trained verifier at error-inducing prefixes",
        source=f"{THESIS}, Table 3.2",
        cells={
            _cell(quota, stride): {"accuracy": inducing("backtracking", quota=quota, stride=stride)}
            for quota, stride in _GRID
        }
        | _CELLS_WITHOUT,
        published={_cell(*place): {"accuracy": value} for place, (value, *_) in _GRID.items()} | _WITHOUT,
        note=_SPREAD,
    ),
    ResultTable(
        title="Tables 3.3 and 3.16. Errors on unseen prompts, with all controls (Q = B = 4)",
        source=f"{THESIS}, Tables 3.3 and 3.16",
        cells={
            label: {
                "errors in 10,000": unseen(*decoding, "per_10000"),
                "queries a prompt": unseen(*decoding, "queries"),
            }
            for label, decoding in _DECODINGS.items()
        },
        published={label: {"errors in 10,000": errors} for label, errors in _ERRORS.items()},
        note=f"{_SPREAD}; thresholds 0.5 and 0.1; greedy decoding, random and exact verifiers, and the other reading "
        "of the redo are controls that the thesis does not have",
    ),
    ResultTable(
        title="Table 3.4. Completing without backtracking where the verifier went back",
        source=f"{THESIS}, Table 3.4",
        cells={
            _cell(quota, stride): {
                "backtracks": inducing("nucleus at backtracks", "backtracks", quota=quota, stride=stride),
                "nucleus 0.9": inducing("nucleus at backtracks", quota=quota, stride=stride),
                "argmax": inducing("greedy at backtracks", quota=quota, stride=stride),
                "with Algorithm 1": inducing("backtracking", quota=quota, stride=stride),
            }
            for quota, stride in _GRID
        },
        published={
            _cell(*place): {"backtracks": count, "nucleus 0.9": nucleus, "argmax": argmax}
            for place, (_, count, nucleus, argmax) in _GRID.items()
        },
        note=_SPREAD,
    ),
    ResultTable(
        title="The errors that Algorithm 1 leaves (top-p 0.9)",
        source=f"{THESIS}, 3.2.1.8",
        cells={
            "incorrect closing bracket": {"share": share_of_remaining("error", "INCORRECT_CLOSING_BRACKET")},
            "end of sequence too early": {"share": share_of_remaining("error", "END_INCORRECT")},
            "quota used up": {"share": share_of_remaining("quota_left", 0)},
            "the token was the most probable one": {"share": share_of_remaining("most_probable", True)},
        },
        published={
            "incorrect closing bracket": {"share": 222 / 225},
            "end of sequence too early": {"share": 3 / 225},
            "quota used up": {"share": 1.0},
        },
        note=_SPREAD,
    ),
    ResultTable(
        title="Remaining errors of the first training",
        source=f"{THESIS}, Figure 3.2",
        cells=_examples,
        note="the most probable wrong tokens",
    ),
    ResultTable(
        title="Table 3.5. Distinct completions among ten",
        source=f"{THESIS}, Table 3.5",
        cells={
            decoding: {
                "distinct completions": diversity(decoding),
                "deviation over prompts": diversity(decoding, "deviation"),
            }
            for decoding in (ALGORITHM, LOW, "no verifier, top-p 0.9", SAMPLING, "the law itself")
        },
        published={
            ALGORITHM: {"distinct completions": 5.52, "deviation over prompts": 3.28},
            "no verifier, top-p 0.9": {"distinct completions": 5.47, "deviation over prompts": 3.06},
            SAMPLING: {"distinct completions": 5.84, "deviation over prompts": 3.29},
        },
        note="the thesis prints standard deviations as standard errors, and its means do not fit prompts of 25 to "
        "31 tokens: the law itself gives fewer distinct completions",
    ),
)


def _draw_strides(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, sharey=True)
    forced = [inducing("forced", stride=stride) for stride in STRIDES_FORCED]
    spread(left, STRIDES_FORCED, forced, rows, color=OURS, label="ours")
    left.plot(list(_FORCED), list(_FORCED.values()), "s--", color=PUBLISHED, label="thesis")
    left.axhline(inducing("nucleus")(rows).mean(), color=OURS, lw=1, ls=":", label="ours, no backtrack")
    left.axhline(_NUCLEUS, color=PUBLISHED, lw=1, ls=":", label="thesis, no backtrack")
    left.set(xlabel="stride B of one forced backtrack", ylabel="accuracy", xticks=STRIDES_FORCED)
    left.set_title("Table 3.1")
    left.legend()
    for shade, quota in ((0.35, 1), (0.65, 2), (1.0, 4)):
        cells = [inducing("backtracking", quota=quota, stride=stride) for stride in STRIDES]
        spread(right, STRIDES, cells, rows, color=OURS, alpha=shade, label=f"ours, Q = {quota}")
        published = [_GRID[quota, stride][0] for stride in STRIDES]
        right.plot(STRIDES, published, "s--", color=PUBLISHED, alpha=shade, label=f"thesis, Q = {quota}")
    right.set(xlabel="stride B, trained verifier", xticks=STRIDES, title="Table 3.2")
    right.legend(ncols=2)
    return drawing


def _draw_cost(rows: Rows) -> Drawing:
    """One line per decoding: errors on the left, queries on the right, one mark per top-p."""
    first, *others = _VERIFIERS.values()
    labels = [first, "greedy", *others]
    drawing, (errors, queries) = panels(2, sharey=True, width_ratios=(3, 2))
    for top_p, color in zip(TOP_PS, (OURS, BAD), strict=True):
        for place, label in enumerate(labels):
            name, shade = f"top-p {top_p}, {label}", color
            if label == "greedy":
                name, shade = "greedy, no verifier", GOOD
            for axes, column in ((errors, "per_10000"), (queries, "queries")):
                axes.plot(unseen(*_DECODINGS[name], column)(rows).mean(), place, "o", color=shade)
            if name in _ERRORS:
                errors.plot(_ERRORS[name], place, "x", color=color, ms=8)
    for color, label in ((OURS, "top-p 0.9"), (BAD, "top-p 1.0"), (GOOD, "greedy"), ("#444444", "thesis")):
        errors.plot([], [], "x" if label == "thesis" else "o", color=color, label=label)
    errors.set(xlabel="errors in 10,000 prompts", xlim=(0, None))
    errors.set(yticks=range(len(labels)), yticklabels=labels)
    errors.invert_yaxis()
    errors.legend(loc="lower left")
    queries.set(xlabel="queries a prompt", xlim=(0, None))
    return drawing


def _draw_plane(rows: Rows) -> Drawing:
    drawing, [axes] = panels(height=4.2)
    points = rows["probe"].dropna(subset="x")
    for correct, color, label in ((True, QUIET, "correct"), (False, BAD, "erroneous")):
        of_label = points[points.correct.astype(bool) == correct]
        axes.plot(of_label.x, of_label.y, ".", ms=4, color=color, label=label)
    axes.set(xticks=[], yticks=[], xlabel="t-SNE of the last hidden state")
    axes.legend()
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
