"""Metropolis updates of single sites."""

from dataclasses import dataclass

import torch
from torch import Tensor

from trialogue.oracles import SequenceModel, Sequences, StepInfo
from trialogue.oracles.whole import every_row
from trialogue.randomness import Choose
from trialogue.samplers.chains.conditionals import site_distribution
from trialogue.samplers.chains.gibbs import SingleSite
from trialogue.validation import validated


@validated
@dataclass(frozen=True)
class Metropolis(SingleSite):
    """Propose another value of a site uniformly at random, and accept it by the Metropolis rule.

    A site is a position of the sequence x, and x' is the sequence with the proposed value. The proposal is
    accepted with probability min(1, p(x') / p(x)), where p is the target distribution. With order="sweep",
    the chain may not reach all states, for example on a ring of spins without field. `run_chain` raises an
    error in this case if the states can be enumerated.

    Args:
        order: Update one uniformly random site per step (random) or every site once in order (sweep)
            (default: random).
    """

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> tuple[Sequences, StepInfo]:
        """Propose another value for one random site of each row, or for every site in order, and accept or reject it.

        Args:
            model: The model, which provides conditional distributions of sites (positions).
            state: Tokens (rows, N) of the independent copies of the chain.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            The new tokens, and the share (rows,) of accepted proposals in this step.
        """
        rows = every_row(state.tokens)

        def update(tokens: Tensor, sites: Tensor) -> Tensor:
            distribution = site_distribution(model, tokens, sites).double()
            present = tokens.gather(1, sites[:, None])
            proposed = _propose(present[:, 0], distribution.shape[1], rows, choose)[:, None]
            ratio = distribution.gather(1, proposed) - distribution.gather(1, present)
            accept = ratio.clamp_max(0.0)
            taken = choose(torch.cat((torch.log(-torch.expm1(accept)), accept), 1), rows)[:, None]
            return torch.where(taken == 1, proposed, present)[:, 0]

        # Proposals differ from the present value, so a site changes if and only if its proposal is accepted.
        tokens, accepted = self.scan(state.tokens, choose, update)
        return Sequences(tokens), StepInfo(accepted)


def _propose(present: Tensor, vocab: int, rows: Tensor, choose: Choose) -> Tensor:
    """Propose a uniformly random new value (rows,) other than `present`, or the same value if there is only one."""
    if vocab <= 2:
        return vocab - 1 - present
    others = torch.zeros(len(present), vocab - 1, dtype=torch.float64, device=present.device)
    other = choose(others, rows)
    return other + (other >= present)
