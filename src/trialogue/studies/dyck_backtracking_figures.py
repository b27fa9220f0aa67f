"""Figures of the study `dyck-backtracking`."""

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.ledger import Figure
from trialogue.studies.dyck_backtracking_rows import inducing, rows_of
from trialogue.studies.dyck_backtracking_tables import (
    PUBLISHED_ERRORS,
    PUBLISHED_FORCED,
    PUBLISHED_GRID,
    PUBLISHED_NUCLEUS,
    VERIFIERS,
    cells_unseen,
)

_OURS, _THEIRS, _BAD = "#1f6feb", "#9a6700", "#cf222e"


def _draw_strides(rows: DataFrame) -> Drawing:
    drawing = Drawing(figsize=(8, 3.4), layout="constrained")
    left, right = drawing.subplots(1, 2, sharey=True)
    strides = list(PUBLISHED_FORCED)
    series = [inducing(rows, "forced", stride=stride) for stride in strides]
    left.errorbar(
        strides, [s.mean() for s in series], [s.std() for s in series], fmt="o-", color=_OURS, label="ours"
    )
    left.plot(strides, list(PUBLISHED_FORCED.values()), "s--", color=_THEIRS, label="thesis")
    left.axhline(inducing(rows, "nucleus").mean(), color=_OURS, lw=1, ls=":", label="ours, no backtrack")
    left.axhline(PUBLISHED_NUCLEUS, color=_THEIRS, lw=1, ls=":", label="thesis, no backtrack")
    left.set(xlabel="stride B of one forced backtrack", ylabel="accuracy", xticks=strides, title="Table 3.1")
    left.legend(fontsize=8)
    for shade, quota in ((0.35, 1), (0.65, 2), (1.0, 4)):
        values = [PUBLISHED_GRID[quota, stride] for stride in (2, 4, 6)]
        cells = [inducing(rows, "backtracking", quota=quota, stride=stride) for stride in (2, 4, 6)]
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
        label: {head: s.mean() for head, s in line.items()} for label, line in cells_unseen(rows).items()
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
    points = rows_of(rows, "probe")
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
