"""How far frequencies of independent samples may lie from their distribution."""

import math
from collections import Counter
from collections.abc import Iterable

from trialogue.testing.trees import ExactDistribution, Prefix

ALPHA = 1e-9


def weissman_radius(cells: int, samples: int, alpha: float = ALPHA) -> float:
    """L1 distance that frequencies exceed with probability at most `alpha` (Weissman et al. 2003).

    A distribution at an L1 distance of more than twice this is rejected with probability at least 1 - `alpha`.
    """
    return math.sqrt(2 * (cells * math.log(2) + math.log(1 / alpha)) / samples)


def l1_distance(sequences: Iterable[Prefix], distribution: ExactDistribution) -> float:
    """L1 distance of the frequencies of `sequences` from `distribution`; what it lacks of one is one further cell."""
    counts = Counter(sequences)
    total = counts.total()
    inside = sum(abs(counts[x] / total - p) for x, p in distribution.items())
    outside = sum(count for x, count in counts.items() if x not in distribution) / total
    return inside + abs(outside - max(0.0, 1 - math.fsum(distribution.values())))
