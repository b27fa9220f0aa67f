"""Tables and figures of the study: exact gaps by pass and coupling, networks beside them, and Tables 4.4 and 4.5."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from trialogue.ledger import Cells, Figure, Quantity, ResultTable, Rows
from trialogue.ledger.pages.figures import BAD, COLORS, GOOD, OURS, PUBLISHED, QUIET, panels, spread
from trialogue.studies.translation_dependency.config import (
    ARMS,
    CONDITIONALS,
    DENOISER,
    DISTILLED,
    ONE_STAGE,
    REAL_TEXT,
    TWIN,
    TWO_STAGES,
)
from trialogue.studies.translation_dependency.quantities import attention, listed, translated

_SAMPLERS = {
    CONDITIONALS: (BAD, "all tokens, true conditionals"),
    DENOISER: (OURS, "all tokens, perfect denoiser"),
    "Gibbs": (GOOD, "one token (Gibbs)"),
    "Gibbs of pairs": (COLORS[4], "a pair, two questions"),
}
_COLOR_OF = {TWIN: GOOD, ONE_STAGE: COLORS[3], TWO_STAGES: OURS, DISTILLED: COLORS[4]}
_STUTTER = {True: "yes", False: "no"}
_OWN = {
    "min": "own_least",
    "avg": "own_mean",
    "max": "own_most",
    "k=1": "own_overlap_1",
    "k=2": "own_overlap_2",
}
_CROSS = {
    "TV min": "variation_least",
    "TV avg": "variation_mean",
    "TV max": "variation_most",
    "cos min": "cosine_least",
    "cos avg": "cosine_mean",
    "cos max": "cosine_most",
    "k=1": "source_overlap_1",
    "k=2": "source_overlap_2",
}


def _gaps(rows: Rows) -> Cells:
    lines: dict[str, dict[str, float | str]] = {}
    table, truth, taught = rows["refined"], rows["truth"], rows["distilled"]
    for one in truth.itertuples():
        here = table[(table.sentence == one.sentence) & (table.coupling == one.coupling)]
        alike = taught[(taught.sentence == one.sentence) & (taught.coupling == one.coupling)].iloc[0]
        line: dict[str, float | str] = {"total correlation": float(str(one.total_correlation))}
        for sampler, said in ((CONDITIONALS, "conditionals"), (DENOISER, "denoiser")):
            for passes in (1, 2, 4, 10) if sampler == CONDITIONALS else (2, 4, 10):
                found = here[(here.sampler == sampler) & (here.passes == passes)].divergence
                name = "first pass" if passes == 1 else f"{said}, {passes} passes"
                line[name] = float(found.iloc[0]) if len(found) else ""
        line["teacher's law, first pass"] = float(alike.divergence)
        line["teacher's law from the truth (TV)"] = float(alike.from_truth)
        lines[f"{one.sentence} ({one.pattern}), J = {one.coupling:g}"] = line
    return lines


def _stutters(rows: Rows) -> Cells:
    table = rows["refined"]
    table = table[table.sentence.isin(table[table.swapping > 0].sentence)]
    return {
        f"{sentence}, J = {coupling:g}": {
            f"{sampler}, {passes} passes": float(
                some[(some.sampler == sampler) & (some.passes == passes)].stutter.iloc[0]
            )
            for sampler in (CONDITIONALS, DENOISER)
            for passes in (1, 4, 10)
            if len(some[(some.sampler == sampler) & (some.passes == passes)])
        }
        for (sentence, coupling), some in table.groupby(["sentence", "coupling"], sort=False)
    }


def _translations() -> Cells:
    heads = {"translations": "valid", "BLEU": "bleu", "stutter": "stutter"}
    lines: dict[str, dict[str, Quantity]] = {
        TWIN: {head: translated(TWIN, column, 0) for head, column in heads.items()}
    }
    for arm in ARMS[1:]:
        for passes in (1, 2, 4, 10):
            lines[f"{arm}, {passes} passes"] = {
                **{head: translated(arm, column, passes) for head, column in heads.items()},
                "stutter, remasked": translated(arm, "stutter", passes, "stutter"),
                "translations, remasked": translated(arm, "valid", passes, "stutter"),
            }
    return lines


def _laws() -> Cells:
    lines = {TWIN: {"KL": listed(TWIN, "divergence", 0), "TV": listed(TWIN, "variation", 0)}}
    for arm in ARMS[1:]:
        for passes in (1, 4, 10):
            lines[f"{arm}, {passes} passes"] = {
                "KL": listed(arm, "divergence", passes),
                "of which perfect answers leave": listed(arm, "perfect_divergence", passes),
                "TV": listed(arm, "variation", passes),
                "perfect answers, TV": listed(arm, "perfect_variation", passes),
                "outside": listed(arm, "outside", passes),
            }
    return lines


def _attended(heads: dict[str, str], rows: Rows) -> Cells:
    measured = set(rows["attention"].arm)
    return {
        f"{arm}, stutter: {said}": {head: attention(column, stutter, arm) for head, column in heads.items()}
        for arm in (TWO_STAGES, ONE_STAGE, DISTILLED, REAL_TEXT)
        if arm in measured
        for stutter, said in _STUTTER.items()
    }


def _in_print(
    yes: Sequence[float], no: Sequence[float], heads: dict[str, str]
) -> dict[str, dict[str, float]]:
    lines = zip((True, False), (yes, no), strict=True)
    return {
        f"{TWO_STAGES}, stutter: {_STUTTER[key]}": dict(zip(heads, line, strict=True)) for key, line in lines
    }


TABLES = (
    ResultTable(
        title="The gap of refinement, exact",
        source="Propositions 4.1.2 and 4.1.3",
        cells=_gaps,
        rows_are="sentence and coupling",
        note="KL in nats from the truth to the law after so many passes from masks, mean over lengths; patterns are "
        "the tokens of each word's two synonyms; the first pass is one for both, and must lose the total correlation",
    ),
    ResultTable(
        title="Adjacent tokens that repeat, exact",
        source="Section 4.2.3",
        cells=_stutters,
        rows_are="sentence and coupling",
        note="share of pairs where words trade places; the truth's is below 0.001",
    ),
    ResultTable(
        title="What the networks translate",
        source="Sections 4.2.2 and 4.2.3, Table 4.1",
        cells=_translations(),
        rows_are="network",
        note="share of outputs that are translations, BLEU beside one drawn translation, share of adjacent words that "
        "repeat; likeliest length, argmax; ± one standard deviation over trainings",
    ),
    ResultTable(
        title="The networks' laws on sentences that can be listed",
        source="Propositions 4.1.2 and 4.1.3",
        cells=_laws(),
        rows_are="network",
        note="lengths included, tokens drawn; KL in nats from the truth; outside: mass on other tokens, or other "
        "lengths, than the source's translations can have; ± over trainings",
    ),
    ResultTable(
        title="Self-attention between adjacent positions",
        source="Table 4.4",
        cells=partial(_attended, _OWN),
        published=_in_print((0.0004, 0.032, 0.16, 0.20, 0.39), (0.0005, 0.033, 0.17, 0.17, 0.37), _OWN),
        rows_are="network and pairs",
        note="last layer, least, mean and most over heads and both directions, mean over pairs; k: the other position "
        "is among the k most attended; ± over trainings; in print: WMT",
    ),
    ResultTable(
        title="Cross-attention of adjacent positions",
        source="Table 4.5",
        cells=partial(_attended, _CROSS),
        published=_in_print(
            (0.06, 0.13, 0.23, 0.01, 0.10, 0.25, 0.57, 0.89),
            (0.11, 0.23, 0.35, 0.04, 0.20, 0.38, 0.40, 0.81),
            _CROSS,
        ),
        rows_are="network and pairs",
        note="last layer, between the laws of attention to the source; k: the k most attended have one in common; ± "
        "over trainings; in print: WMT",
    ),
)


def _draw_passes(rows: Rows) -> Drawing:
    table = rows["chain"]
    sentences = list(dict.fromkeys(table.sentence))
    drawing, axes = panels(len(sentences), width=3.2, height=3.4, sharey=True)
    for panel, sentence in zip(axes, sentences, strict=True):
        some = table[table.sentence == sentence]
        for sampler, (color, said) in _SAMPLERS.items():
            line = some[some.sampler == sampler].sort_values("passes")
            panel.plot(line.passes, line.divergence.clip(lower=1e-3), color=color, label=said)
        ruled = some[some.sampler == "chain rule"]
        if len(ruled):
            places = [1e-3] * len(ruled)
            panel.plot(ruled.passes, places, "D", color=QUIET, clip_on=False, label="chain rule: exact")
        panel.set(
            xscale="log", yscale="log", ylim=(1e-3, 3), xlabel="times the oracle was asked", title=sentence
        )
    axes[0].set_ylabel("KL from the truth (nats)")
    axes[0].legend(loc="lower left", fontsize=7)
    return drawing


def _draw_dial(rows: Rows) -> Drawing:
    table, truth = rows["refined"], rows["truth"]
    sentences = list(dict.fromkeys(truth.sentence))
    drawing, axes = panels(len(sentences), width=2.5, height=3.2, sharey=True)
    last = int(table.passes.max())
    lines = (
        (CONDITIONALS, 1, QUIET, "first pass"),
        (CONDITIONALS, last, BAD, f"{last} passes, conditionals"),
        (DENOISER, min(4, last), COLORS[6], f"{min(4, last)} passes, denoiser"),
        (DENOISER, last, OURS, f"{last} passes, denoiser"),
    )
    for panel, sentence in zip(axes, sentences, strict=True):
        for sampler, passes, color, said in lines:
            some = table[(table.sentence == sentence) & (table.sampler == sampler) & (table.passes == passes)]
            some = some.sort_values("coupling")
            panel.plot(some.coupling, some.divergence, "o-", color=color, label=said, markersize=3)
        panel.axhline(0, color=COLORS[4], linestyle="--", label="a teacher's law, first pass")
        panel.set(xlabel="coupling J", title=sentence)
    axes[0].set_ylabel("KL from the truth (nats)")
    axes[min(2, len(axes) - 1)].legend(loc="center right", fontsize=7)
    return drawing


def _draw_networks(rows: Rows) -> Drawing:
    drawing, (left, middle, right) = panels(3, width=3.9, height=3.4)
    passes = sorted(rows.where("law", arm=ONE_STAGE).passes.unique())
    perfect = [listed(ONE_STAGE, "perfect_divergence", count) for count in passes]
    spread(left, passes, perfect, rows, color=QUIET, label="perfect answers")
    for arm in (ONE_STAGE, TWO_STAGES):
        found = [listed(arm, "divergence", count) for count in passes]
        spread(left, passes, found, rows, color=_COLOR_OF[arm], label=arm)
    twin = listed(TWIN, "divergence", 0)(rows)
    left.axhline(twin.mean(), color=GOOD, linestyle="--", label=TWIN)
    left.set(xlabel="passes", ylabel="KL from the truth (nats)", title="Laws that can be listed")
    left.legend()
    _quality(middle, rows, "valid", "outputs that are translations")
    _attention(right, rows)
    return drawing


def _quality(axes: Axes, rows: Rows, column: str, said: str) -> None:
    passes = sorted(rows.where("quality", arm=ONE_STAGE).passes.unique())
    for arm in ARMS[1:]:
        found = [translated(arm, column, count) for count in passes]
        spread(axes, passes, found, rows, color=_COLOR_OF[arm], label=arm)
    axes.axhline(translated(TWIN, column, 0)(rows).mean(), color=GOOD, linestyle="--", label=TWIN)
    axes.set(xlabel="passes", ylabel="share", ylim=(0, 1.02), title=said)
    axes.legend(loc="lower right")


def _attention(axes: Axes, rows: Rows) -> None:
    heads = {"self-attention": "own_mean", "cross-attention: TV": "variation_mean", "cosine": "cosine_mean"}
    printed = {"own_mean": (0.032, 0.033), "variation_mean": (0.13, 0.23), "cosine_mean": (0.10, 0.20)}
    for place, column in enumerate(heads.values()):
        for shift, (stutter, color) in enumerate(((True, BAD), (False, OURS))):
            found = attention(column, stutter)(rows)
            label = f"{'stuttering' if stutter else 'other'} pairs" if not place else None
            error = float(found.std()) if len(found) > 1 else 0.0
            axes.bar(place + 0.36 * shift - 0.18, found.mean(), 0.33, yerr=error, color=color, label=label)
            axes.plot(
                [place + 0.36 * shift - 0.18],
                [printed[column][shift]],
                "_",
                color=PUBLISHED,
                markersize=18,
                markeredgewidth=2,
                label="in print (WMT)" if not place and not shift else None,
            )
    axes.set_xticks(np.arange(len(heads)), list(heads))
    axes.set(title=f"Adjacent positions, last layer ({TWO_STAGES})")
    axes.legend()


FIGURES = (
    Figure(
        name="passes",
        caption="The gap against how often the oracle is asked, exact, from one first pass. All tokens at once by the "
        "true conditionals stop short of the truth, where a denoiser, which also reads the token at a site, comes near "
        "it and then may leave again; one token at a time tends to the truth wherever it can get there, and the chain "
        "rule is there after one question for each token. Gaps below 0.001 are drawn at 0.001.",
        draw=_draw_passes,
    ),
    Figure(
        name="dial",
        caption="The gap against the coupling of the styles of words, exact. The first pass loses the total "
        "correlation of the tokens. A teacher that always translates alike leaves nothing to lose.",
        draw=_draw_dial,
    ),
    Figure(
        name="networks",
        caption="Left: the gap of trained refiners whose tokens are drawn, beside what perfect answers leave and the "
        "twin. Middle: test sentences, argmax; every output is checked against the language. Right: attention of "
        "adjacent positions, mean over heads. Bars are one standard deviation over trainings.",
        draw=_draw_networks,
    ),
)
