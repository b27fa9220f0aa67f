"""Figures of the study: distinct correct cases against queries, every decoding beside the thesis, and the grid."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure as Drawing

from trialogue.ledger import Figure, Rows
from trialogue.ledger.pages.figures import COLORS, GOOD, OURS, PUBLISHED, panels
from trialogue.studies.test_cases.decodings import MAIN, TEMPERATURES, TOP_PS, DecodingRule, block_best_of
from trialogue.studies.test_cases.published import PUBLISHED as PRINTED
from trialogue.studies.test_cases.published import REQUESTED
from trialogue.studies.test_cases.quantities import measured, per_query

_BLOCK = "block best-of-n"
_KINDS = {
    "none": (OURS, "no verifier", "--"),
    "trained": (COLORS[3], "Algorithm 1, trained verifier", "-"),
    "ground_truth": (GOOD, "Algorithm 1, ground truth", "-"),
    "random": (COLORS[4], "Algorithm 1, random verifier", "-"),
    "block": (COLORS[5], _BLOCK, "--"),
}
_SHOWN = (*MAIN, *map(block_best_of, (2, 4, 8)))
_WORDS = {
    "-no-argmax": ", no greedy redo",
    "Q4-B4": "Q = B = 4",
    "Q10-B4": "Q = 10",
    "Q4-B10": "B = 10",
    "-below-": ", below ",
    "block-best-of-": "best of ",
    "top_p-0.0": "greedy",
    "ground_truth": "ground truth:",
    "none": "no verifier:",
    "random": "random:",
    "trained": "trained:",
}


class Curve(NamedTuple):
    """How a decoding is drawn."""

    color: str
    label: str
    line: str


def curve_of(name: str) -> Curve:
    """How the decoding called `name` is drawn: by its verifier, and dotted where names are out of distribution."""
    judge, *words = name.split("-")
    color, label, line = _KINDS["block" if "block" in words else judge]
    return Curve(color, f"{label}, out of distribution", ":") if "ood" in words else Curve(color, label, line)


def _words(decoding: DecodingRule) -> str:
    judge, _, rest = decoding.name.partition("-")
    text = f"{judge} {rest or 'nucleus'}"
    for word, plain in _WORDS.items():
        text = text.replace(word, plain)
    return text


def _draw_queries(rows: Rows) -> Drawing:
    setups = _setups(rows)
    drawing, axes = panels(2, len(setups), width=5.0, height=3.9)
    for place, (label, beside) in enumerate(setups.items()):
        whole, zoomed = axes[2 * place : 2 * place + 2]
        for name, table in rows.where("draw", beside=beside).groupby("decoding", sort=False):
            curve = curve_of(str(name))
            mean = table.groupby("runs")[["queries", "distinct_correct"]].mean()
            for panel in (whole, zoomed) if curve.label != _BLOCK else (whole,):
                known = {line.get_label() for line in panel.lines}
                shown = "_" if curve.label in known else curve.label
                line = panel.plot(
                    mean.queries, mean.distinct_correct, "o", ms=2, lw=0.9, color=curve.color, label=shown
                )
                line[0].set_linestyle(curve.line)
        for panel, title in ((whole, "Figure 3.3"), (zoomed, f"Figure 3.4: without {_BLOCK}")):
            panel.set(xlabel="queries", ylabel="distinct correct test cases", xlim=(0, None), ylim=(0, None))
            panel.set_title(f"{title}, {label}")
    axes[0].legend(loc="upper right")
    return drawing


def _setups(rows: Rows) -> dict[str, bool]:
    """Whether rows are the surrogate's, which the run measures beside its model, by what each is called here."""
    known = rows["draw"].beside.unique()
    return {label: beside for label, beside in (("model", False), ("surrogate", True)) if beside in known}


def _draw_decodings(rows: Rows) -> Drawing:
    """One line per decoding: distinct accuracy on the left, distinct correct cases in 100 queries on the right."""
    of_run = [decoding for decoding in _SHOWN if len(measured(decoding)(rows))]
    drawing, (accuracies, rates) = panels(2, width=4.6, height=4.4, sharey=True)
    for place, decoding in enumerate(of_run):
        color = curve_of(decoding.name).color
        for axes, quantity in ((accuracies, measured), (rates, per_query)):
            for beside, marker, shift in ((False, "o", 0.0), (True, "s", 0.25)):
                numbers = quantity(decoding, beside=beside)(rows)
                if len(numbers):
                    face = "white" if beside else color
                    axes.errorbar(
                        numbers.mean(),
                        place + shift,
                        xerr=numbers.std(),
                        fmt=marker,
                        ms=4,
                        color=color,
                        mfc=face,
                    )
        accuracy, queries = PRINTED[decoding]
        accuracies.plot(accuracy, place, "x", ms=7, color=PUBLISHED)
        rates.plot(100 * REQUESTED * accuracy / queries, place, "x", ms=7, color=PUBLISHED)
    accuracies.set(xlabel="distinct accuracy", xlim=(0, None), title="Crosses: the thesis (CodeLlama-7B)")
    accuracies.set(yticks=range(len(of_run)), yticklabels=[_words(decoding) for decoding in of_run])
    accuracies.invert_yaxis()
    rates.set(xlabel="distinct correct cases in 100 queries", xlim=(0, None), title="Squares: the surrogate")
    return drawing


def _draw_grid(rows: Rows) -> Drawing:
    """Distinct accuracy without a verifier by top-p and temperature: the thesis' beside ours."""
    maps: dict[str, Callable[[DecodingRule], float]] = {
        "thesis (CodeLlama-7B)": lambda rule: PRINTED[rule].accuracy
    }
    for label, beside in _setups(rows).items():
        maps[label] = partial(_mean_accuracy, rows, beside)
    drawing, axes = panels(len(maps), width=3.6, height=2.9)
    widths = [top_p for top_p in TOP_PS if top_p > 0]
    for panel, (title, accuracy) in zip(axes, maps.items(), strict=True):
        table = np.array(
            [[accuracy(DecodingRule(top_p=p, temperature=t)) for t in TEMPERATURES] for p in widths]
        )
        panel.imshow(table, cmap="Blues", origin="lower", aspect="auto")
        middle = np.nanmean([np.nanmin(table), np.nanmax(table)]) if np.isfinite(table).any() else np.nan
        for (line, column), number in np.ndenumerate(table):
            color = "white" if number > middle else "black"
            shown = "–" if np.isnan(number) else f"{number:.2f}"
            panel.text(column, line, shown, ha="center", va="center", fontsize=7, color=color)
        panel.set(xticks=range(len(TEMPERATURES)), xticklabels=TEMPERATURES, xlabel="temperature")
        panel.set(yticks=range(len(widths)), yticklabels=widths, ylabel="top-p", title=title)
        panel.grid(False)
    return drawing


def _mean_accuracy(rows: Rows, beside: bool, rule: DecodingRule) -> float:
    return float(measured(rule, beside=beside)(rows).mean())


FIGURES = (
    Figure(
        name="queries",
        caption="Figures 3.3 and 3.4: distinct correct cases against queries as runs are added, means over "
        "repetitions, one line per decoding.",
        draw=_draw_queries,
    ),
    Figure(
        name="decodings",
        caption="Every decoding at top-p 0.95 and T = 1: means over repetitions with bars of one deviation, beside the "
        "numbers of the thesis, whose model is another and whose prompts hold no demonstration of the function (its "
        "number for B = 10 is of top-p 1). Circles: the model of the run.",
        draw=_draw_decodings,
    ),
    Figure(
        name="grid",
        caption="Table 3.13 as maps: distinct accuracy without a verifier by top-p and temperature, means over "
        "repetitions.",
        draw=_draw_grid,
    ),
)
