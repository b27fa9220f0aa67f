"""Statistics of the study about the trained networks. Replications are sets of test sentences or rounds of timing."""

from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, Statistic, exact
from trialogue_lab.ledger.claims.jackknife import pseudo_values
from trialogue_lab.studies.translation.config import REFINER, TWIN

TRAINED = "the networks trained"
test_sets = Replication("prompt set", "sets", objects=TRAINED)
small_sets = Replication("prompt set", "small_sets", objects=TRAINED)
rounds = Replication("draw", "rounds", objects=TRAINED)


@test_sets
def score(rows: Rows, arm: str, steps: int, hypotheses: int, column: str = "bleu") -> "Series[float]":
    """Return a score of each set of test sentences. The twin has `steps` 0."""
    return _score(rows, arm, steps, hypotheses, column)


@small_sets
def small(rows: Rows, arm: str, steps: int = 4, column: str = "bleu") -> "Series[float]":
    """Return a score of a small refiner, for each of its sets of test sentences."""
    return _score(rows, arm, steps, 1, column)


@test_sets
def attention(rows: Rows, column: str, stutter: bool) -> "Series[float]":
    """Return the jackknife pseudo-value, for each set, of a mean over adjacent positions that repeat a token or do not.

    The statistic is the mean over pairs of positions, then over trainings, so that sets without repeats count too.

    Raises:
        NoRows: If in some training fewer than two sets, or fewer than half of them, have such pairs.
    """
    table = rows["attention"]
    chosen, sets = table[table.stutter == stutter], rows.config["sets"]
    nonempty = chosen.groupby("seed")["set"].nunique().reindex(table.seed.unique(), fill_value=0).min()
    if nonempty < max(2, sets / 2):
        kind = "repeat a token" if stutter else "do not repeat a token"
        raise NoRows(f"pairs of positions that {kind} in {nonempty} of {sets} sets")

    def mean(numbers: list[int]) -> float:
        part = chosen[chosen["set"].isin(numbers)]
        sums = (part[column] * part.pairs).groupby(part.seed).sum()
        return float((sums / part.pairs.groupby(part.seed).sum()).mean())

    return pseudo_values(range(sets), mean, 2)


@rounds
def latency(rows: Rows, contender: str, column: str, sentences: str = "all") -> "Series[float]":
    """Return the seconds per sentence of each round, as the "median" or "p99" over sentences."""
    return rows.where("latency", contender=contender, sentences=sentences).groupby("round")[column].mean()


@exact
def corpus(
    rows: Rows, arm: str, steps: int, hypotheses: int, stratum: str = "all", column: str = "bleu"
) -> float:
    """Return a score of all test sentences of a stratum, as the mean over trainings."""
    table = rows.where("corpus", arm=arm, steps=steps, hypotheses=hypotheses, stratum=stratum)
    return _mean(table, column)


@exact
def length(rows: Rows, column: str) -> float:
    """Return how often the most probable target lengths are correct."""
    return _mean(rows["length"], column)


@exact
def parameters(rows: Rows, arm: str) -> float:
    """Return the number of parameters of a network."""
    return _mean(rows.where("network", arm=arm), "parameters")


def greedy(column: str = "bleu") -> Statistic:
    """Return a score of the twin's greedy translations."""
    return score(TWIN, 0, 1, column)


def refined(steps: int, hypotheses: int, column: str = "bleu") -> Statistic:
    """Return a score of the refiner's translations."""
    return score(REFINER, steps, hypotheses, column)


def _score(rows: Rows, arm: str, steps: int, hypotheses: int, column: str) -> "Series[float]":
    return rows.where("set", arm=arm, steps=steps, hypotheses=hypotheses).groupby("set")[column].mean()


def _mean(table: DataFrame, column: str) -> float:
    if table.empty:
        raise NoRows(f"no rows with {column}")
    return float(table[column].mean())
