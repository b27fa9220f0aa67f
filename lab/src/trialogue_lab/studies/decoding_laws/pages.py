"""Tables and figures of the study: what each rule samples and costs, and what orders the tasks."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Patch

from trialogue_lab.ledger import BAD, COLORS, GOOD, OURS, Cells, Rows, figure, finish, panels, result_table
from trialogue_lab.studies.decoding_laws import rules
from trialogue_lab.studies.decoding_laws import statistics as stats
from trialogue_lab.studies.decoding_laws.rules import MASK, RESTRICTED, RULES
from trialogue_lab.studies.decoding_laws.tasks import HIDDEN

_AMONG, _BEST, _PARTICLES = "drawn by weight, ", "best of ", "particles, "
_MARKS = "osv^DPX<>*"
_LEAST = 3e-3
"""Distances below are drawn at the foot of the figure: of rules that are exact."""


def _names(rows: Rows, begins: str) -> list[str]:
    """The rules whose names begin so and end in a number, by that number."""
    found = [name for name in rows["rule"].rule.unique() if name.startswith(begins)]
    return sorted(found, key=lambda name: int(name.removeprefix(begins)))


def _place(rows: Rows, rule: str) -> tuple[float, float]:
    """Where a rule stands: queries of an output over those of a free one, and its distance."""
    return float(np.exp(np.log(stats.price(rule)(rows)).mean())), float(stats.decoded(rule)(rows).mean())


def _far(rows: Rows, rule: str, task: stats.ShownTask) -> float:
    """The distance of a rule on a task, mean over oracles."""
    return float(stats.on_task(rule, task.family, task.length)(rows).mean())


@figure(
    "distance-and-queries",
    "What a decoding rule is worth: how far its outputs are from the model's law given the rule, and how "
    "many queries a run takes, in units of one that nothing rules, remembering no node; means over the tasks of "
    "the ladder and over drawn oracles, all exact. Stars are exact rules. Rejection is of "
    "finished drafts; with momentum 1 and verdicts the walk is rejection that begins again at the first refusal.",
)
def _costs(rows: Rows) -> Drawing:
    drawing, (axes,) = panels(1, width=8.6, height=5.4)
    curves = (
        (_AMONG, "one of N masked outputs, drawn by weight", OURS),
        (_BEST, "a valid one of N completions", COLORS[5]),
        (_PARTICLES, "sequential Monte Carlo with N particles", COLORS[6]),
    )
    for begins, label, color in curves:
        names = _names(rows, begins)
        # One masked output is what one of several becomes.
        first = [MASK] if begins != _BEST else []
        places = [_place(rows, rule) for rule in [*first, *names]]
        axes.plot(*zip(*places, strict=True), "o-", color=color, label=label)
        # Curves fall to the right: beside them there is room below on the left, and above on the right.
        side = "below left" if begins == _AMONG else "above right"
        for rule, place in zip(names, places[len(first) :], strict=True):
            _annotate(axes, f"N = {rule.removeprefix(begins)}", place, side, color, 7)
    measured = set(rows["rule"].rule)
    for rule, (label, color, side) in _POINTS.items():
        if rule not in measured:
            continue
        queries, far = _place(rows, rule)
        exact, height = far < _LEAST, max(far, _LEAST)
        axes.plot([queries], [height], "*" if exact else "o", color=color, ms=11 if exact else 6)
        _annotate(axes, label, (queries, height), side, color, 8)
    axes.set(xscale="log", yscale="log", xlim=(0.2, 170), ylim=(_LEAST * 0.8, 1.1))
    ticks = [0.01, 0.03, 0.1, 0.3, 1]
    axes.set_yticks([_LEAST, *ticks], ["exact", *map(str, ticks)])
    axes.minorticks_off()
    axes.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
    axes.set_xlabel("queries a run, over those of one that nothing rules")
    title = "Total variation to the model's law given the rule, against what a run costs"
    finish(axes, title, legend="upper right")
    return drawing


def _annotate(axes: Axes, label: str, place: tuple[float, float], side: str, color: str, size: int) -> None:
    """Write a label at a side of a point."""
    offset, align = _SIDES[side]
    axes.annotate(label, place, offset, textcoords="offset points", fontsize=size, color=color, ha=align)


_SIDES = {
    "left": ((-8, -3), "right"),
    "right": ((8, -3), "left"),
    "beyond": ((14, 1), "left"),
    "above": ((0, 8), "center"),
    "below left": ((-3, -11), "right"),
    "above right": ((4, 4), "left"),
}
"""Offset in points and alignment of a label; beyond is to the right of another point."""

_POINTS = {
    "no rule": ("no rule", BAD, "left"),
    "backtracking": ("backtracking", COLORS[3], "left"),
    "backtracking, redo sampled": ("backtracking, redo sampled", COLORS[3], "left"),
    "block best of 2": ("best of 2, by blocks of 2", COLORS[5], "right"),
    MASK: ("mask (constrained decoding)", BAD, "left"),
    "tokenwise rejection": ("tokenwise\nrejection", BAD, "right"),
    "action level, noisy values": ("action level, values off by 2", COLORS[4], "left"),
    "first leaf, noisy values": ("first leaf of VGB, values off by 2", COLORS[4], "left"),
    "first leaf, verdicts": ("first leaf of VGB, verdicts", COLORS[4], "right"),
    "first leaf by blocks, verdicts": ("the same, by blocks of 2", COLORS[4], "beyond"),
    "action level, exact values": ("action level, exact values", GOOD, "left"),
    "first leaf with momentum, verdicts": (
        "VGB with momentum 1, verdicts:\nrejection from the first refusal",
        GOOD,
        "above",
    ),
    "rejection": ("rejection", GOOD, "right"),
}
"""Rules of the first figure by name: label, colour, and on which side of the point the label stands."""


@figure(
    "ladder",
    "Task by task, in the order of how unlike the allowed tokens are in the probability that something "
    "valid comes of them; the hidden string last. Means over oracles.",
)
def _ladder(rows: Rows) -> Drawing:
    tasks, among = stats.shown_tasks(rows), _names(rows, _AMONG)
    shown = ["no rule", _names(rows, _BEST)[-1], "backtracking", "backtracking, redo sampled", MASK]
    shown += ["particles, 2", among[0], among[-1], "action level, noisy values", "first leaf, noisy values"]
    shown += ["first leaf, verdicts", "first leaf, exact values"]
    far = np.array([[_far(rows, rule, task) for task in tasks] for rule in shown])
    drawing, (axes,) = panels(1, width=10.5, height=4.6)
    axes.pcolormesh(far, cmap="Blues", vmin=0, vmax=1, edgecolors="white", linewidth=1)
    for (line, column), value in np.ndenumerate(far):
        style: dict[str, Any] = {"fontsize": 7, "color": "white" if value > 0.65 else "black"}
        axes.text(column + 0.5, line + 0.5, f"{value:.2f}", ha="center", va="center", **style)
    axes.set_xticks(np.arange(len(tasks)) + 0.5, [task.name for task in tasks], rotation=45, ha="right")
    axes.set_yticks(np.arange(len(shown)) + 0.5, shown)
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.set_title("Total variation to the restricted law, task by task: rule, and tokens at most")
    return drawing


@figure(
    "what-orders-the-ladder",
    "What tells how far masked decoding will be: when the rule shows its verdict, how rare valid outputs "
    "are, how much the probability of something valid moves, or how unlike the tokens are in it that the mask "
    "leaves. Points are tasks, means over oracles; correlations are means over oracles, ± one deviation.",
)
def _order(rows: Rows) -> Drawing:
    drawing, axes = panels(4, width=3.3, height=3.5, sharey=True)
    tasks = stats.shown_tasks(rows, hidden=False)
    families = list(dict.fromkeys(task.family for task in tasks))
    said = {
        "lateness": "when the verdict shows:\nmean place of its nats, of the length",
        "rarity": "how rare valid outputs are:\n-log of their probability",
        "swing": "how much V* moves:\nsum of |log V*(ya) / V*(y)|",
        "spread": "how unlike the allowed tokens are in V*:\nsum of deviation over mean",
    }
    for own, (column, label) in zip(axes, said.items(), strict=True):
        for place, family in enumerate(families):
            here = [task for task in tasks if task.family == family]
            shown = [getattr(task.shown, column) for task in here]
            far = [_far(rows, MASK, task) for task in here]
            color = COLORS[place % len(COLORS)]
            own.plot(shown, far, _MARKS[place % len(_MARKS)], color=color, label=family)
        correlations = stats.order(column)(rows)
        finish(own, f"rank correlation {correlations.mean():.2f} ± {correlations.std():.2f}", xlabel=label)
    axes[0].set(ylabel="total variation of masked decoding")
    axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawing


@figure(
    "cuts",
    "Temperature, top-p, top-k and greedy decoding against what their users believe: whole outputs at "
    "temperature 0.7; the law of the tempered model given the rule; the model's law on valid outputs within the "
    "cut; the likeliest output. Distances are means over the tasks where a cut leaves a valid output. Bars: one "
    "deviation over oracles.",
)
def _cuts(rows: Rows) -> Drawing:
    drawing, (far, lost) = panels(2, width=4.8, height=3.9, sharey=True)
    cut = [name for name, rule in RULES.items() if rule.cut]
    believed = {
        rules.SHARPENED: COLORS[3],
        rules.TEMPERED: COLORS[6],
        rules.KEPT: OURS,
        rules.LIKELIEST_OF_ALL: COLORS[5],
        rules.LIKELIEST: COLORS[4],
    }
    colors = [believed[RULES[rule].believed] for rule in cut]
    places = list(range(len(cut)))
    for axes, column, title in (
        (far, "variation", "Total variation to what users believe"),
        (lost, "none", "Probability of no output"),
    ):
        cells = [stats.decoded(rule, column)(rows) for rule in cut]
        means, deviations = [cell.mean() for cell in cells], [cell.std() for cell in cells]
        axes.barh(places, means, xerr=deviations, color=colors, height=0.7, ecolor="#24292f")
        finish(axes, title, xlim=(0, 1))
        axes.grid(visible=False, axis="y")
    far.axvline(float(stats.decoded(MASK)(rows).mean()), color=BAD, lw=1, ls=":", label="mask without a cut")
    far.legend(loc="upper right")
    far.set_yticks(places, cut)
    far.invert_yaxis()
    patches = [Patch(color=color, label=label) for label, color in believed.items()]
    lost.legend(handles=patches, title="believed", title_fontsize=8, loc="lower right")
    return drawing


FIGURES = (_costs, _ladder, _order, _cuts)


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
