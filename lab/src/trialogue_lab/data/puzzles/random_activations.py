"""Language models that sample and store random numbers ("activations") at every position.

Each token may depend on all activations so far. The prefix alone therefore does not determine the next-token
distribution.

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
"""Function from the prefix and all activations so far to unnormalized weights."""


class RandomActivations:
    """Distribution of token sequences that depend on stored random numbers ("activations").

    At every position, the model samples `layers` activations, stores them, and writes a token.

    Args:
        activation: Function that returns the weights of the values 0, 1, ... of the next activation, given the prefix
            and all previous activations.
        token: Function that returns the weights of the next token, given the prefix and `layers` * (len(prefix) + 1)
            activations.
        length: Number of tokens.
        vocab_size: Number of values of a token.
        layers: Number of activations per position.

    Raises:
        InputError: If a function returns invalid weights.
    """

    @validated
    def __init__(
        self, activation: Weigh, token: Weigh, length: Count, vocab_size: Count, *, layers: Count = 1
    ) -> None:
        self._activation, self._token = activation, token
        self.length, self.layers, self.vocab_size = length, layers, vocab_size

    def distribution(self) -> dict[Prefix, float]:
        """Return the exact probability of each token sequence, summed over all activations.

        Raises:
            InputError: If there are more than `ENUMERABLE_STATES` pairs of tokens and activations.
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
                        hint = f"the draws up to position {place} have over {ENUMERABLE_STATES} outcomes: use fewer"
                        raise InputError("length", self.length, hint)
                reached = after
        distribution: dict[Prefix, float] = {}
        for (prefix, _), probability in reached.items():
            distribution[prefix] = distribution.get(prefix, 0.0) + probability
        return distribution

    def _weights(self, prefix: Prefix, kept: Activations, writes: bool) -> Tensor:
        """Return weights of the next token if `writes`, otherwise of the next activation."""
        field = "token" if writes else "activation"
        answer = self._token(prefix, kept) if writes else self._activation(prefix, kept)
        number = f"{self.vocab_size} " if writes else ""
        hint = f"after {prefix} give {number}non-negative finite weights that are not all zero"
        weights: Tensor = check(field, answer, Annotated[Tensor, Reals("values", least=0)], hint)
        if not float(weights.sum()) > 0 or (writes and len(weights) != self.vocab_size):
            raise InputError(field, tuple(weights.tolist()), hint)
        return weights.double()


def activated_factors(tuples: SemiprimeTuples) -> RandomActivations:
    """Return a model that samples two primes as hidden activations and then writes them and their product.

    Both primes are sampled at the first position. Every digit costs one multiplication and no factoring. The
    tokens have the distribution of `tuples`.

    Args:
        tuples: Distribution of tuples of two primes and their product.

    Raises:
        InputError: If there are too many primes to list.
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
