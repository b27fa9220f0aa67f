"""Does a coin of bias b show heads with probability b?

This is a small study of a user's package for tests of the ledger. It has one part per seed, and each part has one
replication of each claim.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure as Drawing
from pandas import Series

from trialogue.display.figures import panels
from trialogue.errors import InputError
from trialogue.randomness import numpy_generator
from trialogue_lab.ledger import (
    Claim,
    Count,
    Counts,
    Figure,
    Part,
    Probability,
    Replication,
    ResultTable,
    Rows,
    Seeds,
    Settings,
    Study,
    exact,
)


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """A coin and its number of flips."""

    bias: Probability = 0.7
    """Probability of heads."""
    flips: Count = 4000
    seeds: Seeds = (0, 1, 2, 3, 4)
    gate: str = ""
    """Path of a file that the parts of seeds above 1 wait for (default: none)."""
    refuse: int | None = None
    """The seed whose part raises an `InputError` (default: none)."""


RUNS: list[str] = []


def flip(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, object]]:
    """Flip the coin of one seed."""
    part = f"seed-{seed}"
    RUNS.append(part)
    if seed == config.refuse:
        raise InputError("coin", part, "use another")
    (artifacts / part).write_text("trained", encoding="utf-8")
    parent = os.getppid()
    # The worker also stops waiting when its parent process ends.
    while config.gate and seed > 1 and not Path(config.gate).exists() and os.getppid() == parent:
        time.sleep(0.01)
    heads = int(numpy_generator(seed, "coin").binomial(config.flips, config.bias))
    yield {"seed": seed, "kind": "flips", "heads": heads, "flips": config.flips}
    yield {"seed": seed, "kind": "law", "bias": config.bias}


def parts(config: Config) -> list[Part]:
    """One part per seed."""
    return [Part(f"seed-{seed}", partial(flip, config, seed)) for seed in config.seeds]


coins = Replication("draw", "seeds")


@coins
def heads(rows: Rows) -> Counts:
    """Share of heads."""
    flips = rows["flips"].set_index("seed")
    return Counts(flips.heads, flips.flips)


@coins
def odds(rows: Rows) -> "Series[float]":
    """Number of heads per tail."""
    flips = rows["flips"].set_index("seed")
    return flips.heads / (flips.flips - flips.heads)


@exact
def bias(rows: Rows) -> float:
    """Probability of heads."""
    return float(rows["law"].bias.iloc[0])


CLAIMS = (
    Claim(
        "more-heads",
        "A coin shows heads more often than <not>.",
        heads() > 0.5,
        source="Textbook, chapter 1",
        published="0.7",
        grade=True,
    ),
    Claim(
        "fewer-heads",
        "A coin shows heads less often than not.",
        heads() < 0.5,
        "Textbook, chapter 1",
        origin="ours",
    ),
    Claim(
        "near-the-bias",
        "It shows them as often as published.",
        heads().near(0.7, margin=0.05),
        "Chapter 1",
        "0.7",
    ),
    Claim("odds", "Two heads come for one tail, or more.", odds() > 2, "Textbook, chapter 2", origin="ours"),
    Claim("law", "The law is the bias.", bias().near(0.7, margin=1e-12), "Textbook, chapter 1", "0.7"),
)


def draw(rows: Rows) -> Drawing:
    """Share of heads by seed."""
    drawing, [axes] = panels(width=5, height=3)
    shares = heads()(rows)
    axes.plot(shares.index, shares, "o")
    axes.set(xlabel="seed", ylabel="heads & <tails>")
    return drawing


STUDY = Study(
    module=__name__,
    source="Textbook, chapter 1",
    presets={
        "smoke": Config(flips=10, seeds=(0, 1)),
        "pilot": Config(seeds=(100, 101, 102)),
        "default": Config(),
        "night": Config(flips=100_000),
        "paper": Config(flips=1_000_000),
    },
    parts=parts,
    claims=CLAIMS,
    tables=(
        ResultTable(
            title="Table 1. Share of heads",
            source="Textbook, table 1",
            published={"flips": {"heads": 0.7, "tails": "0.3 or so"}, "law": {"heads": 0.7}},
            cells={"flips": {"heads": heads()}, "law": {"heads": bias()}},
            row_heading="kind",
            note="± one standard deviation over seeds",
        ),
    ),
    figures=(Figure(name="heads", caption="Share of heads by seed", draw=draw),),
    numbers={"share of heads": heads(), "bias": bias()},
)
