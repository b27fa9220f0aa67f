"""What no predictor of the next bracket can avoid: the losses of the distribution itself."""

from typing import NamedTuple

import numpy as np

from trialogue.data.dyck.language import Dyck


class IrreducibleLosses(NamedTuple):
    """Expected losses of the exact next-token distribution, means over the positions of a string."""

    cross_entropy: float  # nats
    squared: float  # || distribution - one-hot ||^2


def irreducible_losses(dyck: Dyck) -> IrreducibleLosses:
    """The losses of `dyck.next_log_probs` on its own strings, exactly: a sum over positions and depths."""
    types = np.array(dyck.type_probs)
    deepest = dyck.length if dyck.max_depth is None else min(dyck.length, dyck.max_depth)
    chance = np.zeros(deepest + 2)
    chance[0] = 1
    entropy = squared = 0.0
    for i in range(dyck.length):
        ceiling = dyck.length - i if dyck.complete else dyck.length + 1
        ceiling = min(ceiling, deepest) if dyck.max_depth is not None else ceiling
        opens = np.full(len(chance), dyck.open_prob)
        opens[0] = 1.0
        if ceiling < len(opens):
            opens[max(ceiling, 0)] = 0.0
        distributions = np.concatenate((opens[:, None] * types, 1 - opens[:, None]), 1)
        entropy -= float(
            chance @ (distributions * np.log(np.where(distributions > 0, distributions, 1.0))).sum(1)
        )
        squared += float(chance @ (1 - (distributions**2).sum(1)))
        opened, closed = chance * opens, chance * (1 - opens)
        chance = np.concatenate(([0.0], opened[:-1])) + np.concatenate((closed[1:], [0.0]))
    return IrreducibleLosses(entropy / dyck.length, squared / dyck.length)
