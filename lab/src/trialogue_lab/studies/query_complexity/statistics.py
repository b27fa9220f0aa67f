"""Statistics of the study about the number of model calls that constrained generation needs.

Model calls are also called queries. In the task "hidden string" of Theorem 3.1.1, only one valid string of length D has
positive probability under the model.
"""

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Counts, Replication, Rows, exact

searches = Replication("draw", "search_seeds")
walks = Replication("draw", "walk_seeds")
lattices = Replication("draw", "lattice_seeds")


@exact
def growth(rows: Rows, /, kind: str, column: str, **values: object) -> float:
    """Return how fast the cost of a sampler or search grows with the string length, in powers of two per token.

    The cost is a number of model calls or verifier calls. For the two largest lengths n < m, the result is log2(cost(m)
    / cost(n)) / (m - n).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        kind: Kind of the rows, for example "hidden" for a task with one valid string.
        column: Name of the column with the cost, for example "rejection" for the model calls of rejection sampling.
        **values: Values of other columns that select the rows.
    """
    table = rows.where(kind, **values).sort_values("length").iloc[-2:]
    (before, after), (short, long) = np.log2(table[column]), table.length
    return float((after - before) / (long - short))


@exact
def power(rows: Rows, kind: str, column: str) -> float:
    """Return the exponent b if the cost of a sampler or search grows like (string length)^b.

    The cost is a number of model calls or verifier calls. The exponent is the slope of log(cost) against log(length)
    between the two largest lengths.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        kind: Kind of the rows, for example "dyck" for generating Dyck strings (balanced brackets).
        column: Name of the column with the cost, for example "tokenwise" for the model calls of rejection sampling
            token by token.
    """
    table = rows[kind].sort_values("length").iloc[-2:]
    grown, longer = (float(np.ptp(np.log(table[each]))) for each in (column, "length"))
    return grown / longer


@exact
def least_growth(rows: Rows, kind: str, column: str) -> float:
    """Return the smallest growth rate of a sampler's cost with the string length, in powers of two per token.

    For successive lengths n < m, the growth rate is log2(cost(m) / cost(n)) / (m - n).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        kind: Kind of the rows, for example "dyck" for generating Dyck strings (balanced brackets).
        column: Name of the column with the cost, for example "rejection" for the model calls of rejection sampling.

    Returns:
        The minimum over all pairs of successive lengths.
    """
    table = rows[kind].sort_values("length")
    return float((np.log2(table[column]).diff() / table.length.diff()).min())


@exact
def largest_error(rows: Rows, kind: str, column: str, printed: str) -> float:
    """Return the largest relative error of a published formula for a cost, over all string lengths.

    The relative error compares a published number with a computed one.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        kind: Kind of the rows, for example "zeros" for a task in which only the string of zeros is valid.
        column: Column of the computed number.
        printed: Column of the published number.
    """
    return float((rows[kind][column] / rows[kind][printed] - 1).abs().max())


@exact
def capped_error(rows: Rows) -> float:
    """Return the largest relative error of a formula for the success probability of tokenwise rejection.

    Tokenwise rejection samples each token until the verifier accepts the prefix, and gives up after too many
    rejections. Only one valid string of length D has positive probability. The formula is 2^-(D-1).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The maximum over lengths and over maximum numbers of rejections.
    """
    capped = rows["capped"]
    return float((capped.success * 2.0 ** (capped.length - 1) - 1).abs().max())


@exact
def wrong(rows: Rows, kind: str, column: str) -> float:
    """Return the number of knapsack problems for which a solver returns a wrong result.

    A knapsack problem is to find a subset of given weights with a given sum.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        kind: "knapsack" for random problems, or "greedy" for weights that are each at least the sum of all smaller
            ones.
        column: Column that is 1 for a wrong result of the solver, for example "generated_wrong".
    """
    return float(rows[kind][column].sum())


@exact
def unsolved(rows: Rows, task: str) -> float:
    """Return the largest share of models that give probability zero to a string that was generated for them.

    The string is generated with a verifier only, by trying every token at every position.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        task: "Dyck strings" (balanced brackets), or "hidden string" for models that each give positive probability to
            only one valid string.

    Returns:
        The maximum over string lengths.
    """
    return float(1 - rows.where("verifier", task=task).solved.min())


@exact
def calls_beyond(rows: Rows, /, kind: str, **values: object) -> float:
    """Return the largest difference between the number of verifier calls and its upper bound.

    A string is generated by trying every token at every position. The bound is (number of tokens in the vocabulary) *
    (string length). It holds if the result is not positive.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        kind: "verifier" for generating strings, or "knapsack" for random knapsack problems.
        **values: Values of other columns that select the rows.
    """
    table = rows.where(kind, **values)
    return float((table.calls - table.bound).max())


@exact
def at_length(rows: Rows, kind: str, column: str, length: int) -> float:
    """Return an exactly computed cost or probability of samplers or searches, for one string length.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        kind: Kind of the rows, for example "optimum" for the model calls of an optimal search.
        column: Name of the column.
        length: String length.
    """
    return float(rows.where(kind, length=length)[column].iloc[0])


@searches
def searched(rows: Rows, length: int, inferred: bool) -> "Series[float]":
    """Return the model calls that a random search needs to find a hidden string.

    The hidden string is the only valid string with positive probability under the model. The search tries all
    candidates in random order.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        length: String length.
        inferred: Whether the last remaining candidate is inferred without a model call.

    Returns:
        One mean over hidden strings, per seed.
    """
    return rows.where("search", length=length, inferred=inferred).set_index("seed").queries


@searches
def searched_over(rows: Rows, column: str, inferred: bool) -> "Series[float]":
    """Return the model calls of a random search relative to the expected model calls of the optimal search.

    Both search for a hidden string, the only valid string with positive probability under the model. The random search
    tries all candidates in random order.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Column of the optimal number: "inferred" if the last remaining candidate needs no model call, or
            "queried" if it needs one.
        inferred: Whether the random search infers the last remaining candidate without a model call.

    Returns:
        One mean ratio over string lengths, per seed.
    """
    optima = rows["optimum"].set_index("length")[column]
    found = rows.where("search", inferred=inferred)
    return (found.queries / found.length.map(optima)).groupby(found.seed).mean()


@walks
def walked(rows: Rows, walk: str, length: int) -> "Series[float]":
    """Return the number of model calls that a sampler with a verifier needs to generate the string of zeros.

    The model generates uniformly random bits, and only the string of zeros is valid (Proposition 3.1.1).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        walk: Name of the sampler. "rejection" samples complete strings until one is valid, and "tokenwise rejection"
            samples each token until the verifier accepts it.
        length: String length.

    Returns:
        One mean over outputs, per seed.
    """
    return rows.where("walk", walk=walk, length=length).set_index("seed").queries


@walks
def walked_over_printed(rows: Rows, walk: str) -> "Series[float]":
    """Return the number of model calls of a sampler with a verifier, divided by the published number.

    The model generates uniformly random bits, and only the string of zeros is valid. The published number is that of
    Proposition 3.1.1.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        walk: Name of the sampler. "rejection" samples complete strings until one is valid, and "tokenwise rejection"
            samples each token until the verifier accepts it.

    Returns:
        One mean ratio over string lengths, per seed.
    """
    found = rows.where("walk", walk=walk)
    return (found.queries / found.printed).groupby(found.seed).mean()


@lattices
def solved(rows: Rows, digits: int) -> Counts:
    """Count the random knapsack problems that lattice reduction solves.

    A knapsack problem is to find a subset of given weights with a given sum. Only problems with a solution are used.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        digits: Number of binary digits of the weights.

    Returns:
        The number of solved problems and the number of all problems, per seed.
    """
    found = rows.where("lattice", digits=digits).set_index("seed")
    return Counts(found.solved, found.trials, identical=True)
