"""Tables and figure of the study."""

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import Cells, Rows, Statistic, figure, panels, result_table
from trialogue_lab.studies.translation.config import MASK_PREDICT, REFINER, RESCORED, SMALL, TWIN
from trialogue_lab.studies.translation.statistics import attention, corpus, latency, score, small
from trialogue_lab.studies.translation_dependency.attention import Attention, make_attention_tables

_STEPS, _MOST = (1, 2, 4, 10), 5
_SETTINGS = [*((steps, _MOST) for steps in _STEPS), (4, 1), (4, 3)]

_PUBLISHED = {
    f"twin, beam of {_MOST}": {"BLEU": 33.50},
    f"refiner, 4 steps, {_MOST} hypotheses": {"BLEU": 33.49},
    f"refiner, 10 steps, {_MOST} hypotheses": {"BLEU": 33.63},
    f"mask-predict, 4 steps, {_MOST} hypotheses": {"BLEU": 30.75},
    f"mask-predict, 10 steps, {_MOST} hypotheses": {"BLEU": 31.24},
}


@result_table(
    "Quality against steps and hypotheses",
    "Tables 4.1 and 4.2",
    row_heading="translator",
    published=_PUBLISHED,
    note="BLEU and chrF of sacreBLEU on all detokenised test sentences, with 95 % bootstrap intervals over sentences. "
    "Repeated: rate of repeated words before repeats are dropped; for rescored candidates, as the twin ranked them. "
    "Passes: decoder passes per sentence. Published: WMT14, German to English; mask-predict: BLEU of Table 4.2",
)
def _quality_table(_: Rows) -> Cells:
    cells = {"twin, greedy": _quality(TWIN, 0, 1), f"twin, beam of {_MOST}": _quality(TWIN, 0, _MOST)}
    for name, arm in (("refiner", REFINER), ("ranked by the twin", RESCORED), ("mask-predict", MASK_PREDICT)):
        for steps, count in _SETTINGS[: len(_STEPS)] if arm == MASK_PREDICT else _SETTINGS:
            cells[f"{name}, {steps} steps, {count} hypotheses"] = _quality(arm, steps, count)
    return cells


def _quality(arm: str, steps: int, hypotheses: int) -> "dict[str, Statistic]":
    columns = {"BLEU": "bleu", "from": "low", "to": "high", "chrF": "chrf", "repeated": "stutter"}
    columns |= {"repeated from": "stutter_low", "repeated to": "stutter_high"}
    cells = {name: corpus(arm, steps, hypotheses, column=column) for name, column in columns.items()}
    cells["sentences with a repeated token"] = score(arm, steps, hypotheses, "stuttering")
    cells["passes"] = score(arm, steps, hypotheses, "passes")
    return cells


@result_table(
    "BLEU by kind of test sentence",
    "Table 4.1",
    row_heading="translator",
    note="familiar: a training target equals the reference up to one word",
)
def _strata_table(_: Rows) -> Cells:
    strata = ("all", "familiar", "new", "new, 12 tokens or more")
    arms = {
        "twin, greedy": (TWIN, 0, 1),
        "refiner, 4 steps, 5 hypotheses": (REFINER, 4, _MOST),
        "ranked by the twin": (RESCORED, 4, _MOST),
    }
    return {name: {stratum: corpus(*arm, stratum) for stratum in strata} for name, arm in arms.items()}


@result_table(
    "Effect of the recommendations on small refiners",
    "Section 4.2.2",
    row_heading="refiner",
    note="one hypothesis; means over sets of test sentences ± one standard deviation",
)
def _recommendations_table(_: Rows) -> Cells:
    return {
        arm: {
            "BLEU, 1 step": small(arm, 1),
            "BLEU, 4 steps": small(arm, 4),
            "repeated, 4 steps": small(arm, 4, "stutter"),
        }
        for arm in SMALL
    }


@result_table(
    "Seconds per sentence",
    "Section 4.2.3",
    row_heading="translator",
    note="on one thread, contenders in rotating order; long: references of 20 tokens and more. Refiners are named by "
    "steps and hypotheses; rescored: ranked by the twin",
)
def _latencies_table(_: Rows) -> Cells:
    refiners = [f"{steps} steps, {count}" for steps in (4, 10) for count in (1, _MOST)]
    return {
        contender: {
            f"{column}, {sentences}": latency(contender, column, sentences)
            for column, sentences in (("median", "all"), ("p99", "all"), ("median", "long"))
        }
        for contender in (TWIN, *refiners, f"4 steps, {_MOST}, rescored")
    }


def _attention_of(table: DataFrame) -> dict[str, Attention]:
    return dict.fromkeys(table.arm.unique(), attention)


TABLES = (
    _quality_table,
    _strata_table,
    _recommendations_table,
    _latencies_table,
    *make_attention_tables(_attention_of, REFINER, "sets of test sentences"),
)


@figure(
    "steps",
    "BLEU and repeated words against refinement steps, with five length hypotheses. Means over sets of test sentences "
    "with standard errors.",
)
def _steps_figure(rows: Rows) -> Drawing:
    drawing, axes = panels(2, width=3.4, height=2.9)
    table = rows.where("set", arm=MASK_PREDICT)
    most, steps = int(table.hypotheses.max()), sorted(table.steps.unique())
    for ax, column, label in zip(axes, ("bleu", "stutter"), ("BLEU", "rate of repeated words"), strict=True):
        for arm in (REFINER, RESCORED, MASK_PREDICT):
            numbers = DataFrame({step: score(arm, step, most, column)(rows) for step in steps})
            ax.errorbar(steps, numbers.mean(), numbers.sem(), marker="o", label=arm)
        ax.axhline(score(TWIN, 0, 1, column)(rows).mean(), color="0.5", linestyle="--", label="twin, greedy")
        ax.set_xscale("log")
        ax.set_xticks(steps, [str(step) for step in steps])
        ax.minorticks_off()
        ax.set(xlabel="steps", ylabel=label)
        ax.legend()
    return drawing


FIGURES = (_steps_figure,)
