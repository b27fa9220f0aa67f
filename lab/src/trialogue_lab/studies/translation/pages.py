"""Tables and figure of the study."""

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.display.figures import panels
from trialogue_lab.ledger import Cells, Figure, ResultTable, Rows
from trialogue_lab.ledger.claims.statistics import Statistic
from trialogue_lab.studies.translation.config import MASK_PREDICT, REFINER, RESCORED, SMALL, TWIN
from trialogue_lab.studies.translation.statistics import attention, corpus, latency, score, small
from trialogue_lab.studies.translation_dependency.attention import Attention, attention_tables

_STEPS, _HYPOTHESES, _MOST = (1, 2, 4, 10), (1, 3, 5), 5
_SETTINGS = [(steps, _MOST) for steps in _STEPS] + [(4, count) for count in _HYPOTHESES[:-1]]

_IN_PRINT = {
    f"twin, beam of {_MOST}": {"BLEU": 33.50},
    f"refiner, 4 steps, {_MOST} hypotheses": {"BLEU": 33.49},
    f"refiner, 10 steps, {_MOST} hypotheses": {"BLEU": 33.63},
    f"mask-predict, 4 steps, {_MOST} hypotheses": {"BLEU": 30.75},
    f"mask-predict, 10 steps, {_MOST} hypotheses": {"BLEU": 31.24},
}


def _quality() -> Cells:
    cells = {
        f"twin, {'greedy' if beams == 1 else f'beam of {beams}'}": _cells(TWIN, 0, beams)
        for beams in (1, _MOST)
    }
    for steps, count in _SETTINGS:
        cells[f"refiner, {steps} steps, {count} hypotheses"] = _cells(REFINER, steps, count)
    for steps, count in _SETTINGS:
        cells[f"ranked by the twin, {steps} steps, {count} hypotheses"] = _cells(RESCORED, steps, count)
    for steps in _STEPS:
        cells[f"mask-predict, {steps} steps, {_MOST} hypotheses"] = _cells(MASK_PREDICT, steps, _MOST)
    return cells


def _cells(arm: str, steps: int, hypotheses: int) -> "dict[str, Statistic]":
    named = {"BLEU": "bleu", "from": "low", "to": "high", "chrF": "chrf", "stutter": "stutter"}
    named |= {"stutter from": "stutter_low", "stutter to": "stutter_high"}
    cells = {name: corpus(arm, steps, hypotheses, column=column) for name, column in named.items()}
    means = {"with a token twice": "stuttering", "passes": "passes"}
    return {**cells, **{name: score(arm, steps, hypotheses, column) for name, column in means.items()}}


def _strata() -> Cells:
    strata = ("all", "familiar", "new", "new, 12 tokens or more")
    arms = {
        "twin, greedy": (TWIN, 0, 1),
        "refiner, 4 steps, 5 hypotheses": (REFINER, 4, _MOST),
        "ranked by the twin": (RESCORED, 4, _MOST),
    }
    return {name: {stratum: corpus(*arm, stratum) for stratum in strata} for name, arm in arms.items()}


def _recommendations() -> Cells:
    return {
        arm: {
            "BLEU, 1 step": small(arm, 1),
            "BLEU, 4 steps": small(arm, 4),
            "stutter, 4 steps": small(arm, 4, "stutter"),
        }
        for arm in SMALL
    }


def _latencies() -> Cells:
    refiners = [f"{steps} steps, {count}" for steps in (4, 10) for count in (1, _MOST)]
    contenders = (TWIN, *refiners, f"4 steps, {_MOST}, rescored")
    return {
        contender: {
            f"{column}, {sentences}": latency(contender, column, sentences)
            for column, sentences in (("median", "all"), ("p99", "all"), ("median", "long"))
        }
        for contender in contenders
    }


def _attending(table: DataFrame) -> dict[str, Attention]:
    return dict.fromkeys(table.arm.unique(), attention)


def _draw(rows: Rows) -> Drawing:
    drawing, axes = panels(2, width=3.4, height=2.9)
    table = rows.where("set", arm=MASK_PREDICT)
    most, steps = int(table.hypotheses.max()), sorted(table.steps.unique())
    for ax, column, label in zip(axes, ("bleu", "stutter"), ("BLEU", "stutter, share of pairs"), strict=True):
        for arm in (REFINER, RESCORED, MASK_PREDICT):
            numbers = [score(arm, step, most, column)(rows) for step in steps]
            means, errors = zip(
                *((each.mean(), each.std() / len(each) ** 0.5) for each in numbers), strict=True
            )
            ax.errorbar(steps, means, errors, marker="o", label=arm)
        ax.axhline(score(TWIN, 0, 1, column)(rows).mean(), color="0.5", linestyle="--", label="twin, greedy")
        ax.set_xscale("log")
        ax.set_xticks(steps, [str(step) for step in steps])
        ax.minorticks_off()
        ax.set_xlabel("steps")
        ax.set_ylabel(label)
        ax.legend(fontsize=7)
    return drawing


FIGURES = (
    Figure(
        name="steps",
        caption="Quality and stutter against steps of refinement, by five lengths: means over sets of test sentences "
        "and their standard errors.",
        draw=_draw,
    ),
)
TABLES = (
    ResultTable(
        title="Quality against steps and hypotheses",
        source="Tables 4.1 and 4.2",
        cells=_quality(),
        rows_are="translator",
        published=_IN_PRINT,
        note="BLEU and chrF of sacreBLEU on all test sentences, detokenised, with 95 % of the bootstrap over "
        "sentences; before repeats are dropped, or as the twin ranked them, stutter of words, and the share of "
        "sentences with a token twice in a row; passes of the decoder for a sentence. In print: "
        "WMT14, German to English, of masks by the BLEU of Table 4.2",
    ),
    ResultTable(
        title="BLEU by what the test sentences are",
        source="Table 4.1",
        cells=_strata(),
        rows_are="translator",
        note="familiar: a training sentence has the target but for one word",
    ),
    ResultTable(
        title="What the recommendations do to small refiners",
        source="Section 4.2.2",
        cells=_recommendations(),
        rows_are="refiner",
        note="one hypothesis; means over sets of test sentences ± one standard deviation",
    ),
    ResultTable(
        title="Seconds for one sentence",
        source="Section 4.2.3",
        cells=_latencies(),
        rows_are="translator",
        note="in turns, on one thread; long: references of 20 tokens and more. Of refiners: steps, hypotheses; "
        "rescored: ranked by the twin",
    ),
    *attention_tables(_attending, REFINER, "sets of test sentences"),
)
