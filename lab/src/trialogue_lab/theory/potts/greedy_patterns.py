"""The stored patterns of an autoregressive model with a finite window, and how long it follows one of them.

Corollary 1.2.1 of the document on Potts chains. With the constant of equation 9 chosen per context, a token costs
nothing where it is the likeliest one, so that the patterns of energy zero are the cycles of the greedy map on the V^w
contexts. There may be only one, and then there are no walls; a model still leaves it at a constant rate, unless it is
certain of every token.
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
    """A cycle of the greedy map: its `tokens` (period,) int64, a context (as a number) on it, and its decay.

    `decay_rate` is the mean of -log p over the cycle: P(following it for L tokens) ~ exp(-decay_rate L).
    """

    tokens: Tensor
    context: int
    decay_rate: float


@validated
def greedy_patterns(
    log_probs: Annotated[Tensor, Reals("contexts vocab", infinite="both")],
) -> list[GreedyPattern]:
    """All cycles of the greedy map of `log_probs` (V^w, V), as `context_log_probs` gives them, in order of contexts.

    Counted with their phases there are as many stored patterns as tokens in all cycles. The lowest token wins ties.
    Raises `InputError` where the shape is not (V^w, V), and for rows that are no log-probabilities.
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
    """The log-probabilities (..., V) as float64; raises `InputError` for NaN and rows that do not sum to one."""
    rows = real_tensor("log_probs", log_probs, "give log-probabilities (..., V)")
    hint = "a row of probabilities has this sum: give log-probabilities, such as logits.log_softmax(-1)"
    checked_probabilities("log_probs", rows.exp(), tuple(rows.shape), tolerance=_NORMALISED, hint=hint)
    return rows
