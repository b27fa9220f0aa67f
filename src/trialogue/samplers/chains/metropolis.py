"""Metropolis: propose another value of one site, accept by the ratio of probabilities."""

from dataclasses import dataclass

import torch
from torch import Tensor

from trialogue.oracles import SequenceModel, Sequences, StepInfo
from trialogue.oracles.whole import every_row
from trialogue.randomness import Choose
from trialogue.samplers.chains.conditionals import site_law
from trialogue.samplers.chains.gibbs import SingleSite
from trialogue.validation import validated


@validated
@dataclass(frozen=True)
class Metropolis(SingleSite):
    """A uniformly random other value of a site is accepted with probability min(1, p(x') / p(x)).

    Orders are those of `Gibbs`. A change that costs nothing is always accepted, so that a sweep in fixed order need
    not be ergodic: on a ring without field it carries domain walls along and never meets most states, at any
    temperature. `run_chain` refuses it where the states can be listed; the heat bath has no such trap.
    """

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> tuple[Sequences, StepInfo]:
        """Propose another value for one site, or for each once."""
        rows = every_row(state.tokens)

        def update(tokens: Tensor, sites: Tensor) -> Tensor:
            distribution = site_law(model, tokens, sites).double()
            present = tokens.gather(1, sites[:, None])
            proposed = _proposed(present[:, 0], distribution.shape[1], rows, choose)[:, None]
            ratio = distribution.gather(1, proposed) - distribution.gather(1, present)
            accept = ratio.clamp_max(0.0)
            taken = choose(torch.cat((torch.log(-torch.expm1(accept)), accept), 1), rows)[:, None]
            return torch.where(taken == 1, proposed, present)[:, 0]

        # A proposal is never the present value, so that a site changes if and only if its proposal is accepted.
        tokens, accepted = self.scan(state.tokens, choose, update)
        return Sequences(tokens), StepInfo(accepted)


def _proposed(present: Tensor, vocab: int, rows: Tensor, choose: Choose) -> Tensor:
    """Another value (rows,) than `present` (rows,), all equally likely; of two the other one, of one the same."""
    if vocab <= 2:
        return vocab - 1 - present
    others = torch.zeros(len(present), vocab - 1, dtype=torch.float64, device=present.device)
    other = choose(others, rows)
    return other + (other >= present)
