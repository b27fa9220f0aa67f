"""Tables and figures of the study."""

from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, figure, finish, result_table, spread
from trialogue_lab.studies.power_sampling.config import (
    CORRECTED,
    DRAWS,
    EARLY_ENDS,
    EXACT,
    METROPOLIS,
    ONE_LENGTH,
    PARTICLES,
    RELEASED,
    WEIGHTED,
)
from trialogue_lab.studies.power_sampling.statistics import chain, ended, local, lookahead, markov, weights

_LOCAL = {
    "temperature": "temperature 1 / alpha",
    "best": "best temperature of the model",
    "best_by_position": "best temperatures found by position",
    "any_rule": "any rule of next-token distributions (lower bound, first token)",
}
_SAMPLERS = {WEIGHTED: BAD, PARTICLES: OURS, METROPOLIS: COLORS[3], EXACT: QUIET}
_CHAINS = {CORRECTED: GOOD, RELEASED: BAD}


@result_table(
    "Local rules and lookahead on random models",
    "arXiv 2510.14901, Proposition 1, arXiv 2605.04542 and arXiv 2601.21590",
    row_heading="sampler",
    note="Exact total variation from the power of random models with three tokens, ± one standard deviation over "
    "models. Calls count each token of a text and of its completions. Distinct calls leave out prefixes that were "
    "evaluated before. The distance of lookahead is averaged over completions.",
)
def _local_table(rows: Rows) -> Cells:
    powers = rows.distinct("local", "alpha")
    cells: dict[str, dict[str, object]] = {
        label: {f"alpha {alpha:g}": local(column, alpha) for alpha in powers}
        for column, label in _LOCAL.items()
    }
    horizon = rows.config["horizon"]
    for column in ("temperature", "best", "best_by_position"):
        cells[_LOCAL[column]] |= {"calls": float(horizon), "distinct calls": float(horizon)}
    for rollouts in rows.distinct("lookahead", "rollouts"):
        cells[f"lookahead, completions: {rollouts}"] = {
            f"alpha {powers[-1]:g}": lookahead(rollouts),
            "calls": lookahead(rollouts, "calls"),
            "distinct calls": lookahead(rollouts, "distinct_calls"),
        }
    return cells  # type: ignore[return-value]


@result_table(
    "Variance of importance weights",
    "arXiv 2602.10273",
    row_heading="proposal",
    note="Variance divided by the squared mean, for the largest power. Incremental weights are conditional on the "
    "prefix, and their variances are averaged over all prefixes. Whole weights are those of complete texts. Medians "
    "over models.",
)
def _weights_table(rows: Rows) -> Cells:
    table = rows["weights"]
    return {
        proposal: {
            "incremental weight": float(weights("incremental", proposal)(rows).median()),
            "whole weight": float(weights("whole", proposal)(rows).median()),
        }
        for proposal in table[table.factor.isin((0.0, 0.5, 1.0, 2.0, 4.0)) | (table.factor.between(1, 2))]
        .proposal.unique()
        .tolist()
    }


@result_table(
    "Metropolis-Hastings chains",
    "arXiv 2510.14901, Algorithm 1 and its released code",
    row_heading="chain",
    note="Total variation from the power, ± one standard deviation over models. Short texts are exact. For 16 blocks, "
    "the distance is that of the lengths of texts of Markov models, a lower bound that includes sampling error. "
    "Incomplete outputs of the released chain count as one further outcome.",
)
def _chains_table(rows: Rows) -> Cells:
    cells: dict[str, dict[str, object]] = {}
    steps = rows.distinct("chain", "steps")
    for alpha, ends in product(rows.distinct("chain", "alpha"), (ONE_LENGTH, EARLY_ENDS)):
        for blocks in rows.distinct("chain", "blocks"):
            for name in _CHAINS:
                label = f"{name}, {ends}, {blocks} block{'s' * (blocks > 1)}, alpha {alpha:g}"
                cells[label] = {
                    f"{count} steps": chain(name, ends, blocks, count, "variation", alpha) for count in steps
                }
                cells[label]["incomplete"] = chain(name, ends, blocks, steps[-1], "failed", alpha)
    last = rows.distinct("ended", "steps")[-1]
    for name in (CORRECTED, RELEASED, EXACT):
        for count in rows.where("ended", chain=name).steps.unique().tolist():
            label = f"{name}, Markov model, 16 blocks" if count else f"{name}, Markov model"
            cells.setdefault(label, {})
            cells[label][f"{count or last} steps"] = ended(name, count)
            cells[label]["incomplete"] = ended(name, None, "failed")
    return cells  # type: ignore[return-value]


@result_table(
    "Long texts at equal numbers of model calls",
    "arXiv 2602.10273",
    row_heading="sampler and length",
    note="Markov models with four tokens. Total variation of the number of visits to the token with the most "
    "predictable next token, in at most six intervals, a lower bound of the total variation that includes "
    "sampling error. The row of exact draws shows the size of this error. ± one standard deviation over models.",
)
def _markov_table(rows: Rows) -> Cells:
    return {
        f"{name}, {length} tokens": {
            "total variation": markov(name, length),
            "bias of visits per token": markov(name, length, "bias"),
            "calls per token": markov(name, length, "calls"),
            "log E[w²] at temperature 1 / alpha": markov(name, length, "log_moment"),
        }
        for length in rows.distinct("markov", "length")
        for name in _SAMPLERS
    }


@result_table(
    "Residuals of samplers and distributions",
    "this project",
    row_heading="comparison",
    note="Total variation between two distributions that should be equal, on one random model with texts of up to "
    "three tokens. The samplers are enumerated.",
)
def _residuals_table(rows: Rows) -> Cells:
    table = rows["residual"]
    pairs = zip(table.comparison.tolist(), table.residual.tolist(), strict=True)
    return {comparison: {"total variation": residual} for comparison, residual in pairs}


TABLES = (_local_table, _weights_table, _chains_table, _markov_table, _residuals_table)


@figure(
    "local-rules",
    "Left: exact total variation from the power on random models, by model calls per output. Horizontal lines: "
    "per-token temperature 1 / alpha, and the lower bound for any rule of next-token distributions. Right: variance of "
    "importance weights by temperature. Error bars: one standard deviation over models (left), quartiles (right).",
)
def _local_figure(rows: Rows) -> Drawing:
    drawing, (distance, variance) = panels(2, width=4.4, height=3.5)
    rollouts = rows.distinct("lookahead", "rollouts")
    calls = [float(lookahead(each, "calls")(rows).mean()) for each in rollouts]
    cells = [lookahead(each) for each in rollouts]
    spread(distance, calls, cells, rows, color=OURS, label="lookahead by completions")
    for cost, each in zip(calls, rollouts, strict=True):
        place = (cost, float(lookahead(each)(rows).mean()))
        distance.annotate(str(each), place, xytext=(6, 6), textcoords="offset points", fontsize=9)
    styles = (("temperature", BAD, "-"), ("best", COLORS[3], "--"), ("any_rule", QUIET, ":"))
    for column, color, style in styles:
        distance.axhline(
            local(column)(rows).mean(), color=color, ls=style, label=_LOCAL[column].partition(" (")[0]
        )
    distance.set(xscale="log", xlabel="model calls per output", ylim=(0, None))
    distance.minorticks_off()
    distance.set_xticks(calls, [f"{cost:.0f}" for cost in calls])
    finish(distance, "Total variation from p(x)^alpha")
    distance.legend(loc="upper right")
    _weight_curves(variance, rows)
    return drawing


def _weight_curves(axes: Axes, rows: Rows) -> None:
    """Plot variances of weights against temperature, with quartiles over models.

    The weights are those of single tokens (incremental) or of complete texts (whole).
    """
    table = rows["weights"]
    table = table[(table.alpha == table.alpha.max()) & (table.factor >= 0.5)]
    for column, color, label in (
        ("incremental", GOOD, "incremental weight, given the prefix"),
        ("whole", BAD, "whole weight"),
    ):
        found = table.groupby("factor")[column].quantile([0.25, 0.5, 0.75]).unstack().clip(lower=1e-6)
        axes.plot(found.index, found[0.5], "o-", color=color, label=label, ms=4)
        axes.fill_between(found.index, found[0.25], found[0.75], color=color, alpha=0.2, lw=0)
    ticks = [0.5, 1, 2, 4]
    axes.set(xscale="log", yscale="log", xlabel="temperature × alpha", ylim=(1e-4, 1e4))
    axes.minorticks_off()
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.axvline(1, color=QUIET, lw=0.8, ls=":")
    finish(axes, "Relative variance of weights", legend="upper center")


@figure(
    "chains",
    "Total variation of Metropolis-Hastings chains from the power, by steps per block. Left and middle: short texts, "
    "exact. Right: lengths of texts of Markov models, which include the sampling error of exact draws. Error bars: one "
    "standard deviation over models.",
)
def _chains_figure(rows: Rows) -> Drawing:
    drawing, (early, larger, blocked) = panels(3, width=3.6, height=3.3)
    steps, powers = rows.distinct("chain", "steps"), rows.distinct("chain", "alpha")
    for axes, alpha in ((early, powers[0]), (larger, powers[-1])):
        for name, color in _CHAINS.items():
            for blocks, style in ((1, "o-"), (2, "s--")):
                cells = [chain(name, EARLY_ENDS, blocks, count, "variation", alpha) for count in steps]
                label = f"{name}, {blocks} block{'s' * (blocks > 1)}"
                spread(axes, steps, cells, rows, style, color=color, label=label)
        axes.set(xscale="log", xlabel="steps per block", ylim=(-0.03, 1.05))
        finish(axes, f"Texts that end early, alpha = {alpha:g}", legend=alpha == powers[0])
    for place, (name, color) in enumerate((*_CHAINS.items(), (EXACT, QUIET))):
        spread(blocked, [place], [ended(name)], rows, "o", color=color)
    blocked.set_xticks(range(3), [*_CHAINS, EXACT])
    blocked.set(xlim=(-0.5, 2.5), ylim=(-0.03, 1.05))
    finish(blocked, f"Lengths of texts, 16 blocks, alpha = {rows.config['ended_power']:g}")
    return drawing


@figure(
    "long-texts",
    "Samplers of the power on Markov models at about equal numbers of model calls. Left: total variation of the "
    "number of visits to one token, which includes the error of a finite number of outputs (exact draws). Right: "
    "effective number of exact draws in 16 weighted draws at temperature 1 / alpha, from exact second moments. Error "
    "bars: one standard deviation over models.",
)
def _markov_figure(rows: Rows) -> Drawing:
    drawing, (distance, effective) = panels(2, width=4.2, height=3.4)
    lengths = rows.distinct("markov", "length")
    for name, color in _SAMPLERS.items():
        cells = [markov(name, length) for length in lengths]
        spread(distance, lengths, cells, rows, color=color, label=name)
    moments = rows.where("markov", sampler=WEIGHTED)
    for _, model in moments.groupby("seed"):
        effective.plot(model.length, DRAWS * np.exp(-model.log_moment), "o-", color=BAD, lw=0.8, ms=3)
    for axes in (distance, effective):
        axes.set(xscale="log", xlabel="length of the texts")
        axes.minorticks_off()
        axes.set_xticks(lengths, [str(length) for length in lengths])
    distance.set(ylim=(0, None))
    finish(distance, "Total variation of visits to one token", legend=True)
    effective.set(yscale="log", ylim=(1e-6, 30))
    finish(effective, "16 / E[w²], one line per model")
    return drawing


FIGURES = (_local_figure, _chains_figure, _markov_figure)
