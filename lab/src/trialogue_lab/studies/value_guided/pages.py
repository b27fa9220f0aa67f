"""Figures and tables of the study."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, figure, finish, result_table, spread
from trialogue_lab.studies.value_guided.config import EXACT, LAST_TOKEN, SIGNS
from trialogue_lab.studies.value_guided.statistics import COLUMNS, dyck, long, tree

_RULES = {"action_level": ("action level", BAD), "first_leaf": ("first leaf of the walk", OURS)}
_SAMPLERS = {"action level": BAD, "first leaf": OURS}


def _set_horizon_axes(axes: Axes, horizons: list[int], title: str) -> None:
    """Set logarithmic axes, with the sequence length on the x-axis."""
    axes.set(xscale="log", yscale="log", xlabel="horizon H", xticks=horizons)
    axes.set_xticklabels([str(horizon) for horizon in horizons])
    axes.minorticks_off()
    finish(axes, title, legend=True)


def _list_errors(rows: Rows) -> list[float]:
    return sorted(rows.where("tree", values=LAST_TOKEN).error.unique().tolist())


@figure(
    "error-and-horizon",
    "Distance to the restricted distribution by horizon, for values with errors. Errors multiply under action-level "
    "sampling. The distance of the first leaf of the walk hardly grows, and the leaves of the stationary walk are "
    "exact. Error bars: one standard deviation over trees or sets of outputs. Right: cost of moving back.",
)
def _horizons_figure(rows: Rows) -> Drawing:
    drawing, (listed, run, cost) = panels(3, width=3.9, height=3.6)
    horizons, error = rows.distinct("tree", "horizon"), _list_errors(rows)[0]
    for column, (label, color) in _RULES.items():
        for kind, style in ((LAST_TOKEN, "o-"), (SIGNS, "s--")):
            cells = [tree(column, horizon, kind, error) for horizon in horizons]
            spread(listed, horizons, cells, rows, style, color=color, label=f"{label}; errors: {kind}")
    cells = [tree("stationary", horizon, LAST_TOKEN, error) for horizon in horizons]
    spread(listed, horizons, cells, rows, "^-", color=GOOD, label="leaves of the stationary walk")
    listed.set(xlabel="horizon H", ylim=(-0.02, None), xticks=horizons)
    listed.set_title(f"Total variation, exact,\nvalues wrong by a factor {1 + error:g}")
    listed.legend(loc="upper left", bbox_to_anchor=(0, -0.18))
    horizons = rows.distinct("long", "horizon")
    for sampler, color in _SAMPLERS.items():
        computed = rows.where("long", walk=sampler).groupby("horizon").computed.mean()
        run.plot(computed.index, computed, color=color, lw=1, label=f"{sampler}, computed")
        cells = [long(sampler, "sampled", horizon) for horizon in horizons]
        spread(run, horizons, cells, rows, "o", color=color, label=f"{sampler}, simulated")
        cells = [long(sampler, "queries", horizon) for horizon in horizons]
        spread(cost, horizons, cells, rows, "o-", color=color, label=sampler)
    run.set(xlabel="horizon H", ylim=(-0.02, None), xticks=horizons)
    finish(run, "Total variation at longer horizons,\ncomputed and simulated", legend=True)
    cost.plot(horizons, [horizon**2 for horizon in horizons], color=QUIET, ls=":", label="H² (exact values)")
    _set_horizon_axes(cost, horizons, "Model calls per output,\nwithout a cache of nodes")
    return drawing


@figure(
    "error-of-the-values",
    "Left: exact distance to the restricted distribution by size and kind of error. Middle: stationary mass of the "
    "leaves. Right: mixing time of the walk.",
)
def _errors_figure(rows: Rows) -> Drawing:
    drawing, (far, mass, mixing) = panels(3, width=3.9, height=3.4)
    errors = [0.0, *_list_errors(rows)]
    horizons = rows.distinct("tree", "horizon")
    for column, (label, color) in _RULES.items():
        for kind, style in ((LAST_TOKEN, "o-"), (SIGNS, "s--")):
            cells = [tree(column, None, kind if error else EXACT, error) for error in errors]
            spread(far, errors, cells, rows, style, color=color, label=f"{label}; {kind}")
    far.set(xlabel="error e (values wrong by a factor 1 + e)", ylim=(-0.02, None))
    far.set_title(f"Total variation, H = {horizons[-1]}")
    far.legend(loc="upper left", bbox_to_anchor=(0, -0.18))
    for error, color in zip(errors, COLORS, strict=False):
        kind = LAST_TOKEN if error else EXACT
        label = f"e = {error:g}" if error else "exact values"
        cells = [tree("leaf_mass", horizon, kind, error) for horizon in horizons]
        spread(mass, horizons, cells, rows, color=color, label=label)
        mass.plot(horizons, [1 / (2 * (1 + error) * h) for h in horizons], color=color, lw=0.8, ls=":")
        steps = rows.where("chain", values=kind, error=error).groupby("horizon").leaf_mixing.mean()
        mixing.plot(steps.index, steps, "o-", color=color, label=label)
    _set_horizon_axes(mass, horizons, "Stationary mass of the leaves\n(dotted: 1 / (2 (1 + e) H))")
    _set_horizon_axes(mixing, horizons, "Steps until leaves are within 0.05\nof the restricted distribution")
    return drawing


def _list_methods(rows: Rows) -> dict[str, tuple[str, str]]:
    """Return the sampler and the kind of values of every method on Dyck strings, by label."""
    pairs = zip(rows["dyck"].rule, rows["dyck"]["values"], strict=True)
    return {f"{rule}, {values} values" if values else rule: (rule, values) for rule, values in pairs}


@figure(
    "dyck",
    "Small transformers trained on Dyck strings complete prompts of another distribution. Total variation from the "
    "distribution of the model restricted to balanced strings, and cost. First leaf, action level and rejection are "
    "exact. The other methods are counts of outputs.",
)
def _dyck_figure(rows: Rows) -> Drawing:
    drawing, (axes,) = panels(1, width=7.6, height=4.2)
    methods = rows["dyck"].rule.unique().tolist()
    colors = {"exact": GOOD, "trained": OURS, "noisy": COLORS[3], "": QUIET}
    for label, (rule, values) in _list_methods(rows).items():
        far, queries = dyck(rule, values)(rows), dyck(rule, values, "queries")(rows).mean()
        fmt, color = "ovxDsP+"[methods.index(rule)], colors[values]
        axes.errorbar(queries, far.mean(), far.std(), fmt=fmt, color=color, label=label)
    ticks = [4, 6, 10, 20, 30, 40]
    axes.set(xscale="log", xlabel="model calls per output", ylim=(-0.03, None))
    axes.minorticks_off()
    axes.set_xticks(ticks, map(str, ticks))
    axes.set_title("Models of Dyck strings: total variation from the restricted distribution")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return drawing


@result_table(
    "Models of Dyck strings",
    "Section 3.3.1",
    row_heading="method",
    note="Means over prompts, ± one standard deviation over trainings. Backtracking has the exact verifier. The total "
    "variations of backtracking, sequential Monte Carlo and no rule are measured on counts of outputs, and include "
    "sampling error. The last row shows the size of this error.",
)
def _dyck_table(rows: Rows) -> Cells:
    return {
        label: {
            head: dyck(rule, values, column)
            for column, head in {**COLUMNS, "nodes": "queries with a cache of nodes"}.items()
        }
        for label, (rule, values) in _list_methods(rows).items()
    }


FIGURES = (_horizons_figure, _errors_figure, _dyck_figure)
TABLES = (_dyck_table,)
