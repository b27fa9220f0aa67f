"""Tables of the study `ising-sampling`: exact hitting times beside the simulated ones; the thesis prints no numbers."""

import numpy as np
from pandas import DataFrame

from trialogue.ledger import Table
from trialogue.studies.ising_sampling_rows import exact, labels, simulated

_SIMULATED = "simulated"


def _steps(rows: DataFrame) -> DataFrame:
    """Expected steps, the same cut at the budget, and the simulated mean of the latter."""
    expected, cut = exact(rows, "log_expected").apply(np.exp), exact(rows, "mean")
    ours = simulated(rows, "mean").groupby("coupling").mean()
    lines = {}
    for coupling in expected.index:
        lines[f"J = {coupling:g}, exact"] = expected.loc[coupling].to_dict()
        lines[f"J = {coupling:g}, exact, cut"] = cut.loc[coupling].to_dict()
        lines[f"J = {coupling:g}, {_SIMULATED}"] = ours.loc[coupling].to_dict()
    return DataFrame.from_dict(lines, orient="index")[labels(rows)]


def _steps_deviation(rows: DataFrame) -> DataFrame:
    spread = simulated(rows, "mean").groupby("coupling").std()
    lines = {f"J = {coupling:g}, {_SIMULATED}": spread.loc[coupling].to_dict() for coupling in spread.index}
    return DataFrame.from_dict(lines, orient="index")[labels(rows)]


def _reached(rows: DataFrame) -> DataFrame:
    chances = exact(rows, "reached")
    ours = simulated(rows, "reached").groupby("coupling").mean()
    lines = {}
    for coupling in chances.index:
        lines[f"J = {coupling:g}, exact"] = chances.loc[coupling].to_dict()
        lines[f"J = {coupling:g}, {_SIMULATED}"] = ours.loc[coupling].to_dict()
    return DataFrame.from_dict(lines, orient="index")[labels(rows)]


TABLES = (
    Table(
        title="Steps from R_-1 to R_1",
        source="Figure 4.3, which prints no numbers",
        ours=_steps,
        deviation=_steps_deviation,
        rows_are="coupling",
        note="cut: at most the budget is counted, as in the figure; ± one standard deviation over repetitions of the "
        "figure, each the mean of its chains",
    ),
    Table(
        title="Probability of reaching R_1 within the budget",
        source="Figure 4.3",
        ours=_reached,
        rows_are="coupling",
    ),
)
