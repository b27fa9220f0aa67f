"""Small constraints on strings, and the language models to which they are applied.

For some constraints, the first token decides whether a string is valid. For others, only the last token does.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

from trialogue.data import Table
from trialogue.data.puzzles.hidden_string import HiddenString
from trialogue.oracles import Autoregressive
from trialogue.randomness import numpy_generator

Prefix = tuple[int, ...]
HIDDEN = "hidden string"


@dataclass(frozen=True, eq=False)
class ConstraintFamily:
    """A constraint on strings, which is measured at two maximum lengths.

    Args:
        name: Name of the constraint.
        tokens: The characters that strings consist of. Each character is a token.
        lengths: The two maximum lengths, in tokens.
        allows: Function that is true for valid strings.
        ends: Whether the last character of `tokens` ends a string. Otherwise all strings have the maximum length.
    """

    name: str
    tokens: str
    lengths: tuple[int, int]
    allows: Callable[[str], object]
    ends: bool = False

    def tasks(self) -> Iterator["ConstraintTask"]:
        """Return this constraint with each of its two maximum lengths."""
        return (ConstraintTask(self, length) for length in self.lengths)


@dataclass(frozen=True, eq=False)
class ConstraintTask:
    """A constraint on strings with a maximum length.

    Calling it checks whether a prefix can be continued to a valid string.

    Args:
        family: The constraint.
        length: Maximum length of the strings in tokens.
    """

    family: ConstraintFamily
    length: int

    def __call__(self, prefix: Prefix) -> bool:
        """Return whether a prefix can be continued to a valid string.

        Args:
            prefix: Token ids of the prefix.
        """
        return prefix in self._viable

    @property
    def eos(self) -> int | None:
        """Token that ends a string, or None if all strings have the maximum length."""
        return len(self.family.tokens) - 1 if self.family.ends else None

    @cached_property
    def valid(self) -> frozenset[Prefix]:
        """All valid strings, as tuples of token ids."""
        family = self.family
        lengths = range(1, self.length + 1) if family.ends else (self.length,)
        inner, last = (family.tokens[:-1], family.tokens[-1:]) if family.ends else (family.tokens, "")
        parts = (product(inner, repeat=length - len(last)) for length in lengths)
        texts = ("".join(each) + last for part in parts for each in part)
        return frozenset(tuple(map(family.tokens.index, text)) for text in texts if family.allows(text))

    @cached_property
    def _viable(self) -> frozenset[Prefix]:
        return frozenset(string[:end] for string in self.valid for end in range(len(string) + 1))


def _is_balanced(text: str) -> bool:
    while (shorter := text.replace("[]", "")) != text:
        text = shorter
    return not text


def _sum_digits(text: str) -> int:
    return sum(map(int, text))


LADDER = (
    ConstraintFamily("first token", "abc", (3, 4), lambda text: text.startswith("a")),
    ConstraintFamily("no repeats", "abc", (3, 4), lambda text: all(a != b for a, b in pairwise(text))),
    ConstraintFamily("regex", "abc.", (5, 7), re.compile(r"(aab|c)*\.").fullmatch, ends=True),
    ConstraintFamily("JSON", "[01,]", (3, 5), re.compile(r"\[([01](,[01])*)?\]").fullmatch, ends=True),
    ConstraintFamily("all different", "abcd", (3, 4), lambda text: len(set(text)) == len(text)),
    ConstraintFamily("brackets", "[]", (4, 8), _is_balanced),
    ConstraintFamily("palindrome", "abc", (4, 6), lambda text: text == text[::-1]),
    ConstraintFamily("sum", "012", (3, 4), lambda text: _sum_digits(text) == len(text)),
    ConstraintFamily("checksum", "012", (3, 4), lambda text: _sum_digits(text) % 3 == 0),
    ConstraintFamily(HIDDEN, "01", (3, 6), lambda text: _sum_digits(text) % 2 == 0),
)
"""Constraints. The last one has the model of Theorem 3.1.1, under which only one valid string can occur."""
VARYING = [family.name for family in LADDER if family.ends]
"""Names of the constraints whose valid strings have several lengths."""


def make_random_model(task: ConstraintTask, seed: int, concentration: float) -> Autoregressive:
    """Return a random language model for the strings of a constraint.

    The model is a Markov chain: each next-token distribution depends on the last token only. The exception is the
    constraint "hidden string". Its model is that of Theorem 3.1.1, under which only one valid string can occur.

    Args:
        task: The constraint and the maximum length.
        seed: Seed of the next-token distributions.
        concentration: Concentration of the symmetric Dirichlet distribution from which next-token distributions are
            sampled.
    """
    if task.family.name == HIDDEN:
        bits = numpy_generator(seed, "hidden", task.length).integers(0, 2, task.length - 1)
        return HiddenString(bits.tolist())

    def next_token(prefix: Prefix) -> list[float]:
        random = numpy_generator(seed, "law", task.family.name, prefix)
        probabilities: list[float] = random.dirichlet([concentration] * size).tolist()
        return probabilities

    size = len(task.family.tokens)
    return Table(next_token, size, eos=task.eos, max_length=task.length, memory=1)


def make_uniform_model(task: ConstraintTask) -> Autoregressive:
    """Return a language model whose next-token distributions are all uniform.

    Args:
        task: A constraint, which defines the vocabulary and the maximum length of the model's strings.
    """
    size = len(task.family.tokens)
    return Table(lambda _: [1.0] * size, size, eos=task.eos, max_length=task.length)
