"""Settings of the study: the simulated instances of Corollary 4.1.1, and the sizes of the decoders."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval

from trialogue_lab.ledger import Count, Different, Seeds, Settings, Some
from trialogue_lab.studies.parallel_gap.config import CorollaryInstance


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    Corollary 4.1.1 compares one joint step of a sampler with many independent parallel steps. It is simulated on
    instances, each of which is an Ising model with numbers of steps.

    Args:
        instances: Simulated instances of the corollary.
        runs: Number of runs per seed on each instance.
        seeds: Seeds of the simulations.
        decoder_sites: Numbers of tokens of the sequences on which parallel decoders are tested. All sequences are
            enumerated.
    """

    instances: Some[CorollaryInstance] = (
        CorollaryInstance(delta=0.5, steps=1, clique=25, sites=25),
        CorollaryInstance(delta=0.5, steps=1, clique=25, sites=250),
        CorollaryInstance(delta=0.5, steps=10, clique=44, sites=44),
        CorollaryInstance(delta=0.5, steps=10, clique=44, sites=440),
        CorollaryInstance(delta=0.5, steps=100, clique=62, sites=62),
        CorollaryInstance(delta=0.5, steps=100, clique=62, sites=124),
        CorollaryInstance(delta=0.1, steps=1, clique=38, sites=38),
        CorollaryInstance(delta=0.1, steps=10, clique=56, sites=56),
        CorollaryInstance(delta=0.1, steps=100, clique=75, sites=75),
        CorollaryInstance(delta=0.05, steps=10, clique=62, sites=62),
        CorollaryInstance(delta=0.05, steps=100, clique=80, sites=80),
        CorollaryInstance(delta=0.9, steps=10, clique=40, sites=400),
    )
    runs: Count = 200
    seeds: Seeds = tuple(range(12))
    decoder_sites: Different[Annotated[int, Interval(ge=2, le=5)]] = (2, 3, 4)


PRESETS = {
    "smoke": Config(
        instances=(
            CorollaryInstance(delta=0.5, steps=1, clique=25, sites=25),
            CorollaryInstance(delta=0.5, steps=10, clique=44, sites=60),
        ),
        runs=20,
        seeds=(0, 1),
        decoder_sites=(2, 3),
    ),
    "pilot": Config(seeds=tuple(range(100, 105))),
    "default": Config(),
    "night": Config(runs=2000, decoder_sites=(2, 3, 4, 5)),
    "paper": Config(runs=2000, seeds=tuple(range(30)), decoder_sites=(2, 3, 4, 5)),
}
