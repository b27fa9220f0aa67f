"""Measurements: exact chains at low temperature, and simulated texts and planes."""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

from trialogue.oracles import whole_sequences
from trialogue.randomness import seed_of
from trialogue.samplers.chains.simulation.sweeps import run_sweeps
from trialogue_lab.data.potts_grid import potts_grid
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.potts_coherence.chains import NamedChain, families
from trialogue_lab.studies.potts_patterns.config import Config
from trialogue_lab.studies.potts_patterns.survival import survival_rows
from trialogue_lab.theory.potts.peierls import peierls_temperature

_SHORT = 8
"""Length of the chains whose sequences are enumerated"""


def parts(config: Config) -> list[Part]:
    """Return one task for the exact chains at low temperature, and two tasks per seed of the simulations."""
    simulated = [
        Part(f"{name}-{seed}", partial(measure, config, seed), lane=str(seed))
        for seed in config.seeds
        for name, measure in (("survival", _survival), ("plane", _plane))
    ]
    return [Part("cold", partial(_cold, config)), *simulated]


def _cold(config: Config, _: Path) -> MeasuredRows:
    for family in families(config.patterns, config.windows, (1.0,)):
        yield from cold_rows(family, config.length)


def _survival(config: Config, seed: int, _: Path) -> MeasuredRows:
    return survival_rows(config.widths, config.models, config.texts, seed)


def _plane(config: Config, seed: int, _: Path) -> MeasuredRows:
    return plane_rows(config.colours, config.side, config.temperatures, config.chains, config.sweeps, seed)


def cold_rows(family: NamedChain, length: int) -> MeasuredRows:
    """Compute the probability that a sequence of a Potts chain has no domain wall, at low temperatures.

    Temperatures are the smallest positive energy of a window, divided by 1, 2, 4, ..., 64.

    Args:
        family: The chain.
        length: Length of the longer sequences in tokens. The shorter ones have eight tokens.

    Yields:
        One row per temperature and length. `cold` is the divisor of the temperature. For eight tokens, `limit` is the
        share of minimum-energy sequences that have no wall, by enumeration.
    """
    chain = family.chain
    smallest = float(chain.energies[chain.energies > 0].min())
    states = whole_sequences(chain.vocab_size, _SHORT)
    free = states[chain.energy(states) == 0]
    limit = float((~chain.domain_walls(free).any(1)).double().mean())
    columns = {
        "kind": "cold",
        "family": family.name,
        "patterns": family.patterns,
        "window": chain.window,
        "penalty": family.penalty,
    }
    for cold in (1, 2, 4, 8, 16, 32, 64):
        for sites in (_SHORT, length):
            no_wall = chain.no_wall_probability(sites, smallest / cold)
            row = columns | {"cold": cold, "length": sites, "no_wall": no_wall}
            yield row | ({"limit": limit} if sites == _SHORT else {})


def plane_rows(
    colours: Sequence[int], side: int, temperatures: Sequence[float], chains: int, sweeps: int, seed: int
) -> MeasuredRows:
    """Yield the order of Potts models on a torus that start with one pattern everywhere, with J = 1 per wall.

    The order is (V m - 1) / (V - 1), where m is the share of sites that still show the pattern. It is 1 if all do, and
    0 by chance. The critical temperature is 1 / log(1 + sqrt V). Peierls' argument is about temperatures up to
    1 / log 3, for every V.

    Args:
        colours: Numbers V of patterns.
        side: Side length of the torus.
        temperatures: Temperatures.
        chains: Number of chains per number of patterns and temperature.
        sweeps: Number of sweeps.
        seed: Seed of the chains.
    """
    start = torch.zeros(chains, side * side, dtype=torch.int64)
    for vocab in colours:
        for temperature in temperatures:
            stream = seed_of(seed, "potts-patterns", "colours", vocab, side, temperature)
            model = potts_grid(side, side, vocab, 1 / temperature)
            kept = float((run_sweeps(model, sweeps=sweeps, start=start, seed=stream) == 0).double().mean())
            yield {
                "kind": "colours",
                "seed": seed,
                "colours": vocab,
                "temperature": temperature,
                "critical": 1 / math.log1p(math.sqrt(vocab)),
                "peierls": peierls_temperature(1.0),
                "order": (vocab * kept - 1) / (vocab - 1),
            }
