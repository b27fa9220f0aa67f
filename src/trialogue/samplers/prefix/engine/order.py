"""Samples that a run is asked for together, and what they may take."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.samplers.prefix.engine.requests import Request, SamplesLeft


class Budget(NamedTuple):
    """What one sample may take: `max_queries` queries and `max_steps` moves, without a bound where that is None."""

    max_queries: int | None
    max_steps: int


@dataclass(eq=False)
class Order:
    """The samples of `request`, whose random streams are keyed by `seed` and their ids, each within `budget`.

    `earliest` is the place of the first of them among all samples of the run; `begun` of them have been admitted.
    """

    request: Request
    seed: int
    budget: Budget
    earliest: int = 0
    begun: int = 0
    left: SamplesLeft = field(init=False)

    def __post_init__(self) -> None:
        self.left = SamplesLeft(self.request)

    def __len__(self) -> int:
        return len(self.request.ids)

    def prompt_tokens(self, number: int) -> Tensor:
        """The tokens (number,) of the prompts that begin with each of the next samples and those before it."""
        prompt, own = self.request.prompt, slice(self.begun, self.begun + number)
        known = (
            prompt[max(0, self.begun - 1) : self.begun + number - 1] == prompt[max(1, self.begun) : own.stop]
        )
        begins = torch.cat((torch.ones(number - len(known), dtype=torch.bool), ~known))
        return (self.request.lengths[own] * begins).cumsum(0)
