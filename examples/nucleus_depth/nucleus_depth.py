"""Study of whether top-p sampling makes Dyck strings shallower.

An opening bracket has a probability of at most one half. Top-p sampling removes the least likely tokens at each step,
but its effect on whole strings is not obvious. One replication is one set of samples.
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
from trialogue_lab import ledger


@dataclass(frozen=True, kw_only=True)
class Config(ledger.Settings):
    """Settings of the study.

    Args:
        length: Number of brackets per string.
        open_prob: Probability of an opening bracket.
        draws: Number of strings per value of top-p.
        seeds: Random seeds, one per replication.
    """

    length: ledger.Count = 32
    open_prob: ledger.Probability = 0.4
    draws: ledger.Count = 500
    seeds: ledger.Seeds = tuple(range(12))


TOP_PS = (0.7, 0.95, 1.0)


def measure(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, object]]:
    """Yield the mean maximum depth of the strings sampled at each top-p."""
    del artifacts
    dyck = Dyck(length=config.length, type_probs=(0.2, 0.8), open_prob=config.open_prob)
    for top_p in TOP_PS:
        samples = generate(truncated(dyck, top_p=top_p), num_samples=config.draws, seed=seed)
        steps = 1 - 2 * (samples.tokens % 2)  # Opening brackets have even token ids.
        depth = steps.cumsum(1).max(1).values.to(torch.float64).mean()
        yield {"kind": "depth", "seed": seed, "top_p": top_p, "depth": float(depth)}


draws = ledger.Replication("draw", "seeds")


@draws
def depth(rows: ledger.Rows, top_p: float) -> "Series[float]":
    """Mean maximum depth of a string."""
    return rows["depth"].pivot(index="seed", columns="top_p", values="depth")[top_p]


def draw(rows: ledger.Rows) -> matplotlib.figure.Figure:
    """Draw the depth over top-p."""
    figure, [axes] = ledger.panels()
    ledger.spread(axes, TOP_PS, map(depth, TOP_PS), rows)
    axes.set(xlabel="top-p", ylabel="maximum depth of a string")
    return figure


STUDY = ledger.Study(
    module=__name__,
    source="Folklore: truncation makes text simpler",
    presets={
        "smoke": Config(draws=20, seeds=(0, 1)),
        "pilot": Config(seeds=(100, 101, 102, 103)),
        "default": Config(),
    },
    parts=lambda config: [
        ledger.Part(f"draws-{seed}", partial(measure, config, seed)) for seed in config.seeds
    ],
    claims=[
        ledger.Claim(
            "truncation-flattens",
            "Strings sampled at top-p 0.7 are shallower than strings sampled without truncation.",
            depth(0.7) - depth(1.0) < 0,
            source="Folklore",
            published="simpler",
        )
    ],
    tables=[
        ledger.ResultTable(
            title="Maximum depth of a string",
            source="Folklore",
            cells={f"top-p {top_p}": {"depth": depth(top_p)} for top_p in TOP_PS},
        )
    ],
    figures=[
        ledger.Figure(
            name="depth", caption="Depth by top-p, with one standard deviation over draws.", draw=draw
        )
    ],
)
