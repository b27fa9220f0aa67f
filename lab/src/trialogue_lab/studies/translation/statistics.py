"""Quantities of the study: what is said holds for the networks trained, over sets of test sentences or rounds."""

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
    """A number of each set of test sentences; `steps` 0 of the twin."""
    return _score(rows, arm, steps, hypotheses, column)


@small_sets
def small(rows: Rows, arm: str, steps: int = 4, column: str = "bleu") -> "Series[float]":
    """That of a refiner that is trained for less."""
    return _score(rows, arm, steps, 1, column)


@test_sets
def attention(rows: Rows, number: str, stutter: bool) -> "Series[float]":
    """A number of the pairs of adjacent positions that stutter, or of the others: pseudo-values of each set.

    The statistic is the mean over pairs of a training, then over trainings, so that a set where nothing stutters is a
    set among others. There is none where fewer than half of the sets of a training have such pairs, or fewer than two.
    """
    table = rows["attention"]
    chosen, sets = table[table.stutter == stutter], rows.config["sets"]
    having = chosen.groupby("seed")["set"].nunique().reindex(table.seed.unique(), fill_value=0).min()
    if having < max(2, sets / 2):
        raise NoRows(f"pairs that {'stutter' if stutter else 'do not'} in {having} of {sets} sets")

    def mean(numbers: list[int]) -> float:
        part = chosen[chosen["set"].isin(numbers)]
        sums = (part[number] * part.pairs).groupby(part.seed).sum()
        return float((sums / part.pairs.groupby(part.seed).sum()).mean())

    return pseudo_values(range(sets), mean, 2)


@rounds
def latency(rows: Rows, contender: str, column: str, sentences: str = "all") -> "Series[float]":
    """Seconds of a sentence, median or p99 over sentences, of each round."""
    return rows.where("latency", contender=contender, sentences=sentences).groupby("round")[column].mean()


@exact
def corpus(
    rows: Rows, arm: str, steps: int, hypotheses: int, stratum: str = "all", column: str = "bleu"
) -> float:
    """A number of all test sentences of a stratum."""
    table = rows.where("corpus", arm=arm, steps=steps, hypotheses=hypotheses, stratum=stratum)
    return _only(table, column)


@exact
def length(rows: Rows, column: str) -> float:
    """How often the likeliest lengths of targets are right."""
    return _only(rows["length"], column)


@exact
def parameters(rows: Rows, arm: str) -> float:
    """How many numbers a network has."""
    return _only(rows.where("network", arm=arm), "parameters")


def greedy(column: str = "bleu") -> Statistic:
    """The twin's number, greedily."""
    return score(TWIN, 0, 1, column)


def refined(steps: int, hypotheses: int, column: str = "bleu") -> Statistic:
    """The refiner's number."""
    return score(REFINER, steps, hypotheses, column)


def _score(rows: Rows, arm: str, steps: int, hypotheses: int, column: str) -> "Series[float]":
    return rows.where("set", arm=arm, steps=steps, hypotheses=hypotheses).groupby("set")[column].mean()


def _only(table: DataFrame, column: str) -> float:
    """The mean over trainings; `LookupError` where there is none."""
    if table.empty:
        raise LookupError(column)
    return float(table[column].mean())
