"""Tables and figures of the study: exact gaps by pass and coupling, trained networks, and Tables 4.4 and 4.5."""

from functools import partial

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab import ledger
from trialogue_lab.ledger import BAD, COLORS, GOOD, OURS, QUIET, Cells, Rows, Statistic, figure, panels
from trialogue_lab.studies.translation_dependency import config
from trialogue_lab.studies.translation_dependency.attention import Attention, make_attention_tables
from trialogue_lab.studies.translation_dependency.statistics import attention, listed, translated

_SAMPLERS = {
    config.CONDITIONALS: (BAD, "all tokens, true conditionals"),
    config.DENOISER: (OURS, "all tokens, perfect denoiser"),
    "Gibbs": (GOOD, "one token (Gibbs)"),
    "Gibbs of pairs": (COLORS[4], "two tokens, two model calls"),
}
_COLOR_OF = {config.ONE_STAGE: COLORS[3], config.TWO_STAGES: OURS, config.DETERMINISTIC: COLORS[4]}


@ledger.result_table(
    "The gap of refinement, exact",
    "Propositions 4.1.2 and 4.1.3",
    row_heading="sentence and coupling",
    note="KL in nats from the truth to the distribution after each number of passes from masks, mean over lengths. "
    "Pattern: tokens of each word's two synonyms. The first pass is the same for both models and loses the total "
    "correlation. Teacher: always uses the first synonyms, in order",
)
def _gaps_table(rows: Rows) -> DataFrame:
    keys = ["sentence", "coupling"]
    truth, teacher = rows["truth"].set_index(keys), rows["alike"].set_index(keys)
    columns = {"pattern": truth.pattern, "total correlation": truth.total_correlation}
    settings = [
        (config.CONDITIONALS, 1),
        *((name, passes) for name in (config.CONDITIONALS, config.DENOISER) for passes in (2, 4, 10)),
    ]
    for sampler, passes in settings:
        refined = rows.where("refined", sampler=sampler, passes=passes).set_index(keys)
        if len(refined):
            columns[f"{sampler}, {passes} passes"] = refined.divergence
    columns["teacher, first pass"] = teacher.divergence
    columns["TV from the teacher to the truth"] = teacher.from_truth
    table = DataFrame(columns)
    table.index = [f"{sentence}, J = {coupling:g}" for sentence, coupling in table.index]
    return table


@ledger.result_table(
    "Translations of the networks",
    "Sections 4.2.2 and 4.2.3, Table 4.1",
    row_heading="network",
    note="share of correct translations, BLEU against one sampled translation, share of repeated adjacent words. The "
    "most probable length and tokens are used; ± one standard deviation over trainings",
)
def _translations_table(_: Rows) -> Cells:
    columns = {"correct": "valid", "BLEU": "bleu", "repeated": "stutter"}

    def line(arm: str, passes: int) -> dict[str, Statistic]:
        return {head: translated(arm, column, passes) for head, column in columns.items()}

    return {config.TWIN: line(config.TWIN, 0)} | {
        f"{arm}, {passes} passes": {
            **line(arm, passes),
            "repeated, with remasking": translated(arm, "stutter", passes, "stutter"),
            "correct, with remasking": translated(arm, "valid", passes, "stutter"),
        }
        for arm in _COLOR_OF
        for passes in (1, 2, 4, 10)
    }


@ledger.result_table(
    "Distributions of the networks on sentences that can be enumerated",
    "Propositions 4.1.2 and 4.1.3",
    row_heading="network",
    note="sources that may occur in training. Joint distributions of length and tokens, tokens sampled, from random "
    "targets that the perfect denoiser starts from too. KL in nats from the truth; outside: probability of tokens or "
    "lengths that no translation of the source has; ± one standard deviation over trainings",
)
def _distributions_table(_: Rows) -> Cells:
    columns = {
        "KL": "divergence",
        "KL of the perfect denoiser": "perfect_divergence",
        "TV": "variation",
        "TV of the perfect denoiser": "perfect_variation",
        "outside": "outside",
    }
    return {config.TWIN: {head: listed(config.TWIN, columns[head], 0) for head in ("KL", "TV")}} | {
        f"{arm}, {passes} passes": {head: listed(arm, column, passes) for head, column in columns.items()}
        for arm in _COLOR_OF
        for passes in (1, 4, 10)
    }


def _attention_of(table: DataFrame) -> dict[str, Attention]:
    """Return the attention statistics of each network in a table."""
    measured = set(table.arm)
    arms = (config.TWO_STAGES, config.ONE_STAGE, config.DETERMINISTIC, config.REAL_TEXT)
    return {arm: partial(attention, arm=arm) for arm in arms if arm in measured}


TABLES = (
    _gaps_table,
    _translations_table,
    _distributions_table,
    *make_attention_tables(_attention_of, config.TWO_STAGES, "trainings"),
)


@figure(
    "passes",
    "Exact KL from the truth against the number of model calls, after the same first pass. Sampling all tokens from "
    "the true conditionals does not reach the truth. The denoiser, which also reads the current token, comes close and "
    "may then move away again. Gibbs sampling approaches the truth where it can reach it, and the chain rule is exact "
    "after one call per token. KL below 0.001 is drawn at 0.001.",
)
def _passes_figure(rows: Rows) -> Drawing:
    table = rows["chain"]
    sentences = table.sentence.unique()
    drawing, axes = panels(len(sentences), width=3.2, height=3.4, sharey=True)
    for panel, sentence in zip(axes, sentences, strict=True):
        own = table[table.sentence == sentence]
        for sampler, (color, label) in _SAMPLERS.items():
            line = own[own.sampler == sampler].sort_values("passes")
            panel.plot(line.passes, line.divergence.clip(lower=1e-3), color=color, label=label)
        chain_rule = own[own.sampler == "chain rule"].passes
        places = [1e-3] * len(chain_rule)
        panel.plot(chain_rule, places, "D", color=QUIET, clip_on=False, label="chain rule: exact")
        panel.set(xscale="log", yscale="log", ylim=(1e-3, 3), xlabel="model calls", title=sentence)
    axes[0].set_ylabel("KL from the truth (nats)")
    drawing.legend(handles=axes[0].get_lines(), loc="outside lower center", ncols=3)
    return drawing


@figure(
    "dial",
    "Exact KL from the truth against the coupling of the words' styles. The first pass loses the total correlation of "
    "the tokens. With a teacher that always translates in the same way there is no dependence to lose.",
)
def _dial_figure(rows: Rows) -> Drawing:
    table, sentences = rows["refined"], rows["truth"].sentence.unique()
    drawing, axes = panels(len(sentences), width=2.5, height=3.2, sharey=True)
    last = int(table.passes.max())
    lines = (
        (config.CONDITIONALS, 1, QUIET, "first pass"),
        (config.CONDITIONALS, last, BAD, f"{last} passes, conditionals"),
        (config.DENOISER, min(4, last), COLORS[6], f"{min(4, last)} passes, denoiser"),
        (config.DENOISER, last, OURS, f"{last} passes, denoiser"),
    )
    for panel, sentence in zip(axes, sentences, strict=True):
        for sampler, passes, color, label in lines:
            own = rows.where("refined", sentence=sentence, sampler=sampler, passes=passes)
            own = own.sort_values("coupling")
            panel.plot(own.coupling, own.divergence, "o-", color=color, label=label, markersize=3)
        panel.axhline(0, color=COLORS[4], linestyle="--", label="deterministic teacher, first pass")
        panel.set(xlabel="coupling J", title=sentence)
    axes[0].set_ylabel("KL from the truth (nats)")
    drawing.legend(handles=axes[0].get_lines(), loc="outside lower center", ncols=5)
    return drawing


@figure(
    "networks",
    "Left: KL of trained refiners with sampled tokens, compared with the perfect denoiser and the twin. Right: share "
    "of correct translations of test sentences, with the most probable tokens. Bars are one standard deviation over "
    "trainings.",
)
def _networks_figure(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, width=4.4, height=3.4)
    passes = rows.where("law", arm=config.ONE_STAGE).passes.sort_values().unique().tolist()
    lines = {"perfect denoiser": (config.ONE_STAGE, "perfect_divergence", QUIET)}
    lines |= {arm: (arm, "divergence", _COLOR_OF[arm]) for arm in (config.ONE_STAGE, config.TWO_STAGES)}
    for label, (arm, column, color) in lines.items():
        cells = [listed(arm, column, count) for count in passes]
        ledger.spread(left, passes, cells, rows, color=color, label=label)
    left.axhline(
        listed(config.TWIN, "divergence", 0)(rows).mean(), color=GOOD, linestyle="--", label=config.TWIN
    )
    left.set(xlabel="passes", ylabel="KL from the truth (nats)", title="Enumerated distributions")
    left.legend()
    passes = rows.where("quality", arm=config.ONE_STAGE).passes.sort_values().unique().tolist()
    for arm, color in _COLOR_OF.items():
        cells = [translated(arm, "valid", count) for count in passes]
        ledger.spread(right, passes, cells, rows, color=color, label=arm)
    right.axhline(
        translated(config.TWIN, "valid", 0)(rows).mean(), color=GOOD, linestyle="--", label=config.TWIN
    )
    right.set(xlabel="passes", ylabel="share", ylim=(0, 1.02), title="Correct translations")
    right.legend(loc="lower right")
    return drawing


FIGURES = (_passes_figure, _dial_figure, _networks_figure)
