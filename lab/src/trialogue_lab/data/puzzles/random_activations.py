"""The way around the autoregressive type signature that needs no hidden tokens: random activations, attended to later.

At every position a model draws activations, `layers` of them one after the other, and keeps them; then it writes a
token whose law may depend on all activations so far. Such a model is no oracle of prefixes: what it answers after a
prefix depends on what it drew on the way there, so that two calls with one prefix may have different answers. It has
a sampler that keeps the activations, and the law of what it writes by going through all that they may be.

Source: "Theoretical Limitations of Autoregressive Models", section "Ways to get around this".
"""

from collections.abc import Callable, Sequence
from typing import Annotated

from torch import Tensor

from trialogue.arrays import Reals
from trialogue.data.enumerable import ENUMERABLE_STATES
from trialogue.data.puzzles.weighted_prefixes import Prefix, one_hot
from trialogue.errors import InputError
from trialogue.validation import Count, check, validated
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.random_primes import primes_of

Activations = tuple[int, ...]
Weigh = Callable[[Prefix, Activations], Sequence[float]]
"""Weights, not normalised, from what is written and all activations drawn so far."""


class RandomActivations:
    """Sequences of `length` tokens below `vocab_size`, with `layers` random activations at every position.

    `activation(prefix, kept)` weighs the values 0, 1, ... of the next activation, given the tokens `prefix` and the
    activations `kept` before it: `layers` of each position of the prefix, and those that this position has drawn.
    `token(prefix, kept)` then weighs the tokens, with `layers` * (len(prefix) + 1) activations kept.

    Raises `InputError` where one of them answers without a positive weight, or `token` not with `vocab_size` weights.
    """

    @validated
    def __init__(
        self, activation: Weigh, token: Weigh, length: Count, vocab_size: Count, *, layers: Count = 1
    ) -> None:
        self._activation, self._token = activation, token
        self.length, self.layers, self.vocab_size = length, layers, vocab_size

    def law(self) -> dict[Prefix, float]:
        """The exact law of the tokens, over all activations.

        Raises `InputError` where more than `ENUMERABLE_STATES` pairs of tokens and activations have to be told apart.
        """
        reached: dict[tuple[Prefix, Activations], float] = {((), ()): 1.0}
        for place in range(self.length):
            for draw in range(self.layers + 1):
                after: dict[tuple[Prefix, Activations], float] = {}
                for (prefix, kept), probability in reached.items():
                    weights = self._weights(prefix, kept, draw == self.layers)
                    for value in weights.nonzero()[:, 0].tolist():
                        pair = ((*prefix, value), kept) if draw == self.layers else (prefix, (*kept, value))
                        after[pair] = probability * float(weights[value] / weights.sum())
                    if len(after) > ENUMERABLE_STATES:
                        hint = f"the draws up to position {place} have over {ENUMERABLE_STATES} values: use fewer"
                        raise InputError("length", self.length, hint)
                reached = after
        law: dict[Prefix, float] = {}
        for (prefix, _), probability in reached.items():
            law[prefix] = law.get(prefix, 0.0) + probability
        return law

    def _weights(self, prefix: Prefix, kept: Activations, writes: bool) -> Tensor:
        """Weights of the next token where one is written, else of the next activation."""
        field = "token" if writes else "activation"
        answer = self._token(prefix, kept) if writes else self._activation(prefix, kept)
        number = f"{self.vocab_size} " if writes else ""
        hint = f"after {prefix} give {number}non-negative finite weights that are not all zero"
        weights: Tensor = check(field, answer, Annotated[Tensor, Reals("values", least=0)], hint)
        if not float(weights.sum()) > 0 or (writes and len(weights) != self.vocab_size):
            raise InputError(field, tuple(weights.tolist()), hint)
        return weights.double()


def activated_factors(tuples: SemiprimeTuples) -> RandomActivations:
    """The tuples with p and q drawn by two activations at the first position, to which all digits attend.

    The law is that of `tuples`; a digit costs one multiplication, and nothing is factored: `tuples.arithmetic` counts.
    Raises `InputError` where the primes are too many to list.
    """
    primes = primes_of(tuples.digits)

    def activation(prefix: Prefix, kept: Activations) -> Sequence[float]:
        del kept
        if prefix:
            return (1.0,)
        tuples.arithmetic.read(len(primes))
        return [1.0] * len(primes)

    def token(prefix: Prefix, kept: Activations) -> Sequence[float]:
        p, q = (int(primes[place]) for place in kept[:2])
        tuples.arithmetic.product(p, q)
        return one_hot(tuples.written(tuples.ordered(p, q))[len(prefix)], tuples.vocab_size)

    return RandomActivations(activation, token, tuples.max_length, tuples.vocab_size, layers=2)
