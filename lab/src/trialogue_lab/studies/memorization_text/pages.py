"""Figures and tables of the study."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame, concat

from trialogue_lab.ledger import BAD, COLORS, GOOD, OURS, QUIET, Cells, Rows, figure, panels, result_table
from trialogue_lab.studies.memorization_text import statistics
from trialogue_lab.studies.memorization_text.config import (
    EXACT,
    LIKELIEST,
    RIDGE,
    TABLE,
    TRAINED,
    TRANSFORMER,
)

_SAID = {
    LIKELIEST: "the likeliest held exactly (Theorem 1)",
    RIDGE: "ridge regression",
    EXACT: "all held exactly, 10 % to spare",
    TRAINED: "attention-only, trained",
    TRANSFORMER: "transformer, trained",
    TABLE: "n-gram table",
}
_DRAWN = {
    LIKELIEST: ("v-", BAD),
    RIDGE: ("s-", OURS),
    EXACT: ("D", OURS),
    TRAINED: ("*", COLORS[4]),
    TRANSFORMER: ("P", COLORS[3]),
    TABLE: ("o--", GOOD),
}
_FLOOR = 1e-4
_KILO = 1000
_TICKS = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_STAR = 9
_WIDE = (False, True)


def _different(rows: Rows, kind: str, column: str) -> list[float]:
    return sorted(rows[kind][column].unique().tolist())


def _contexts(rows: Rows) -> list[int]:
    return [int(each) for each in _different(rows, "text", "context")]


def _medians(rows: Rows, context: int, width: int) -> DataFrame:
    """Medians over samples, by method and share."""
    table = rows.where("network", context=context, width=width)
    return table.groupby(["method", "share"])[["kl", "kl_float32", "held_out", "bytes"]].median()


def _draw_by_share(axes: Axes, medians: DataFrame) -> None:
    for method, (style, color) in _DRAWN.items():
        if method not in medians.index.get_level_values("method"):
            continue
        line = medians.loc[method].reset_index()
        size = _STAR if style == "*" else None
        axes.plot(line.share, line.kl, style, color=color, ms=size, label=_SAID[method])


@figure(
    "shares",
    "How near networks come to the law of the next token after the most frequent contexts of a text, by "
    "how many of the contexts they have features for; medians over samples of the text. Trained networks have the "
    "shape, or the parameters, of that share.",
)
def _shares_figure(rows: Rows) -> Drawing:
    contexts = _contexts(rows)
    drawing, axes = panels(2 * len(contexts), 1, width=3.6, height=3.4, sharey=True)
    drawn = iter(axes)
    for context in contexts:
        for wide in _WIDE:
            one, width = next(drawn), statistics.width_of(rows, wide)
            medians = _medians(rows, context, width)
            one.axhline(
                statistics.text("alone_kl", context)(rows).median(),
                color=QUIET,
                ls=":",
                label="law of single tokens",
            )
            one.axhline(
                statistics.encoder("kl", context, wide)(rows).median(),
                color=QUIET,
                ls="--",
                label="nearest encoder",
            )
            _draw_by_share(one, medians.drop(TABLE, level="method"))
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
    contexts = _contexts(rows)
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
        for method in (RIDGE, EXACT, TRAINED, TRANSFORMER):
            if method in medians.index.get_level_values("method"):
                style, color = _DRAWN[method]
                line, said = medians.loc[method], f"{_SAID[method]}, d = {width}"
                size = _STAR if style == "*" else None
                axes.plot(
                    line.bytes / _KILO, line[column], style, color=color, alpha=alpha, ms=size, label=said
                )
    both = [_medians(rows, context, statistics.width_of(rows, wide)).loc[TABLE] for wide in _WIDE]
    table = concat(both).sort_values("bytes")
    style, color = _DRAWN[TABLE]
    axes.plot(table.bytes / _KILO, table[column].clip(lower=floor), style, color=color, label=_SAID[TABLE])
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
        for context in _contexts(rows)
    }


@result_table(
    "Networks and tables of as many bytes",
    "Theorem 1",
    rows_are="features for a share of the contexts",
    note="nats a token; bytes of float32 weights, and those that a table uses of as many. In float32: the KL where "
    "weights are cast. Known: contexts that the law has. Means over samples, ± one standard deviation",
)
def _networks_table(rows: Rows) -> Cells:
    shares = _different(rows, "network", "share")
    measured = set(rows["network"].method)
    return {
        f"S = {context}, d = {statistics.width_of(rows, wide)}, {share:.0%}: {_SAID[method]}": {
            "bytes": statistics.network("bytes", method, context, wide, share),
            "KL": statistics.network("kl", method, context, wide, share),
            "in float32": statistics.network("kl_float32", method, context, wide, share),
            "held-out loss": statistics.network("held_out", method, context, wide, share),
            "of known contexts": statistics.network("held_out_known", method, context, wide, share),
        }
        for context in _contexts(rows)
        for wide in _WIDE
        for share in shares
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
        f"S = {context}, d = {statistics.width_of(rows, wide)}, {share:.0%} of the contexts": {
            "prior left out": statistics.network("left", LIKELIEST, context, wide, share),
            "KL": statistics.network("kl", LIKELIEST, context, wide, share),
            "(13)": statistics.network("tight", LIKELIEST, context, wide, share),
            "(14)": statistics.network("loose", LIKELIEST, context, wide, share),
        }
        for context in _contexts(rows)
        for wide in _WIDE
        for share in _different(rows, "network", "share")
        if share < 1
    }


FIGURES = (_shares_figure, _bytes_figure)
TABLES = (_texts_table, _networks_table, _bounds_table)
