"""The figures of the study: gaps by pass and by coupling, networks beside them, attention of adjacent positions."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, PUBLISHED, QUIET, panels
from trialogue_lab.ledger import Figure, Rows
from trialogue_lab.ledger.pages.figures import spread
from trialogue_lab.studies.translation_dependency.config import (
    ARMS,
    CONDITIONALS,
    DENOISER,
    DETERMINISTIC,
    ONE_STAGE,
    TWIN,
    TWO_STAGES,
)
from trialogue_lab.studies.translation_dependency.statistics import attention, listed, translated

_SAMPLERS = {
    CONDITIONALS: (BAD, "all tokens, true conditionals"),
    DENOISER: (OURS, "all tokens, perfect denoiser"),
    "Gibbs": (GOOD, "one token (Gibbs)"),
    "Gibbs of pairs": (COLORS[4], "a pair, two questions"),
}
_COLOR_OF = {TWIN: GOOD, ONE_STAGE: COLORS[3], TWO_STAGES: OURS, DETERMINISTIC: COLORS[4]}


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
