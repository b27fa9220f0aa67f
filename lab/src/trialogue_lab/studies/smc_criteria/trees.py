"""Sequential Monte Carlo of the library on small random trees, by enumeration of all its random decisions.

The target is the model's distribution times an outcome between 0 and 1. Two criteria, which this project defines, are
computed for each tree. Action-level coverage is the largest ratio target probability / model probability of a next
token. The chi-square divergence is between the distributions of prefixes under approximate and exact values. It is the
maximum over lengths of prefixes.
"""

import math
from functools import partial
from pathlib import Path

import numpy as np

from trialogue import exact_distribution, target_distribution, total_variation
from trialogue.data import Table
from trialogue.randomness import numpy_generator
from trialogue.samplers import BestOfN, SequentialMonteCarlo
from trialogue.samplers.exact import exact_values
from trialogue.samplers.exact.prefix_trees import prefix_tree
from trialogue.verifiers import NoisyValues
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.smc_criteria.branches import compute_branch_share, compute_first_leaf
from trialogue_lab.studies.smc_criteria.config import Config
from trialogue_lab.studies.smc_criteria.curves import ANY, compute_best_of_n_accuracy, make_random_curves
from trialogue_lab.studies.smc_criteria.products import compute_selected_share, sample_shares
from trialogue_lab.theory import value_guided

Prefix = tuple[int, ...]


def _make_random_tree(seed: int, tree: int, length: int) -> tuple[Table, dict[Prefix, float], float]:
    """Return a random model, the outcome of each sequence, and the size of value errors."""
    generator = numpy_generator(seed, "smc-criteria", "tree", tree)
    spread, contrast, error = generator.uniform(0, (0.45, 3.0, 1.0)).tolist()
    shares: dict[Prefix, float] = {}
    level: list[Prefix] = [()]
    for _ in range(length):
        shares |= {prefix: float(generator.uniform(0.5 - spread, 0.5 + spread)) for prefix in level}
        level = [(*prefix, token) for prefix in level for token in (0, 1)]
    outcomes = {sequence: math.exp(-contrast * float(generator.random())) for sequence in level}
    oracle = Table(lambda prefix: (shares[prefix], 1 - shares[prefix]), 2, max_length=length)
    return oracle, outcomes, error


def measure_trees(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Compute output distributions of sequential Monte Carlo on small random models, and two criteria for its error.

    The models are trees of token sequences, which are enumerated.

    Args:
        config: Settings of the run.
        seed: Seed of the trees.

    Yields:
        One row per tree.

        - `coverage`: largest ratio target probability / model probability of a next token.
        - `chi_square`: largest chi-square divergence between prefix distributions under approximate and exact values.
        - `perfect`, `noisy`: total variation distances of outputs from the target, with perfect values and with values
          that have random errors.
    """
    sampler = SequentialMonteCarlo(config.tree_particles, ess_threshold=1.0)
    for number in range(config.trees):
        oracle, outcomes, error = _make_random_tree(seed, number, config.tree_length)
        values = exact_values(oracle, outcomes.__getitem__)
        noisy = NoisyValues(values, error, "uniform", seed=seed * 1000 + number)
        target = target_distribution(oracle, outcomes.__getitem__)
        tree = prefix_tree(oracle)
        inner = np.arange(len(tree.prefixes))
        exact, approximate = tree.values(values, inner), tree.values(noisy, inner)
        chi_squares = []
        for depth in range(1, config.tree_length):
            level = tree.depth == depth
            mass = np.exp(tree.log_probs[level])
            p, q = (mass * each[level] / (mass * each[level]).sum() for each in (exact, approximate))
            chi_squares.append(float((p**2 / q).sum() - 1))
        yield {
            "kind": "tree",
            "tree": number,
            "coverage": float((exact[1:] / exact[tree.parent[1:]]).max()),
            "chi_square": max(chi_squares),
            "perfect": total_variation(exact_distribution(sampler, oracle, values).probabilities, target),
            "noisy": total_variation(exact_distribution(sampler, oracle, noisy).probabilities, target),
        }


def _compute_product_value(base: float, target: float, prefix: Prefix) -> float:
    """Return the perfect value of a prefix, up to a constant factor.

    The target consists of independent tokens.
    """
    return math.prod((1 - target) / (1 - base) if token else target / base for token in prefix)


def _compute_branch_value(base: float, target: float, length: int, error: float, prefix: Prefix) -> float:
    """Return the value of a prefix with errors, if the outcome depends on the first token only.

    The exact value is multiplied by exp(± error) for each missing token.
    """
    if not prefix:
        return 1.0
    exact = (1 - target) / (1 - base) if prefix[0] else target / base
    return exact * math.exp((-error if prefix[0] else error) * (length - len(prefix)))


def measure_library(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Check that formulas of this study agree with exact enumerations of the library's samplers.

    Args:
        config: Settings of the run.
        seed: Seed of the targets.

    Yields:
        One row. Each column is a maximum or a sum of absolute differences of probabilities.
    """
    sampler, length, error = SequentialMonteCarlo(2, ess_threshold=1.0), 3, 0.3
    base, target = sample_shares(seed, "library")
    share = compute_selected_share(2, base, target)
    coins = Table(lambda _: (base, 1 - base), 2, max_length=length)
    product = {
        x: math.prod(1 - share if token else share for token in x)
        for x in target_distribution(coins, lambda _: 1.0)
    }
    found = exact_distribution(sampler, coins, partial(_compute_product_value, base, target)).probabilities
    branches = Table(lambda prefix: (0.5, 0.5) if prefix else (base, 1 - base), 2, max_length=length)
    values = partial(_compute_branch_value, base, target, length, error)
    outputs = exact_distribution(sampler, branches, values).probabilities
    walk = value_guided.first_leaf(branches, values)
    leaf, moves = compute_first_leaf(length, target, error)
    mass, correct = make_random_curves(seed, 1, config.levels, ANY)
    scores = Table(lambda _: tuple(mass[0].tolist()), config.levels, max_length=1)
    best = exact_distribution(BestOfN(3), scores, lambda x: float(config.levels - x[0])).probabilities
    accuracy = math.fsum(p * correct[0, x[0]] / mass[0, x[0]] for x, p in best.items())
    yield {
        "kind": "library",
        "products": total_variation(found, product),
        "branches": abs(_sum_first_token(outputs) - compute_branch_share(2, length, base, target, error)),
        "first_leaf": abs(_sum_first_token(walk.distribution) - leaf) + abs(walk.moves - moves),
        "best_of_n": abs(accuracy - float(compute_best_of_n_accuracy(mass, correct, 3)[0])),
    }


def _sum_first_token(distribution: dict[Prefix, float]) -> float:
    """Return the total probability of sequences that begin with token 0."""
    return math.fsum(p for x, p in distribution.items() if x[0] == 0)
