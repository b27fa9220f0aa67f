"""The parts of a run: what is exact about chains, maps and the plane, and what is drawn with each seed."""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from trialogue.ledger import Part
from trialogue.studies.potts_coherence.chains import (
    Row,
    chain_rows,
    closed_form_rows,
    cold_rows,
    control_rows,
    curve_rows,
    families,
    sampled_rows,
)
from trialogue.studies.potts_coherence.config import Config
from trialogue.studies.potts_coherence.maps import map_rows
from trialogue.studies.potts_coherence.plane import exact_plane_rows, plane_rows, potts_plane_rows
from trialogue.studies.potts_coherence.survival import survival_rows


def parts(config: Config) -> list[Part]:
    """The exact numbers about chains, maps and the plane, and three parts per seed."""
    drawn = [
        Part(f"{name}-{seed}", partial(measure, config, seed), lane=str(seed))
        for seed in config.seeds
        for name, measure in (("sampled", _sampled), ("plane", _plane), ("survival", _survival))
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
        yield from cold_rows(family, max(config.lengths))


def _exact(config: Config, _: Path) -> Iterator[Row]:
    return chain(closed_form_rows(), control_rows(), curve_rows(config.sampled, 40), exact_plane_rows())


def _sampled(config: Config, seed: int, _: Path) -> Iterator[Row]:
    return sampled_rows(config.sampled, config.chains, config.sweeps, seed)


def _plane(config: Config, seed: int, _: Path) -> Iterator[Row]:
    temperatures, chains, sweeps = config.plane_temperatures, config.plane_chains, config.plane_sweeps
    yield from plane_rows(config.sides, temperatures, chains, sweeps, seed)
    yield from potts_plane_rows(
        config.colours, config.potts_side, config.potts_temperatures, config.potts_chains, sweeps, seed
    )


def _survival(config: Config, seed: int, _: Path) -> Iterator[Row]:
    return survival_rows(config.widths, config.simulated_models, config.texts, seed)
