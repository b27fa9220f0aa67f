"""Tables and figures of the study: exact gaps by pass and coupling, networks beside them, and Tables 4.4 and 4.5."""

from functools import partial

from pandas import DataFrame

from trialogue_lab.ledger import Cells, ResultTable, Rows, Statistic
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


def _gaps(rows: Rows) -> Cells:
    lines: dict[str, dict[str, float | str]] = {}
    table, truth, taught = rows["refined"], rows["truth"], rows["alike"]
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
    lines: dict[str, dict[str, Statistic]] = {
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


def _attending(table: DataFrame) -> dict[str, Attention]:
    measured = set(table.arm)
    return {
        arm: partial(attention, arm=arm)
        for arm in (TWO_STAGES, ONE_STAGE, DETERMINISTIC, REAL_TEXT)
        if arm in measured
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
        note="sources not held out of training, lengths included, tokens drawn, from random targets, the same for "
        "perfect answers; KL in nats from the truth; outside: mass on other tokens, or other "
        "lengths, than the source's translations can have; ± over trainings",
    ),
    *attention_tables(_attending, TWO_STAGES, "trainings"),
)
