"""Quantities of the study: one number per seed, of a training of each network."""

from collections.abc import Callable

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows
from trialogue_lab.studies.memorization_train.measure import DEEP, MLP, PER_HEAD, SHARED
from trialogue_lab.studies.memorization_train.published import POINTS

trainings = Replication("training", "seeds")
SATURATED = 0.95
"""Lines are fitted to accuracies up to this one, as in print."""
REACHED = 0.05
"""A published accuracy is reached where ours is no further below."""
_SHAPE = ["form", "width", "head_width", "heads"]


def trained(rows: Rows, experiment: str, form: str = "", **values: int) -> DataFrame:
    """The rows of an experiment, those of a form and with some values; raises `NoRows` where there are none.

    `heads` of a network with an MLP are those of attention at equal parameters, H where the MLP has 2 d (H - 1).
    """
    table = rows.where("training", experiment=experiment)
    # One head and no MLP is the first network of either kind.
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
    """The accuracy of a network, or the mean over all that have the given values."""
    return trained(rows, experiment, form, **values).groupby("seed").accuracy.mean()


@trainings
def least_beyond(rows: Rows) -> "Series[float]":
    """The least of what networks with per-head values are more accurate than the bound promises, over experiments."""
    table = rows.where("training", form=PER_HEAD)
    return (table.accuracy - table.bound).groupby(table.seed).min()


def line(table: DataFrame) -> tuple[float, float]:
    """The slope of accuracy in heads and the share of variance that the line explains, up to accuracies of 0.95.

    Raises `NoRows` where there are not three such points.
    """
    table = table[table.accuracy <= SATURATED]
    if len(table) < 3:
        raise NoRows("a line needs three networks that do not hold almost all")
    slope, _ = np.polyfit(table.heads, table.accuracy, 1)
    return float(slope), float(np.corrcoef(table.heads, table.accuracy)[0, 1] ** 2)


def _by_seed(table: DataFrame, statistic: Callable[[DataFrame], float]) -> "Series[float]":
    return Series({seed: statistic(own) for seed, own in table.groupby("seed")})


@trainings
def slope(rows: Rows, experiment: str, width: int, form: str = PER_HEAD) -> "Series[float]":
    """Associations that a head more holds: the slope of accuracy in heads, times the number of contexts."""
    table = trained(rows, experiment, form, width=width)
    return _by_seed(table, lambda own: line(own)[0] * own.contexts.iloc[0])


@trainings
def straightness(rows: Rows, experiment: str, width: int, form: str = PER_HEAD) -> "Series[float]":
    """The share of the variance of accuracy that a line in heads explains, up to accuracies of 0.95."""
    return _by_seed(trained(rows, experiment, form, width=width), lambda own: line(own)[1])


@trainings
def exponent(rows: Rows) -> "Series[float]":
    """The power of d = d_h with which the slope in heads grows: of the logarithm of the one in that of the other."""

    def power(own: DataFrame) -> float:
        widths = own.width.unique()
        slopes = [line(own[own.width == width])[0] for width in widths]
        return float(np.polyfit(np.log(widths), np.log(slopes), 1)[0])

    return _by_seed(trained(rows, "heads", PER_HEAD), power)


@trainings
def bend(rows: Rows, form: str) -> "Series[float]":
    """The coefficient of d_h^2 of the polynomial of second degree nearest to accuracies, times 100; at d = 10."""
    table = trained(rows, "head-width", form)
    return _by_seed(table, lambda own: 100 * float(np.polyfit(own.head_width, own.accuracy, 2)[0]))


@trainings
def gain(rows: Rows, form: str, start: int, end: int) -> "Series[float]":
    """How much more is held in one width of the embedding than in another, with heads of width 10."""
    return accuracy("width", form, width=end)(rows) - accuracy("width", form, width=start)(rows)


@trainings
def own_values(rows: Rows) -> "Series[float]":
    """How much more networks with per-head values hold than those with a shared map, mean over d_h below d."""
    table = trained(rows, "head-width")
    cells = table[table.head_width < table.width].pivot_table("accuracy", ["seed", "head_width"], "form")
    return (cells[PER_HEAD] - cells[SHARED]).groupby("seed").mean()


@trainings
def mlp_gain(rows: Rows) -> "Series[float]":
    """How much more an MLP holds than attention at equal parameters, mean over their number."""
    table = trained(rows, "mlp").pivot_table("accuracy", ["seed", "heads"], "form").dropna()
    return (table[MLP] - table[PER_HEAD]).groupby("seed").mean()


@trainings
def mlp_slope(rows: Rows) -> "Series[float]":
    """What a parameter more holds in an MLP, over what it holds in heads: slopes from the one head that both have."""

    def ratio(own: DataFrame) -> float:
        forms = [own[(own.form == form) | (own.heads == own.heads.min())] for form in (MLP, PER_HEAD)]
        mlp, heads = (np.polyfit(each.parameters, each.accuracy, 1)[0] for each in forms)
        return float(mlp / heads)

    return _by_seed(trained(rows, "mlp"), ratio)


@trainings
def ahead(rows: Rows, experiment: str) -> "Series[float]":
    """Our accuracy less the published one, mean over the published networks that were trained."""
    table = beside_published(rows, experiment)
    return (table.accuracy - table.published).groupby(table.seed).mean()


def beside_published(rows: Rows, experiment: str) -> DataFrame:
    """Rows of the networks that have a published accuracy, with it as `published`; `NoRows` where none has."""
    printed = DataFrame(POINTS[experiment]).rename(columns={"accuracy": "published"})
    sizes = {"mlp": 70, "two-dimensions": 10}
    table = trained(rows, experiment, vocab_size=sizes.get(experiment, 50)).merge(printed, on=_SHAPE)
    if table.empty:
        raise NoRows(f"no network of {experiment} has a published accuracy")
    return table


@trainings
def heads_against_depth(rows: Rows) -> "Series[float]":
    """How much more one layer holds than several of as many heads in all, mean over their number."""
    table = trained(rows, "deep").groupby(["seed", "form"]).accuracy.mean().unstack()
    return table[PER_HEAD] - table[DEEP]


@trainings
def constant(rows: Rows, experiment: str, width: int) -> "Series[float]":
    """C of C H d_h d: associations that a head more holds, over d_h d, where d_h is d."""
    return slope(experiment, width)(rows) / width**2


@trainings
def beyond_slope(rows: Rows, width: int) -> "Series[float]":
    """Associations that a head more holds over the d_h that the bound adds."""
    return slope("heads", width)(rows) / width
