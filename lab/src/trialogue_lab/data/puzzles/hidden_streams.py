"""Two ways around the autoregressive type signature: a hidden stream of tokens, and a random seed before the prompt.

In both an autoregressive oracle first writes tokens that its user never sees, which hold all that is random, and then
the public tokens, each a deterministic function of what is hidden. The law of the public tokens is that of the
function; asked for one public token the oracle evaluates the function once, and keeps nothing between calls. The
source's third way, random activations, is no oracle and stands in `random_activations`.

Source: "Theoretical Limitations of Autoregressive Models", section "Ways to get around this".
"""

from collections.abc import Callable, Mapping, Sequence

from trialogue.data.puzzles.weighted_prefixes import (
    Prefix,
    WeightedPrefixes,
    fixed_length,
    number_of,
    one_hot,
)
from trialogue.errors import InputError
from trialogue.validation import Count, validated
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.random_primes import RandomPrimes, primes_of


class RandomBits(WeightedPrefixes):
    """Fair coins: sequences of `bits` tokens 0 or 1."""

    vocab_size = 2

    @validated
    def __init__(self, bits: Count) -> None:
        self.max_length: int = bits

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Equal weights."""
        return (1.0, 1.0) if len(prefix) < self.max_length else (0.0, 0.0)


class Independent(WeightedPrefixes):
    """`copies` sequences of an oracle of fixed length, drawn independently and written one after the other."""

    @validated
    def __init__(self, oracle: WeightedPrefixes, copies: Count) -> None:
        self._oracle, self._length = oracle, fixed_length(oracle, "source")
        self.vocab_size = oracle.vocab_size
        self.max_length: int = self._length * copies

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """What the oracle answers within the present copy; all zero where a copy before it is none."""
        present = len(prefix) // self._length * self._length
        if not self.begins(prefix[:present]):
            return [0.0] * self.vocab_size
        return self._oracle.weights(prefix[present:])


class HiddenStream(WeightedPrefixes):
    """Sequences whose first `hidden` tokens come from `source`, and whose other tokens are `public(those)`.

    `source` is an oracle of sequences of one length; `public` maps such a sequence to `length` tokens below
    `vocab_size`. Raises `InputError` where `source` has no fixed length, and where `public` answers otherwise.
    """

    @validated
    def __init__(
        self, source: WeightedPrefixes, public: Callable[[Prefix], Prefix], length: Count, vocab_size: Count
    ) -> None:
        self._source, self._public = source, public
        self.hidden = fixed_length(source, "source")
        self.vocab_size = max(source.vocab_size, vocab_size)
        self._visible = length
        self.max_length: int = self.hidden + length

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Weights of the next hidden token, or all weight on the next public one."""
        if len(prefix) < self.hidden:
            weights = self._source.weights(prefix)
            return [*weights, *[0.0] * (self.vocab_size - len(weights))]
        hidden, written = prefix[: self.hidden], prefix[self.hidden :]
        if not self._source.begins(hidden):
            return [0.0] * self.vocab_size
        tokens = tuple(self._public(hidden))
        if len(tokens) != self._visible or not all(0 <= token < self.vocab_size for token in tokens):
            raise InputError("public", tokens, f"give {self._visible} tokens from 0 to {self.vocab_size - 1}")
        if len(written) >= self._visible or tokens[: len(written)] != written:
            return [0.0] * self.vocab_size
        return one_hot(tokens[len(written)], self.vocab_size)

    def visible_law(self, law: Mapping[Prefix, float]) -> dict[Prefix, float]:
        """The law of what the user sees, from a law of whole sequences."""
        seen: dict[Prefix, float] = {}
        for tokens, probability in law.items():
            seen[tokens[self.hidden :]] = seen.get(tokens[self.hidden :], 0.0) + probability
        return seen


def hidden_factors(tuples: SemiprimeTuples) -> HiddenStream:
    """The tuples with p and q written in a hidden stream first: each public digit costs one multiplication.

    The law of the public tokens is that of `tuples`. `tuples.arithmetic` counts. Raises `InputError` where the primes
    are too many to list.
    """
    primes_of(tuples.digits)

    def public(hidden: Prefix) -> Prefix:
        p, q = number_of(hidden[: tuples.digits]), number_of(hidden[tuples.digits :])
        tuples.arithmetic.product(p, q)
        return tuples.written(tuples.ordered(p, q))

    source = Independent(RandomPrimes(tuples.digits), 2)
    return HiddenStream(source, public, tuples.max_length, tuples.vocab_size)


def random_seed(tuples: SemiprimeTuples, bits: int) -> HiddenStream:
    """The tuples as a function of a seed of `bits` fair bits: after it, not even the draws of tokens are random.

    Seed r of 2^b, read as a binary number, is tuple number floor(r N / 2^b) of the N tuples, so that every tuple has
    floor or ceil(2^b / N) seeds, and the law of the public tokens is within a total variation of N / 2^b of that of
    `tuples`. Raises `InputError` where the primes are too many to list.
    """
    primes = primes_of(tuples.digits)

    def public(hidden: Prefix) -> Prefix:
        place = (int("".join(map(str, hidden)), 2) * len(primes) ** 2) >> len(hidden)
        p, q = (int(primes[index]) for index in divmod(place, len(primes)))
        tuples.arithmetic.product(p, q)
        return tuples.written(tuples.ordered(p, q))

    return HiddenStream(RandomBits(bits), public, tuples.max_length, tuples.vocab_size)
