"""Exact laws of iterative refinement: every site drawn at once from its own law, again and again.

What draws all sites by themselves given the state maps a law mu to sum_x mu(x) prod_i g_i(y_i | x). The matrix of that
map has V^2N entries; applied from both halves of the sites it is one product of two thin matrices and is never listed,
which gives laws over some 10^5 sequences in seconds.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError, whole_number
from trialogue.inference.chains.conditionals import site_laws
from trialogue.oracles import Masked, SequenceModel, as_model, whole_sequences
from trialogue.probabilities import checked_probabilities

MOST_STATES = 2**17
"""Of the sequences of one length, so many at most."""
_ENTRIES_AT_ONCE = 2**22


class ParallelSteps:
    """The map from the law of a state to that after one step, made of `sites` (V^N, N, V): g of every state.

    States are in the order of `itertools.product`. Laws g may sum to less than one: what is missing is outside of the
    V^N sequences, and does not come back. Raises `InputError` for other shapes, and for negative numbers.
    """

    def __init__(self, sites: Tensor) -> None:
        if sites.ndim != 3 or len(sites) != sites.shape[2] ** sites.shape[1]:
            raise InputError("sites", tuple(sites.shape), "use the shape (vocab ** sites, sites, vocab)")
        if not bool((sites >= 0).all() & (sites.sum(2) <= 1 + 1e-6).all()):
            raise InputError("sites", tuple(sites.shape), "give probabilities that sum to at most one")
        self._halves = _outer(sites[:, : sites.shape[1] // 2]), _outer(sites[:, sites.shape[1] // 2 :])

    def __call__(self, law: Tensor) -> Tensor:
        """The law (V^N,) after a step from `law` (V^N,)."""
        left, right = self._halves
        return ((left * law[:, None]).T @ right).flatten()


def refinement_laws(model: SequenceModel, sites: int, steps: int, start: str = "mask") -> Tensor:
    """The laws (steps + 1, V^N) float64 after 0 to `steps` steps of refinement of N = `sites` tokens by `model`.

    A step is one of `IndependentParallel`. Of `start` "random" the first law is uniform; of "mask", for a masked oracle
    alone, it is what that draws in parallel where every site is masked, and so costs a pass of its own. Raises
    `InputError` for more than `MOST_STATES` states.
    """
    asked = as_model(model)
    number, vocab = whole_number("sites", sites, 1), int(asked.vocab_size)
    if vocab**number > MOST_STATES:
        mend = f"{vocab}^{number} sequences are more than {MOST_STATES}: use fewer sites"
        raise InputError("sites", sites, mend)
    step = ParallelSteps(torch.cat(list(_site_laws(asked, whole_sequences(vocab, number)))))
    laws = [starting_law(asked, number, start)]
    for _ in range(whole_number("steps", steps, 0)):
        laws.append(step(laws[-1]))
    return torch.stack(laws)


def starting_law(model: SequenceModel, sites: int, start: str) -> Tensor:
    """The law (V^N,) that refinement starts from, as `refinement_laws` says; raises `InputError` for another one."""
    vocab = int(model.vocab_size)
    if start == "random":
        return torch.full((vocab**sites,), float(vocab) ** -sites, dtype=torch.float64)
    if start != "mask" or not isinstance(model, Masked):
        raise InputError("start", start, 'use "random", or, for a masked oracle, "mask"')
    tokens = torch.zeros(1, sites, dtype=torch.int64)
    return _outer(model.log_probs(tokens, torch.ones_like(tokens, dtype=torch.bool)).double().exp())[0]


def divergence_and_variation(truth: Any, law: Any) -> tuple[float, float]:
    """KL(truth, law) in nats, and the total variation, of laws (states,); mass that `law` lacks counts as elsewhere."""
    truth = checked_probabilities("truth", truth, tuple(truth.shape))
    positive = truth > 0
    terms = truth[positive] * (truth[positive].log() - law[positive].log())
    missing = max(0.0, 1 - float(law.sum()))
    return max(0.0, float(terms.sum())), (float((truth - law).abs().sum()) + missing) / 2


def _site_laws(model: SequenceModel, states: Tensor) -> Iterator[Tensor]:
    at_once = max(1, _ENTRIES_AT_ONCE // (states.shape[1] * int(model.vocab_size) ** 2))
    for part in states.split(at_once):
        yield site_laws(model, part).double().softmax(2)


def _outer(sites: Tensor) -> Tensor:
    """The products (states, V^k) of the laws (states, k, V) of k sites; 1 of none."""
    product = torch.ones(len(sites), 1, dtype=torch.float64)
    for site in sites.double().unbind(1):
        product = (product[:, :, None] * site[:, None, :]).flatten(1)
    return product
