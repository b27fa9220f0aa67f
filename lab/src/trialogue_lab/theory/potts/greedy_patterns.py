"""Stored patterns of an autoregressive model with a finite window.

Corollary 1.2.1 of the document on Potts chains. If the constant of equation 9 depends on the context, the
most likely token has energy zero. The stored patterns are then the cycles of the greedy map on the V^w
contexts. If there is only one cycle, there are no walls. The model still leaves it at a constant rate unless
every token is certain.
"""

import math
from typing import Annotated, NamedTuple

import torch
from torch import Tensor

from trialogue.arrays import Reals, real_tensor
from trialogue.errors import InputError
from trialogue.probabilities import checked_probabilities
from trialogue.validation import validated

_NORMALISED = 1e-4


class GreedyPattern(NamedTuple):
    """A cycle of the greedy map.

    Attributes:
        tokens: Tokens (period,) int64.
        context: Index of a context on the cycle.
        decay_rate: Mean of -log p over the cycle, so P(following it for L tokens) ~ exp(-decay_rate L).
    """

    tokens: Tensor
    context: int
    decay_rate: float


@validated
def greedy_patterns(
    log_probs: Annotated[Tensor, Reals("contexts vocab", infinite="both")],
) -> list[GreedyPattern]:
    """Return all cycles of the greedy map, in order of contexts.

    The lowest token wins ties. Including phases, the number of stored patterns equals the number of tokens in
    all cycles.

    Args:
        log_probs: Log-probabilities (V^w, V), as `context_log_probs` returns them.

    Raises:
        InputError: If the shape is wrong or rows are not normalized.
    """
    contexts, vocab = log_probs.shape
    if vocab < 2 or vocab ** round(math.log(contexts, vocab)) != contexts:
        raise InputError("log_probs", tuple(log_probs.shape), "use the shape (V^w, V)")
    likeliest, token = checked_log_probs(log_probs).max(1)
    following = (torch.arange(contexts) * vocab + token) % contexts
    seen = torch.zeros(len(following), dtype=torch.int64)
    patterns = []
    for start in range(len(following)):
        context = start
        while not seen[context]:
            seen[context] = start + 1
            context = int(following[context])
        if seen[context] != start + 1:
            continue
        cycle = [context]
        while int(following[cycle[-1]]) != context:
            cycle.append(int(following[cycle[-1]]))
        seen[cycle] = len(following) + 1
        patterns.append(GreedyPattern(token[cycle], context, -float(likeliest[cycle].mean())))
    return patterns


def checked_log_probs(log_probs: Tensor) -> Tensor:
    """Return log-probabilities (..., V) as float64.

    Raises:
        InputError: If there are NaNs or rows are not normalized.
    """
    rows = real_tensor("log_probs", log_probs, "give log-probabilities (..., V)")
    hint = "a row of probabilities has this sum: give log-probabilities, such as logits.log_softmax(-1)"
    checked_probabilities("log_probs", rows.exp(), tuple(rows.shape), tolerance=_NORMALISED, hint=hint)
    return rows
