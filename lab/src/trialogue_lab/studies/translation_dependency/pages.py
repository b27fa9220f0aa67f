"""Tables and figures of the study: exact gaps by pass and coupling, networks beside them, and Tables 4.4 and 4.5."""

from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import (
    BAD,
    COLORS,
    GOOD,
    OURS,
    PUBLISHED,
    QUIET,
    Cells,
    Rows,
    Statistic,
    figure,
    panels,
    result_table,
    spread,
)
from trialogue_lab.studies.translation_dependency.attention import Attention, attention_tables
from trialogue_lab.studies.translation_dependency.config import (
    ARMS,
    CONDITIONALS,
    DENOISER,
    DETERMINISTIC,
    ONE_STAGE,
    REAL_TEXT,
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


@result_table(
    "The gap of refinement, exact",
    "Propositions 4.1.2 and 4.1.3",
    rows_are="sentence and coupling",
    note="KL in nats from the truth to the law after so many passes from masks, mean over lengths; patterns are "
    "the tokens of each word's two synonyms; the first pass is one for both, and must lose the total correlation",
)
def _gaps_table(rows: Rows) -> Cells:
    keys = ["sentence", "coupling"]
    gaps = rows["refined"].set_index([*keys, "sampler", "passes"]).divergence
    taught = rows["alike"].set_index(keys)
    heads = {"first pass": (CONDITIONALS, 1)} | {
        f"{sampler}, {passes} passes": (sampler, passes)
        for sampler in (CONDITIONALS, DENOISER)
        for passes in (2, 4, 10)
    }
    lines: dict[str, dict[str, float | str]] = {}
    for one in (record for record in rows.records if record["kind"] == "truth"):
        place = one["sentence"], one["coupling"]
        lines["{sentence} ({pattern}), J = {coupling:g}".format(**one)] = {
            "total correlation": one["total_correlation"],
            **{head: gaps.get((*place, *setting), "") for head, setting in heads.items()},
            "teacher's law, first pass": taught.divergence[place],
            "teacher's law from the truth (TV)": taught.from_truth[place],
        }
    return lines


@result_table(
    "Adjacent tokens that repeat, exact",
    "Section 4.2.3",
    rows_are="sentence and coupling",
    note="share of pairs where words trade places; the truth's is below 0.001",
)
def _stutters_table(rows: Rows) -> Cells:
    table = rows["refined"].query("swapping > 0 and passes in (1, 4, 10)")
    lines: dict[str, dict[str, float]] = {}
    for (sentence, coupling), some in table.groupby(["sentence", "coupling"], sort=False):
        numbers = zip(some.sampler, some.passes, some.stutter, strict=True)
        lines[f"{sentence}, J = {coupling:g}"] = {
            f"{sampler}, {passes} passes": stutter for sampler, passes, stutter in numbers
        }
    return lines


@result_table(
    "What the networks translate",
    "Sections 4.2.2 and 4.2.3, Table 4.1",
    rows_are="network",
    note="share of outputs that are translations, BLEU beside one drawn translation, share of adjacent words that "
    "repeat; likeliest length, argmax; ± one standard deviation over trainings",
)
def _translations_table(_: Rows) -> Cells:
    heads = {"translations": "valid", "BLEU": "bleu", "stutter": "stutter"}

    def line(arm: str, passes: int) -> dict[str, Statistic]:
        return {head: translated(arm, column, passes) for head, column in heads.items()}

    return {TWIN: line(TWIN, 0)} | {
        f"{arm}, {passes} passes": {
            **line(arm, passes),
            "stutter, remasked": translated(arm, "stutter", passes, "stutter"),
            "translations, remasked": translated(arm, "valid", passes, "stutter"),
        }
        for arm in ARMS[1:]
        for passes in (1, 2, 4, 10)
    }


@result_table(
    "The networks' laws on sentences that can be listed",
    "Propositions 4.1.2 and 4.1.3",
    rows_are="network",
    note="sources not held out of training, lengths included, tokens drawn, from random targets, the same for "
    "perfect answers; KL in nats from the truth; outside: mass on other tokens, or other "
    "lengths, than the source's translations can have; ± over trainings",
)
def _laws_table(_: Rows) -> Cells:
    heads = {
        "KL": "divergence",
        "of which perfect answers leave": "perfect_divergence",
        "TV": "variation",
        "perfect answers, TV": "perfect_variation",
        "outside": "outside",
    }
    return {TWIN: {head: listed(TWIN, heads[head], 0) for head in ("KL", "TV")}} | {
        f"{arm}, {passes} passes": {head: listed(arm, column, passes) for head, column in heads.items()}
        for arm in ARMS[1:]
        for passes in (1, 4, 10)
    }


def _attending(table: DataFrame) -> dict[str, Attention]:
    """The networks that a table has rows of, in order."""
    measured = set(table.arm)
    arms = (TWO_STAGES, ONE_STAGE, DETERMINISTIC, REAL_TEXT)
    return {arm: partial(attention, arm=arm) for arm in arms if arm in measured}


TABLES = (
    _gaps_table,
    _stutters_table,
    _translations_table,
    _laws_table,
    *attention_tables(_attending, TWO_STAGES, "trainings"),
)


@figure(
    "passes",
    "The gap against how often the oracle is asked, exact, from one first pass. All tokens at once by the "
    "true conditionals stop short of the truth, where a denoiser, which also reads the token at a site, comes near "
    "it and then may leave again; one token at a time tends to the truth wherever it can get there, and the chain "
    "rule is there after one question for each token. Gaps below 0.001 are drawn at 0.001.",
)
def _passes_figure(rows: Rows) -> Drawing:
    table = rows["chain"]
    sentences = table.sentence.unique()
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
        panel.set(xscale="log", yscale="log", ylim=(1e-3, 3))
        panel.set(xlabel="times the oracle was asked", title=sentence)
    axes[0].set_ylabel("KL from the truth (nats)")
    axes[0].legend(loc="lower left", fontsize=7)
    return drawing


@figure(
    "dial",
    "The gap against the coupling of the styles of words, exact. The first pass loses the total "
    "correlation of the tokens. A teacher that always translates alike leaves nothing to lose.",
)
def _dial_figure(rows: Rows) -> Drawing:
    table, sentences = rows["refined"], rows["truth"].sentence.unique()
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
            some = rows.where("refined", sentence=sentence, sampler=sampler, passes=passes)
            some = some.sort_values("coupling")
            panel.plot(some.coupling, some.divergence, "o-", color=color, label=said, markersize=3)
        panel.axhline(0, color=COLORS[4], linestyle="--", label="a teacher's law, first pass")
        panel.set(xlabel="coupling J", title=sentence)
    axes[0].set_ylabel("KL from the truth (nats)")
    axes[min(2, len(axes) - 1)].legend(loc="center right", fontsize=7)
    return drawing


@figure(
    "networks",
    "Left: the gap of trained refiners whose tokens are drawn, beside what perfect answers leave and the "
    "twin. Middle: test sentences, argmax; every output is checked against the language. Right: attention of "
    "adjacent positions, mean over heads. Bars are one standard deviation over trainings.",
)
def _networks_figure(rows: Rows) -> Drawing:
    drawing, (left, middle, right) = panels(3, width=3.9, height=3.4)
    passes = rows.where("law", arm=ONE_STAGE).passes.sort_values().unique().tolist()
    lines = {"perfect answers": (ONE_STAGE, "perfect_divergence", QUIET)}
    lines |= {arm: (arm, "divergence", _COLOR_OF[arm]) for arm in (ONE_STAGE, TWO_STAGES)}
    for label, (arm, column, color) in lines.items():
        spread(left, passes, [listed(arm, column, count) for count in passes], rows, color=color, label=label)
    left.axhline(listed(TWIN, "divergence", 0)(rows).mean(), color=GOOD, linestyle="--", label=TWIN)
    left.set(xlabel="passes", ylabel="KL from the truth (nats)", title="Laws that can be listed")
    left.legend()
    passes = rows.where("quality", arm=ONE_STAGE).passes.sort_values().unique().tolist()
    for arm in ARMS[1:]:
        valid = [translated(arm, "valid", count) for count in passes]
        spread(middle, passes, valid, rows, color=_COLOR_OF[arm], label=arm)
    middle.axhline(translated(TWIN, "valid", 0)(rows).mean(), color=GOOD, linestyle="--", label=TWIN)
    middle.set(xlabel="passes", ylabel="share", ylim=(0, 1.02), title="outputs that are translations")
    middle.legend(loc="lower right")
    _draw_attention(right, rows)
    return drawing


def _draw_attention(axes: Axes, rows: Rows) -> None:
    """Bars of the pairs that stutter and of the others, with marks for the numbers in print."""
    heads = {
        "self-attention": ("own_mean", (0.032, 0.033)),
        "cross-attention: TV": ("variation_mean", (0.13, 0.23)),
        "cosine": ("cosine_mean", (0.10, 0.20)),
    }
    mark: dict[str, Any] = {"color": PUBLISHED, "markersize": 18, "markeredgewidth": 2}
    for number, (column, printed) in enumerate(heads.values()):
        for stutter, color, shift, in_print in (
            (True, BAD, -0.18, printed[0]),
            (False, OURS, 0.18, printed[1]),
        ):
            found, place = attention(column, stutter)(rows), number + shift
            label = None if number else "stuttering pairs" if stutter else "other pairs"
            error = float(found.std()) if len(found) > 1 else 0.0
            axes.bar(place, found.mean(), 0.33, yerr=error, color=color, label=label)
            label = None if number or not stutter else "in print (WMT)"
            axes.plot([place], [in_print], "_", label=label, **mark)
    axes.set_xticks(range(len(heads)), list(heads))
    axes.set(title=f"Adjacent positions, last layer ({TWO_STAGES})")
    axes.legend()


FIGURES = (_passes_figure, _dial_figure, _networks_figure)
