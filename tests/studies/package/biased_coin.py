"""Does a coin of bias b show heads with probability b?

A study of a user's own package, small enough to drive every part of the machinery: one part per seed, each part one
replication of each claim.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.errors import InputError
from trialogue.ledger import Claim, Figure, Pilot, Table
from trialogue.ledger.study import Study
from trialogue.randomness import numpy_generator


@dataclass(frozen=True, kw_only=True)
class Config:
    """A coin and how often it is flipped."""

    bias: float = 0.7
    """Probability of heads."""
    flips: int = 4000
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    gate: str = ""
    """A file that all parts but that of seed 1 wait for, if it is named."""
    refuse: int | None = None
    """The seed whose coin is bad input."""

    def __post_init__(self) -> None:
        if not 0 < self.bias < 1:
            raise InputError("bias", self.bias, "must lie strictly between 0 and 1")
        if self.flips < 1:
            raise InputError("flips", self.flips, "must be 1 or more")


RUNS: list[str] = []


def run(config: Config, part: str, artifacts: Path) -> Iterator[dict[str, object]]:
    """Flip the coin of one seed."""
    RUNS.append(part)
    seed = int(part.removeprefix("seed-"))
    if seed == config.refuse:
        raise InputError("coin", part, "use another")
    (artifacts / part).write_text("trained", encoding="utf-8")
    parent = os.getppid()
    # Who waits for nobody ends.
    while config.gate and seed > 1 and not Path(config.gate).exists() and os.getppid() == parent:
        time.sleep(0.01)
    heads = numpy_generator(seed, "coin").binomial(config.flips, config.bias)
    yield {"seed": seed, "kind": "flips", "heads": heads / config.flips}
    yield {"seed": seed, "kind": "law", "heads": config.bias}


def heads(rows: DataFrame) -> list[float]:
    """Share of heads, one number per seed."""
    return list(rows[rows.kind == "flips"].groupby("seed").heads.mean())


def claim(identity: str, **settings: object) -> Claim:
    """A claim on the share of heads, with this study's pilot."""
    given = {
        "id": identity,
        "statement": "A coin shows heads more often than <not>.",
        "source": "Textbook, chapter 1",
        "published": "0.7",
        "estimate": heads,
        "threshold": 0.5,
        "direction": "above",
        "unit": "draw",
        "replications": 5,
        "pilot": Pilot(seeds=(100, 101, 102), estimates=(0.69, 0.7, 0.71)),
    }
    return Claim(**(given | settings))  # type: ignore[arg-type]


CLAIMS = (
    claim("more-heads"),
    claim("fewer-heads", statement="A coin shows heads less often than not.", direction="below"),
    claim("near-the-bias", threshold=0.7, direction="equal", margin=0.02, replications=5),
    claim("blind", pilot=None),
    claim(
        "law",
        statement="The law is the bias.",
        estimate=lambda rows: rows[rows.kind == "law"].heads.unique(),
        unit="exact",
        direction="equal",
        threshold=0.7,
        margin=1e-12,
        replications=1,
        pilot=None,
    ),
)


def ours(rows: DataFrame) -> DataFrame:
    """Mean share of heads of each kind."""
    return rows.groupby("kind")[["heads"]].mean()


def deviation(rows: DataFrame) -> DataFrame:
    """Its standard deviation over seeds."""
    return rows.groupby("kind")[["heads"]].std()


def draw(rows: DataFrame) -> Drawing:
    """Share of heads by seed."""
    drawing = Drawing(figsize=(5, 3), layout="constrained")
    axes = drawing.add_subplot(xlabel="seed", ylabel="heads & <tails>")
    shown = rows[rows.kind == "flips"]
    axes.plot(shown.seed, shown.heads, "o")
    return drawing


STUDY = Study(
    name="biased-coin",
    doc=__doc__,
    source="Textbook, chapter 1",
    version=1,
    presets={
        "smoke": Config(flips=10, seeds=(0, 1)),
        "default": Config(),
        "paper": Config(flips=1_000_000),
    },
    parts=lambda config: [f"seed-{seed}" for seed in config.seeds],
    run=run,
    claims=CLAIMS,
    tables=(
        Table(
            title="Table 1. Share of heads",
            source="Textbook, table 1",
            published={"flips": {"heads": 0.7, "tails": "0.3 or so"}, "law": {"heads": 0.7}},
            ours=ours,
            deviation=deviation,
            rows_are="kind",
            note="± one standard deviation over seeds",
        ),
    ),
    figures=(Figure(name="heads", caption="Share of heads by seed", draw=draw),),
)
