"""Figures and tables of the study."""

from matplotlib.figure import Figure as Drawing

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, figure, finish, result_table, spread
from trialogue_lab.studies.memorization_construct import statistics


@figure(
    "capacity",
    "Left: networks built to hold as many associations as they have features, in two dimensions, and what "
    "they answer for all contexts. Right: networks built to hold every law, by the features that they have to "
    "spare and the precision that they are cast to; medians and extremes over draws.",
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
    accuracy.set(xlabel="heads of two numbers, d = 2", ylim=(0, 1.05))
    finish(accuracy, "Accuracy on 100 associations of 10 tokens", legend="upper left")
    for column, label, color in (
        ("error_bfloat16", "bfloat16", BAD),
        ("error_float32", "float32", COLORS[3]),
        ("error", "float64", OURS),
    ):
        for width, fmt in zip(rows.distinct("held", "width"), ("o-", "s--"), strict=True):
            values = rows.where("held", width=width).groupby("provision")[column]
            low, middle, high = (values.quantile(share) for share in (0.0, 0.5, 1.0))
            bars, said = [middle - low, high - middle], f"{label}, d = {width}"
            errors.errorbar(100 * middle.index, middle, bars, fmt=fmt, color=color, label=said)
    errors.set(yscale="log", xlabel="features beyond the number of laws, %")
    errors.set_title("Largest error of a log-probability")
    errors.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawing


@figure(
    "distance",
    "Left: with too few features for all contexts, what is left by holding the likeliest exactly, what the "
    "document's bounds say of it, and least squares on all contexts. Right: what a narrow embedding costs any "
    "network.",
)
def _distance_figure(rows: Rows) -> Drawing:
    drawing, (kept, encoders) = panels(2, width=4.6, height=3.6)
    heads = rows.distinct("approximate", "heads")
    for column, label, style, color in (
        ("loose", "bound (14)", "v:", QUIET),
        ("tight", "bound (13)", "^:", QUIET),
        ("kl", "the likeliest held exactly (Theorem 1)", "o-", BAD),
        ("ridge", "ridge regression on all", "s-", OURS),
    ):
        middle = [statistics.approximate(column, each)(rows).median() for each in heads]
        kept.plot(heads, middle, style, color=color, label=label)
    kept.set(yscale="log", xlabel="heads of width 9", title="Mean KL over 100 contexts, medians (nats)")
    kept.legend(loc="upper right", fontsize=7)
    widths = rows.distinct("encoder", "width")
    for column, label, style, color in (
        ("truncated", "truncated singular vectors", "s--", BAD),
        ("nearest", "nearest found by optimising", "o-", OURS),
    ):
        cells = [statistics.encoder(column, each) for each in widths]
        spread(encoders, widths, cells, rows, style, color=color, label=label)
    finish(encoders, "Mean KL to encoders of 10 tokens (nats)", legend=True, xlabel="width d", ylim=(0, None))
    return drawing


@result_table(
    "Ranks of features",
    "Lemma 2, Remark 2",
    rows_are="shape",
    note="of generic heads and the skip connection, all N^S contexts. Printed: min(T, H d_h + d)",
)
def _rank_table(rows: Rows) -> Cells:
    named = {"printed": "printed", "mended": "mended", "measured": "measured", "rank_one": "W_QK of rank one"}
    return {
        f"N {row['vocab_size']}, S {row['context']}, d {row['width']}, d_h {row['head_width']}, H {row['heads']}": {
            name: float(row[column]) for column, name in named.items()
        }
        for row in rows["rank"].to_dict("records")
    }


@result_table(
    "Networks that hold every law",
    "Theorem 1, eps = 0",
    rows_are="network",
    note="means over draws, ± one standard deviation. Errors are the largest of a log-probability, by a forward "
    "pass; KL in nats. The target is log pi where d = N - 1, else the nearest laws of rank d",
)
def _held_table(rows: Rows) -> Cells:
    return {
        f"d = {width:g}, {provision:.0%} to spare": {
            "features": statistics.held("features", provision, wide),
            "parameters": statistics.held("parameters", provision, wide),
            "condition": statistics.held("condition", provision, wide),
            "largest error": statistics.held("error", provision, wide),
            "float32": statistics.held("error_float32", provision, wide),
            "bfloat16": statistics.held("error_bfloat16", provision, wide),
            "KL of the encoder": statistics.held("encoder_kl", provision, wide),
        }
        for wide, width in zip((False, True), rows.distinct("held", "width"), strict=True)
        for provision in rows.distinct("held", "provision")
    }


@result_table(
    "Fewer features than contexts",
    "Theorem 1, equations 13 and 14",
    rows_are="network",
    note="mean KL in nats over a prior in proportion to rank^-1.5, N = 10, d = 9; means over draws, ± one standard "
    "deviation",
)
def _kept_table(rows: Rows) -> Cells:
    return {
        f"H = {heads}": {
            "prior left out": statistics.approximate("left", heads),
            "likeliest held": statistics.approximate("kl", heads),
            "(13)": statistics.approximate("tight", heads),
            "(14)": statistics.approximate("loose", heads),
            "ridge regression": statistics.approximate("ridge", heads),
        }
        for heads in rows.distinct("approximate", "heads")
    }


FIGURES = (_capacity_figure, _distance_figure)
TABLES = (_held_table, _rank_table, _kept_table)
