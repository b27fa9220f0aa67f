"""Sequential Monte Carlo with perfect values, for targets that are products over positions.

The model draws independent tokens 0 and 1, and so does the target, with other probabilities. Perfect values then
multiply the weight of a particle by a factor that depends on the new token only. If particles are resampled after every
token, the token at each position of the output is drawn by weight among tokens of independent particles. Positions are
therefore independent, and the output distribution has a closed form for any length. The number of zeros is a sufficient
statistic, so that the total variation between two binomial distributions is the one between the distributions of
sequences.
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


def selected_share(particles: int, base: float, target: float) -> float:
    """Return the probability that a particle drawn by weight has token 0.

    The particles draw tokens independently, and the weight of a particle is the target's probability of its token
    divided by the model's.

    Args:
        particles: Number of particles.
        base: Probability of token 0 under the model.
        target: Probability of token 0 in the target.
    """
    zeros = np.arange(particles + 1)
    weight = zeros * (target / base)
    other = (particles - zeros) * ((1 - target) / (1 - base))
    return float(np.sum(binom.pmf(zeros, particles, base) * weight / (weight + other)))


def variation(length: int, share: float, target: float) -> float:
    """Return the total variation between two distributions of sequences of independent tokens.

    Args:
        length: Number of tokens of a sequence.
        share: Probability of token 0 in one distribution.
        target: Probability of token 0 in the other distribution.
    """
    zeros = np.arange(length + 1)
    return float(np.abs(binom.pmf(zeros, length, share) - binom.pmf(zeros, length, target)).sum() / 2)


def particles_needed(length: int, base: float, target: float, tolerance: float) -> int:
    """Return the least number of particles whose output is near the target, by bisection.

    Args:
        length: Number of tokens of a sequence.
        base: Probability of token 0 under the model.
        target: Probability of token 0 in the target.
        tolerance: Largest total variation that counts as near.
    """

    def is_near(particles: int) -> bool:
        return variation(length, selected_share(particles, base, target), target) <= tolerance

    enough = 1
    while not is_near(enough):
        enough *= 2
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if is_near(middle) else (middle, enough)
    return enough


def particles_to_survive(length: int, allowed: float, tolerance: float) -> int:
    """Return the least number of particles that rarely all draw an impossible token in the same step.

    Args:
        length: Number of tokens of a sequence.
        allowed: Probability of the possible tokens in each step.
        tolerance: Largest probability that this happens in any step, which is the total variation from the target.
    """
    per_step = -math.expm1(math.log1p(-tolerance) / length)
    return max(1, math.ceil(math.log(per_step) / math.log1p(-allowed)))


def random_shares(seed: int, *names: str, low: float = 0.2, high: float = 0.8) -> tuple[float, float]:
    """Return two random probabilities of token 0, of the model and of the target, which differ by at least 0.2.

    Args:
        seed: Random seed.
        *names: Name of the random stream.
        low: Smallest probability.
        high: Largest probability.
    """
    generator = numpy_generator(seed, "smc-criteria", *names)
    while True:
        base, target = generator.uniform(low, high, 2).tolist()
        if abs(base - target) >= _LEAST_GAP:
            return base, target


def measure_products(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Compute the numbers of particles that perfect values need, and the model calls of other exact samplers.

    Args:
        config: Settings of the run.
        seed: Seed of the target.

    Yields:
        Two rows of the kind "particles" per length, one for positive values and one for values 0 and 1. For values 0
        and 1, they also have natural logarithms of model calls per output: of SMC, of rejection of complete sequences,
        and of rejection that stops at the first impossible token.
    """
    base, target = random_shares(seed, "product")
    allowed = float(numpy_generator(seed, "smc-criteria", "allowed").uniform(0.7, 0.98))
    for length in config.lengths:
        yield {
            "kind": "particles",
            "length": length,
            "values": POSITIVE,
            "base": base,
            "target": target,
            "needed": particles_needed(length, base, target, config.tolerance),
        }
        needed = particles_to_survive(length, allowed, config.tolerance)
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
