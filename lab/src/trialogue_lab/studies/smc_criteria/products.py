"""Sequential Monte Carlo with perfect values, for targets with independent tokens.

The model samples independent tokens 0 and 1, and the target has other probabilities. If particles are
resampled after every token, the tokens of the output are independent too. The output distribution therefore
has a closed form, and the number of zeros is binomially distributed.
"""

import math
from pathlib import Path

import numpy as np
from scipy.stats import binom

from trialogue.randomness import numpy_generator
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.smc_criteria.config import Config

POSITIVE, ZERO_ONE = "positive", "zero or one"
"""Kinds of values: all values positive, or zero for every sequence with an impossible token."""
_LEAST_GAP = 0.2
"""Least difference between the probabilities of token 0 under the model and in the target."""


def compute_selected_share(particles: int, base: float, target: float) -> float:
    """Return the probability that the sequence chosen by sequential Monte Carlo in one step has token 0.

    One of several parallel sequences (particles) is chosen by its weight. Every particle samples its token
    independently from the model, and the weight is target probability / model probability of this token.

    Args:
        particles: Number of particles.
        base: Probability of token 0 under the model.
        target: Probability of token 0 in the target.
    """
    zeros = np.arange(particles + 1)
    weight = zeros * (target / base)
    other = (particles - zeros) * ((1 - target) / (1 - base))
    return float(np.sum(binom.pmf(zeros, particles, base) * weight / (weight + other)))


def compute_variation(length: int, share: float, target: float) -> float:
    """Return the total variation distance between two distributions of binary sequences.

    Tokens are independent in both distributions.

    Args:
        length: Number of tokens of a sequence.
        share: Probability of token 0 in one distribution.
        target: Probability of token 0 in the other distribution.
    """
    zeros = np.arange(length + 1)
    return float(np.abs(binom.pmf(zeros, length, share) - binom.pmf(zeros, length, target)).sum() / 2)


def count_particles_needed(length: int, base: float, target: float, tolerance: float) -> int:
    """Return the smallest number of particles for which the output of sequential Monte Carlo is close to the target.

    All tokens are independent, and the values of prefixes are exact. The number is found by bisection.

    Args:
        length: Number of tokens of a sequence.
        base: Probability of token 0 under the model.
        target: Probability of token 0 in the target.
        tolerance: Largest total variation distance from the target.
    """

    def is_near(particles: int) -> bool:
        return compute_variation(length, compute_selected_share(particles, base, target), target) <= tolerance

    enough = 1
    while not is_near(enough):
        enough *= 2
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if is_near(middle) else (middle, enough)
    return enough


def count_particles_to_survive(length: int, allowed: float, tolerance: float) -> int:
    """Return the number of particles for which rarely all of them sample an impossible token in the same step.

    In each step, every particle samples an impossible token with probability 1 - `allowed`.

    Args:
        length: Number of tokens of a sequence.
        allowed: Probability of the possible tokens in each step.
        tolerance: Largest probability that all particles sample an impossible token in the same step. It
            equals the total variation distance from the target.
    """
    per_step = -math.expm1(math.log1p(-tolerance) / length)
    return max(1, math.ceil(math.log(per_step) / math.log1p(-allowed)))


def sample_shares(seed: int, *names: str, low: float = 0.2, high: float = 0.8) -> tuple[float, float]:
    """Return random probabilities of token 0 under the model and in the target.

    They differ by at least 0.2.

    Args:
        seed: Random seed.
        *names: Names that determine the random stream.
        low: Smallest probability.
        high: Largest probability.
    """
    generator = numpy_generator(seed, "smc-criteria", *names)
    while True:
        base, target = generator.uniform(low, high, 2).tolist()
        if abs(base - target) >= _LEAST_GAP:
            return base, target


def measure_products(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Compute how many particles sequential Monte Carlo (SMC) needs if the values of prefixes are exact.

    The tokens are independent under the model and in the target.

    Args:
        config: Settings of the run.
        seed: Seed of the target.

    Yields:
        Two rows per sequence length: one for positive values, and one for values that are 0 or 1. The second row also
        has natural logarithms of model calls per output, for SMC, for rejection of complete sequences, and for
        rejection that stops at the first impossible token.
    """
    base, target = sample_shares(seed, "product")
    allowed = float(numpy_generator(seed, "smc-criteria", "allowed").uniform(0.7, 0.98))
    for length in config.lengths:
        yield {
            "kind": "particles",
            "length": length,
            "values": POSITIVE,
            "base": base,
            "target": target,
            "needed": count_particles_needed(length, base, target, config.tolerance),
        }
        needed = count_particles_to_survive(length, allowed, config.tolerance)
        accepted = length * math.log(allowed)
        yield {
            "kind": "particles",
            "length": length,
            "values": ZERO_ONE,
            "base": allowed,
            "target": 1.0,
            "needed": needed,
            "log_calls": math.log(needed * length),
            "log_rejection_calls": math.log(length) - accepted,
            "log_stopping_calls": math.log(-math.expm1(accepted) / (1 - allowed)) - accepted,
        }
