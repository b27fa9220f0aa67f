"""Figures of the study, with the published numbers of the thesis."""

from matplotlib.figure import Figure as Drawing

from trialogue.display.figures import BAD, GOOD, OURS, PUBLISHED, QUIET, panels
from trialogue_lab.ledger import Rows, figure, finish, spread
from trialogue_lab.studies.dyck_backtracking.config import STRIDES, STRIDES_FORCED
from trialogue_lab.studies.dyck_backtracking.statistics import inducing, unseen
from trialogue_lab.studies.dyck_backtracking.tables import ERRORS, FORCED, GRID, NUCLEUS


@figure(
    "strides",
    "Accuracy at error-inducing prefixes as a function of the stride. Bars show one standard deviation over trainings. "
    "Left: one forced backtrack. Right: Algorithm 1 with the trained verifier.",
)
def _strides_figure(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, sharey=True)
    forced = [inducing("forced", stride=stride) for stride in STRIDES_FORCED]
    spread(left, STRIDES_FORCED, forced, rows, color=OURS, label="ours")
    left.plot(list(FORCED), list(FORCED.values()), "s--", color=PUBLISHED, label="thesis")
    left.axhline(inducing("nucleus")(rows).mean(), color=OURS, lw=1, ls=":", label="ours, no backtrack")
    left.axhline(NUCLEUS, color=PUBLISHED, lw=1, ls=":", label="thesis, no backtrack")
    left.set(xlabel="stride B of one forced backtrack", ylabel="accuracy", xticks=STRIDES_FORCED)
    finish(left, "Table 3.1", legend=True)
    for alpha, quota in ((0.35, 1), (0.65, 2), (1.0, 4)):
        cells = [inducing("backtracking", quota=quota, stride=stride) for stride in STRIDES]
        spread(right, STRIDES, cells, rows, color=OURS, alpha=alpha, label=f"ours, Q = {quota}")
        published = [GRID[quota, stride][0] for stride in STRIDES]
        right.plot(STRIDES, published, "s--", color=PUBLISHED, alpha=alpha, label=f"thesis, Q = {quota}")
    right.set(xlabel="stride B, trained verifier", xticks=STRIDES, title="Table 3.2")
    right.legend(ncols=2)
    return drawing


@figure(
    "errors-and-queries",
    "Errors and queries on unseen prompts, by verifier. Dots are means over trainings, with bars of one standard "
    "deviation. Crosses are published numbers. Greedy decoding uses no verifier.",
)
def _cost_figure(rows: Rows) -> Drawing:
    drawing, (errors, queries) = panels(2, width=4.6, height=4.6, sharey=True, width_ratios=(3, 2))
    decodings = rows["unseen"][["verifier", "top_p"]].dropna().drop_duplicates()
    labels = list(dict.fromkeys(decodings.verifier))
    colors = {0.9: OURS, 1.0: BAD, 0.0: GOOD}
    for verifier, top_p in decodings.itertuples(index=False):
        place = labels.index(verifier) + (0.0 if top_p == 0 else 0.3 * (top_p - 0.95) / 0.1)
        color = colors[top_p]
        for axes, column in ((errors, "per_10000"), (queries, "queries")):
            numbers = unseen(verifier, top_p, column)(rows)
            axes.errorbar(numbers.mean(), place, xerr=numbers.std(), fmt="o", color=color)
        if (verifier, top_p) in ERRORS:
            errors.plot(ERRORS[verifier, top_p], place, "x", color=color, ms=8)
    for color, label in ((OURS, "top-p 0.9"), (BAD, "top-p 1.0"), (GOOD, "greedy"), ("#444444", "thesis")):
        errors.plot([], [], "x" if label == "thesis" else "o", color=color, label=label)
    errors.set(xlabel="errors per 10,000 prompts", ylabel="verifier", xlim=(0, None))
    errors.set(yticks=range(len(labels)), yticklabels=labels)
    errors.invert_yaxis()
    drawing.legend(*errors.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    queries.set(xlabel="queries per prompt", xlim=(0, None))
    return drawing


@figure(
    "hidden-states",
    "Figure 3.1: t-SNE of the last hidden states of erroneous and correct prefixes (first training).",
)
def _states_figure(rows: Rows) -> Drawing:
    drawing, [axes] = panels(height=4.2)
    points = rows["probe"].dropna(subset="x")
    for correct, color, label in ((True, QUIET, "correct"), (False, BAD, "erroneous")):
        of_label = points[points.correct.astype(bool) == correct]
        axes.plot(of_label.x, of_label.y, ".", ms=4, color=color, label=label)
    finish(axes, legend=True, xticks=[], yticks=[], xlabel="t-SNE of the last hidden state")
    return drawing


FIGURES = (_strides_figure, _cost_figure, _states_figure)
