"""Metropolis: propose another value of one site, accept by the ratio of probabilities."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from trialogue.oracles import Chain, SequenceModel, Sequences
from trialogue.randomness import Choose
from trialogue.samplers.chains.conditionals import every_row, site_law
from trialogue.samplers.chains.gibbs import checked_order, scanned


@dataclass(frozen=True)
class Metropolis(Chain[Sequences]):
    """A uniformly random other value of a site is accepted with probability min(1, p(x') / p(x)).

    Orders are those of `Gibbs`. A change that costs nothing is always accepted, so that a sweep in fixed order need
    not be ergodic: on a ring without field it carries domain walls along and never meets most states, at any
    temperature. `run_chain` refuses it where the states can be listed; the heat bath has no such trap.
    """

    order: Literal["random", "sweep"] = "random"

    def __post_init__(self) -> None:
        """Raise `InputError` for an order that is neither."""
        checked_order(self.order)

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> Sequences:
        """Propose for one site, or for each once."""
        tokens = state.tokens
        for sites in scanned(self.order, tokens, choose):
            rows = every_row(tokens)
            distribution = site_law(model, tokens, sites).double()
            present = tokens.gather(1, sites[:, None])
            proposed = _proposed(present[:, 0], distribution.shape[1], rows, choose)[:, None]
            ratio = distribution.gather(1, proposed) - distribution.gather(1, present)
            accept = ratio.clamp_max(0.0)
            taken = choose(torch.cat((torch.log(-torch.expm1(accept)), accept), 1), rows)[:, None]
            tokens = tokens.scatter(1, sites[:, None], torch.where(taken == 1, proposed, present))
        return Sequences(tokens)


def _proposed(present: Tensor, vocab: int, rows: Tensor, choose: Choose) -> Tensor:
    """Another value (rows,) than `present` (rows,), all equally likely; of two the other one, of one the same."""
    if vocab <= 2:
        return vocab - 1 - present
    others = torch.zeros(len(present), vocab - 1, dtype=torch.float64, device=present.device)
    other = choose(others, rows)
    return other + (other >= present)
