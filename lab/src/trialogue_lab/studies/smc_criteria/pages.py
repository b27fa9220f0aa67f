"""Tables and figures of the study."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import (
    BAD,
    GOOD,
    OURS,
    QUIET,
    Cells,
    Rows,
    figure,
    finish,
    panels,
    result_table,
    spread,
)
from trialogue_lab.studies.smc_criteria.branches import BY_LENGTH, CONSTANT, NONE
from trialogue_lab.studies.smc_criteria.curves import ANY, CONCAVE
from trialogue_lab.studies.smc_criteria.products import POSITIVE, ZERO_ONE
from trialogue_lab.studies.smc_criteria.statistics import accuracy_gain, branch, log_calls, particles


@result_table(
    "Particles and model calls with perfect values",
    "arXiv 2603.07887",
    row_heading="length",
    note="Particles with which the total variation between output and target is at most 0.1, resampled after every "
    "token. Model calls are for values 0 and 1, where rejection is exact and SMC is not. Means over random targets, ± "
    "one standard deviation.",
)
def _particles_table(rows: Rows) -> Cells:
    return {
        str(length): {
            "particles, positive values": particles(length),
            "particles, values 0 and 1": particles(length, ZERO_ONE),
            "log10 calls, SMC": log_calls(length=length),
            "log10 calls, rejection that stops early": log_calls("stopping", length),
            "log10 calls, rejection": log_calls("rejection", length),
        }
        for length in rows.distinct("particles", "length")
    }


@result_table(
    "Values with Bellman errors of both signs",
    "arXiv 2602.01381, and Algorithm 2 of the thesis",
    row_heading="Bellman errors, length",
    note="The first token decides the outcome. Total variation from the target of the first leaf of the value-guided "
    "walk and of SMC with as many model calls. Means over random targets, ± one standard deviation.",
)
def _branches_table(rows: Rows) -> Cells:
    return {
        f"{error}, {length}": {
            "particles needed": branch("needed", error, length),
            "total variation of the first leaf": branch("first_leaf", error, length),
            "total variation of SMC": branch("particles", error, length),
            "model calls": branch("moves", error, length),
        }
        for error in (NONE, BY_LENGTH, CONSTANT)
        for length in sorted(rows.where("branch", error=error).length.unique().tolist())
    }


TABLES = (_particles_table, _branches_table)


def _set_length_axes(axes: Axes, lengths: list[int], title: str) -> None:
    """Set logarithmic axes, with the sequence length on the x-axis."""
    axes.set(xscale="log", yscale="log", xlabel="length H")
    axes.set_xticks(lengths, [str(length) for length in lengths])
    axes.minorticks_off()
    axes.set_ylim(1, 3000)
    finish(axes, title, legend="upper left")


@figure(
    "criteria",
    "Left: particles with which SMC with perfect values has a total variation of at most 0.1 from the target. Middle: "
    "the same for values with Bellman errors of both signs. Right: accuracy of rejection by a threshold minus the "
    "accuracy of best-of-n. Error bars: one standard deviation over random targets or sets of ROC curves.",
)
def _criteria_figure(rows: Rows) -> Drawing:
    drawing, (perfect, errors, gains) = panels(3, width=3.9, height=3.6)
    lengths = rows.distinct("particles", "length")
    for values, color in ((POSITIVE, OURS), (ZERO_ONE, GOOD)):
        cells = [particles(length, values) for length in lengths]
        spread(perfect, lengths, cells, rows, color=color, label=f"values: {values}")
    perfect.plot(lengths, [2 * length**0.5 for length in lengths], ":", color=QUIET, label="2 √H")
    _set_length_axes(perfect, lengths, "Particles needed, perfect values")
    for error, color in ((NONE, GOOD), (BY_LENGTH, OURS), (CONSTANT, BAD)):
        places = sorted(rows.where("branch", error=error).length.unique().tolist())
        cells = [branch("needed", error, length) for length in places]
        spread(errors, places, cells, rows, color=color, label=f"errors: {error}")
    _set_length_axes(
        errors, rows.where("branch", error=NONE).length.unique().tolist(), "Particles needed, Bellman errors"
    )
    budgets = rows.distinct("curves", "budget")[:-1]
    for curve, color in ((CONCAVE, GOOD), (ANY, BAD)):
        cells = [accuracy_gain(curve, budget) for budget in budgets]
        spread(gains, budgets, cells, rows, color=color, label=f"ROC curves: {curve}")
    gains.axhline(0, color=QUIET, lw=0.8)
    gains.set(xscale="log", xlabel="outputs drawn on average", ylim=(-0.01, 0.07))
    gains.set_xticks(budgets, [str(budget) for budget in budgets])
    gains.minorticks_off()
    finish(gains, "Accuracy of rejection over best-of-n", legend="upper right")
    return drawing


FIGURES = (_criteria_figure,)
