"""Magnetization of Ising spins on a square lattice: simulations from an ordered start, and exact values."""

from pathlib import Path

import numpy as np
import torch

from trialogue.data.ising.grid import ising_grid
from trialogue.randomness import derive_seed
from trialogue.samplers.chains.simulation.sweeps import run_sweeps
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.potts_coherence.config import Config
from trialogue_lab.theory.potts import peierls

PLANE, RING = "plane", "ring"


def measure_exact_plane() -> MeasuredRows:
    """Compute the exact magnetization of the infinite two-dimensional Ising model with coupling 1.

    The magnetization is compared with a lower bound by Peierls' argument, which counts boundaries between up and down
    spins. A boundary costs energy 2 per bond.

    Yields:
        One row per temperature. One more row has the critical temperature and the highest temperature for which the
        argument holds.
    """
    # The magnetisation falls as the eighth root of the distance from the critical temperature.
    near = peierls.critical_temperature() * (1 - np.logspace(-8, -1.5, 14))
    for temperature in np.sort(np.concatenate((np.linspace(0.2, 3.4, 129), near))).tolist():
        yield {
            "kind": "onsager",
            "temperature": temperature,
            "magnetisation": peierls.onsager_magnetisation(temperature),
            "bound": peierls.peierls_magnetisation_bound(temperature),
        }
    yield {
        "kind": "order",
        "critical": peierls.critical_temperature(),
        "peierls": peierls.peierls_temperature(2.0),
        "magnetisation": peierls.onsager_magnetisation(peierls.peierls_temperature(2.0)),
    }


def simulate_plane(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Simulate Ising spins that start with all spins up, on square lattices and rings.

    Args:
        config: Side lengths, temperatures, and numbers of simulations and sweeps.
        seed: Seed of the Gibbs sampling.

    Yields:
        One row per shape, side length and temperature. `magnetisation` is the mean over all spins (+1 or -1), and
        `onsager` is its exact value in the infinite system.
    """
    for side in config.sides:
        start = torch.ones(config.plane_chains, side * side, dtype=torch.int64)
        for temperature in config.plane_temperatures:
            for shape, grid in ((PLANE, (side, side)), (RING, (1, side * side))):
                model = ising_grid(*grid, 1 / temperature)
                stream = derive_seed(seed, "potts-coherence", shape, side, temperature)
                states = run_sweeps(model, sweeps=config.plane_sweeps, start=start, seed=stream)
                yield {
                    "kind": "spins",
                    "seed": seed,
                    "shape": shape,
                    "side": side,
                    "temperature": temperature,
                    "magnetisation": float((2.0 * states.double() - 1).mean()),
                    "onsager": peierls.onsager_magnetisation(temperature) if shape == PLANE else 0.0,
                }
