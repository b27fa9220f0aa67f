"""Statistics of the study about dependence between target tokens in parallel translation.

Sentences have a known distribution of translations. Refinement predicts all target tokens in parallel and repeats this
for several passes. The coupling J controls how strongly target tokens depend on each other.
"""

from typing import Any, TypeVar

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.translation_dependency.config import CONDITIONALS, DENOISER, TWIN, TWO_STAGES

Table = TypeVar("Table", DataFrame, "Series[Any]")
_TASK = ["sentence", "coupling"]

trainings = Replication("training", "seeds")


def refined(rows: Rows, sampler: str, passes: int) -> DataFrame:
    """Return the exact measurements of all sentences and couplings after a number of refinement passes.

    Args:
        rows: Measured rows of a run, by kind.
        sampler: "conditionals" for refinement with exact conditional distributions, or "denoiser" for a perfect
            denoiser.
        passes: Number of passes.

    Raises:
        NoRows: If no row matches.
    """
    return _required(
        rows.where("refined", sampler=sampler, passes=passes), f"{sampler} after {passes} passes"
    )


@exact
def gap(rows: Rows, sentence: str, coupling: float, sampler: str, passes: int) -> float:
    """Return the KL divergence in nats between the true distribution of translations and refinement.

    Args:
        rows: Measured rows of a run, by kind.
        sentence: Name of the sentence.
        coupling: Coupling J, the strength of the dependence between target tokens.
        sampler: "conditionals" for refinement with exact conditional distributions, or "denoiser" for a perfect
            denoiser.
        passes: Number of refinement passes.
    """
    table = refined(rows, sampler, passes).query("sentence == @sentence and coupling == @coupling")
    return float(_required(table, f"{sentence} at J = {coupling:g}").divergence.iloc[0])


@exact
def least_rise(rows: Rows, sampler: str, passes: int) -> float:
    """Return the smallest increase of the KL divergence of refinement from one coupling to the next.

    A coupling is the strength of the dependence between target tokens. The minimum is over sentences and couplings.

    Args:
        rows: Measured rows of a run, by kind.
        sampler: "conditionals" for refinement with exact conditional distributions, or "denoiser" for a perfect
            denoiser.
        passes: Number of refinement passes.
    """
    table = refined(rows, sampler, passes).pivot(index="sentence", columns="coupling", values="divergence")
    return float(table.sort_index(axis=1).diff(axis=1).iloc[:, 1:].min().min())


@exact
def least_lead(rows: Rows, passes: int) -> float:
    """Return how much smaller the KL divergence of refinement is with a perfect denoiser than with exact conditionals.

    The smallest difference over sentences and over couplings of at least 1 is returned, in nats.

    Args:
        rows: Measured rows of a run, by kind.
        passes: Number of refinement passes.
    """
    conditionals, denoiser = (
        refined(rows, sampler, passes).query("coupling >= 1").set_index(_TASK).divergence
        for sampler in (CONDITIONALS, DENOISER)
    )
    return float(_required(conditionals - denoiser, "couplings of at least 1").min())


@exact
def most_undone(rows: Rows, sampler: str) -> float:
    """Return how much the KL divergence of refinement increases again after its smallest value.

    The divergence after the last pass minus the smallest divergence over passes is maximized over sentences and
    couplings.

    Args:
        rows: Measured rows of a run, by kind.
        sampler: "conditionals" for refinement with exact conditional distributions, or "denoiser" for a perfect
            denoiser.
    """
    table = rows.where("refined", sampler=sampler)
    last = table[table.passes == table.passes.max()].set_index(_TASK).divergence
    return float((last - table.groupby(_TASK).divergence.min()).max())


@exact
def chains_lead(rows: Rows, chain: str, sampler: str, passes: int) -> float:
    """Return how much smaller the KL divergence of a Markov chain is, compared with refinement.

    Both have made the same number of model calls. The smallest difference over sentences is returned, in nats.

    Args:
        rows: Measured rows of a run, by kind.
        chain: Name of the chain, "Gibbs" or "Gibbs of pairs".
        sampler: "conditionals" for refinement with exact conditional distributions, or "denoiser" for a perfect
            denoiser.
        passes: Number of model calls.
    """
    table = rows.where("chain", passes=passes).pivot(index="sentence", columns="sampler", values="divergence")
    lead = (table[sampler] - table[chain]).dropna()
    return float(_required(lead, f"{chain} after {passes} passes").min())


@exact
def kept_stutter(rows: Rows, sampler: str, passes: int) -> float:
    """Return how many more adjacent tokens are equal after refinement than in true translations.

    The smallest difference of shares over couplings is returned, for sentences in which words can be swapped.

    Args:
        rows: Measured rows of a run, by kind.
        sampler: "conditionals" for refinement with exact conditional distributions, or "denoiser" for a perfect
            denoiser.
        passes: Number of refinement passes.
    """
    repeated = refined(rows, sampler, passes).query("swapping > 0").set_index(_TASK).stutter
    truth = rows["truth"].set_index(_TASK).stutter
    return float(_required((repeated - truth).dropna(), "sentences with swapped words").min())


@trainings
def translated(rows: Rows, arm: str, column: str, passes: int, keep: str = "nothing") -> "Series[float]":
    """Return a score of the test translations of a trained network.

    Args:
        rows: Measured rows of a run, by kind.
        arm: Name of the network, for example "twin" (autoregressive) or "refiner, S = 2".
        column: Name of the score: "bleu", "stutter" (rate of repeated words) or "valid" (share of correct
            translations).
        passes: Number of refinement passes. 0 for the twin.
        keep: Tokens that a pass keeps: "nothing", or "stutter" for tokens whose replacement would repeat the previous
            token.

    Returns:
        One score per training seed.
    """
    return rows.where("quality", arm=arm, passes=passes, keep=keep).groupby("seed")[column].mean()


@trainings
def excess_stutter(rows: Rows, times: float) -> "Series[float]":
    """Return how many more words the refiner repeats than the autoregressive network.

    The refiner is trained in two stages. It runs four passes, which keep tokens whose replacement would repeat the
    previous token.

    Args:
        rows: Measured rows of a run, by kind.
        times: Factor of the autoregressive network's rate of repeated words, which is subtracted.

    Returns:
        One difference of rates per training seed.
    """
    refiner = rows.where("quality", arm=TWO_STAGES, passes=4, keep="stutter").groupby("seed").stutter.mean()
    return refiner - times * rows.where("quality", arm=TWIN).groupby("seed").stutter.mean()


@trainings
def listed(rows: Rows, arm: str, expression: str, passes: int) -> "Series[float]":
    """Return a number about the enumerated output distributions of a trained network.

    Args:
        rows: Measured rows of a run, by kind.
        arm: Name of the network, for example "twin" (autoregressive) or "refiner, S = 2".
        expression: Column, or expression of columns as in `DataFrame.eval`, for example "divergence -
            perfect_divergence".
        passes: Number of refinement passes. 0 for the twin.

    Returns:
        One mean over source sentences per training seed.
    """
    table = rows.where("law", arm=arm, passes=passes)
    values = np.asarray(table.eval(expression, engine="python"), dtype=np.float64)
    return Series(values, index=table.index).groupby(table.seed).mean()


@trainings
def attention(rows: Rows, column: str, stutter: bool, arm: str = TWO_STAGES) -> "Series[float]":
    """Return the mean of an attention measure over pairs of adjacent target positions.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the measure (see `attention_rows`), for example "own_mean".
        stutter: Whether to select pairs with the same token instead of pairs with different tokens.
        arm: Name of the network.

    Returns:
        One mean per training seed.
    """
    return rows.where("attention", arm=arm, stutter=stutter).groupby("seed")[column].mean()


def _required(table: Table, content: str) -> Table:
    if table.empty:
        raise NoRows(f"no rows of {content}")
    return table
