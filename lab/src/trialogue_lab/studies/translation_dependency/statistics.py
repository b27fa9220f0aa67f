"""Statistics of the study about dependence between target tokens in parallel translation.

The sentences of an artificial language have a known distribution of translations. The coupling J is the strength of the
dependence between target tokens. Refinement samples all target tokens in parallel, given their current values, and
repeats this for several passes. Its error is the KL divergence from the true translations to its output, in nats. All
statistics of refinement use these definitions.
"""

from typing import Any, TypeVar

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.translation_dependency.config import CONDITIONALS, DENOISER, TWIN, TWO_STAGES

Table = TypeVar("Table", DataFrame, "Series[Any]")
_TASK = ["sentence", "coupling"]

trainings = Replication("training", "seeds")


def select_refinement_rows(rows: Rows, sampler: str, passes: int) -> DataFrame:
    """Select the exact errors of refinement after a number of passes, for all sentences.

    Refinement is a translation method that samples all target tokens in parallel in several passes.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sampler: "conditionals" if every token is sampled from its exact distribution given all other tokens, or
            "denoiser" if the noise in all tokens is taken into account.
        passes: Number of passes.

    Returns:
        One row per sentence and coupling, the strength of the dependence between target tokens.

    Raises:
        NoRows: If no row matches.
    """
    return rows.require("refined", sampler=sampler, passes=passes)


@exact
def gap(rows: Rows, sentence: str, coupling: float, sampler: str, passes: int) -> float:
    """Return the KL divergence in nats from the true translations of a sentence to the output of refinement.

    Refinement is a translation method that samples all target tokens in parallel in several passes.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sentence: Name of the source sentence.
        coupling: Strength J of the dependence between target tokens.
        sampler: "conditionals" if every token is sampled from its exact distribution given all other tokens, or
            "denoiser" if the noise in all tokens is taken into account.
        passes: Number of passes.
    """
    table = select_refinement_rows(rows, sampler, passes).query(
        "sentence == @sentence and coupling == @coupling"
    )
    return float(_require_rows(table, f"{sentence} at J = {coupling:g}").divergence.iloc[0])


@exact
def least_rise(rows: Rows, sampler: str, passes: int) -> float:
    """Return the smallest increase of the error of refinement from one coupling to the next larger one.

    Refinement translates by sampling all target tokens in parallel in several passes. The error is the KL divergence
    from the true translations to the output. The coupling is the strength of the dependence between target tokens.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sampler: "conditionals" if every token is sampled from its exact distribution given all other tokens, or
            "denoiser" if the noise in all tokens is taken into account.
        passes: Number of passes.

    Returns:
        The minimum over sentences and successive couplings, in nats. If it is positive, the divergence always increases
        with the coupling.
    """
    table = select_refinement_rows(rows, sampler, passes).pivot(
        index="sentence", columns="coupling", values="divergence"
    )
    return float(table.sort_index(axis=1).diff(axis=1).iloc[:, 1:].min().min())


@exact
def least_lead(rows: Rows, passes: int) -> float:
    """Return the smallest advantage of a perfect denoiser over exact conditionals in the error of refinement.

    Refinement translates by sampling all target tokens in parallel in several passes. The error is the KL divergence
    from the true translations to the output. Exact conditionals sample every token given all other tokens, as if these
    were correct. The perfect denoiser takes into account that current tokens are noisy.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        passes: Number of passes.

    Returns:
        The smallest difference in nats, over sentences and couplings (strengths of the dependence between
        target tokens) of at least 1.
    """
    conditionals, denoiser = (
        select_refinement_rows(rows, sampler, passes).query("coupling >= 1").set_index(_TASK).divergence
        for sampler in (CONDITIONALS, DENOISER)
    )
    return float(_require_rows(conditionals - denoiser, "couplings of at least 1").min())


@exact
def most_undone(rows: Rows, sampler: str) -> float:
    """Return the largest increase of the error of refinement after the pass with the smallest error.

    Refinement translates by sampling all target tokens in parallel in several passes. The error is the KL divergence
    from the true translations to the output. The smallest error over all passes is subtracted from the error after the
    last pass.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sampler: "conditionals" if every token is sampled from its exact distribution given all other tokens, or
            "denoiser" if the noise in all tokens is taken into account.

    Returns:
        The maximum in nats over sentences and strengths of the dependence between target tokens.
    """
    table = rows.where("refined", sampler=sampler)
    last = table[table.passes == table.passes.max()].set_index(_TASK).divergence
    return float((last - table.groupby(_TASK).divergence.min()).max())


@exact
def chains_lead(rows: Rows, chain: str, sampler: str, passes: int) -> float:
    """Return how much larger the error of refinement is than that of Gibbs sampling, at equal numbers of model calls.

    Refinement translates by sampling all target tokens in parallel in several passes. Gibbs sampling resamples single
    tokens or pairs of tokens. The error is the KL divergence from the true translations to the output.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        chain: "Gibbs" for single tokens, or "Gibbs of pairs".
        sampler: "conditionals" if every token is sampled from its exact distribution given all other tokens, or
            "denoiser" if the noise in all tokens is taken into account.
        passes: Number of model calls.

    Returns:
        The smallest difference over sentences, in nats.
    """
    table = rows.where("chain", passes=passes).pivot(index="sentence", columns="sampler", values="divergence")
    lead = (table[sampler] - table[chain]).dropna()
    return float(_require_rows(lead, f"{chain} after {passes} passes").min())


@exact
def kept_stutter(rows: Rows, sampler: str, passes: int) -> float:
    """Return how much more often equal tokens are adjacent in the output of refinement than in true translations.

    Only sentences in which neighboring words can be swapped are used.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sampler: "conditionals" if every token is sampled from its exact distribution given all other tokens, or
            "denoiser" if the noise in all tokens is taken into account.
        passes: Number of passes.

    Returns:
        The smallest difference in the share of equal adjacent tokens, over sentences and strengths of the dependence
        between target tokens.
    """
    repeated = select_refinement_rows(rows, sampler, passes).query("swapping > 0").set_index(_TASK).stutter
    truth = rows["truth"].set_index(_TASK).stutter
    return float(_require_rows((repeated - truth).dropna(), "sentences with swapped words").min())


@trainings
def translated(rows: Rows, arm: str, column: str, passes: int, keep: str = "nothing") -> "Series[float]":
    """Return a quality score of a trained network's translations of test sentences.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the network, for example "twin" (autoregressive) or "refiner, S = 2" (predicts all target tokens in
            parallel and revises them in several passes, trained in two stages).
        column: Name of the score: "bleu", "stutter" (rate of repeated words) or "valid" (share of correct
            translations).
        passes: Number of refinement passes. 0 for the twin.
        keep: Tokens that a pass does not replace: "nothing" (default), or "stutter" for tokens whose replacement would
            repeat the previous token.

    Returns:
        One score per training seed.
    """
    return rows.where("quality", arm=arm, passes=passes, keep=keep).groupby("seed")[column].mean()


@trainings
def excess_stutter(rows: Rows, times: float) -> "Series[float]":
    """Return how much more often a refiner repeats words than a multiple of an autoregressive translator's rate.

        difference = (rate of repeated words of the refiner) - times * (rate of the autoregressive translator)

    The refiner predicts all target tokens in parallel and revises them in four passes. A pass does not replace a token
    if this would repeat the previous token.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        times: Factor by which the rate of the autoregressive network is multiplied.

    Returns:
        One difference of rates per training seed.
    """
    refiner = rows.where("quality", arm=TWO_STAGES, passes=4, keep="stutter").groupby("seed").stutter.mean()
    return refiner - times * rows.where("quality", arm=TWIN).groupby("seed").stutter.mean()


@trainings
def listed(rows: Rows, arm: str, expression: str, passes: int) -> "Series[float]":
    """Return a measurement of the exact distribution of a trained network's translations.

    The distributions are computed by enumerating all outputs for several source sentences.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the network, for example "twin" (autoregressive) or "refiner, S = 2" (predicts all target tokens in
            parallel and revises them in several passes, trained in two stages).
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
    """Return a measurement of a translation network's attention, averaged over pairs of adjacent target positions.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column, for example "own_mean".
        stutter: Whether to select pairs of positions with the same token instead of pairs with different tokens.
        arm: Name of the network. The default is the refiner that is trained in two stages. A refiner predicts all
            target tokens in parallel and revises them in several passes.

    Returns:
        One mean per training seed.
    """
    return rows.where("attention", arm=arm, stutter=stutter).groupby("seed")[column].mean()


def _require_rows(table: Table, content: str) -> Table:
    if table.empty:
        raise NoRows(f"no rows of {content}")
    return table
