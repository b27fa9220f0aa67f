"""Figures and tables of the study."""

from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame, concat

from trialogue_lab.ledger import BAD, COLORS, GOOD, OURS, QUIET, Cells, Rows, figure, panels, result_table
from trialogue_lab.studies.memorization_text import config, statistics

_SAID = {
    config.LIKELIEST: "the likeliest held exactly (Theorem 1)",
    config.RIDGE: "ridge regression",
    config.EXACT: "all held exactly, 10 % to spare",
    config.TRAINED: "attention-only, trained",
    config.TRANSFORMER: "transformer, trained",
    config.TABLE: "n-gram table",
}
_DRAWN = {
    config.LIKELIEST: ("v-", BAD),
    config.RIDGE: ("s-", OURS),
    config.EXACT: ("D", OURS),
    config.TRAINED: ("*", COLORS[4]),
    config.TRANSFORMER: ("P", COLORS[3]),
    config.TABLE: ("o--", GOOD),
}
_FLOOR = 1e-4
_KILO = 1000
_TICKS = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_STAR = 9
_WIDE = (False, True)


def _settings(rows: Rows) -> Iterator[tuple[int, bool, int]]:
    """Contexts and widths: S, whether d is the greatest, and d."""
    for context in rows.distinct("text", "context"):
        for wide in _WIDE:
            yield context, wide, statistics.width_of(rows, wide)


def _medians(rows: Rows, context: int, width: int) -> DataFrame:
    """Medians over samples, by method and share."""
    table = rows.where("network", context=context, width=width)
    return table.groupby(["method", "share"])[["kl", "kl_float32", "held_out", "bytes"]].median()


@figure(
    "shares",
    "How near networks come to the law of the next token after the most frequent contexts of a text, by "
    "how many of the contexts they have features for; medians over samples of the text. Trained networks have the "
    "shape, or the parameters, of that share.",
)
def _shares_figure(rows: Rows) -> Drawing:
    settings = list(_settings(rows))
    drawing, axes = panels(len(settings), 1, width=3.6, height=3.4, sharey=True)
    for one, (context, wide, width) in zip(axes, settings, strict=True):
        alone = statistics.text("alone_kl", context)(rows).median()
        nearest = statistics.encoder("kl", context, wide)(rows).median()
        one.axhline(alone, color=QUIET, ls=":", label="law of single tokens")
        one.axhline(nearest, color=QUIET, ls="--", label="nearest encoder")
        medians = _medians(rows, context, width).drop(config.TABLE, level="method")
        for method, (style, color) in _DRAWN.items():
            if method in medians.index:
                line = medians.loc[method].reset_index()
                size = _STAR if style == "*" else None
                one.plot(line.share, line.kl, style, color=color, ms=size, label=_SAID[method])
        one.set(yscale="log", xlabel="features for a share of the contexts", ylim=(_FLOOR, 1e4))
        one.set_title(f"S = {context}, d = {width}")
    axes[0].set_ylabel("KL to the law (nats a token)")
    axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawing


@figure(
    "bytes",
    "The same by size, weights in float32, beside an n-gram table; on the right on held-out text, where "
    "contexts come that no network was built for. Paler: the greater width. Dotted: the law of single tokens. A "
    "table that holds the law is drawn at the bottom.",
)
def _bytes_figure(rows: Rows) -> Drawing:
    contexts = rows.distinct("text", "context")
    drawing, axes = panels(2, len(contexts), width=4.4, height=3.2)
    for place, context in enumerate(contexts):
        near, unseen = axes[2 * place : 2 * place + 2]
        _draw_by_size(near, rows, context, "kl_float32", _FLOOR)
        _draw_by_size(unseen, rows, context, "held_out")
        near.set(yscale="log", ylim=(_FLOOR, 10), title=f"S = {context}: KL to the law (nats a token)")
        unseen.axhline(statistics.text("alone_held_out", context)(rows).median(), color=QUIET, ls=":")
        unseen.set(ylim=(0, None), title=f"S = {context}: loss on held-out text (nats a token)")
    axes[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawing


def _draw_by_size(axes: Axes, rows: Rows, context: int, column: str, floor: float = 0.0) -> None:
    """Medians of a column by kilobytes: networks of both widths, the wider ones paler, and the table."""
    for wide, alpha in zip(_WIDE, (1.0, 0.45), strict=True):
        width = statistics.width_of(rows, wide)
        medians = _medians(rows, context, width)
        for method in (config.RIDGE, config.EXACT, config.TRAINED, config.TRANSFORMER):
            if method in medians.index:
                style, color = _DRAWN[method]
                line, label = medians.loc[method], f"{_SAID[method]}, d = {width}"
                size, places = _STAR if style == "*" else None, line.bytes / _KILO
                axes.plot(places, line[column], style, color=color, alpha=alpha, ms=size, label=label)
    both = [_medians(rows, context, statistics.width_of(rows, wide)).loc[config.TABLE] for wide in _WIDE]
    table = concat(both).sort_values("bytes")
    style, color = _DRAWN[config.TABLE]
    axes.plot(
        table.bytes / _KILO, table[column].clip(lower=floor), style, color=color, label=_SAID[config.TABLE]
    )
    axes.set(xscale="log", xlabel="kilobytes")
    axes.minorticks_off()
    low, high = axes.get_xlim()
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])


@result_table(
    "Laws of the next token after S tokens of a text",
    "Definition 1",
    rows_are="context",
    note="nats a token; contexts: those whose laws are to be held, of all of the sample; bytes: of a table of all "
    "contexts of up to S tokens. Means over samples, ± one standard deviation",
)
def _texts_table(rows: Rows) -> Cells:
    return {
        f"S = {context}": {
            "contexts": statistics.text("contexts", context),
            "of": statistics.text("different", context),
            "share of the text": statistics.text("share", context),
            "entropy": statistics.text("entropy", context),
            "KL of single tokens": statistics.text("alone_kl", context),
            **{
                f"KL at d = {statistics.width_of(rows, wide)}": statistics.encoder("kl", context, wide)
                for wide in _WIDE
            },
            "held-out loss of the table": statistics.text("table_held_out", context),
            "its bytes": statistics.text("table_bytes", context),
        }
        for context in rows.distinct("text", "context")
    }


@result_table(
    "Networks and tables of as many bytes",
    "Theorem 1",
    rows_are="features for a share of the contexts",
    note="nats a token; bytes of float32 weights, and those that a table uses of as many. In float32: the KL where "
    "weights are cast. Known: contexts that the law has. Means over samples, ± one standard deviation",
)
def _networks_table(rows: Rows) -> Cells:
    measured = set(rows["network"].method)
    return {
        f"S = {context}, d = {width}, {share:.0%}: {_SAID[method]}": {
            "bytes": statistics.network("bytes", method, context, wide, share),
            "KL": statistics.network("kl", method, context, wide, share),
            "in float32": statistics.network("kl_float32", method, context, wide, share),
            "held-out loss": statistics.network("held_out", method, context, wide, share),
            "of known contexts": statistics.network("held_out_known", method, context, wide, share),
        }
        for context, wide, width in _settings(rows)
        for share in rows.distinct("network", "share")
        for method in _SAID
        if method in measured and len(statistics.network("kl", method, context, wide, share)(rows))
    }


@result_table(
    "The likeliest contexts held exactly",
    "Theorem 1, equations 13 and 14",
    rows_are="network",
    note="nats; (14) is infinite, and left out of means, where contexts held end in fewer than d tokens",
)
def _bounds_table(rows: Rows) -> Cells:
    return {
        f"S = {context}, d = {width}, {share:.0%} of the contexts": {
            "prior left out": statistics.network("left", config.LIKELIEST, context, wide, share),
            "KL": statistics.network("kl", config.LIKELIEST, context, wide, share),
            "(13)": statistics.network("tight", config.LIKELIEST, context, wide, share),
            "(14)": statistics.network("loose", config.LIKELIEST, context, wide, share),
        }
        for context, wide, width in _settings(rows)
        for share in rows.distinct("network", "share")
        if share < 1
    }


FIGURES = (_shares_figure, _bytes_figure)
TABLES = (_texts_table, _networks_table, _bounds_table)
