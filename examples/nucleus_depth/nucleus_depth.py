"""Does truncating the nucleus make Dyck strings shallower?

Nested brackets are opened by tokens that the distribution gives no more than even odds. Top-p sampling leaves out the
least probable tokens at every step; what that does to a whole string is another matter. One replication is one set of
draws.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import matplotlib.figure
import torch
from pandas import Series

from trialogue import generate, truncated
from trialogue.data import Dyck
from trialogue_lab.ledger import (
    Claim,
    Count,
    Figure,
    Part,
    Probability,
    Replication,
    ResultTable,
    Rows,
    Seeds,
    Settings,
    Study,
    panels,
    spread,
)


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Strings of balanced brackets, and how many are drawn at each width of the nucleus."""

    length: Count = 32
    open_prob: Probability = 0.4
    draws: Count = 500
    seeds: Seeds = tuple(range(12))


TOP_PS = (0.7, 0.95, 1.0)


def measure(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, object]]:
    """Mean largest depth of strings drawn at each top-p."""
    del artifacts
    dyck = Dyck(length=config.length, type_probs=(0.2, 0.8), open_prob=config.open_prob)
    for top_p in TOP_PS:
        samples = generate(truncated(dyck, top_p=top_p), num_samples=config.draws, seed=seed)
        steps = 1 - 2 * (samples.tokens % 2)  # brackets that open have even numbers
        depth = steps.cumsum(1).max(1).values.to(torch.float64).mean()
        yield {"kind": "depth", "seed": seed, "top_p": top_p, "depth": float(depth)}


draws = Replication("draw", "seeds")


@draws
def depth(rows: Rows, top_p: float) -> "Series[float]":
    """Mean largest depth of a string."""
    return rows["depth"].pivot(index="seed", columns="top_p", values="depth")[top_p]


def draw(rows: Rows) -> matplotlib.figure.Figure:
    """Depth against the width of the nucleus."""
    drawing, [axes] = panels()
    spread(axes, TOP_PS, map(depth, TOP_PS), rows)
    axes.set(xlabel="top-p", ylabel="largest depth of a string")
    return drawing


STUDY = Study(
    module=__name__,
    source="Folklore: truncation makes text simpler",
    presets={
        "smoke": Config(draws=20, seeds=(0, 1)),
        "pilot": Config(seeds=(100, 101, 102, 103)),
        "default": Config(),
    },
    parts=lambda config: [Part(f"draws-{seed}", partial(measure, config, seed)) for seed in config.seeds],
    claims=[
        Claim(
            "truncation-flattens",
            "Strings drawn at top-p 0.7 are shallower than those of the distribution itself.",
            depth(0.7) - depth(1.0) < 0,
            source="Folklore",
            published="simpler",
        )
    ],
    tables=[
        ResultTable(
            title="Largest depth of a string",
            source="Folklore",
            cells={f"top-p {top_p}": {"depth": depth(top_p)} for top_p in TOP_PS},
        )
    ],
    figures=[
        Figure(name="depth", caption="Depth by top-p; bars: one standard deviation over draws.", draw=draw)
    ],
)
