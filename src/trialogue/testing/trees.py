"""Small random distributions of token sequences for tests."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from trialogue.data.table import Table
from trialogue.randomness import numpy_generator

Prefix = tuple[int, ...]
ExactDistribution = dict[Prefix, float]


@dataclass(frozen=True)
class RandomTree:
    """Random distribution of short token sequences for tests, in plain Python.

    Every prefix has its own random next-token distribution. A sequence is complete if it ends with `eos` or has
    `horizon` tokens. The prefixes form a tree, in which the children of a prefix extend it by one token. The tree also
    defines random values and random verdicts of every prefix, for tests of verifiers.

    Args:
        seed: Random seed.
        vocab: Number of tokens (default: 2).
        horizon: Maximum length of a sequence (default: 3).
        eos: End-of-sequence token (default: none).
        sparse: Whether some tokens have probability 0 (default: False).
        tied: Whether all tokens have the same probability (default: False).
    """

    seed: int
    vocab: int = 2
    horizon: int = 3
    eos: int | None = None
    sparse: bool = False
    tied: bool = False

    def __str__(self) -> str:
        kind = "-sparse" * self.sparse + "-tied" * self.tied
        return f"tree{self.seed}-{self.vocab}^{self.horizon}-eos={self.eos}{kind}"

    @cache  # noqa: B019 (there are only a few small trees)
    def conditional(self, prefix: Prefix) -> tuple[float, ...]:
        """Return the probabilities of the next token after a prefix.

        Args:
            prefix: Token ids.

        Returns:
            Probabilities of all `vocab` tokens.
        """
        if self.tied:
            return (1 / self.vocab,) * self.vocab
        generator = numpy_generator(self.seed, "conditional", prefix)
        weights = 0.1 + generator.random(self.vocab)
        if self.sparse and generator.random() < 0.4:
            weights[generator.integers(self.vocab)] = 0.0
        return tuple((weights / weights.sum()).tolist())

    def complete(self, prefix: Prefix) -> bool:
        """Return whether a sequence is complete, because it ends with `eos` or has `horizon` tokens.

        Args:
            prefix: Token ids.
        """
        return len(prefix) >= self.horizon or (self.eos is not None and prefix[-1:] == (self.eos,))

    def children(self, prefix: Prefix) -> Iterator[tuple[Prefix, float]]:
        """Yield the sequences that extend a prefix by one token of positive probability.

        Args:
            prefix: Token ids.

        Yields:
            The extended sequence, and the probability of its last token.
        """
        for token, probability in enumerate(self.conditional(prefix)):
            if probability > 0:
                yield (*prefix, token), probability

    def nodes(self, prefix: Prefix = ()) -> Iterator[Prefix]:
        """Yield a prefix and all sequences of positive probability that begin with it, complete or not.

        Args:
            prefix: Token ids (default: empty).
        """
        yield prefix
        if not self.complete(prefix):
            for child, _ in self.children(prefix):
                yield from self.nodes(child)

    def distribution(self, prefix: Prefix = (), mass: float = 1.0) -> ExactDistribution:
        """Return the probabilities of all complete sequences that begin with a prefix.

        Args:
            prefix: Token ids (default: empty).
            mass: Number by which all probabilities are multiplied (default: 1).

        Returns:
            Dict from complete sequences to their probabilities given the prefix, times `mass`.
        """
        if self.complete(prefix):
            return {prefix: mass}
        distribution: ExactDistribution = {}
        for child, probability in self.children(prefix):
            distribution |= self.distribution(child, mass * probability)
        return distribution

    def table(self) -> Table:
        """Return the tree as an autoregressive model, with the same next-token distributions."""
        return Table(self.conditional, self.vocab, eos=self.eos, max_length=self.horizon)

    def value(self, prefix: Prefix) -> float:
        """Return a random number between 0.1 and 1, which depends only on the seed and the prefix.

        Args:
            prefix: Token ids of a prefix or a complete sequence.
        """
        return float(numpy_generator(self.seed, "value", prefix).uniform(0.1, 1.0))

    @cache  # noqa: B019
    def allows(self, prefix: Prefix) -> bool:
        """Return the verdict of an exact verifier.

        The verifier accepts about half of the complete sequences, chosen at random. It accepts a prefix if and only if
        the prefix can be completed to an accepted sequence.

        Args:
            prefix: Token ids of a prefix or a complete sequence.
        """
        if self.complete(prefix):
            return bool(numpy_generator(self.seed, "rule", prefix).random() < 0.5)
        return any(self.allows(child) for child, _ in self.children(prefix))

    def judges(self, prefix: Prefix) -> bool:
        """Return the verdict of an imperfect verifier, which accepts each sequence at random with probability 0.6.

        The verdicts on different sequences are independent. The verifier may therefore reject a prefix of a sequence
        that it accepts, or accept a prefix that cannot be completed to an accepted sequence.

        Args:
            prefix: Token ids of a prefix or a complete sequence.
        """
        return bool(numpy_generator(self.seed, "verdict", prefix).random() < 0.6)


def viable(tree: RandomTree) -> RandomTree:
    """Return a tree whose exact verifier accepts some complete sequences and rejects others.

    Args:
        tree: Tree to return if it satisfies this condition. Otherwise a copy with another seed is returned.
    """
    while not 0 < sum(map(tree.allows, tree.distribution())) < len(tree.distribution()):
        tree = replace(tree, seed=tree.seed + 1000)
    return tree


TREES = [
    RandomTree(1),
    RandomTree(2, horizon=5),
    RandomTree(3, vocab=3),
    RandomTree(4, vocab=3, eos=1),
    RandomTree(5, horizon=5, eos=0),
    RandomTree(6, vocab=3, horizon=4, eos=2, sparse=True),
    RandomTree(7, vocab=3, sparse=True),
]
"""Trees with and without an end-of-sequence token and tokens of probability 0."""

VIABLE = [viable(tree) for tree in TREES]
"""The same trees, with seeds for which the verifier accepts some sequences and rejects others."""
