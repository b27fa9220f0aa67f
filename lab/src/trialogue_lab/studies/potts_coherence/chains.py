"""Measurements of Potts chains: exact probabilities of domain walls and their bounds, and walls in sampled sequences.

A Potts chain is a distribution over token sequences. Its energy is a sum over windows of successive tokens. Windows
that follow a stored pattern have energy zero. A domain wall is a position where a sequence changes from one stored
pattern to another.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch

from trialogue.data import PottsChain, window_tables
from trialogue.randomness import derive_seed, generator
from trialogue.samplers.chains.simulation.sweeps import run_sweeps
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.potts_coherence.config import Config, SampledChain
from trialogue_lab.theory.potts import domain_walls
from trialogue_lab.theory.potts.nearest_neighbour import NearestNeighbourPotts

UNIFORM, PLANTED, PERIODIC, SHARED = "uniform", "planted", "periodic", "shared tokens"


class NamedChain(NamedTuple):
    """A Potts chain (distribution over token sequences) with its name and parameters.

    Attributes:
        name: Name of the family of chains, for example "uniform".
        chain: The chain.
        patterns: Number of stored patterns. A periodic pattern of k different tokens counts as k patterns, one for each
            token that it can start with.
        penalty: Energy of a wrong token in a window, or the largest window energy of a chain with random energies.
    """

    name: str
    chain: PottsChain
    patterns: int
    penalty: float

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that identify the chain in measured rows."""
        names = {"family": self.name, "patterns": self.patterns}
        return names | {"window": self.chain.window, "penalty": self.penalty}


def make_uniform_chain(patterns: int, window: int, penalty: float, vocab: int) -> NamedChain:
    """Return a Potts chain that stores patterns of one repeated token, like 000... and 111...

    The energy of a sequence is a sum over windows of successive tokens. A window has energy `penalty` for each token
    that must be changed to obtain a window of a pattern.

    Args:
        patterns: Number of patterns. Pattern i repeats token i.
        window: Number of tokens in a window.
        penalty: Energy of a wrong token in a window.
        vocab: Number of token values. Values from `patterns` on belong to no pattern.
    """
    chain = PottsChain.from_patterns([[token] for token in range(patterns)], window, penalty, vocab)
    return NamedChain(UNIFORM, chain, patterns, penalty)


def make_planted_chain(patterns: int, window: int, penalty: float) -> NamedChain:
    """Return a Potts chain with stored patterns of one repeated token and otherwise random energies.

    The energy of a sequence is a sum over windows of successive tokens. A window that repeats one token has energy
    zero. The energy of every other window is uniformly random between `penalty` / 2 and `penalty`.

    Args:
        patterns: Number of patterns, which is also the number of token values.
        window: Number of tokens in a window.
        penalty: Largest energy of a window.
    """
    draws = generator(0, "potts-coherence", "planted", patterns, window)
    energies = penalty * (1 + torch.rand([patterns] * window, generator=draws, dtype=torch.float64)) / 2
    for token in range(patterns):
        energies[(token,) * window] = 0.0
    return NamedChain(
        PLANTED, PottsChain(energies, [[token] for token in range(patterns)]), patterns, penalty
    )


def make_periodic_chain(penalty: float) -> NamedChain:
    """Return a Potts chain that stores the patterns 012012... and 210210...

    The patterns have no two successive tokens in common.

    Args:
        penalty: Energy of a wrong token in a window of three tokens.
    """
    return NamedChain(PERIODIC, PottsChain.from_patterns([[0, 1, 2], [2, 1, 0]], 3, penalty), 6, penalty)


def make_shared_token_chain(penalty: float) -> NamedChain:
    """Return a Potts chain that stores the patterns 0000... and 0101...

    They agree at every second position.

    Args:
        penalty: Energy of a wrong token in a window of three tokens.
    """
    return NamedChain(SHARED, PottsChain.from_patterns([[0, 0], [0, 1]], 3, penalty), 3, penalty)


def list_chains(
    patterns: Sequence[int], windows: Sequence[int], penalties: Sequence[float]
) -> Iterator[NamedChain]:
    """Yield all Potts chains (distributions over token sequences) whose properties are computed exactly.

    Args:
        patterns: Numbers of stored patterns of the chains with equal energies.
        windows: Numbers of tokens in a window.
        penalties: Largest window energies of the chains with random energies. Other chains have energy 1 per wrong
            token.
    """
    vocab = max(2, *patterns)
    for window in windows:
        for count in patterns:
            yield make_uniform_chain(count, window, 1.0, vocab)
        yield from (make_planted_chain(3, window, penalty) for penalty in penalties)
    yield make_periodic_chain(1.0)
    yield make_shared_token_chain(1.0)


def measure_chain(family: NamedChain, temperatures: Sequence[float], lengths: Sequence[int]) -> MeasuredRows:
    """Compute exact probabilities of domain walls in the sequences of a Potts chain.

    A domain wall is a position where a sequence changes from one stored pattern to another.

    Args:
        family: The chain.
        temperatures: Temperatures.
        lengths: Sequence lengths in tokens.

    Yields:
        One row per temperature.

        - `wall_decay`: rate at which the probability of no wall falls with the length.
        - `ground_decay`: this rate for sequences that follow one pattern exactly.
        - `crossing_length`: length from which walls are likely.

        Also one row per temperature and length.

        - `walls`: expected number of walls.
        - `wall`: probability of at least one wall.
        - `run`: mean number of windows before the first wall or the end of the sequence.
        - `free_energy`, `free_energy_bound`: free energy of a wall and its upper bound, with several patterns.
    """
    chain, energies = family.chain, family.chain.energies
    common = {**family.columns, "max_energy": chain.max_energy}
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


def compare_closed_forms() -> MeasuredRows:
    """Compare formulas for Potts chains (distributions over token sequences) with exact numerical results.

    Only neighboring tokens interact in these chains. A domain wall is a change of token.

    Yields:
        One row per number of token values, coupling and temperature. Columns that end in "_error" are largest absolute
        errors. They concern the log partition function, the expected number of walls, the probability of no wall, and
        the rate at which this probability falls with the length.
    """
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


def measure_control() -> MeasuredRows:
    """Compute the probability of a domain wall in a long sequence, as a function of the energy of a wall.

    A domain wall is a change from 000... to 111..., or back. Only neighboring tokens interact.

    Yields:
        One row per energy of a wall. `wall` is the probability of at least one wall among 10^6 tokens. A wall of
        infinite energy is forbidden.
    """
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


def measure_curves(settings: Sequence[SampledChain], points: int) -> MeasuredRows:
    """Compute the exact probability of a domain wall as a function of the length.

    A domain wall is a position where a sequence of a Potts chain changes from one stored pattern to another.

    Args:
        settings: Chains and temperatures.
        points: Number of lengths. They are logarithmically spaced up to 30 times the theoretical length from which
            walls are likely.

    Yields:
        One row per chain and length, with the probability in `wall`.
    """
    for setting in settings:
        chain = setting.chain
        longest = 3 * setting.lengths[-1]
        grid = torch.logspace(math.log10(chain.window + 1), math.log10(longest), points)
        for length in sorted(set(grid.round().int().tolist())):
            kept = chain.log_no_wall_probability(length, setting.temperature)
            yield {"kind": "curve", **asdict(setting), "length": length, "wall": -math.expm1(kept)}


def measure_samples(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Sample sequences of Potts chains, and measure the share of sequences with a domain wall.

    A domain wall is a position where a sequence changes from one stored pattern to another.

    Args:
        config: Settings with the chains, the number of sequences, and the number of sweeps of Gibbs sampling.
        seed: Seed of the samples.

    Yields:
        One row per chain and length. `wall` is the exact probability of a wall. `drawn` is the share of exact samples
        with a wall, and `gibbs` the share after Gibbs sampling that starts from a stored pattern.
    """
    for setting in config.sampled:
        chain, temperature = setting.chain, setting.temperature
        for place, length in enumerate(setting.lengths):
            stream = derive_seed(seed, "potts-coherence", *asdict(setting).values(), length)
            exact_samples = chain.sample(config.chains, length, temperature, stream)
            start = torch.zeros(config.chains, length, dtype=torch.int64)
            model = window_tables(chain.energies / temperature, length)
            gibbs_samples = run_sweeps(model, sweeps=config.sweeps, start=start, seed=stream)
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
