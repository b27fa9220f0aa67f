"""Tasks of a run: exact values for chains, autoregressive models and Ising spins, and simulations for each seed."""

from functools import partial
from itertools import chain
from pathlib import Path

from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.potts_coherence import chains
from trialogue_lab.studies.potts_coherence.config import Config
from trialogue_lab.studies.potts_coherence.maps import map_rows
from trialogue_lab.studies.potts_coherence.plane import exact_plane_rows, plane_rows


def parts(config: Config) -> list[Part]:
    """Return the tasks of a run.

    Args:
        config: Settings of the run.

    Returns:
        Three tasks for exact values, and two tasks per seed: sampled Potts chains and simulated Ising spins.
    """

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

    return [
        Part("chains", exact_chains),
        Part("maps", lambda _: map_rows(config.widths, config.models)),
        Part("exact", exact),
        *(
            Part(f"{name}-{seed}", partial(measure, config, seed), lane=str(seed))
            for seed in config.seeds
            for name, measure in (("sampled", chains.sampled_rows), ("plane", plane_rows))
        ),
    ]
