"""Statistics of the study about networks that are trained to predict one random token after every context.

A context is a pair of tokens. Networks have attention only, except where an MLP is named. d is the embedding width, d_h
the width of a head and H the number of heads. Each statistic has one number per seed, from one training of each
network.
"""

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


def select_trainings(rows: Rows, experiment: str, form: str = "", **values: int) -> DataFrame:
    """Select the measurements of the networks that are trained in one experiment.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        experiment: Name of the experiment, for example "heads".
        form: Form of the networks: "per-head" if every head has its own value map, "shared" for one value map for all
            heads, "MLP" for one head and an MLP, or "deep" for several layers. Empty (default) for all forms.
        **values: Values of columns that select the networks, for example `width=10`. A network with an MLP of width 2 d
            (H - 1), where d is the embedding width, has `heads` equal to H.

    Returns:
        One row per network and training seed.

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
    """Return the accuracy of networks that are trained to predict one token per context.

    A context is a pair of tokens, and the correct next token is random. The accuracy is measured on all contexts, which
    are also the training data.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        experiment: Name of the experiment, for example "heads".
        form: Form of the networks: "per-head" (default) if every head has its own value map, "shared" for one value map
            for all heads, "MLP" for one head and an MLP, or "deep" for several layers.
        **values: Values of columns that select the networks, for example `heads=6`.

    Returns:
        One mean over the selected networks per training seed.
    """
    return select_trainings(rows, experiment, form, **values).groupby("seed").accuracy.mean()


@trainings
def least_beyond(rows: Rows) -> "Series[float]":
    """Return the smallest margin by which the accuracy of trained networks exceeds its theoretical lower bound.

    The networks are trained to predict one random token after every pair of tokens. They have one layer, no MLP, and a
    separate value map in every head.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One minimum over networks per training seed.
    """
    table = rows.where("training", form=PER_HEAD)
    return (table.accuracy - table.bound).groupby(table.seed).min()


def fit_line(table: DataFrame) -> tuple[float, float]:
    """Fit a line to accuracy against the number of heads, by least squares.

    Args:
        table: Rows of trained networks, with the columns `heads` and `accuracy`. Networks with an accuracy above 0.95
            are omitted.

    Returns:
        The slope, and the coefficient of determination R^2.

    Raises:
        NoRows: If fewer than three networks remain.
    """
    table = table[table.accuracy <= SATURATED]
    if len(table) < 3:
        raise NoRows(f"a line needs three networks with an accuracy of at most {SATURATED}")
    slope, _ = np.polyfit(table.heads, table.accuracy, 1)
    return float(slope), float(np.corrcoef(table.heads, table.accuracy)[0, 1] ** 2)


def _apply_by_seed(table: DataFrame, statistic: Callable[[DataFrame], float]) -> "Series[float]":
    return Series({seed: statistic(own) for seed, own in table.groupby("seed")})


@trainings
def slope(rows: Rows, experiment: str, width: int, form: str = PER_HEAD) -> "Series[float]":
    """Return the number of additional contexts that a trained network stores for each additional attention head.

    The network is trained to predict one random token after every context (pair of tokens). A line is fitted to its
    accuracy as a function of the number of heads. The result is slope of the line * number of contexts.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        experiment: Name of the experiment, for example "heads".
        width: Embedding width.
        form: Form of the networks: "per-head" (default) if every head has its own value map, "shared" for one value map
            for all heads, or "deep" for several layers.

    Returns:
        One number per training seed.
    """
    table = select_trainings(rows, experiment, form, width=width)
    return _apply_by_seed(table, lambda own: fit_line(own)[0] * own.contexts.iloc[0])


@trainings
def straightness(rows: Rows, experiment: str, width: int, form: str = PER_HEAD) -> "Series[float]":
    """Return how well a line describes the accuracy of trained networks as a function of the number of heads (R^2).

    The networks are trained to predict one random token after every pair of tokens.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        experiment: Name of the experiment, for example "heads".
        width: Embedding width.
        form: Form of the networks: "per-head" (default) if every head has its own value map, "shared" for one value map
            for all heads, or "deep" for several layers.

    Returns:
        One coefficient of determination R^2 of a least-squares line per training seed.
    """
    return _apply_by_seed(select_trainings(rows, experiment, form, width=width), lambda own: fit_line(own)[1])


@trainings
def exponent(rows: Rows) -> "Series[float]":
    """Return the exponent b in the power law (accuracy gained per attention head) ~ width^b.

    The networks are trained to predict one random token after every pair of tokens. For each width of the embedding, a
    line is fitted to the accuracy as a function of the number of heads. The slope of the line is the gain per head. The
    heads are as wide as the embedding.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One exponent per training seed.
    """

    def fit(own: DataFrame) -> float:
        widths = own.width.unique()
        slopes = [fit_line(own[own.width == width])[0] for width in widths]
        return float(np.polyfit(np.log(widths), np.log(slopes), 1)[0])

    return _apply_by_seed(select_trainings(rows, "heads", PER_HEAD), fit)


@trainings
def bend(rows: Rows, form: str) -> "Series[float]":
    """Return the curvature of the accuracy of trained networks as a function of the width of their attention heads.

    The networks are trained to predict one random token after every pair of tokens. A quadratic function a + b x + c
    x^2 is fitted to the accuracy, where x is the head width. The result is 100 c.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        form: Form of the networks: "per-head" if every head has its own value map, or "shared" for one value
            map for all heads.

    Returns:
        One value of 100 c per training seed.
    """
    table = select_trainings(rows, "head-width", form)
    return _apply_by_seed(table, lambda own: 100 * float(np.polyfit(own.head_width, own.accuracy, 2)[0]))


@trainings
def gain(rows: Rows, form: str, start: int, end: int) -> "Series[float]":
    """Return the increase of the accuracy of trained networks from a smaller to a larger embedding width.

    The networks are trained to predict one random token after every pair of tokens, at a fixed head width.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        form: Form of the networks: "per-head" if every head has its own value map, or "shared" for one value map for
            all heads.
        start: The smaller embedding width.
        end: The larger embedding width.

    Returns:
        One difference per training seed.
    """
    return accuracy("width", form, width=end)(rows) - accuracy("width", form, width=start)(rows)


@trainings
def own_values(rows: Rows) -> "Series[float]":
    """Return how much the accuracy of trained networks increases if every head has its own value map.

    The accuracy with one value map for all heads is subtracted. The networks are trained to predict one random token
    after every pair of tokens.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One mean difference per training seed, over head widths below the embedding width.
    """
    table = select_trainings(rows, "head-width")
    cells = table[table.head_width < table.width].pivot_table("accuracy", ["seed", "head_width"], "form")
    return (cells[PER_HEAD] - cells[SHARED]).groupby("seed").mean()


@trainings
def mlp_gain(rows: Rows) -> "Series[float]":
    """Return how much more accurate trained networks become by an MLP than by additional attention heads.

        difference = (increase of the accuracy by an MLP) - (increase by additional heads)

    The networks are trained to predict one random token after every pair of tokens. They are compared at equal numbers
    of parameters.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One mean difference over network sizes per training seed.
    """
    table = select_trainings(rows, "mlp").pivot_table("accuracy", ["seed", "heads"], "form").dropna()
    return (table[MLP] - table[PER_HEAD]).groupby("seed").mean()


@trainings
def mlp_slope(rows: Rows) -> "Series[float]":
    """Return the accuracy gained per parameter of an MLP, relative to that gained per parameter of additional heads.

    A network with one head is extended by an MLP of increasing width, or by more heads. It is trained to predict one
    random token after every pair of tokens. The gain per parameter is the slope of a line that is fitted to the
    accuracy.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One ratio of slopes (MLP / additional heads) per training seed.
    """

    def ratio(own: DataFrame) -> float:
        forms = [own[(own.form == form) | (own.heads == own.heads.min())] for form in (MLP, PER_HEAD)]
        mlp, heads = (np.polyfit(each.parameters, each.accuracy, 1)[0] for each in forms)
        return float(mlp / heads)

    return _apply_by_seed(select_trainings(rows, "mlp"), ratio)


def join_published(rows: Rows, experiment: str) -> DataFrame:
    """Return the published networks of an experiment, joined with our trainings of the same networks.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        experiment: Name of the experiment, a key of `POINTS`.

    Returns:
        One row per published network and seed. `published` is the published accuracy. `accuracy` is ours, and NaN for
        networks that were not trained.
    """
    table = select_trainings(rows, experiment)
    table = table[table.vocab_size == _VOCAB_SIZES.get(experiment, 50)]
    points = DataFrame(POINTS[experiment]).rename(columns={"accuracy": "published"})
    return points.merge(table, "left", on=SHAPE)


@trainings
def ahead(rows: Rows, experiment: str) -> "Series[float]":
    """Return the accuracy of our trained networks minus the accuracy of the same networks in the publication.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        experiment: Name of an experiment with published accuracies, for example "heads".

    Returns:
        One mean difference per training seed, over the published networks that were trained.

    Raises:
        NoRows: If no trained network has a published accuracy.
    """
    table = join_published(rows, experiment).dropna(subset="accuracy").astype({"seed": int})
    if table.empty:
        raise NoRows(f"no network of {experiment} has a published accuracy")
    return (table.accuracy - table.published).groupby(table.seed).mean()


@trainings
def heads_against_depth(rows: Rows) -> "Series[float]":
    """Return the accuracy of trained networks with one layer minus that of networks with several layers.

    The networks are trained to predict one random token after every pair of tokens. They have the same total number of
    heads.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One difference of means over numbers of heads per training seed.
    """
    table = select_trainings(rows, "deep").groupby(["seed", "form"]).accuracy.mean().unstack()
    return table[PER_HEAD] - table[DEEP]


@trainings
def constant(rows: Rows, experiment: str, width: int) -> "Series[float]":
    """Return the constant C in the number C H d_h d of contexts that a trained network stores.

    The network is trained to predict one random token after every context (pair of tokens). H is the number of heads,
    d_h the head width and d the embedding width. Here, both widths are equal, so that C is the number of contexts
    stored per additional head, divided by d^2.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        experiment: Name of the experiment, for example "heads".
        width: Embedding width d.

    Returns:
        One constant per training seed.
    """
    return slope(experiment, width)(rows) / width**2


@trainings
def beyond_slope(rows: Rows, width: int) -> "Series[float]":
    """Return the number of contexts that a trained network stores per additional head, divided by the proven number.

    The network is trained to predict one random token after every context (pair of tokens). By the theoretical lower
    bound, one head stores as many contexts as its width.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        width: Embedding width, which is also the head width.

    Returns:
        One ratio per training seed.
    """
    return slope("heads", width)(rows) / width
