"""Language models that write hidden tokens, or a random seed, before the visible output.

The hidden tokens contain all randomness, and the visible tokens are a deterministic function of them. Such
models can generate a product of two primes digit by digit without factoring it.

Source: "Theoretical Limitations of Autoregressive Models", section "Ways to get around this".
"""

from collections.abc import Callable, Mapping, Sequence

from trialogue.data.puzzles.weighted_prefixes import (
    Prefix,
    WeightedPrefixes,
    fixed_length,
    from_digits,
    one_hot,
)
from trialogue.errors import InputError
from trialogue.validation import Count, validated
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.random_primes import RandomPrimes, primes_of


class RandomBits(WeightedPrefixes):
    """Uniform distribution on sequences of `bits` tokens 0 or 1."""

    vocab_size = 2

    @validated
    def __init__(self, bits: Count) -> None:
        self.max_length: int = bits

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Return equal probabilities of both tokens."""
        return (1.0, 1.0) if len(prefix) < self.max_length else (0.0, 0.0)


class Independent(WeightedPrefixes):
    """Distribution of `copies` independent sequences of a fixed-length model, one after the other.

    Args:
        oracle: Model of one sequence.
        copies: Number of sequences.
    """

    @validated
    def __init__(self, oracle: WeightedPrefixes, copies: Count) -> None:
        self._oracle, self._length = oracle, fixed_length(oracle, "source")
        self.vocab_size = oracle.vocab_size
        self.max_length: int = self._length * copies

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Return the unnormalized probabilities of the next token, or zeros after an invalid sequence."""
        present = len(prefix) // self._length * self._length
        if not self.begins(prefix[:present]):
            return [0.0] * self.vocab_size
        return self._oracle.weights(prefix[present:])


class HiddenStream(WeightedPrefixes):
    """Distribution of sequences whose first tokens are hidden and determine all visible tokens after them.

    Args:
        source: Model of the hidden tokens, which have a fixed number.
        public: Function from the hidden tokens to `length` public tokens below `vocab_size`.
        length: Number of public tokens.
        vocab_size: Number of values of a public token.

    Raises:
        InputError: If `source` has no fixed length or `public` returns invalid tokens.
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
        """Return the unnormalized probabilities of the next token. Only one value of a public token is possible."""
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

    def visible_distribution(self, distribution: Mapping[Prefix, float]) -> dict[Prefix, float]:
        """Return the distribution of the public tokens.

        Args:
            distribution: Probability of each complete sequence, including its hidden tokens.
        """
        seen: dict[Prefix, float] = {}
        for tokens, probability in distribution.items():
            seen[tokens[self.hidden :]] = seen.get(tokens[self.hidden :], 0.0) + probability
        return seen


def hidden_factors(tuples: SemiprimeTuples) -> HiddenStream:
    """Return a model that writes two hidden primes and then the tuple of both primes and their product.

    Every public digit costs one multiplication and no factoring. The public tokens have the distribution of
    `tuples`.

    Args:
        tuples: Distribution of tuples of two primes and their product.

    Raises:
        InputError: If there are too many primes to list.
    """
    primes_of(tuples.digits)

    def public(hidden: Prefix) -> Prefix:
        p, q = from_digits(hidden[: tuples.digits]), from_digits(hidden[tuples.digits :])
        tuples.arithmetic.product(p, q)
        return tuples.written(tuples.ordered(p, q))

    source = Independent(RandomPrimes(tuples.digits), 2)
    return HiddenStream(source, public, tuples.max_length, tuples.vocab_size)


def random_seed(tuples: SemiprimeTuples, bits: int) -> HiddenStream:
    """Return a model that writes hidden random bits and then a product and its prime factors.

    The bits are the binary digits of a number `seed`, which selects the pair of primes with index floor(seed
    |S| / 2^bits). Here |S| is the number of pairs, `tuples.size`. The total variation distance from `tuples`
    is at most |S| / 2^bits.

    Args:
        tuples: Distribution of tuples of two primes and their product.
        bits: Number of random bits.

    Raises:
        InputError: If there are too many primes to list.
    """
    primes = primes_of(tuples.digits)

    def public(hidden: Prefix) -> Prefix:
        place = (int("".join(map(str, hidden)), 2) * len(primes) ** 2) >> len(hidden)
        p, q = (int(primes[index]) for index in divmod(place, len(primes)))
        tuples.arithmetic.product(p, q)
        return tuples.written(tuples.ordered(p, q))

    return HiddenStream(RandomBits(bits), public, tuples.max_length, tuples.vocab_size)
