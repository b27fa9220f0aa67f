"""Exact measurements of value-guided samplers on random models with two tokens, for values with known errors."""

import math
from functools import partial
from pathlib import Path

from trialogue.data import Table
from trialogue.randomness import numpy_generator
from trialogue.samplers.exact import exact_values, target_distribution, total_variation
from trialogue.verifiers import NoisyValues
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.value_guided.config import EXACT, KINDS, Config
from trialogue_lab.theory import value_guided as theory

Prefix = tuple[int, ...]
MIXED, LEAVES_MIXED = 0.25, 0.05
"""Total variation distances at which the walk counts as mixed, over prefixes and over complete sequences."""


def make_random_model(seed: int, horizon: int) -> Table:
    """Return a random model of sequences of two tokens.

    After each prefix, the probability of the first token is uniformly random between 0.3 and 0.7.

    Args:
        seed: Seed of the probabilities.
        horizon: Length of the sequences.
    """

    def next_probs(prefix: Prefix) -> tuple[float, float]:
        share = float(numpy_generator(seed, "law", prefix).uniform(0.3, 0.7))
        return share, 1 - share

    return Table(next_probs, 2, max_length=horizon)


def sample_outcome(seed: int, sequence: Prefix) -> float:
    """Return the outcome of a complete sequence, a random number in [0, 1].

    A sampler should generate the sequence with a probability proportional to outcome * model probability.

    Args:
        seed: Seed of the outcomes.
        sequence: Token ids of the sequence.
    """
    return float(numpy_generator(seed, "outcome", sequence).random())


def measure_trees(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Compute the output distributions of value-guided samplers on a random model of sequences of two tokens.

    The value of a prefix is the expected outcome of its completions. The samplers are guided by exact values, and by
    values with errors of known size.

    Args:
        config: Settings with the sequence lengths and the sizes of the errors.
        seed: Seed of the model.

    Yields:
        One row of the kind "tree" per sequence length, kind of errors and size of errors. It has costs and total
        variation distances from the target. For seeds in `config.chain_seeds`, there is also a row of the kind "chain".
        It has mixing times and other values of the random walk on prefixes, computed from its transition matrix.
    """
    for horizon in config.horizons:
        oracle, outcome = make_random_model(seed, horizon), partial(sample_outcome, seed)
        target, exact = target_distribution(oracle, outcome), exact_values(oracle, outcome)
        errors = [(kind, error) for kind in KINDS for error in (config.errors if kind != EXACT else (0.0,))]
        for kind, error in errors:
            values = exact if kind == EXACT else NoisyValues(exact, error, kind, seed=seed)
            found = theory.first_leaf(oracle, values)
            stationary = theory.stationary_probabilities(oracle, values)
            leaves = {x: p for x, p in stationary.items() if len(x) == horizon}
            mass = math.fsum(leaves.values())
            setting = {"horizon": horizon, "values": kind, "error": error}
            yield {
                "kind": "tree",
                **setting,
                "action_level": total_variation(theory.action_level_distribution(oracle, values), target),
                "first_leaf": total_variation(found.distribution, target),
                "stationary": total_variation({x: p / mass for x, p in leaves.items()}, target),
                "leaf_mass": theory.leaf_mass(oracle, values),
                "moves": found.moves,
                "nodes": found.nodes,
            }
            if seed in config.chain_seeds:
                chain = theory.value_guided_chain(oracle, values)
                stationary_of_chain = dict(zip(chain.states, chain.stationary.tolist(), strict=True))
                yield {
                    "kind": "chain",
                    **setting,
                    "irreversibility": chain.reversibility_residual,
                    "stationary_residual": max(
                        abs(stationary_of_chain[x] - p) for x, p in stationary.items()
                    ),
                    "first_leaf_residual": total_variation(
                        chain.first_leaf_distribution(), found.distribution
                    ),
                    "steps": chain.steps_to_leaf,
                    "steps_residual": abs(chain.steps_to_leaf / (2 * found.moves) - 1),
                    "leaf_variation": total_variation(chain.leaf_distribution(chain.stationary), target),
                    "gap": chain.spectral_gap,
                    "closed_gap": (1 - math.cos(math.pi / (2 * horizon))) / 2,
                    "mixing": chain.mixing_time(MIXED),
                    "leaf_mixing": chain.leaf_mixing_time(target, LEAVES_MIXED),
                }
