"""Figures and the table of the study."""

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Rows, figure, finish, result_table, spread
from trialogue_lab.studies.memorization_construct import statistics


@figure(
    "capacity",
    "Left: accuracy on all contexts of networks in two dimensions that store as many associations as they have "
    "features. Right: errors of networks that store every distribution, by the number of additional features and the "
    "precision of the weights. Markers are medians over draws, and bars show the extremes.",
)
def _capacity_figure(rows: Rows) -> Drawing:
    drawing, (accuracy, errors) = panels(2, width=4.6, height=3.6)
    heads = rows.distinct("association", "heads")
    for column, label, style, color in (
        ("accuracy", "built", "o", OURS),
        ("bound", "Corollary 2", "-", GOOD),
        ("previous", "previous bound", "--", BAD),
    ):
        cells = [statistics.association(column, each) for each in heads]
        spread(accuracy, heads, cells, rows, style, color=color, label=label)
    accuracy.axhline(1 / 10, color=QUIET, ls=":", lw=1, label="chance")
    accuracy.set(xlabel="heads of width 2, d = 2", ylim=(0, 1.05))
    finish(accuracy, "Accuracy on 100 associations of 10 tokens", legend="upper left")
    for column, label, color in (
        ("error_bfloat16", "bfloat16", BAD),
        ("error_float32", "float32", COLORS[3]),
        ("error", "float64", OURS),
    ):
        for (width, table), fmt in zip(rows["held"].groupby("width"), ("o-", "s--"), strict=True):
            values = table.groupby("provision")[column]
            low, middle, high = values.min(), values.median(), values.max()
            bars, legend = [middle - low, high - middle], f"{label}, d = {width}"
            errors.errorbar(100 * middle.index, middle, bars, fmt=fmt, color=color, label=legend)
    errors.set(yscale="log", xlabel="additional features, % of the number of contexts")
    errors.set_title("Largest error of a log-probability")
    errors.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawing


@figure(
    "distance",
    "Left: KL of networks with fewer features than contexts. They store the most likely contexts exactly, with the "
    "bounds of the document, or all contexts by ridge regression. Right: KL of sequence encoders by width, which no "
    "network of that width can improve on.",
)
def _distance_figure(rows: Rows) -> Drawing:
    drawing, (kept, encoders) = panels(2, width=4.6, height=3.6)
    medians = rows["approximate"].groupby("heads").median(numeric_only=True)
    for column, label, style, color in (
        ("loose", "bound (14)", "v:", QUIET),
        ("tight", "bound (13)", "^:", QUIET),
        ("kl", "most likely stored exactly (Theorem 1)", "o-", BAD),
        ("ridge", "ridge regression on all", "s-", OURS),
    ):
        kept.plot(medians.index, medians[column], style, color=color, label=label)
    kept.set(yscale="log", xlabel="heads of width 9", title="Mean KL over 100 contexts, medians (nats)")
    kept.legend(loc="upper right")
    widths = rows.distinct("encoder", "width")
    for column, label, style, color in (
        ("truncated", "truncated singular vectors", "s--", BAD),
        ("nearest", "nearest encoder found by optimization", "o-", OURS),
    ):
        cells = [statistics.encoder(column, each) for each in widths]
        spread(encoders, widths, cells, rows, style, color=color, label=label)
    finish(encoders, "Mean KL of encoders of 10 tokens (nats)", legend=True, xlabel="width d", ylim=(0, None))
    return drawing


@result_table(
    "Rank of the features",
    "Lemma 2, Remark 2",
    row_heading="shape",
    note="Generic heads and the skip connection, on all N^S contexts. The published rank is min(T, H d_h + d).",
)
def _rank_table(rows: Rows) -> DataFrame:
    table = rows["rank"]
    table.index = [
        f"N {row.vocab_size}, S {row.context}, d {row.width}, d_h {row.head_width}, H {row.heads}"
        for row in table.itertuples()
    ]
    names = {
        "printed": "published",
        "mended": "corrected",
        "measured": "measured",
        "rank_one": "W_QK of rank 1",
    }
    return table[list(names)].rename(columns=names)


FIGURES = (_capacity_figure, _distance_figure)
TABLES = (_rank_table,)
