"""Random asymmetric distributions on small trees of prefixes, in plain Python, and the same distributions as
oracles.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from trialogue.data.table import Table
from trialogue.randomness import numpy_generator

Prefix = tuple[int, ...]
ExactDistribution = dict[Prefix, float]


@dataclass(frozen=True)
class RandomTree:
    """Sequences over `vocab` tokens that end at `eos` (if given) or after `horizon` tokens.

    Every prefix has its own next-token distribution, drawn under `seed`; with `sparse` some tokens have probability
    zero, with `tied` all have the same. A tree states its distributions, values and rules in plain Python, to hold
    samplers against.
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

    @cache  # noqa: B019 (trees are few and small)
    def conditional(self, prefix: Prefix) -> tuple[float, ...]:
        """Probabilities of the next token after `prefix`."""
        if self.tied:
            return (1 / self.vocab,) * self.vocab
        generator = numpy_generator(self.seed, "conditional", prefix)
        weights = 0.1 + generator.random(self.vocab)
        if self.sparse and generator.random() < 0.4:
            weights[generator.integers(self.vocab)] = 0.0
        return tuple((weights / weights.sum()).tolist())

    def complete(self, prefix: Prefix) -> bool:
        """Whether `prefix` is a whole sequence."""
        return len(prefix) >= self.horizon or (self.eos is not None and prefix[-1:] == (self.eos,))

    def children(self, prefix: Prefix) -> Iterator[tuple[Prefix, float]]:
        """Children of positive probability, and their probabilities."""
        for token, probability in enumerate(self.conditional(prefix)):
            if probability > 0:
                yield (*prefix, token), probability

    def nodes(self, prefix: Prefix = ()) -> Iterator[Prefix]:
        """Every prefix below `prefix` that can occur, itself included."""
        yield prefix
        if not self.complete(prefix):
            for child, _ in self.children(prefix):
                yield from self.nodes(child)

    def distribution(self, prefix: Prefix = (), mass: float = 1.0) -> ExactDistribution:
        """Product of conditionals of every complete sequence below `prefix`."""
        if self.complete(prefix):
            return {prefix: mass}
        distribution: ExactDistribution = {}
        for child, probability in self.children(prefix):
            distribution |= self.distribution(child, mass * probability)
        return distribution

    def table(self) -> Table:
        """The tree as an oracle."""
        return Table(self.conditional, self.vocab, eos=self.eos, max_length=self.horizon)

    def value(self, prefix: Prefix) -> float:
        """A random positive value of every prefix and sequence."""
        return float(numpy_generator(self.seed, "value", prefix).uniform(0.1, 1.0))

    @cache  # noqa: B019
    def allows(self, prefix: Prefix) -> bool:
        """A random rule: true of about half of the sequences, and of prefixes that one of these continues."""
        if self.complete(prefix):
            return bool(numpy_generator(self.seed, "rule", prefix).random() < 0.5)
        return any(self.allows(child) for child, _ in self.children(prefix))

    def judges(self, prefix: Prefix) -> bool:
        """A random verdict on every prefix by itself, as an imperfect verifier gives."""
        return bool(numpy_generator(self.seed, "verdict", prefix).random() < 0.6)


def viable(tree: RandomTree) -> RandomTree:
    """`tree`, or the next one by seed whose rule allows something and forbids something."""
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
"""With and without an end of sequence, and where some tokens cannot occur."""

VIABLE = [viable(tree) for tree in TREES]
"""The same, each with a rule that allows something and forbids something."""
