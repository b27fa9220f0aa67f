"""Exact rows about chains (walls, coherent runs and bounds), and rows about sampled walls."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any, NamedTuple

import torch

from trialogue.data import PottsChain, window_tables
from trialogue.randomness import generator, seed_of
from trialogue.samplers.chains.simulation.sweeps import run_sweeps
from trialogue_lab.studies.potts_coherence.config import Sampled
from trialogue_lab.theory.potts import domain_walls
from trialogue_lab.theory.potts.nearest_neighbour import NearestNeighbourPotts

Row = dict[str, Any]

UNIFORM, PLANTED, PERIODIC, SHARED = "uniform", "planted", "periodic", "shared tokens"


class NamedChain(NamedTuple):
    """A chain of the study with its name and parameters."""

    name: str
    chain: PottsChain
    patterns: int
    penalty: float


def uniform(patterns: int, window: int, penalty: float, vocab: int) -> NamedChain:
    """Return a chain of one-token patterns in which every wrong token of a window costs `penalty`.

    Tokens from `patterns` to `vocab - 1` belong to no pattern.
    """
    chain = PottsChain.from_patterns([[token] for token in range(patterns)], window, penalty, vocab)
    return NamedChain(UNIFORM, chain, patterns, penalty)


def planted(patterns: int, window: int, penalty: float) -> NamedChain:
    """Return a chain of one-token patterns with random energies between `penalty / 2` and `penalty`."""
    draws = generator(0, "potts-coherence", "planted", patterns, window)
    energies = penalty * (1 + torch.rand([patterns] * window, generator=draws, dtype=torch.float64)) / 2
    for token in range(patterns):
        energies[(token,) * window] = 0.0
    return NamedChain(
        PLANTED, PottsChain(energies, [[token] for token in range(patterns)]), patterns, penalty
    )


def periodic(penalty: float) -> NamedChain:
    """Return a chain of two patterns with three tokens and three phases, which share no two successive tokens."""
    return NamedChain(PERIODIC, PottsChain.from_patterns([[0, 1, 2], [2, 1, 0]], 3, penalty), 6, penalty)


def shared_tokens(penalty: float) -> NamedChain:
    """Return a chain of the patterns 0000... and 0101..., which agree at every second site."""
    return NamedChain(SHARED, PottsChain.from_patterns([[0, 0], [0, 1]], 3, penalty), 3, penalty)


def families(
    patterns: Sequence[int], windows: Sequence[int], penalties: Sequence[float]
) -> Iterator[NamedChain]:
    """Yield all chains whose exact quantities are computed."""
    vocab = max(2, *patterns)
    for window in windows:
        for count in patterns:
            yield uniform(count, window, 1.0, vocab)
        yield from (planted(3, window, penalty) for penalty in penalties)
    yield periodic(1.0)
    yield shared_tokens(1.0)


def chain_rows(family: NamedChain, temperatures: Sequence[float], lengths: Sequence[int]) -> Iterator[Row]:
    """Yield decay rates and crossing length by temperature, and walls, runs and free energies by length.

    `wall_decay` is the rate at which P(no wall) falls with the length, and `ground_decay` the rate of P(no excitation).
    `run` is the mean length of the first coherent run in windows, which is cut off at the end of the chain.
    """
    chain, energies = family.chain, family.chain.energies
    common = {
        "family": family.name,
        "patterns": family.patterns,
        "window": chain.window,
        "penalty": family.penalty,
        "max_energy": chain.max_energy,
    }
    walls = family.patterns > 1
    for temperature in temperatures:
        setting = (chain.window, chain.max_energy, temperature, family.patterns)
        yield {
            "kind": "chain",
            **common,
            "temperature": temperature,
            "ground_decay": domain_walls.stored_pattern_decay_rate(energies, temperature),
            "wall_decay": domain_walls.no_wall_decay_rate(chain, temperature),
            "wall_energy_bound": domain_walls.largest_wall_energy(chain.window, chain.max_energy),
            "crossing_length": domain_walls.crossing_length(*setting) if walls else None,
        }
        for length in lengths:
            runs = chain.run_length_distribution(length, temperature)
            row = {
                "kind": "length",
                **common,
                "temperature": temperature,
                "length": length,
                "walls": chain.expected_domain_walls(length, temperature),
                "wall": 1 - float(runs[-1]),
                "run": float(runs @ torch.arange(1, len(runs) + 1, dtype=torch.float64)),
                "windows": len(runs),
            }
            if walls:
                stored = domain_walls.stored_sequences(chain, length)
                exact = domain_walls.one_wall(energies, stored, temperature)
                row |= {
                    "free_energy": exact.free_energy,
                    "free_energy_bound": domain_walls.free_energy_bound(length, *setting),
                    "wall_energy": exact.largest_energy,
                    "splices": exact.states,
                    "splices_counted": (length - 1) * (family.patterns - 1),
                }
            yield row


def closed_form_rows() -> Iterator[Row]:
    """Yield the largest differences between closed forms of the nearest-neighbour chain and transfer matrices."""
    for vocab, coupling, temperature in product((2, 3, 5), (0.3, 1.3, 3.0), (0.3, 0.7, 3.0)):
        energies = coupling * (1 - torch.eye(vocab, dtype=torch.float64))
        chain, solved = PottsChain(energies), NearestNeighbourPotts(vocab, coupling, temperature)
        errors: dict[str, list[float]] = {"log_partition": [], "walls": [], "no_wall": []}
        for length in (2, 6, 50):
            log_z = chain.log_partition(length, temperature)
            walls = chain.mean_energy(length, temperature) / coupling
            no_wall = domain_walls.stored_pattern_count(energies, length) * math.exp(-log_z)
            errors["log_partition"].append(abs(solved.log_partition(length) - log_z))
            errors["walls"].append(abs(solved.expected_walls(length) - walls))
            errors["no_wall"].append(abs(solved.no_wall_probability(length) - no_wall))
        at_crossing = domain_walls.crossing_length(2, coupling, temperature, vocab)
        yield {
            "kind": "closed form",
            "patterns": vocab,
            "penalty": coupling,
            "temperature": temperature,
            **{f"{name}_error": max(values) for name, values in errors.items()},
            "decay_error": abs(
                solved.decay_rate - domain_walls.stored_pattern_decay_rate(energies, temperature)
            ),
            "crossing_length": at_crossing,
            "kept_at_crossing": math.exp(-(at_crossing - 1) * solved.decay_rate),
        }


def control_rows() -> Iterator[Row]:
    """Yield two patterns with increasing energies of a wall, and two patterns with forbidden walls."""
    for cost in (2.0, 5.0, 10.0, 20.0, math.inf):
        energies = torch.full((2, 2), cost, dtype=torch.float64).fill_diagonal_(0.0)
        solved = NearestNeighbourPotts(2, cost, 1.0)
        yield {
            "kind": "control",
            "penalty": cost if math.isfinite(cost) else None,
            "forbidden": math.isinf(cost),
            "ground_decay": domain_walls.stored_pattern_decay_rate(energies, 1.0),
            "wall": 1 - solved.no_wall_probability(10**6),
        }


def curve_rows(settings: Sequence[Sampled], points: int) -> Iterator[Row]:
    """Yield the exact P(at least one wall) by length, up to thirty crossing lengths."""
    for setting in settings:
        chain = setting.chain
        longest = 3 * setting.lengths[-1]
        grid = torch.logspace(math.log10(chain.window + 1), math.log10(longest), points)
        for length in sorted(set(grid.round().int().tolist())):
            kept = chain.log_no_wall_probability(length, setting.temperature)
            yield {"kind": "curve", **asdict(setting), "length": length, "wall": -math.expm1(kept)}


def sampled_rows(settings: Sequence[Sampled], chains: int, sweeps: int, seed: int) -> Iterator[Row]:
    """Yield the share of sequences with a wall, for exact samples and for Gibbs sampling from a stored pattern."""
    for setting in settings:
        chain, temperature = setting.chain, setting.temperature
        for place, length in enumerate(setting.lengths):
            stream = seed_of(seed, "potts-coherence", *asdict(setting).values(), length)
            exact_samples = chain.sample(chains, length, temperature, stream)
            start = torch.zeros(chains, length, dtype=torch.int64)
            model = window_tables(chain.energies / temperature, length)
            gibbs_samples = run_sweeps(model, sweeps=sweeps, start=start, seed=stream)
            yield {
                "kind": "sampled",
                "seed": seed,
                **asdict(setting),
                "length": length,
                "place": place,
                "wall": -math.expm1(chain.log_no_wall_probability(length, temperature)),
                "drawn": float(chain.domain_walls(exact_samples).any(1).double().mean()),
                "gibbs": float(chain.domain_walls(gibbs_samples).any(1).double().mean()),
            }
