"""Figures and tables of the study."""

from matplotlib.figure import Figure as Drawing

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Figure, ResultTable, Rows
from trialogue_lab.ledger.pages.figures import spread
from trialogue_lab.studies.memorization_construct.statistics import approximate, association, encoder, held


def _different(rows: Rows, kind: str, column: str) -> list[float]:
    return sorted(rows[kind][column].unique().tolist())


def _draw_capacity(rows: Rows) -> Drawing:
    drawing, (accuracy, errors) = panels(2, width=4.6, height=3.6)
    heads = _different(rows, "association", "heads")
    for column, label, style, color in (
        ("accuracy", "built", "o", OURS),
        ("bound", "Corollary 2", "-", GOOD),
        ("previous", "previous bound", "--", BAD),
    ):
        cells = [association(column, int(each)) for each in heads]
        spread(accuracy, heads, cells, rows, style, color=color, label=label)
    accuracy.axhline(1 / 10, color=QUIET, ls=":", lw=1, label="chance")
    accuracy.set(xlabel="heads of two numbers, d = 2", ylim=(0, 1.05))
    accuracy.set_title("Accuracy on 100 associations of 10 tokens")
    accuracy.legend(loc="upper left")
    provisions = _different(rows, "held", "provision")
    for column, label, color in (
        ("error_bfloat16", "bfloat16", BAD),
        ("error_float32", "float32", COLORS[3]),
        ("error", "float64", OURS),
    ):
        for wide, style in ((False, "o-"), (True, "s--")):
            table = rows["held"]
            width = table.width.max() if wide else table.width.min()
            values = table[table.width == width].groupby("provision")[column]
            low, middle, high = (values.quantile(share) for share in (0.0, 0.5, 1.0))
            errors.errorbar(
                [100 * each for each in provisions],
                middle,
                yerr=[middle - low, high - middle],
                fmt=style,
                color=color,
                label=f"{label}, d = {width}",
            )
    errors.set(yscale="log", xlabel="features beyond the number of laws, %")
    errors.set_title("Largest error of a log-probability")
    errors.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawing


def _draw_distance(rows: Rows) -> Drawing:
    drawing, (kept, encoders) = panels(2, width=4.6, height=3.6)
    heads = [int(each) for each in _different(rows, "approximate", "heads")]
    for column, label, style, color in (
        ("loose", "bound (14)", "v:", QUIET),
        ("tight", "bound (13)", "^:", QUIET),
        ("kl", "the likeliest held exactly (Theorem 1)", "o-", BAD),
        ("ridge", "ridge regression on all", "s-", OURS),
    ):
        middle = [approximate(column, each)(rows).median() for each in heads]
        kept.plot(heads, middle, style, color=color, label=label)
    kept.set(yscale="log", xlabel="heads of width 9")
    kept.set_title("Mean KL over 100 contexts, medians (nats)")
    kept.legend(loc="upper right", fontsize=7)
    widths = [int(each) for each in _different(rows, "encoder", "width")]
    for column, label, style, color in (
        ("truncated", "truncated singular vectors", "s--", BAD),
        ("nearest", "nearest found by optimising", "o-", OURS),
    ):
        spread(
            encoders,
            widths,
            [encoder(column, each) for each in widths],
            rows,
            style,
            color=color,
            label=label,
        )
    encoders.set(xlabel="width d", ylim=(0, None))
    encoders.set_title("Mean KL to encoders of 10 tokens (nats)")
    encoders.legend()
    return drawing


def _rank_table(rows: Rows) -> Cells:
    named = {"printed": "printed", "mended": "mended", "measured": "measured", "rank_one": "W_QK of rank one"}
    return {
        f"N {row['vocab_size']}, S {row['context']}, d {row['width']}, d_h {row['head_width']}, H {row['heads']}": {
            name: float(row[column]) for column, name in named.items()
        }
        for row in rows["rank"].to_dict("records")
    }


def _held_table(rows: Rows) -> Cells:
    return {
        f"d = {width:g}, {provision:.0%} to spare": {
            "features": held("features", provision, wide),
            "parameters": held("parameters", provision, wide),
            "condition": held("condition", provision, wide),
            "largest error": held("error", provision, wide),
            "float32": held("error_float32", provision, wide),
            "bfloat16": held("error_bfloat16", provision, wide),
            "KL of the encoder": held("encoder_kl", provision, wide),
        }
        for wide, width in zip((False, True), _different(rows, "held", "width"), strict=True)
        for provision in _different(rows, "held", "provision")
    }


def _kept_table(rows: Rows) -> Cells:
    return {
        f"H = {heads}": {
            "prior left out": approximate("left", heads),
            "likeliest held": approximate("kl", heads),
            "(13)": approximate("tight", heads),
            "(14)": approximate("loose", heads),
            "ridge regression": approximate("ridge", heads),
        }
        for heads in (int(each) for each in _different(rows, "approximate", "heads"))
    }


FIGURES = (
    Figure(
        name="capacity",
        caption="Left: networks built to hold as many associations as they have features, in two dimensions, and what "
        "they answer for all contexts. Right: networks built to hold every law, by the features that they have to "
        "spare and the precision that they are cast to; medians and extremes over draws.",
        draw=_draw_capacity,
    ),
    Figure(
        name="distance",
        caption="Left: with too few features for all contexts, what is left by holding the likeliest exactly, what the "
        "document's bounds say of it, and least squares on all contexts. Right: what a narrow embedding costs any "
        "network.",
        draw=_draw_distance,
    ),
)
TABLES = (
    ResultTable(
        title="Networks that hold every law",
        source="Theorem 1, eps = 0",
        cells=_held_table,
        rows_are="network",
        note="means over draws, ± one standard deviation. Errors are the largest of a log-probability, by a forward "
        "pass; KL in nats. The target is log pi where d = N - 1, else the nearest laws of rank d",
    ),
    ResultTable(
        title="Ranks of features",
        source="Lemma 2, Remark 2",
        cells=_rank_table,
        rows_are="shape",
        note="of generic heads and the skip connection, all N^S contexts. Printed: min(T, H d_h + d)",
    ),
    ResultTable(
        title="Fewer features than contexts",
        source="Theorem 1, equations 13 and 14",
        cells=_kept_table,
        rows_are="network",
        note="mean KL in nats over a prior in proportion to rank^-1.5, N = 10, d = 9; means over draws, ± one standard "
        "deviation",
    ),
)
