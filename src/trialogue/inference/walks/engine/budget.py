"""When a sample is stopped that has not finished by itself."""

from typing import NamedTuple

from torch import Tensor

from trialogue.inference.walks.engine.groups import Groups


class Budget(NamedTuple):
    """What one sample may take: `max_queries` queries and `max_steps` moves, without a bound where that is None."""

    max_queries: int | None
    max_steps: int

    def out_of_steps(self, admitted: Tensor, step: int) -> Tensor:
        """Which groups (groups,), `admitted` at these steps, have taken all their moves when `step` have been taken."""
        return step - admitted >= self.max_steps

    def stopped(self, groups: Groups, finished: Tensor, step: int) -> Tensor:
        """Which groups (groups,) stop after `step` steps: those that have `finished`, or used up their budget."""
        if step - groups.first_admitted >= self.max_steps:
            finished = finished | self.out_of_steps(groups.admitted, step)
        if self.max_queries is not None:
            queries = groups.total(groups.batch.meter.queries)
            # A group whose rows are all complete has but to choose among them, which takes no more queries.
            asking = ~groups.every(groups.batch.complete) | (groups.members == 1)
            finished = finished | ((queries >= self.max_queries) & asking)
        return finished
