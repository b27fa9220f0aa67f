"""The parts of a run: cold chains, which are exact, and texts and planes, two parts per seed."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from trialogue.oracles import whole_sequences
from trialogue.randomness import seed_of
from trialogue.samplers.chains.simulation.sweeps import run_sweeps
from trialogue_lab.data.potts_grid import potts_grid
from trialogue_lab.ledger import Part
from trialogue_lab.studies.potts_coherence.chains import Family, Row, families
from trialogue_lab.studies.potts_patterns.config import Config
from trialogue_lab.studies.potts_patterns.survival import survival_rows
from trialogue_lab.theory.potts.peierls import peierls_temperature

_SHORT = 8
"""Tokens of the chains whose sequences are listed."""


def parts(config: Config) -> list[Part]:
    """The cold chains, and two parts per seed."""
    drawn = [
        Part(f"{name}-{seed}", partial(measure, config, seed), lane=str(seed))
        for seed in config.seeds
        for name, measure in (("survival", _survival), ("plane", _plane))
    ]
    return [Part("cold", partial(_cold, config)), *drawn]


def _cold(config: Config, _: Path) -> Iterator[Row]:
    for family in families(config.patterns, config.windows, (1.0,)):
        yield from cold_rows(family, config.length)


def _survival(config: Config, seed: int, _: Path) -> Iterator[Row]:
    return survival_rows(config.widths, config.models, config.texts, seed)


def _plane(config: Config, seed: int, _: Path) -> Iterator[Row]:
    return plane_rows(config.colours, config.side, config.temperatures, config.chains, config.sweeps, seed)


def cold_rows(family: Family, length: int) -> Iterator[Row]:
    """P(no wall) as the temperature falls, from the least positive energy of a window to a 64th of it.

    At eight tokens beside `limit`, the share of the sequences of energy zero that have no wall, by enumeration; at
    `length` beside nothing. `cold` is that energy over T.
    """
    chain = family.chain
    least = float(chain.energies[chain.energies > 0].min())
    states = whole_sequences(chain.vocab_size, _SHORT)
    free = states[chain.energy(states) == 0]
    limit = float((~chain.domain_walls(free).any(1)).double().mean())
    setting = {
        "family": family.name,
        "patterns": family.patterns,
        "window": chain.window,
        "penalty": family.penalty,
    }
    for cold in (1, 2, 4, 8, 16, 32, 64):
        for sites in (_SHORT, length):
            kept = chain.no_wall_probability(sites, least / cold)
            row = {"kind": "cold", **setting, "cold": cold, "length": sites, "no_wall": kept}
            yield row | ({"limit": limit} if sites == _SHORT else {})


def plane_rows(
    colours: Sequence[int], side: int, temperatures: Sequence[float], chains: int, sweeps: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Order of `chains` Potts models on a torus after so many sweeps from one pattern everywhere, J = 1 per wall.

    `order` is (V m - 1) / (V - 1) with m the share of sites that still show the pattern: 1 for all, 0 for chance.
    Their critical temperature is 1 / log(1 + sqrt V), and Peierls' argument speaks of T up to 1 / log 3 for every V.
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
