"""Reference of `PowerMetropolis` on small trees, in rational or float arithmetic, without tensors or the engine."""

import math
from collections import defaultdict
from functools import cache
from typing import Any

Prefix = tuple[int, ...]
Numbers = dict[Prefix, Any]


class PowerReference:
    """The proposal distribution, the transition probabilities and the output distribution of a sampler on a tree.

    All numbers are of the type of the tree's probabilities. Fractions need an integer `alpha` and an integer inverse of
    the proposal temperature.

    Args:
        sampler: A `PowerMetropolis`.
        tree: A tree with `vocab`, `horizon`, `eos` and `children(prefix)`, pairs of child and probability.
        value: Value of a complete output (default: no verifier).
    """

    def __init__(self, sampler: Any, tree: Any, value: Any = None) -> None:
        self.sampler, self.tree, self.value = sampler, tree, value
        tau, alpha = sampler.proposal_temperature, sampler.alpha
        self.alpha = int(alpha) if alpha == int(alpha) else alpha
        power = self.alpha if tau is None else 1 / tau
        self.power = int(power) if power == int(power) else power
        self.draws = cache(self._draws)

    def ended(self, text: Prefix) -> bool:
        return self.tree.eos is not None and text[-1:] == (self.tree.eos,)

    def _draws(self, prefix: Prefix, length: int) -> dict[Prefix, tuple[Any, Any]]:
        """Return the texts drawn after `prefix` up to `length` tokens, with their probabilities under q and p."""
        if self.ended(prefix) or len(prefix) >= length:
            return {prefix: (1, 1)}
        children = list(self.tree.children(prefix))
        total = sum(p**self.power for _, p in children)
        return {
            text: (p**self.power / total * q_after, p * p_after)
            for child, p in children
            for text, (q_after, p_after) in self.draws(child, length).items()
        }

    def accepts(self, x: Prefix, y: Prefix, length: int) -> Any:
        """Return the probability with which the proposal `y` replaces the current text `x`."""
        released = self.sampler.follows_released_code
        compared = x[: len(y)] if released else x
        (q_x, p_x), (q_y, p_y) = (self.draws((), len(text))[text] for text in (compared, y))
        ratio = (p_y / p_x) ** self.alpha * q_x / q_y
        if released:
            return min(1, ratio)
        ratio = ratio * len(x) / len(y)
        if self.value is not None and length == self.tree.horizon:
            old, new = self.value(x), self.value(y)
            if old:
                ratio = ratio * new / old
            elif new:
                return 1
        return min(1, ratio)

    def transitions(self, x: Prefix, length: int) -> tuple[Numbers, Any]:
        """Return the probabilities of the texts after one step from `x`, and the expected calls of the step."""
        after: Numbers = defaultdict(int)
        calls, bound = 0, len(x) if self.sampler.follows_released_code else length
        for cut in range(len(x)):
            for y, (q, _) in self.draws(x[:cut], bound).items():
                share, accepted = q / len(x), self.accepts(x, y, length)
                after[y] += share * accepted
                after[x] += share * (1 - accepted)
                calls += share * (len(y) - cut)
        return after, calls

    def output(self) -> tuple[Numbers, Any]:
        """Return the distribution of the texts at the end, and the expected calls."""
        sampler, horizon = self.sampler, self.tree.horizon
        block = math.ceil(horizon / sampler.num_blocks)
        texts: Numbers = {(): 1}
        found: Numbers = defaultdict(int)
        calls: Any = 0
        for number in range(1, sampler.num_blocks + 1):
            grown: Numbers = defaultdict(int)
            length = min(number * block, horizon)
            for x, mass in texts.items():
                to = min(len(x) + block, horizon) if sampler.follows_released_code else length
                for y, (q, _) in self.draws(x, to).items():
                    grown[y] += mass * q
                    calls += mass * q * (len(y) - len(x))
            for _ in range(sampler.num_steps):
                stepped: Numbers = defaultdict(int)
                for x, mass in grown.items():
                    after, cost = self.transitions(x, length)
                    calls += mass * cost
                    for y, p in after.items():
                        stepped[y] += mass * p
                grown = stepped
            texts = defaultdict(int)
            for x, mass in grown.items():
                is_output = (
                    self.ended(x) or len(x) == horizon if sampler.follows_released_code else length == horizon
                )
                (found if is_output else texts)[x] += mass
        for x, mass in texts.items():
            found[x] += mass
        return found, calls

    def target(self) -> Numbers:
        """Return the normalised p(x)^alpha V(x) of the complete outputs."""
        weights = {
            x: p**self.alpha * (1 if self.value is None else self.value(x))
            for x, (_, p) in self.draws((), self.tree.horizon).items()
        }
        total = sum(weights.values())
        return {x: weight / total for x, weight in weights.items()}
