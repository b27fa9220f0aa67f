"""Figures and tables of the study."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, figure, finish, result_table
from trialogue_lab.studies.memorization_text import config

# Label, format and color of the curve of each method.
_STYLES: dict[Any, tuple[str, str, str]] = {
    config.LIKELIEST: ("most likely stored exactly (Theorem 1)", "v-", BAD),
    config.RIDGE: ("ridge regression", "s-", OURS),
    config.EXACT: ("all stored exactly, 10 % more features", "D", OURS),
    config.TRAINED: ("attention-only, trained", "*", COLORS[4]),
    config.TRANSFORMER: ("transformer, trained", "P", COLORS[3]),
    config.TABLE: ("n-gram table", "o--", GOOD),
}
_FLOOR = 1e-4
_KILO = 1000


@figure(
    "shares",
    "KL from the next-token distributions after the most frequent contexts of a text to the networks, as a function of "
    "the share of the contexts that the networks have features for. Medians over samples of the text. Trained networks "
    "have the shape, or the number of parameters, of the network for that share.",
)
def _shares_figure(rows: Rows) -> Drawing:
    networks = rows["network"]
    settings = networks[networks.method != config.TABLE].groupby(["context", "width"])
    drawing, axes = panels(len(settings), 1, width=3.6, height=3.4, sharey=True)
    for one, ((context, width), table) in zip(axes, settings, strict=True):
        single, encoder = rows.where("text", context=context), rows.where("encoder", context=context)
        nearest = encoder[encoder.width == width].kl.median()
        one.axhline(single.alone_kl.median(), color=QUIET, ls=":", label="distribution of single tokens")
        one.axhline(nearest, color=QUIET, ls="--", label="nearest encoder")
        for method, line in table.groupby("method"):
            label, style, color = _STYLES[method]
            medians = line.groupby("share").kl.median()
            one.plot(medians.index, medians, style, color=color, label=label)
        one.set(yscale="log", xlabel="share of the contexts with features", ylim=(_FLOOR, 1e4))
        one.set_title(f"S = {context}, d = {width}")
    axes[0].set_ylabel("KL to the distribution (nats per token)")
    axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawing


@figure(
    "bytes",
    "Networks with float32 weights and n-gram tables, by size. Left: KL to the next-token distributions. Right: loss "
    "on held-out text, which also has contexts that no network was built for. The larger width is paler. Dotted: the "
    "distribution of single tokens. A KL of zero is plotted at the bottom.",
)
def _bytes_figure(rows: Rows) -> Drawing:
    contexts = rows.distinct("text", "context")
    drawing, axes = panels(2, len(contexts), width=4.4, height=3.2)
    for place, context in enumerate(contexts):
        divergence, held_out = axes[2 * place : 2 * place + 2]
        _draw_by_size(divergence, rows.where("network", context=context), "kl_float32")
        finish(divergence, f"S = {context}: KL (nats per token)", yscale="log", ylim=(_FLOOR, 10))
        _draw_by_size(held_out, rows.where("network", context=context), "held_out")
        single = rows.where("text", context=context).alone_held_out.median()
        held_out.axhline(single, color=QUIET, ls=":")
        finish(held_out, f"S = {context}: held-out loss (nats per token)", ylim=(0, None))
    axes[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawing


def _draw_by_size(axes: Axes, table: DataFrame, column: str) -> None:
    """Plot medians of a column against the size in kilobytes, with one line for all tables of counts."""
    tables = table.method == config.TABLE
    networks = table[~tables & (table.method != config.LIKELIEST)]
    for (width, method), line in networks.groupby(["width", "method"]):
        medians = line.groupby("share")[["bytes", column]].median()
        label, style, color = _STYLES[method]
        alpha = 1.0 if width == table.width.min() else 0.45
        label = f"{label}, d = {width}"
        axes.plot(medians.bytes / _KILO, medians[column], style, color=color, alpha=alpha, label=label)
    medians = table[tables].groupby(["width", "share"])[["bytes", column]].median().sort_values("bytes")
    label, style, color = _STYLES[config.TABLE]
    sizes, values = medians.bytes / _KILO, medians[column].clip(lower=_FLOOR)
    axes.plot(sizes, values, style, color=color, label=label)
    axes.set_xlabel("kilobytes")


_TEXT_HEADS = {
    "contexts": "contexts",
    "different": "different contexts",
    "share": "share of the text",
    "entropy": "entropy",
    "alone_kl": "KL of single tokens",
    "table_held_out": "held-out loss of the table",
    "table_bytes": "bytes of the table",
}
_BOUND_HEADS = {"left": "prior of the other contexts", "kl": "KL", "tight": "(13)", "loose": "(14)"}


@result_table(
    "Next-token distributions after S tokens of a text",
    "Definition 1",
    row_heading="context",
    note="Nats per token. Contexts: the contexts to be stored, and all different contexts of the sample. The table has "
    "all contexts of up to S tokens. KL at d: the nearest encoder. Means over samples, ± one standard deviation.",
)
def _texts_table(rows: Rows) -> Cells:
    cells = {}
    for context, table in rows["text"].groupby("context"):
        encoders = rows.where("encoder", context=context).groupby("width")
        cells[f"S = {context}"] = {head: table[column] for column, head in _TEXT_HEADS.items()} | {
            f"KL at d = {width}": own.kl for width, own in encoders
        }
    return cells


@result_table(
    "Bounds for the most likely contexts stored exactly",
    "Theorem 1, equations 13 and 14",
    row_heading="share of the contexts with features",
    note="Nats. Bound (14) is infinite if the stored contexts end in fewer than d tokens. Means leave these cases out.",
)
def _bounds_table(rows: Rows) -> Cells:
    table = rows.where("network", method=config.LIKELIEST)
    return {
        f"S = {context}, d = {width}, {share:.0%}": {
            head: own[column].dropna() for column, head in _BOUND_HEADS.items()
        }
        for (context, width, share), own in table.groupby(["context", "width", "share"])
    }


FIGURES = (_shares_figure, _bytes_figure)
TABLES = (_texts_table, _bounds_table)
