"""The parts of a run: what is exact about chains, maps and the plane, and what is drawn with each seed."""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from trialogue_lab.ledger import Part
from trialogue_lab.studies.potts_coherence.chains import (
    Row,
    chain_rows,
    closed_form_rows,
    control_rows,
    curve_rows,
    families,
    sampled_rows,
)
from trialogue_lab.studies.potts_coherence.config import Config
from trialogue_lab.studies.potts_coherence.maps import map_rows
from trialogue_lab.studies.potts_coherence.plane import exact_plane_rows, plane_rows


def parts(config: Config) -> list[Part]:
    """The exact numbers about chains, maps and the plane, and two parts per seed."""
    drawn = [
        Part(f"{name}-{seed}", partial(measure, config, seed), lane=str(seed))
        for seed in config.seeds
        for name, measure in (("sampled", _sampled), ("plane", _plane))
    ]
    return [
        Part("chains", partial(_chains, config)),
        Part("maps", lambda _: map_rows(config.widths, config.models)),
        Part("exact", partial(_exact, config)),
        *drawn,
    ]


def _chains(config: Config, _: Path) -> Iterator[Row]:
    for family in families(config.patterns, config.windows, config.penalties):
        yield from chain_rows(family, config.temperatures, config.lengths)


def _exact(config: Config, _: Path) -> Iterator[Row]:
    return chain(closed_form_rows(), control_rows(), curve_rows(config.sampled, 40), exact_plane_rows())


def _sampled(config: Config, seed: int, _: Path) -> Iterator[Row]:
    return sampled_rows(config.sampled, config.chains, config.sweeps, seed)


def _plane(config: Config, seed: int, _: Path) -> Iterator[Row]:
    temperatures, chains, sweeps = config.plane_temperatures, config.plane_chains, config.plane_sweeps
    return plane_rows(config.sides, temperatures, chains, sweeps, seed)
