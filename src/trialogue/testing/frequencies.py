"""Comparison of the frequencies of independent samples with their expected distribution."""

import math
from collections import Counter
from collections.abc import Iterable

from trialogue.testing.trees import ExactDistribution, Prefix

ALPHA = 1e-9


def weissman_radius(cells: int, samples: int, alpha: float = ALPHA) -> float:
    """Return an upper bound of the L1 distance between observed frequencies and the true distribution.

    The distance exceeds the bound with probability at most `alpha` (Weissman et al. 2003).

    Args:
        cells: Number of possible outcomes.
        samples: Number of independent samples.
        alpha: Probability of exceeding the bound (default: 1e-9).
    """
    return math.sqrt(2 * (cells * math.log(2) + math.log(1 / alpha)) / samples)


def l1_distance(sequences: Iterable[Prefix], distribution: ExactDistribution) -> float:
    """Return the L1 distance between the frequencies of samples and a distribution.

    If the probabilities do not sum to 1, the missing probability counts as one additional outcome. It contains all
    sequences that are not in `distribution`.

    Args:
        sequences: Samples, each a tuple of token ids.
        distribution: Dict from sequences to probabilities.
    """
    counts = Counter(sequences)
    total = counts.total()
    inside = sum(abs(counts[x] / total - p) for x, p in distribution.items())
    outside = sum(count for x, count in counts.items() if x not in distribution) / total
    return inside + abs(outside - max(0.0, 1 - math.fsum(distribution.values())))
