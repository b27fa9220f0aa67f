"""Statistics of the study. Each returns one number per seed, from one training of each network."""

from collections.abc import Callable

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows
from trialogue_lab.studies.memorization_train.measure import DEEP, MLP, PER_HEAD, SHARED
from trialogue_lab.studies.memorization_train.published import POINTS

trainings = Replication("training", "seeds")
SATURATED = 0.95
"""Largest accuracy that lines are fitted to, as in the document."""
REACHED = 0.05
"""A published accuracy is reached if ours is lower by at most this much."""
SHAPE = ["form", "width", "head_width", "heads"]
"""Columns that identify a published network."""
_VOCAB_SIZES = {"mlp": 70, "two-dimensions": 10}


def trained(rows: Rows, experiment: str, form: str = "", **values: int) -> DataFrame:
    """Return the trained networks of an experiment.

    Args:
        rows: The rows of the result.
        experiment: Name of the experiment.
        form: Form of the networks. Empty for all forms.
        **values: Values of columns. `heads` of a network with an MLP is H, where the width of the MLP is 2 d (H - 1).

    Raises:
        NoRows: If there are no such networks.
    """
    table = rows.where("training", experiment=experiment)
    # The network with one head and no MLP is the first one of both forms.
    table = table.assign(heads=table.heads + table.mlp_width // (2 * table.width))
    if form:
        table = table[table.form == form]
    for column, value in values.items():
        table = table[table[column] == value]
    if table.empty:
        raise NoRows(f"no networks of {experiment} with {form} {values}")
    return table


@trainings
def accuracy(rows: Rows, /, experiment: str, form: str = PER_HEAD, **values: int) -> "Series[float]":
    """Return the mean accuracy of the networks with the given values."""
    return trained(rows, experiment, form, **values).groupby("seed").accuracy.mean()


@trainings
def least_beyond(rows: Rows) -> "Series[float]":
    """Return the smallest difference between the accuracy and the lower bound, over networks with per-head values."""
    table = rows.where("training", form=PER_HEAD)
    return (table.accuracy - table.bound).groupby(table.seed).min()


def line(table: DataFrame) -> tuple[float, float]:
    """Fit a line to the accuracy as a function of the number of heads, for accuracies up to `SATURATED`.

    Returns:
        The slope, and the share of the variance that the line explains.

    Raises:
        NoRows: If there are fewer than three such networks.
    """
    table = table[table.accuracy <= SATURATED]
    if len(table) < 3:
        raise NoRows(f"a line needs three networks with an accuracy of at most {SATURATED}")
    slope, _ = np.polyfit(table.heads, table.accuracy, 1)
    return float(slope), float(np.corrcoef(table.heads, table.accuracy)[0, 1] ** 2)


def _by_seed(table: DataFrame, statistic: Callable[[DataFrame], float]) -> "Series[float]":
    return Series({seed: statistic(own) for seed, own in table.groupby("seed")})


@trainings
def slope(rows: Rows, experiment: str, width: int, form: str = PER_HEAD) -> "Series[float]":
    """Return the number of associations stored per head: the slope of `line` times the number of contexts."""
    table = trained(rows, experiment, form, width=width)
    return _by_seed(table, lambda own: line(own)[0] * own.contexts.iloc[0])


@trainings
def straightness(rows: Rows, experiment: str, width: int, form: str = PER_HEAD) -> "Series[float]":
    """Return the share of the variance of the accuracy that `line` explains."""
    return _by_seed(trained(rows, experiment, form, width=width), lambda own: line(own)[1])


@trainings
def exponent(rows: Rows) -> "Series[float]":
    """Return the exponent of d = d_h in the slope, fitted in the logarithms of both."""

    def fit(own: DataFrame) -> float:
        widths = own.width.unique()
        slopes = [line(own[own.width == width])[0] for width in widths]
        return float(np.polyfit(np.log(widths), np.log(slopes), 1)[0])

    return _by_seed(trained(rows, "heads", PER_HEAD), fit)


@trainings
def bend(rows: Rows, form: str) -> "Series[float]":
    """Return 100 times the coefficient of d_h^2 in a quadratic fit of the accuracy, for d = 10."""
    table = trained(rows, "head-width", form)
    return _by_seed(table, lambda own: 100 * float(np.polyfit(own.head_width, own.accuracy, 2)[0]))


@trainings
def gain(rows: Rows, form: str, start: int, end: int) -> "Series[float]":
    """Return the increase in accuracy from embedding width `start` to `end`, for d_h = 10."""
    return accuracy("width", form, width=end)(rows) - accuracy("width", form, width=start)(rows)


@trainings
def own_values(rows: Rows) -> "Series[float]":
    """Return the accuracy with per-head values minus the accuracy with a shared map, averaged over d_h below d."""
    table = trained(rows, "head-width")
    cells = table[table.head_width < table.width].pivot_table("accuracy", ["seed", "head_width"], "form")
    return (cells[PER_HEAD] - cells[SHARED]).groupby("seed").mean()


@trainings
def mlp_gain(rows: Rows) -> "Series[float]":
    """Return the accuracy with an MLP minus the accuracy of heads alone, averaged over numbers of parameters."""
    table = trained(rows, "mlp").pivot_table("accuracy", ["seed", "heads"], "form").dropna()
    return (table[MLP] - table[PER_HEAD]).groupby("seed").mean()


@trainings
def mlp_slope(rows: Rows) -> "Series[float]":
    """Return the slope of the accuracy in the number of parameters of an MLP, divided by the slope for heads.

    Both slopes include the network with one head and no MLP.
    """

    def ratio(own: DataFrame) -> float:
        forms = [own[(own.form == form) | (own.heads == own.heads.min())] for form in (MLP, PER_HEAD)]
        mlp, heads = (np.polyfit(each.parameters, each.accuracy, 1)[0] for each in forms)
        return float(mlp / heads)

    return _by_seed(trained(rows, "mlp"), ratio)


def with_published(rows: Rows, experiment: str) -> DataFrame:
    """Return the published networks of an experiment, with one row for each of our trainings.

    `published` is the published accuracy. `accuracy` is ours, and NaN for networks that were not trained.
    """
    table = trained(rows, experiment)
    table = table[table.vocab_size == _VOCAB_SIZES.get(experiment, 50)]
    points = DataFrame(POINTS[experiment]).rename(columns={"accuracy": "published"})
    return points.merge(table, "left", on=SHAPE)


@trainings
def ahead(rows: Rows, experiment: str) -> "Series[float]":
    """Return our accuracy minus the published one, averaged over the published networks that were trained."""
    table = with_published(rows, experiment).dropna(subset="accuracy").astype({"seed": int})
    if table.empty:
        raise NoRows(f"no network of {experiment} has a published accuracy")
    return (table.accuracy - table.published).groupby(table.seed).mean()


@trainings
def heads_against_depth(rows: Rows) -> "Series[float]":
    """Return the accuracy of one layer minus the accuracy of several layers with as many heads, averaged."""
    table = trained(rows, "deep").groupby(["seed", "form"]).accuracy.mean().unstack()
    return table[PER_HEAD] - table[DEEP]


@trainings
def constant(rows: Rows, experiment: str, width: int) -> "Series[float]":
    """Return the constant C of C H d_h d, estimated as the slope divided by d_h d, for d_h = d."""
    return slope(experiment, width)(rows) / width**2


@trainings
def beyond_slope(rows: Rows, width: int) -> "Series[float]":
    """Return the number of associations stored per head, divided by the d_h that the bound adds per head."""
    return slope("heads", width)(rows) / width
