"""The parts of a run: what is exact without training, and one network each."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from trialogue.ledger import Part
from trialogue.studies.window_coherence.config import Config
from trialogue.studies.window_coherence.networks import network_rows, reference_rows


def parts(config: Config) -> list[Part]:
    """What is exact without training, and one part per network."""
    networks = [
        Part(f"{seed}-{name.replace(' ', '-')}", partial(measure_network, config, name, seed), lane=str(seed))
        for seed in config.seeds
        for name in config.networks
    ]
    return [Part("exact", partial(measure_exact, config)), *networks]


def measure_exact(config: Config, artifacts: Path) -> Iterator[dict[str, Any]]:
    """The corpus itself and the best models."""
    del artifacts
    yield from reference_rows(config)


def measure_network(config: Config, name: str, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """One network, trained and measured."""
    del artifacts
    yield from network_rows(config, name, seed)
