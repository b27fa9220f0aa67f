"""Tasks of a run: exact numbers about chains, models and the plane, and samples by seed."""

from functools import partial
from itertools import chain
from pathlib import Path

from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.potts_coherence import chains
from trialogue_lab.studies.potts_coherence.config import Config
from trialogue_lab.studies.potts_coherence.maps import map_rows
from trialogue_lab.studies.potts_coherence.plane import exact_plane_rows, plane_rows


def parts(config: Config) -> list[Part]:
    """Return the tasks for exact numbers, and two tasks per seed of the simulations."""

    def exact_chains(_: Path) -> MeasuredRows:
        for family in chains.families(config.patterns, config.windows, config.penalties):
            yield from chains.chain_rows(family, config.temperatures, config.lengths)

    def exact(_: Path) -> MeasuredRows:
        return chain(
            chains.closed_form_rows(),
            chains.control_rows(),
            chains.curve_rows(config.sampled, 40),
            exact_plane_rows(),
        )

    def sampled(seed: int, _: Path) -> MeasuredRows:
        return chains.sampled_rows(config.sampled, config.chains, config.sweeps, seed)

    def plane(seed: int, _: Path) -> MeasuredRows:
        return plane_rows(config, seed)

    return [
        Part("chains", exact_chains),
        Part("maps", lambda _: map_rows(config.widths, config.models)),
        Part("exact", exact),
        *(
            Part(f"{measure.__name__}-{seed}", partial(measure, seed), lane=str(seed))
            for seed in config.seeds
            for measure in (sampled, plane)
        ),
    ]
