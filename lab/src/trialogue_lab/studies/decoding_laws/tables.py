"""Tables of the study: what each rule samples, and what the tasks of the ladder show of themselves."""

from trialogue_lab.ledger import Cells, Rows, result_table
from trialogue_lab.studies.decoding_laws import statistics as stats
from trialogue_lab.studies.decoding_laws.rules import MASK, RESTRICTED, RULES
from trialogue_lab.studies.decoding_laws.tasks import HIDDEN


@result_table(
    "What each decoding rule samples, and what it costs",
    "ours",
    rows_are="decoding rule",
    note="means over the tasks of the ladder, ± one standard deviation over oracles. Queries: of a run over those "
    "of one that nothing rules, geometric means over the tasks where runs end. Weighted: outputs drawn by their "
    "weights among infinitely many, against what is believed. Rejection is of finished drafts; the first leaf with "
    "momentum under verdicts is that of rejection which begins again at the first refusal",
)
def _rules_table(rows: Rows) -> Cells:
    table = rows["rule"]
    weighted = set(table.rule[table.weighted.notna() & (table.family != HIDDEN)])
    return {
        rule: {
            "believed": RULES[rule].believed if rule in RULES else RESTRICTED,
            "total variation to it": stats.decoded(rule),
            "to the restricted law": stats.decoded(rule, "restricted"),
            "weighted": stats.decoded(rule, "weighted") if rule in weighted else None,
            "invalid output": stats.decoded(rule, "invalid"),
            "no output": stats.decoded(rule, "none"),
            "queries": stats.price(rule),
        }
        for rule in table.rule.unique()
    }


@result_table(
    "The ladder",
    "ours",
    rows_are="rule and length",
    note="total variation of masked decoding, with drawn and with uniform oracles, and what the task shows of "
    "itself: means over drawn oracles. The hidden string has an oracle of its own",
)
def _tasks_table(rows: Rows) -> Cells:
    uniform = stats.resolved(rows["uniform"].set_index(stats.TASK).variation)
    return {
        task.name: {
            "mask": stats.on_task(MASK, task.family, task.length),
            "mask, uniform oracle": uniform.get((task.family, task.length)),
            "probability of the rule": task.shown.mass,
            "lateness": task.shown.lateness,
            "swing": task.shown.swing,
            "spread": task.shown.spread,
            "KL(restricted, masked)": task.shown.unseen,
        }
        for task in stats.shown_tasks(rows)
    }


TABLES = (_rules_table, _tasks_table)
