"""Exact distributions of iterative refinement: every site drawn at once from its own distribution, again and again.

What draws all sites by themselves given the state maps a distribution mu to sum_x mu(x) prod_i g_i(y_i | x). The matrix
of that map has V^2N entries; applied from both halves of the sites it is one product of two thin matrices and is never
listed, which gives distributions over some 10^5 sequences in seconds.
"""

import torch
from torch import Tensor

from trialogue.errors import InputError, one_of, whole_number
from trialogue.oracles import Masked, as_model, whole_sequences
from trialogue.oracles.whole import answered
from trialogue.probabilities import checked_probabilities

MOST_STATES = 2**17
"""Of the sequences of one length, so many at most."""
_ENTRIES_AT_ONCE = 2**22


class ParallelSteps:
    """The map from the distribution of a state to that after one step, made of `sites` (V^N, N, V): g of every state.

    States are in the order of `itertools.product`. Distributions g may sum to less than one: what is missing is outside
    of the V^N sequences, and does not come back. Raises `InputError` for other shapes, and for negative numbers.
    """

    def __init__(self, sites: Tensor) -> None:
        if sites.ndim != 3 or len(sites) != sites.shape[2] ** sites.shape[1]:
            raise InputError("sites", tuple(sites.shape), "use the shape (vocab ** sites, sites, vocab)")
        if not bool((sites >= 0).all() & (sites.sum(2) <= 1 + 1e-6).all()):
            raise InputError("sites", tuple(sites.shape), "give probabilities that sum to at most one")
        self._halves = (
            product_laws(sites[:, : sites.shape[1] // 2]),
            product_laws(sites[:, sites.shape[1] // 2 :]),
        )

    def __call__(self, distribution: Tensor) -> Tensor:
        """The distribution (V^N,) after a step from `distribution` (V^N,)."""
        left, right = self._halves
        return ((left * distribution[:, None]).T @ right).flatten()


def refinement_laws(model: Masked, sites: int, steps: int, start: str | Tensor = "mask") -> Tensor:
    """The distributions (steps + 1, V^N) float64 after 0 to `steps` steps of refinement of N = `sites` tokens by
    `model`.

    A step is one of `Refinement` whose tokens are sampled and none is kept; of a model that answers for masked sites
    alone it is one of `IndependentParallel`. Of `start` "random" the first distribution is uniform; of "mask" it is
    what is drawn where every site is masked, and so costs a pass of its own; a distribution (V^N,) is the first as it
    is. Raises `InputError` for more than `MOST_STATES` states, and for a start that is none of these.
    """
    asked = as_model(model)
    if not isinstance(asked, Masked):
        raise InputError("model", type(model).__name__, "refinement asks a masked oracle")
    number, vocab = whole_number("sites", sites, 1), int(asked.vocab_size)
    if vocab**number > MOST_STATES:
        hint = f"{vocab}^{number} sequences are more than {MOST_STATES}: use fewer sites"
        raise InputError("sites", sites, hint)
    distributions = [_first(asked, number, start)]
    if whole_number("steps", steps, 0):
        at_once = max(1, _ENTRIES_AT_ONCE // (number * vocab**2))
        states = whole_sequences(vocab, number).split(at_once)
        step = ParallelSteps(torch.cat([_refined(asked, part, False) for part in states]))
        for _ in range(steps):
            distributions.append(step(distributions[-1]))
    return torch.stack(distributions)


def divergence_and_variation(truth: Tensor, distribution: Tensor) -> tuple[float, float]:
    """KL(truth, distribution) in nats, and the total variation, of distributions (states,); mass that `distribution`
    lacks counts as elsewhere.
    """
    truth = checked_probabilities("truth", truth, tuple(truth.shape))
    positive = truth > 0
    terms = truth[positive] * (truth[positive].log() - distribution[positive].log())
    missing = max(0.0, 1 - float(distribution.sum()))
    return max(0.0, float(terms.sum())), (float((truth - distribution).abs().sum()) + missing) / 2


def _first(model: Masked, sites: int, start: str | Tensor) -> Tensor:
    """The distribution (V^N,) float64 that refinement of N = `sites` tokens starts from."""
    states = int(model.vocab_size) ** sites
    if isinstance(start, Tensor):
        return checked_probabilities("start", start, (states,))
    if one_of("start", start, ("mask", "random")) == "random":
        return torch.full((states,), 1 / states, dtype=torch.float64)
    return product_laws(_refined(model, torch.zeros(1, sites, dtype=torch.int64), True))[0]


def _refined(model: Masked, tokens: Tensor, masked: bool) -> Tensor:
    """Distributions (rows, N, V) of every token given `tokens` (rows, N), or given that all are masked."""
    distributions = model.refined_log_probs(tokens, torch.full_like(tokens, masked, dtype=torch.bool))
    return answered("refined_log_probs", distributions, (*tokens.shape, int(model.vocab_size))).double().exp()


def product_laws(sites: Tensor) -> Tensor:
    """The product distributions (rows, V^k) of the distributions (rows, k, V) of k sites; of none, 1."""
    product = torch.ones(len(sites), 1, dtype=torch.float64)
    for site in sites.double().unbind(1):
        product = (product[:, :, None] * site[:, None, :]).flatten(1)
    return product
