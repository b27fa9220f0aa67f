"""The parts of a run: what is exact about chains, maps and the plane, and what is drawn with each seed."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from trialogue.ledger import Part
from trialogue.studies.potts_coherence.chains import (
    chain_rows,
    closed_form_rows,
    control_rows,
    curve_rows,
    families,
    sampled_rows,
)
from trialogue.studies.potts_coherence.config import Config
from trialogue.studies.potts_coherence.maps import map_rows
from trialogue.studies.potts_coherence.plane import exact_plane_rows, plane_rows

Rows = Iterator[dict[str, Any]]


def parts(config: Config) -> list[Part]:
    """The exact numbers about chains, maps and the plane, and two parts per seed."""
    drawn = [
        Part(f"{name}-{seed}", partial(measure, config, seed), lane=str(seed))
        for seed in config.seeds
        for name, measure in (("sampled", measure_sampled), ("plane", measure_plane))
    ]
    exact = (("chains", measure_chains), ("maps", measure_maps), ("exact", measure_exact))
    return [*(Part(name, partial(measure, config)) for name, measure in exact), *drawn]


def measure_chains(config: Config, artifacts: Path) -> Rows:
    """Walls, coherent runs and bounds of every chain."""
    del artifacts
    for family in families(config.patterns, config.windows, config.penalties):
        yield from chain_rows(family, config.temperatures, config.lengths)


def measure_maps(config: Config, artifacts: Path) -> Rows:
    """Random autoregressive models as chains."""
    del artifacts
    yield from map_rows(config.widths, config.models)


def measure_exact(config: Config, artifacts: Path) -> Rows:
    """What is solved by hand, the controls, curves of P(at least one wall), and the infinite plane."""
    del artifacts
    yield from closed_form_rows()
    yield from control_rows()
    yield from curve_rows(config.sampled, 40)
    yield from exact_plane_rows()


def measure_sampled(config: Config, seed: int, artifacts: Path) -> Rows:
    """Walls of exact samples and of Gibbs sampling."""
    del artifacts
    yield from sampled_rows(config.sampled, config.chains, config.sweeps, seed)


def measure_plane(config: Config, seed: int, artifacts: Path) -> Rows:
    """Magnetisation on tori and rings."""
    del artifacts
    yield from plane_rows(
        config.sides, config.plane_temperatures, config.plane_chains, config.plane_sweeps, seed
    )
