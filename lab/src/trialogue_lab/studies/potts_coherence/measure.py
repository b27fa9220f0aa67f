"""Tasks of a run: exact values for chains, autoregressive models and Ising spins, and simulations for each seed."""

from functools import partial
from itertools import chain
from pathlib import Path

from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.potts_coherence import chains
from trialogue_lab.studies.potts_coherence.config import Config
from trialogue_lab.studies.potts_coherence.maps import measure_maps
from trialogue_lab.studies.potts_coherence.plane import measure_exact_plane, simulate_plane


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, which measure how long random sequences follow a stored pattern.

    Args:
        config: Settings of the run.

    Returns:
        Three tasks compute exact values: for Potts chains, for autoregressive models, and for Ising spins on a square
            lattice. Two tasks per seed sample sequences of Potts chains, and simulate Ising spins.
    """

    def exact_chains(_: Path) -> MeasuredRows:
        for family in chains.list_chains(config.patterns, config.windows, config.penalties):
            yield from chains.measure_chain(family, config.temperatures, config.lengths)

    def exact(_: Path) -> MeasuredRows:
        return chain(
            chains.compare_closed_forms(),
            chains.measure_control(),
            chains.measure_curves(config.sampled, 40),
            measure_exact_plane(),
        )

    return [
        Part("chains", exact_chains),
        Part("maps", lambda _: measure_maps(config.widths, config.models)),
        Part("exact", exact),
        *(
            Part(f"{name}-{seed}", partial(measure, config, seed), lane=str(seed))
            for seed in config.seeds
            for name, measure in (("sampled", chains.measure_samples), ("plane", simulate_plane))
        ),
    ]
