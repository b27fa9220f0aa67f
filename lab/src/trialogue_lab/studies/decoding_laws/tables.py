"""Tables of the study: what each rule samples, and what the tasks of the ladder show of themselves."""

from trialogue_lab.ledger import Cells, ResultTable, Rows
from trialogue_lab.studies.decoding_laws.rules import MASK, RESTRICTED, RULES
from trialogue_lab.studies.decoding_laws.statistics import (
    TASK,
    decoded,
    on_task,
    price,
    resolved,
    shown_tasks,
)


def _rules(rows: Rows) -> list[str]:
    return list(dict.fromkeys(rows["rule"].rule))


def _believed(rule: str) -> str:
    return RULES[rule].believed if rule in RULES else RESTRICTED


def _rules_table(rows: Rows) -> Cells:
    return {
        rule: {
            "believed": _believed(rule),
            "total variation to it": decoded(rule),
            "to the restricted law": decoded(rule, "restricted"),
            "weighted": decoded(rule, "weighted") if decoded(rule, "weighted")(rows).notna().any() else None,
            "invalid output": decoded(rule, "invalid"),
            "no output": decoded(rule, "none"),
            "queries": price(rule),
        }
        for rule in _rules(rows)
    }


def _tasks_table(rows: Rows) -> Cells:
    uniform = resolved(rows["uniform"].set_index(TASK).variation)
    return {
        task.name: {
            "mask": on_task(MASK, task.family, task.length),
            "mask, uniform oracle": uniform.get((task.family, task.length)),
            "probability of the rule": task.shown.mass,
            "lateness": task.shown.lateness,
            "swing": task.shown.swing,
            "spread": task.shown.spread,
            "KL(restricted, masked)": task.shown.unseen,
        }
        for task in shown_tasks(rows)
    }


TABLES = (
    ResultTable(
        title="What each decoding rule samples, and what it costs",
        source="ours",
        cells=_rules_table,
        rows_are="decoding rule",
        note="means over the tasks of the ladder, ± one standard deviation over oracles. Queries: of a run over those "
        "of one that nothing rules, geometric means over the tasks where runs end. Weighted: outputs drawn by their "
        "weights among infinitely many, against what is believed. Rejection is of finished drafts; the first leaf with "
        "momentum under verdicts is that of rejection which begins again at the first refusal",
    ),
    ResultTable(
        title="The ladder",
        source="ours",
        cells=_tasks_table,
        rows_are="rule and length",
        note="total variation of masked decoding, with drawn and with uniform oracles, and what the task shows of "
        "itself: means over drawn oracles. The hidden string has an oracle of its own",
    ),
)
