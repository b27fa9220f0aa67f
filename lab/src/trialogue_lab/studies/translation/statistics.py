"""Statistics of the study about translation by iterative refinement.

The refiner predicts all target tokens in parallel and revises them in several steps. It tries several target lengths,
called hypotheses. The twin is an autoregressive network of the same size. Replications are sets of test sentences or
rounds of timing.
"""

from pandas import Series

from trialogue_lab.ledger import NoRows, Replication, Rows, Statistic, exact
from trialogue_lab.ledger.claims.jackknife import pseudo_values
from trialogue_lab.studies.translation.config import REFINER, TWIN

TRAINED = "the networks trained"
test_sets = Replication("prompt set", "sets", objects=TRAINED)
small_sets = Replication("prompt set", "small_sets", objects=TRAINED)
rounds = Replication("draw", "rounds", objects=TRAINED)


@test_sets
def score(rows: Rows, arm: str, steps: int, hypotheses: int, column: str = "bleu") -> "Series[float]":
    """Return a quality score of the translations of one network, for each set of test sentences.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the network: "twin" for the autoregressive network, or the name of a refiner, which predicts all
            target tokens in parallel and revises them in several steps.
        steps: Number of refinement steps. 0 for the twin.
        hypotheses: Number of target lengths that a refiner tries, or the beam size of the twin.
        column: Name of the score: "bleu" (default), "chrf", "stutter" (rate of repeated words), "passes" (network
            passes per sentence) or another column.

    Returns:
        One mean over training seeds per set of test sentences.
    """
    return _score(rows, arm, steps, hypotheses, column)


@small_sets
def small(rows: Rows, arm: str, steps: int = 4, column: str = "bleu") -> "Series[float]":
    """Return a quality score of the translations of a small refiner, which is trained for fewer updates.

    A refiner predicts all target tokens in parallel and revises them in several steps.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the training method of the refiner, for example "two stages" or "distilled".
        steps: Number of refinement steps (default: 4).
        column: Name of the score: "bleu" (default), "chrf", "stutter" (rate of repeated words) or another column.

    Returns:
        One mean over training seeds per set of test sentences.
    """
    return _score(rows, arm, steps, 1, column)


@test_sets
def attention(rows: Rows, column: str, stutter: bool) -> "Series[float]":
    """Return a measurement of a refiner's attention, averaged over pairs of adjacent target positions.

    The refiner is a translation network that predicts all target tokens in parallel and revises them in several steps.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column.
        stutter: Whether to select pairs of positions with the same token (a repeated token) instead of pairs with
            different tokens.

    Returns:
        One number per set of test sentences (jackknife pseudo-value). Their mean is the mean over pairs, averaged over
        training seeds.

    Raises:
        NoRows: If fewer than two sets of sentences, or fewer than half of the sets, have such pairs.
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
    """Return the time in seconds that one network needs to translate a sentence.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        contender: Name of the method: "twin" for the autoregressive network. For a refiner, the numbers of refinement
            steps and of tried target lengths, for example "4 steps, 5".
        column: Statistic over sentences, "median" or "p99" (99th percentile).
        sentences: "all" (default), or "long" for long sentences only.

    Returns:
        One mean over training seeds per round of measurements.
    """
    return rows.where("latency", contender=contender, sentences=sentences).groupby("round")[column].mean()


@exact
def corpus(
    rows: Rows, arm: str, steps: int, hypotheses: int, stratum: str = "all", column: str = "bleu"
) -> float:
    """Return a quality score of the translations of one network, for all test sentences of one kind.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the network: "twin" for the autoregressive network, or the name of a refiner, which predicts all
            target tokens in parallel and revises them in several steps.
        steps: Number of refinement steps. 0 for the twin.
        hypotheses: Number of target lengths that a refiner tries, or the beam size of the twin.
        stratum: Kind of sentences: "all" (default), "familiar" (the reference differs in at most one word from a
            training target), "new" (the others), or "new, 12 tokens or more".
        column: Name of the score: "bleu" (default), "chrf" or "stutter" (rate of repeated words).

    Returns:
        The mean over training seeds.
    """
    table = rows.require("corpus", arm=arm, steps=steps, hypotheses=hypotheses, stratum=stratum)
    return float(table[column].mean())


@exact
def length(rows: Rows, column: str) -> float:
    """Return the share of sentences for which the refiner predicts the target length correctly.

    The refiner first predicts the number of target tokens, and then all tokens in parallel.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: What counts as correct.
            - "first": the most probable length is correct.
            - "within_one": the most probable length differs by at most one token.
            - "among_three", "among_five": the correct length is among the three or five most probable lengths.

    Returns:
        The share of test sentences, averaged over training seeds.
    """
    return float(rows["length"][column].mean())


@exact
def parameters(rows: Rows, arm: str) -> float:
    """Return the number of trained parameters of a translation network.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the network: "twin" for the autoregressive one, or "refiner" for the one that predicts all target
            tokens in parallel.
    """
    return float(rows.require("network", arm=arm).parameters.mean())


def greedy(column: str = "bleu") -> Statistic:
    """Create a statistic: a quality score of greedy translations by the autoregressive network.

    Args:
        column: Name of the score (default: "bleu").
    """
    return score(TWIN, 0, 1, column)


def refined(steps: int, hypotheses: int, column: str = "bleu") -> Statistic:
    """Create a statistic: a quality score of translations by the refiner.

    The refiner predicts all target tokens in parallel and revises them in several steps.

    Args:
        steps: Number of refinement steps.
        hypotheses: Number of target lengths that the refiner tries.
        column: Name of the score (default: "bleu").
    """
    return score(REFINER, steps, hypotheses, column)


def _score(rows: Rows, arm: str, steps: int, hypotheses: int, column: str) -> "Series[float]":
    return rows.where("set", arm=arm, steps=steps, hypotheses=hypotheses).groupby("set")[column].mean()
