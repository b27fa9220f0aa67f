"""Random distributions on small prefix trees, in plain Python and as oracles."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from trialogue.data.table import Table
from trialogue.randomness import numpy_generator

Prefix = tuple[int, ...]
ExactDistribution = dict[Prefix, float]


@dataclass(frozen=True)
class RandomTree:
    """Random distribution of short sequences, with random values and verdicts, in plain Python.

    Every prefix has its own random next-token distribution. A sequence ends with `eos` or after `horizon` tokens.

    Args:
        seed: Random seed.
        vocab: Number of tokens (default: 2).
        horizon: Maximum length (default: 3).
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
        """Return the probabilities of the next token after `prefix`."""
        if self.tied:
            return (1 / self.vocab,) * self.vocab
        generator = numpy_generator(self.seed, "conditional", prefix)
        weights = 0.1 + generator.random(self.vocab)
        if self.sparse and generator.random() < 0.4:
            weights[generator.integers(self.vocab)] = 0.0
        return tuple((weights / weights.sum()).tolist())

    def complete(self, prefix: Prefix) -> bool:
        """Return whether `prefix` is a complete sequence."""
        return len(prefix) >= self.horizon or (self.eos is not None and prefix[-1:] == (self.eos,))

    def children(self, prefix: Prefix) -> Iterator[tuple[Prefix, float]]:
        """Yield the children of positive probability, with their probabilities."""
        for token, probability in enumerate(self.conditional(prefix)):
            if probability > 0:
                yield (*prefix, token), probability

    def nodes(self, prefix: Prefix = ()) -> Iterator[Prefix]:
        """Yield `prefix` and all of its continuations that have positive probability."""
        yield prefix
        if not self.complete(prefix):
            for child, _ in self.children(prefix):
                yield from self.nodes(child)

    def distribution(self, prefix: Prefix = (), mass: float = 1.0) -> ExactDistribution:
        """Return the probability of every complete sequence that begins with `prefix`, multiplied by `mass`."""
        if self.complete(prefix):
            return {prefix: mass}
        distribution: ExactDistribution = {}
        for child, probability in self.children(prefix):
            distribution |= self.distribution(child, mass * probability)
        return distribution

    def table(self) -> Table:
        """Return the distribution as an oracle."""
        return Table(self.conditional, self.vocab, eos=self.eos, max_length=self.horizon)

    def value(self, prefix: Prefix) -> float:
        """Return a random positive value of a prefix or complete sequence."""
        return float(numpy_generator(self.seed, "value", prefix).uniform(0.1, 1.0))

    @cache  # noqa: B019
    def allows(self, prefix: Prefix) -> bool:
        """Return the verdict of an exact verifier: True for about half of the complete sequences and their prefixes."""
        if self.complete(prefix):
            return bool(numpy_generator(self.seed, "rule", prefix).random() < 0.5)
        return any(self.allows(child) for child, _ in self.children(prefix))

    def judges(self, prefix: Prefix) -> bool:
        """Return the verdict of an imperfect verifier, which is random and independent for every prefix."""
        return bool(numpy_generator(self.seed, "verdict", prefix).random() < 0.6)


def viable(tree: RandomTree) -> RandomTree:
    """Return `tree` or a copy with another seed, whose verifier accepts some sequences and rejects others."""
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
