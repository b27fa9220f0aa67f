"""Quantities of the study: extremes of what is exact, and one number per training."""

from typing import Any, TypeVar

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.translation_dependency.config import CONDITIONALS, DENOISER, TWIN, TWO_STAGES

Table = TypeVar("Table", DataFrame, "Series[Any]")

trainings = Replication("training", "seeds")


def refined(rows: Rows, sampler: str, passes: int) -> DataFrame:
    """What so many passes by a sampler leave of every sentence at every coupling."""
    return _some(rows.where("refined", sampler=sampler, passes=passes), f"{sampler} after {passes} passes")


@exact
def gap(rows: Rows, sentence: str, coupling: float, sampler: str, passes: int) -> float:
    """The KL in nats from the truth that so many passes by a sampler leave of a sentence."""
    table = refined(rows, sampler, passes).query("sentence == @sentence and coupling == @coupling")
    return float(_some(table, f"{sentence} at J = {coupling:g}").divergence.iloc[0])


@exact
def least_rise(rows: Rows, sampler: str, passes: int) -> float:
    """By how much the gap (KL) rises from one coupling to the next, the least over sentences and couplings."""
    table = refined(rows, sampler, passes).pivot(index="sentence", columns="coupling", values="divergence")
    return float(table.sort_index(axis=1).diff(axis=1).iloc[:, 1:].min().min())


@exact
def least_lead(rows: Rows, passes: int) -> float:
    """By how much a perfect denoiser is nearer (KL) than the conditionals, the least at couplings of at least 1."""
    conditionals, denoiser = (
        refined(rows, sampler, passes).query("coupling >= 1").set_index(["sentence", "coupling"]).divergence
        for sampler in (CONDITIONALS, DENOISER)
    )
    return float(_some(conditionals - denoiser, "couplings of at least 1").min())


@exact
def most_undone(rows: Rows, sampler: str) -> float:
    """By how much the gap (KL) after the last pass exceeds the least, the most over sentences and couplings."""
    table = rows.where("refined", sampler=sampler)
    last = table[table.passes == table.passes.max()].set_index(["sentence", "coupling"]).divergence
    return float((last - table.groupby(["sentence", "coupling"]).divergence.min()).max())


@exact
def chains_lead(rows: Rows, chain: str, sampler: str, passes: int) -> float:
    """By how much a chain is nearer (KL) than refinement after as many passes, the least over sentences."""
    table = rows.where("chain", passes=passes)
    gaps = [
        table[table.sampler == name].set_index("sentence").divergence.astype(float)
        for name in (sampler, chain)
    ]
    return float(_some((gaps[0] - gaps[1]).dropna(), f"{chain} after {passes} passes").min())


@exact
def kept_stutter(rows: Rows, sampler: str, passes: int) -> float:
    """The share of adjacent tokens that repeat where words trade places, less that of the truth; the least."""
    keys = ["sentence", "coupling"]
    found = refined(rows, sampler, passes).query("swapping > 0").set_index(keys).stutter
    truth = rows["truth"].set_index(keys).stutter
    return float(_some((found - truth).dropna(), "words that trade places").min())


@trainings
def translated(rows: Rows, arm: str, number: str, passes: int, keep: str = "nothing") -> "Series[float]":
    """A number of the test translations of a network."""
    return rows.where("quality", arm=arm, passes=passes, keep=keep).groupby("seed")[number].mean()


@trainings
def excess_stutter(rows: Rows, times: float) -> "Series[float]":
    """The stutter of the refiner of two stages after four passes that remask it, less so many times its twin's."""
    refiner = rows.where("quality", arm=TWO_STAGES, passes=4, keep="stutter").groupby("seed").stutter.mean()
    return refiner - times * rows.where("quality", arm=TWIN).groupby("seed").stutter.mean()


@trainings
def listed(rows: Rows, arm: str, number: str, passes: int) -> "Series[float]":
    """A number of the laws of a network, a column or an expression of columns, mean over listed sources."""
    table = rows.where("law", arm=arm, passes=passes)
    values = np.asarray(table.eval(number, engine="python"), dtype=np.float64)
    return Series(values, index=table.index).groupby(table.seed).mean()


@trainings
def attention(rows: Rows, number: str, stutter: bool, arm: str = TWO_STAGES) -> "Series[float]":
    """A number of the pairs that stutter, or of the others."""
    return rows.where("attention", arm=arm, stutter=stutter).groupby("seed")[number].mean()


def _some(table: Table, what: str) -> Table:
    if table.empty:
        raise NoRows(f"no rows of {what}")
    return table
