"""Statistics of the study: extremes of the exact distributions, and one number per training."""

from typing import Any, TypeVar

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.translation_dependency.config import CONDITIONALS, DENOISER, TWIN, TWO_STAGES

Table = TypeVar("Table", DataFrame, "Series[Any]")
_TASK = ["sentence", "coupling"]

trainings = Replication("training", "seeds")


def refined(rows: Rows, sampler: str, passes: int) -> DataFrame:
    """Return the rows of all sentences and couplings after `passes` passes of a sampler."""
    return _required(
        rows.where("refined", sampler=sampler, passes=passes), f"{sampler} after {passes} passes"
    )


@exact
def gap(rows: Rows, sentence: str, coupling: float, sampler: str, passes: int) -> float:
    """Return the KL in nats from the truth after `passes` passes on one sentence."""
    table = refined(rows, sampler, passes).query("sentence == @sentence and coupling == @coupling")
    return float(_required(table, f"{sentence} at J = {coupling:g}").divergence.iloc[0])


@exact
def least_rise(rows: Rows, sampler: str, passes: int) -> float:
    """Return the smallest increase of the KL from one coupling to the next, over sentences and couplings."""
    table = refined(rows, sampler, passes).pivot(index="sentence", columns="coupling", values="divergence")
    return float(table.sort_index(axis=1).diff(axis=1).iloc[:, 1:].min().min())


@exact
def least_lead(rows: Rows, passes: int) -> float:
    """Return the smallest KL of the conditionals minus the KL of the denoiser, over couplings of at least 1."""
    conditionals, denoiser = (
        refined(rows, sampler, passes).query("coupling >= 1").set_index(_TASK).divergence
        for sampler in (CONDITIONALS, DENOISER)
    )
    return float(_required(conditionals - denoiser, "couplings of at least 1").min())


@exact
def most_undone(rows: Rows, sampler: str) -> float:
    """Return the largest KL after the last pass minus the smallest KL over passes, over sentences and couplings."""
    table = rows.where("refined", sampler=sampler)
    last = table[table.passes == table.passes.max()].set_index(_TASK).divergence
    return float((last - table.groupby(_TASK).divergence.min()).max())


@exact
def chains_lead(rows: Rows, chain: str, sampler: str, passes: int) -> float:
    """Return the smallest KL of a sampler minus the KL of a chain after as many passes, over sentences."""
    table = rows.where("chain", passes=passes).pivot(index="sentence", columns="sampler", values="divergence")
    lead = (table[sampler] - table[chain]).dropna()
    return float(_required(lead, f"{chain} after {passes} passes").min())


@exact
def kept_stutter(rows: Rows, sampler: str, passes: int) -> float:
    """Return the smallest excess of the share of repeated adjacent tokens over the truth, where words are swapped."""
    repeated = refined(rows, sampler, passes).query("swapping > 0").set_index(_TASK).stutter
    truth = rows["truth"].set_index(_TASK).stutter
    return float(_required((repeated - truth).dropna(), "sentences with swapped words").min())


@trainings
def translated(rows: Rows, arm: str, column: str, passes: int, keep: str = "nothing") -> "Series[float]":
    """Return a score of the test translations of a network."""
    return rows.where("quality", arm=arm, passes=passes, keep=keep).groupby("seed")[column].mean()


@trainings
def excess_stutter(rows: Rows, times: float) -> "Series[float]":
    """Return the two-stage refiner's rate of repeated words, remasked in four passes, minus `times` the twin's."""
    refiner = rows.where("quality", arm=TWO_STAGES, passes=4, keep="stutter").groupby("seed").stutter.mean()
    return refiner - times * rows.where("quality", arm=TWIN).groupby("seed").stutter.mean()


@trainings
def listed(rows: Rows, arm: str, expression: str, passes: int) -> "Series[float]":
    """Return an expression of columns of a network's enumerated distributions, as the mean over sources."""
    table = rows.where("law", arm=arm, passes=passes)
    values = np.asarray(table.eval(expression, engine="python"), dtype=np.float64)
    return Series(values, index=table.index).groupby(table.seed).mean()


@trainings
def attention(rows: Rows, column: str, stutter: bool, arm: str = TWO_STAGES) -> "Series[float]":
    """Return the mean of a column over the pairs that repeat a token, or over the other pairs."""
    return rows.where("attention", arm=arm, stutter=stutter).groupby("seed")[column].mean()


def _required(table: Table, content: str) -> Table:
    if table.empty:
        raise NoRows(f"no rows of {content}")
    return table
