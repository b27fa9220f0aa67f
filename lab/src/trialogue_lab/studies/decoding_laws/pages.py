"""Tables and figures of the study."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import BAD, COLORS, GOOD, OURS, Cells, Rows, figure, finish, panels, result_table
from trialogue_lab.studies.decoding_laws import statistics as stats
from trialogue_lab.studies.decoding_laws.methods import MASK, METHODS, RESTRICTED
from trialogue_lab.studies.decoding_laws.tasks import HIDDEN

_WEIGHTED, _BEST, _PARTICLES = "drawn by weight, ", "best of ", "particles, "
_MARKERS = "osv^DPX<>*"
_EXACT = 3e-3
"""Position on the logarithmic axis of exact methods, whose distance is zero."""
_ON_THE_RIGHT = ("block best of 2", "tokenwise rejection", "first leaf, verdicts", "rejection")
_ON_THE_LEFT = (
    "no rule",
    "backtracking",
    "backtracking, redo sampled",
    MASK,
    "action level, noisy values",
    "action level, exact values",
    "first leaf, noisy values",
)
_ABOVE = ("first leaf with momentum, verdicts",)
"""Methods whose labels stand on the right, on the left and above their points in the first figure."""


def _list_methods(rows: Rows, prefix: str) -> list[str]:
    """Return the methods whose names consist of `prefix` and a number, sorted by this number."""
    names = [name for name in rows["rule"].rule.unique() if name.startswith(prefix)]
    return sorted(names, key=lambda name: int(name.removeprefix(prefix)))


def _locate_method(rows: Rows, method: str) -> tuple[float, float]:
    """Return the coordinates of a method in the figure: relative model calls, and total variation distance."""
    return float(np.exp(np.log(stats.relative_model_calls(method)(rows)).mean())), float(
        stats.decoded(method)(rows).mean()
    )


def _compute_mean_distance(rows: Rows, method: str, task: stats.TaskDifficulty) -> float:
    return float(stats.on_task(method, task.family, task.length)(rows).mean())


@figure(
    "distance-and-queries",
    "Distance of the output from the model conditioned on the constraint, against expected model calls relative to "
    "unconstrained sampling. Means over tasks and random models, all exact. Stars are exact methods. Rejection checks "
    "finished outputs. The first leaf with momentum 1 and verdicts is rejection that starts again at the first "
    "refusal.",
)
def _costs_figure(rows: Rows) -> Drawing:
    drawing, (axes,) = panels(1, width=8.6, height=5.4)
    curves: tuple[tuple[str, list[str], str, str, tuple[int, int]], ...] = (
        (_WEIGHTED, [MASK], "one of N masked outputs, drawn by weight", OURS, (-4, -11)),
        (_BEST, [], "a valid one of N outputs", COLORS[5], (4, 4)),
        (_PARTICLES, [MASK], "sequential Monte Carlo with N particles", COLORS[6], (4, 4)),
    )
    for prefix, first, label, color, offset in curves:
        names = _list_methods(rows, prefix)
        points = [_locate_method(rows, method) for method in [*first, *names]]
        axes.plot(*zip(*points, strict=True), "o-", color=color, label=label)
        for name, point in zip(names, points[len(first) :], strict=True):
            _annotate(axes, f"N = {name.removeprefix(prefix)}", point, offset, color)
    for methods, offset in ((_ON_THE_LEFT, (-8, -3)), (_ON_THE_RIGHT, (8, -3)), (_ABOVE, (1, 10))):
        for method in methods:
            queries, distance = _locate_method(rows, method)
            is_exact, height = distance < _EXACT, max(distance, _EXACT)
            color = GOOD if is_exact else BAD
            axes.plot([queries], [height], "*" if is_exact else "o", color=color, ms=11 if is_exact else 6)
            _annotate(axes, method, (queries, height), offset, color)
    axes.set(xscale="log", yscale="log", xlim=(0.2, 170), ylim=(_EXACT * 0.8, 1.1))
    ticks = [0.01, 0.03, 0.1, 0.3, 1]
    axes.set_yticks([_EXACT, *ticks], ["exact", *map(str, ticks)])
    axes.minorticks_off()
    axes.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
    axes.set_xlabel("model calls per run, relative to unconstrained sampling")
    finish(axes, "Total variation to the conditioned model against cost", legend="upper right")
    return drawing


def _annotate(
    axes: Axes, label: str, point: tuple[float, float], offset: tuple[int, int], color: str
) -> None:
    """Write a label next to a point. The offset is in typographic points."""
    align = "left" if offset[0] > 0 else "right"
    axes.annotate(label, point, offset, textcoords="offset points", fontsize=9, color=color, ha=align)


@figure(
    "ladder",
    "Distance of decoding methods on each task. Tasks are sorted by how much the allowed tokens differ in the "
    "probability of a valid continuation, and the hidden string is last. Means over models.",
)
def _tasks_figure(rows: Rows) -> Drawing:
    tasks, weighted = stats.average_task_difficulties(rows), _list_methods(rows, _WEIGHTED)
    shown = ["no rule", _list_methods(rows, _BEST)[-1], "backtracking", "backtracking, redo sampled", MASK]
    shown += ["particles, 2", weighted[0], weighted[-1], "action level, noisy values"]
    shown += ["first leaf, noisy values", "first leaf, verdicts", "first leaf, exact values"]
    distances = np.array([[_compute_mean_distance(rows, method, task) for task in tasks] for method in shown])
    drawing, (axes,) = panels(1, width=10.5, height=4.6)
    axes.pcolormesh(distances, cmap="Blues", vmin=0, vmax=1, edgecolors="white", linewidth=1)
    for (line, column), value in np.ndenumerate(distances):
        style: dict[str, Any] = {"fontsize": 7, "color": "white" if value > 0.65 else "black"}
        axes.text(column + 0.5, line + 0.5, f"{value:.2f}", ha="center", va="center", **style)
    axes.set_xticks(np.arange(len(tasks)) + 0.5, [task.name for task in tasks], rotation=45, ha="right")
    axes.set_yticks(np.arange(len(shown)) + 0.5, shown)
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.set_title("Total variation to the conditioned model, by task (constraint, maximum number of tokens)")
    return drawing


@figure(
    "what-orders-the-ladder",
    "Distance of masked decoding against four measures of difficulty: how late the constraint decides, how rare valid "
    "outputs are, how much the probability of a valid continuation changes, and how much the allowed tokens differ in "
    "it. Points are tasks, means over models; correlations are means over models ± one standard deviation.",
)
def _difficulty_figure(rows: Rows) -> Drawing:
    drawing, axes = panels(4, width=3.3, height=3.5, sharey=True)
    tasks = stats.average_task_difficulties(rows, hidden=False)
    families = list(dict.fromkeys(task.family for task in tasks))
    labels = {
        "lateness": "lateness: mean position of the decision\nas a share of the length",
        "rarity": "rarity: negative log-probability\nof a valid output",
        "swing": "swing: sum of |log V*(ya) / V*(y)|",
        "spread": "spread: sum of the coefficient of\nvariation of V* over allowed tokens",
    }
    for panel, (column, label) in zip(axes, labels.items(), strict=True):
        for number, family in enumerate(families):
            own = [task for task in tasks if task.family == family]
            values = [getattr(task.difficulty, column) for task in own]
            distances = [_compute_mean_distance(rows, MASK, task) for task in own]
            color = COLORS[number % len(COLORS)]
            panel.plot(values, distances, _MARKERS[number % len(_MARKERS)], color=color, label=family)
        correlations = stats.order(column)(rows)
        title = f"rank correlation {correlations.mean():.2f} ± {correlations.std():.2f}"
        finish(panel, title, xlabel=label)
    axes[0].set(ylabel="total variation of masked decoding")
    axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawing


@figure(
    "cuts",
    "Temperature, top-p, top-k and greedy decoding compared with the distributions that users expect, which are named "
    "below each method. Means over the tasks on which a truncation leaves a valid output; bars are one standard "
    "deviation over models.",
)
def _truncations_figure(rows: Rows) -> Drawing:
    drawing, (far, lost) = panels(2, width=4.8, height=4.6, sharey=True)
    shown = {name: method.believed for name, method in METHODS.items() if method.cut}
    places = list(range(len(shown)))
    for axes, column, title in (
        (far, "variation", "Total variation to the expected distribution"),
        (lost, "none", "Probability of no output"),
    ):
        cells = [stats.decoded(method, column)(rows) for method in shown]
        means, deviations = [cell.mean() for cell in cells], [cell.std() for cell in cells]
        axes.barh(places, means, xerr=deviations, color=OURS, height=0.7)
        finish(axes, title, xlim=(0, 1))
        axes.grid(visible=False, axis="y")
    far.axvline(float(stats.decoded(MASK)(rows).mean()), color=BAD, lw=1, ls=":", label="mask, not truncated")
    far.legend(loc="upper right")
    far.set_yticks(places, [f"{name}\n({believed})" for name, believed in shown.items()], fontsize=9)
    far.invert_yaxis()
    return drawing


FIGURES = (_costs_figure, _tasks_figure, _difficulty_figure, _truncations_figure)


@result_table(
    "Distance and cost of decoding methods",
    "ours",
    row_heading="decoding method",
    note="means over tasks, ± one standard deviation over models. Model calls per run: relative to unconstrained "
    "sampling, geometric means over the tasks on which runs end. Weighted: total variation of outputs drawn by weight "
    "among infinitely many. Rejection checks finished outputs; the first leaf with momentum and verdicts is rejection "
    "that starts again at the first refusal",
)
def _methods_table(rows: Rows) -> Cells:
    table = rows["rule"]
    weighted = set(table.rule[table.weighted.notna() & (table.family != HIDDEN)])
    return {
        name: {
            "expected": METHODS[name].believed if name in METHODS else RESTRICTED,
            "total variation to it": stats.decoded(name),
            "to the conditioned model": stats.decoded(name, "restricted"),
            "weighted": stats.decoded(name, "weighted") if name in weighted else None,
            "invalid output": stats.decoded(name, "invalid"),
            "no output": stats.decoded(name, "none"),
            "model calls": stats.relative_model_calls(name),
        }
        for name in table.rule.unique()
    }


@result_table(
    "Difficulty of the tasks",
    "ours",
    row_heading="constraint and length",
    note="total variation of masked decoding with random and with uniform models, and measures of difficulty; means "
    "over random models. The hidden string has its own model",
)
def _tasks_table(rows: Rows) -> Cells:
    uniform = stats.zero_rounding_errors(rows["uniform"].set_index(stats.TASK).variation)
    return {
        task.name: {
            "mask": stats.on_task(MASK, task.family, task.length),
            "mask, uniform model": uniform.get((task.family, task.length)),
            "probability of the constraint": task.difficulty.mass,
            "lateness": task.difficulty.lateness,
            "swing": task.difficulty.swing,
            "spread": task.difficulty.spread,
            "KL(restricted, masked)": task.difficulty.unseen,
        }
        for task in stats.average_task_difficulties(rows)
    }


TABLES = (_methods_table, _tasks_table)
