"""Every branch of a random computation, with its probability: what `Streams` sample, visited exactly."""

import math
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch
from torch import Tensor

from trialogue.randomness import no_choice

Result = TypeVar("Result")


class Enumeration:
    """A `choose` that visits every branch: all groups of rows as one batch along one tape of choices at a time.

    Rows come in groups of `members`; each group is one state whose branches are wanted. At each call of `choose`
    the tape holds one digit per member, and the weight of a branch is the product of what its digits weigh.
    """

    def __init__(self, groups: int, members: int) -> None:
        self._groups, self._members = groups, members
        self._tape: list[tuple[list[int], int]] = []  # digits of one call, and their radix
        self._call = 0
        self._dead: int | None = None
        self._log_weight = torch.zeros(groups, dtype=torch.float64)

    def choose(self, log_weights: Tensor, rows: Tensor) -> Tensor:
        """Pick the digits of the tape (`Choose`) and multiply their probabilities into the branch's weight."""
        options = log_weights.shape[-1]
        if self._call == len(self._tape):
            self._tape.append(([0] * self._members, options))
        digits = torch.tensor(self._tape[self._call][0])
        device, rows = rows.device, rows.cpu()
        group, member = rows // self._members, rows % self._members
        law = log_weights.double().log_softmax(-1).cpu()
        if bool(torch.isnan(law).any()):
            raise no_choice()
        index = digits[member]
        log_p = law.gather(1, index[:, None])[:, 0]
        self._log_weight.index_add_(0, group, log_p)
        absent = torch.ones(self._groups, self._members, dtype=torch.bool)
        absent[group, member] = False
        # A member that chooses nothing has one branch, not one per digit.
        self._log_weight[(absent & (digits != 0)).any(1)] = -math.inf
        if self._dead is None and not bool((self._log_weight > -math.inf).any()):
            self._dead = self._call
        self._call += 1
        return torch.where(log_p > -math.inf, index, law.argmax(-1)).to(device)

    def branches(self, run: Callable[[], Result]) -> Iterator[tuple[Tensor, Result]]:
        """Run `run` once per tape; yield the weights (groups,) float64 of its branch and what it returned."""
        while True:
            self._call, self._dead = 0, None
            self._log_weight = torch.zeros(self._groups, dtype=torch.float64)
            result = run()
            if self._dead is None:
                yield self._log_weight.exp(), result
            else:
                del self._tape[self._dead + 1 :]
            if not self._advance():
                return

    def _advance(self) -> bool:
        while self._tape:
            digits, radix = self._tape[-1]
            for member in range(self._members):
                digits[member] += 1
                if digits[member] < radix:
                    return True
                digits[member] = 0
            self._tape.pop()
        return False
