"""Figures of the study: its quantities beside the numbers of the thesis."""

from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import (
    BAD,
    GOOD,
    OURS,
    PUBLISHED,
    QUIET,
    Rows,
    figure,
    finish,
    panels,
    spread,
)
from trialogue_lab.studies.dyck_backtracking.config import STRIDES, STRIDES_FORCED, TOP_PS
from trialogue_lab.studies.dyck_backtracking.statistics import inducing, unseen
from trialogue_lab.studies.dyck_backtracking.tables import DECODINGS, ERRORS, FORCED, GRID, NUCLEUS, VERIFIERS


@figure(
    "strides",
    "Accuracy at error-inducing prefixes against the stride, beside the published numbers. Bars: one "
    "standard deviation over trainings.",
)
def _draw_strides(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, sharey=True)
    forced = [inducing("forced", stride=stride) for stride in STRIDES_FORCED]
    spread(left, STRIDES_FORCED, forced, rows, color=OURS, label="ours")
    left.plot(list(FORCED), list(FORCED.values()), "s--", color=PUBLISHED, label="thesis")
    left.axhline(inducing("nucleus")(rows).mean(), color=OURS, lw=1, ls=":", label="ours, no backtrack")
    left.axhline(NUCLEUS, color=PUBLISHED, lw=1, ls=":", label="thesis, no backtrack")
    left.set(xlabel="stride B of one forced backtrack", ylabel="accuracy", xticks=STRIDES_FORCED)
    finish(left, "Table 3.1", legend=True)
    for shade, quota in ((0.35, 1), (0.65, 2), (1.0, 4)):
        cells = [inducing("backtracking", quota=quota, stride=stride) for stride in STRIDES]
        spread(right, STRIDES, cells, rows, color=OURS, alpha=shade, label=f"ours, Q = {quota}")
        published = [GRID[quota, stride][0] for stride in STRIDES]
        right.plot(STRIDES, published, "s--", color=PUBLISHED, alpha=shade, label=f"thesis, Q = {quota}")
    right.set(xlabel="stride B, trained verifier", xticks=STRIDES, title="Table 3.2")
    right.legend(ncols=2)
    return drawing


@figure(
    "errors-and-queries",
    "What each decoding of unseen prompts gets wrong, and what it asks for: means over trainings, crosses "
    "where the thesis prints a number. Greedy decoding needs no verifier at all.",
)
def _draw_cost(rows: Rows) -> Drawing:
    """One line per decoding: errors on the left, queries on the right, one mark per top-p."""
    first, *others = VERIFIERS.values()
    labels = [first, "greedy", *others]
    drawing, (errors, queries) = panels(2, sharey=True, width_ratios=(3, 2))
    for top_p, color in zip(TOP_PS, (OURS, BAD), strict=True):
        for place, label in enumerate(labels):
            name, shade = f"top-p {top_p}, {label}", color
            if label == "greedy":
                name, shade = "greedy, no verifier", GOOD
            for axes, column in ((errors, "per_10000"), (queries, "queries")):
                axes.plot(unseen(*DECODINGS[name], column)(rows).mean(), place, "o", color=shade)
            if name in ERRORS:
                errors.plot(ERRORS[name], place, "x", color=color, ms=8)
    for color, label in ((OURS, "top-p 0.9"), (BAD, "top-p 1.0"), (GOOD, "greedy"), ("#444444", "thesis")):
        errors.plot([], [], "x" if label == "thesis" else "o", color=color, label=label)
    errors.set(xlabel="errors in 10,000 prompts", xlim=(0, None))
    errors.set(yticks=range(len(labels)), yticklabels=labels)
    errors.invert_yaxis()
    errors.legend(loc="lower left")
    queries.set(xlabel="queries a prompt", xlim=(0, None))
    return drawing


@figure("hidden-states", "Figure 3.1: last hidden states of erroneous and correct prefixes, first training.")
def _draw_plane(rows: Rows) -> Drawing:
    drawing, [axes] = panels(height=4.2)
    points = rows["probe"].dropna(subset="x")
    for correct, color, label in ((True, QUIET, "correct"), (False, BAD, "erroneous")):
        of_label = points[points.correct.astype(bool) == correct]
        axes.plot(of_label.x, of_label.y, ".", ms=4, color=color, label=label)
    finish(axes, legend=True, xticks=[], yticks=[], xlabel="t-SNE of the last hidden state")
    return drawing


FIGURES = (_draw_strides, _draw_cost, _draw_plane)
