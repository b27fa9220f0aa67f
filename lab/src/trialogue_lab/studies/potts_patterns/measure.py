"""Tasks of a run: exact Potts chains at low temperature, and simulated texts and lattices."""

import math
from functools import partial
from pathlib import Path

import torch

from trialogue.oracles import enumerate_sequences
from trialogue.randomness import derive_seed
from trialogue.samplers.chains.simulation.sweeps import run_sweeps
from trialogue_lab.data.potts_grid import potts_grid
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.potts_coherence.chains import NamedChain, list_chains
from trialogue_lab.studies.potts_patterns.config import Config
from trialogue_lab.studies.potts_patterns.survival import measure_survival
from trialogue_lab.theory.potts.peierls import peierls_temperature

# Length in tokens of the sequences that are enumerated.
_SHORT = 8


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, each of which measures how long stored patterns last.

    Args:
        config: Settings of the run.

    Returns:
        One task that computes exact probabilities for Potts chains at low temperature, and two tasks per seed. One of
        them generates text with random language models, and the other one simulates Potts models on a square lattice.
    """
    simulated = [
        Part(f"{name}-{seed}", partial(measure, config, seed), lane=str(seed))
        for seed in config.seeds
        for name, measure in (("survival", measure_survival), ("plane", simulate_plane))
    ]
    return [Part("cold", partial(_measure_cold_chains, config)), *simulated]


def _measure_cold_chains(config: Config, _: Path) -> MeasuredRows:
    for family in list_chains(config.patterns, config.windows, (1.0,)):
        yield from measure_cold_chain(family, config.length)


def measure_cold_chain(family: NamedChain, length: int) -> MeasuredRows:
    """Compute the probability that a random sequence follows a single pattern, at low temperatures.

    A Potts chain is a distribution over token sequences with some stored patterns. Its energy is a sum over windows of
    successive tokens, and is zero for the patterns. A position where a sequence changes from one pattern to another is
    called a domain wall. The temperatures are E, E / 2, E / 4, ..., E / 64, where E is the smallest positive energy of
    a window.

    Args:
        family: The Potts chain.
        length: Number of tokens of a sequence. Sequences of eight tokens are measured too.

    Yields:
        One row per temperature E / `cold` and length. `no_wall` is the probability of no domain wall. For eight tokens,
        `limit` is this probability at temperature zero.
    """
    chain = family.chain
    smallest = float(chain.energies[chain.energies > 0].min())
    states = enumerate_sequences(chain.vocab_size, _SHORT)
    free = states[chain.energy(states) == 0]
    limit = float((~chain.domain_walls(free).any(1)).double().mean())
    for cold in (1, 2, 4, 8, 16, 32, 64):
        for sites in (_SHORT, length):
            no_wall = chain.no_wall_probability(sites, smallest / cold)
            row = {"kind": "cold", **family.columns, "cold": cold, "length": sites, "no_wall": no_wall}
            yield row | ({"limit": limit} if sites == _SHORT else {})


def simulate_plane(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Simulate Potts models on a square lattice, and measure how many sites keep their initial state.

    A site has one of V states, and all sites start in the same one. Two neighboring sites in different states cost
    energy 1.

    Args:
        config: Numbers V of states, side length, temperatures, and numbers of simulations and sweeps.
        seed: Seed of the simulations.

    Yields:
        One row per V and temperature. `order` is (V m - 1) / (V - 1), where m is the share of sites that still have the
        initial state. It is 1 if all have it, and 0 by chance. `critical` is the critical temperature, and `peierls` is
        the highest temperature for which Peierls' argument holds.
    """
    side, sweeps = config.side, config.sweeps
    start = torch.zeros(config.chains, side * side, dtype=torch.int64)
    for vocab in config.colours:
        for temperature in config.temperatures:
            stream = derive_seed(seed, "potts-patterns", "colours", vocab, side, temperature)
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
