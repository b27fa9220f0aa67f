"""Periodic sequences that a model with a finite window repeats forever under greedy decoding.

The next token of the model depends on the last w tokens, the context. Greedy decoding sends each context to
the context after its most likely token. A cycle of this map is called a stored pattern. Sampled text leaves
its pattern at a constant rate (Corollary 1.2.1 of the document on Potts chains).
"""

import math
from typing import Annotated, NamedTuple

import torch
from torch import Tensor

from trialogue.arrays import Reals, real_tensor
from trialogue.errors import InputError
from trialogue.probabilities import validate_probabilities
from trialogue.validation import validated

_NORMALISED = 1e-4


class GreedyPattern(NamedTuple):
    """Periodic sequence that greedy decoding of a model with a finite window repeats forever.

    Attributes:
        tokens: One period of the sequence, shape (period,) int64.
        context: Index of the context (the last w tokens) that precedes `tokens`, in the order of
            `itertools.product`.
        decay_rate: Mean of -log p of the tokens in nats. A sampled text follows the sequence for L tokens with a
            probability of about exp(-decay_rate L).
    """

    tokens: Tensor
    context: int
    decay_rate: float


@validated
def greedy_patterns(
    log_probs: Annotated[Tensor, Reals("contexts vocab", infinite="both")],
) -> list[GreedyPattern]:
    """Return all periodic sequences that greedy decoding of a model with a finite window can end in.

    They are the cycles of the greedy map, which sends a context (the last w tokens) to the context after its
    most likely token. The lowest token wins ties.

    Args:
        log_probs: Log-probabilities (V^w, V) of the next token given each context, as returned by
            `context_log_probs`.

    Returns:
        One pattern for each cycle, ordered by the lowest context from which greedy decoding reaches it.

    Raises:
        InputError: If the shape is not (V^w, V), or the probabilities of a row do not sum to one.
    """
    contexts, vocab = log_probs.shape
    if vocab < 2 or vocab ** round(math.log(contexts, vocab)) != contexts:
        raise InputError("log_probs", tuple(log_probs.shape), "use the shape (V^w, V)")
    likeliest, token = check_log_probs(log_probs).max(1)
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


def check_log_probs(log_probs: Tensor) -> Tensor:
    """Check that log-probabilities (..., V) are normalized, and return them as float64.

    Raises:
        InputError: If there are NaNs, or the probabilities along the last axis do not sum to one.
    """
    rows = real_tensor("log_probs", log_probs, "give log-probabilities (..., V)")
    hint = "the probabilities of a row have this sum, not 1: give log-probabilities, such as logits.log_softmax(-1)"
    validate_probabilities("log_probs", rows.exp(), tuple(rows.shape), tolerance=_NORMALISED, hint=hint)
    return rows
