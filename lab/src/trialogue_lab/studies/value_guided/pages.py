"""Figures and tables of the study."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, figure, finish, result_table, spread
from trialogue_lab.studies.value_guided.config import EXACT, LAST_TOKEN, SIGNS
from trialogue_lab.studies.value_guided.statistics import dyck, long, tree

_RULES = {"action_level": ("action level, never back", BAD), "first_leaf": ("first leaf of the walk", OURS)}
_WALKS = {"action level": BAD, "first leaf": OURS}


def _horizons(rows: Rows, kind: str) -> list[int]:
    return sorted(rows[kind].horizon.unique().tolist())


def _by_horizon(axes: Axes, horizons: list[int], title: str) -> None:
    """Finish logarithmic axes over the horizon."""
    axes.set(xscale="log", yscale="log", xlabel="horizon H", xticks=horizons)
    axes.set_xticklabels([str(horizon) for horizon in horizons])
    axes.minorticks_off()
    finish(axes, title, legend=True)


def _errors(rows: Rows) -> list[float]:
    return sorted(rows.where("tree", values=LAST_TOKEN).error.unique().tolist())


@figure(
    "error-and-horizon",
    "Errors of the values and the horizon: going down only, they multiply; the walk that goes back keeps "
    "its first leaf about as far, and its leaves in the long run exact. Bars: one deviation over trees or sets of "
    "draws. Right: what going back costs.",
)
def _horizons_figure(rows: Rows) -> Drawing:
    drawing, (listed, run, cost) = panels(3, width=3.9, height=3.6)
    horizons, least = _horizons(rows, "tree"), _errors(rows)[0]
    for column, (label, color) in _RULES.items():
        for kind, style in ((LAST_TOKEN, "o-"), (SIGNS, "s--")):
            cells = [tree(column, horizon, kind, least) for horizon in horizons]
            spread(listed, horizons, cells, rows, style, color=color, label=f"{label}; errors: {kind}")
    cells = [tree("stationary", horizon, LAST_TOKEN, least) for horizon in horizons]
    spread(listed, horizons, cells, rows, "^-", color=GOOD, label="any leaf of the walk, in the long run")
    listed.set(xlabel="horizon H", ylim=(-0.02, None), xticks=horizons)
    listed.set_title(f"Total variation, values off by {1 + least:g}:\nexact")
    listed.legend(fontsize=6.5, loc="upper left", bbox_to_anchor=(0, -0.18))
    horizons = _horizons(rows, "long")
    for walk, color in _WALKS.items():
        computed = rows.where("long", walk=walk).groupby("horizon").computed.mean()
        run.plot(computed.index, computed, color=color, lw=1, label=f"{walk}, computed")
        cells = [long(walk, "sampled", horizon) for horizon in horizons]
        spread(run, horizons, cells, rows, "o", color=color, label=f"{walk}, as run")
        cells = [long(walk, "queries", horizon) for horizon in horizons]
        spread(cost, horizons, cells, rows, "o-", color=color, label=f"{walk}, as run")
    run.set(xlabel="horizon H", ylim=(-0.02, None), xticks=horizons)
    finish(run, "Total variation at longer horizons:\nwalks as they run", legend=True)
    cost.plot(horizons, [horizon**2 for horizon in horizons], color=QUIET, ls=":", label="H²: exact values")
    _by_horizon(cost, horizons, "Queries an output\n(a walk that remembers nothing)")
    return drawing


@figure(
    "error-of-the-values",
    "The distance by the size and kind of the error, the mass of the leaves, and how long the walk takes "
    "to mix, exactly.",
)
def _errors_figure(rows: Rows) -> Drawing:
    drawing, (far, mass, mixing) = panels(3, width=3.9, height=3.4)
    errors = [0.0, *_errors(rows)]
    horizons = _horizons(rows, "tree")
    for column, (label, color) in _RULES.items():
        for kind, style in ((LAST_TOKEN, "o-"), (SIGNS, "s--")):
            cells = [tree(column, None, kind if error else EXACT, error) for error in errors]
            spread(far, errors, cells, rows, style, color=color, label=f"{label}; {kind}")
    far.set(xlabel="error e: values off by a factor of 1 + e", ylim=(-0.02, None))
    far.set_title(f"Total variation, H = {horizons[-1]}")
    far.legend(fontsize=6.5, loc="upper left", bbox_to_anchor=(0, -0.18))
    for error, color in zip(errors, COLORS, strict=False):
        kind = LAST_TOKEN if error else EXACT
        label = f"e = {error:g}" if error else "exact values"
        cells = [tree("leaf_mass", horizon, kind, error) for horizon in horizons]
        spread(mass, horizons, cells, rows, color=color, label=label)
        mass.plot(horizons, [1 / (2 * (1 + error) * h) for h in horizons], color=color, lw=0.8, ls=":")
        steps = rows.where("chain", values=kind, error=error).groupby("horizon").leaf_mixing.mean()
        mixing.plot(steps.index, steps, "o-", color=color, label=label)
    _by_horizon(mass, horizons, "Stationary mass of the leaves\n(dotted: 1 / (2 (1 + e) H))")
    _by_horizon(mixing, horizons, "Steps until a leaf of the walk is within\n0.05 of the restricted law")
    return drawing


def _rules(rows: Rows) -> dict[str, tuple[str, str]]:
    """Return the decoding rules on Dyck strings and the values that guide them, by label."""
    pairs = zip(rows["dyck"].rule, rows["dyck"]["values"], strict=True)
    return {f"{rule}, {values} values" if values else rule: (rule, values) for rule, values in pairs}


@figure(
    "dyck",
    "Small transformers trained on Dyck strings complete prompts of another law: how far outputs are from "
    "the model's own law restricted to balanced strings, and what they cost. First leaf, action level and "
    "rejection are exact; the others are counts of outputs.",
)
def _dyck_figure(rows: Rows) -> Drawing:
    drawing, (axes,) = panels(1, width=7.6, height=4.2)
    marks = {
        "first leaf": "o",
        "action level": "v",
        "sequential Monte Carlo": "s",
        "no rule": "x",
        "backtracking": "D",
        "rejection": "P",
    }
    colors = {"exact": GOOD, "trained": OURS, "noisy": COLORS[3], "": QUIET}
    for label, (rule, values) in _rules(rows).items():
        far, queries = dyck(rule, values)(rows), dyck(rule, values, "queries")(rows).mean()
        fmt, color = marks.get(rule, "+"), colors[values]
        axes.errorbar(queries, far.mean(), far.std(), fmt=fmt, color=color, label=label)
    ticks = [4, 6, 10, 20, 30, 40]
    axes.set(xscale="log", xlabel="queries an output", ylim=(-0.03, None))
    axes.minorticks_off()
    axes.set_xticks(ticks, map(str, ticks))
    axes.set_title("Models of Dyck strings: total variation to the restricted law")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return drawing


@result_table(
    "Value-guided rules on random trees",
    "Section 3.3.1, Algorithm 2, Figure 3.5",
    rows_are="errors of the values",
    note="means over trees, ± one standard deviation. Three columns of total variation to the restricted law; lazy "
    "steps to the first leaf (2 H² for exact values), and how many different nodes ask the model",
)
def _tree_table(rows: Rows) -> Cells:
    errors = [(EXACT, 0.0), *((kind, error) for kind in (LAST_TOKEN, SIGNS) for error in _errors(rows))]
    return {
        f"{kind}{f', e = {error:g}' if error else ''}; H = {horizon}": {
            "action level": tree("action_level", horizon, kind, error),
            "first leaf": tree("first_leaf", horizon, kind, error),
            "in the long run": tree("stationary", horizon, kind, error),
            "leaf mass × 2 H": tree("leaf_mass", horizon, kind, error) * (2 * horizon),
            "lazy steps": tree("moves", horizon, kind, error) * 2,
            "different nodes": tree("nodes", horizon, kind, error),
        }
        for kind, error in errors
        for horizon in _horizons(rows, "tree")[-3:]
    }


@result_table(
    "Models of Dyck strings",
    "Section 3.3.1",
    rows_are="rule",
    note="means over prompts, ± one standard deviation over trainings. Backtracking has the exact verifier; its "
    "total variation, that of sequential Monte Carlo and that of no rule are of counts of outputs, whose own "
    "sampling error is that of the last row",
)
def _dyck_table(rows: Rows) -> Cells:
    return {
        label: {
            "total variation": dyck(rule, values),
            "accuracy": dyck(rule, values, "accuracy"),
            "queries": dyck(rule, values, "queries"),
            "queries, nodes remembered": dyck(rule, values, "nodes"),
        }
        for label, (rule, values) in _rules(rows).items()
    }


FIGURES = (_horizons_figure, _errors_figure, _dyck_figure)
TABLES = (_tree_table, _dyck_table)
