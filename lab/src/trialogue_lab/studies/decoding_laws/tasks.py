"""The ladder: small sets of valid strings, whose rules show what they forbid sooner or later, and the oracles."""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from trialogue.data import Table
from trialogue.data.puzzles.hidden_string import HiddenString
from trialogue.oracles import Autoregressive
from trialogue.randomness import numpy_generator

Prefix = tuple[int, ...]
HIDDEN = "hidden string"


@dataclass(frozen=True, eq=False)
class Family:
    """A rule of the ladder at two lengths: texts over the characters `tokens` are valid for which `allows` is true.

    With `ends` the last character ends a string, which has at most so many tokens; else it has exactly so many.
    """

    name: str
    tokens: str
    lengths: tuple[int, int]
    allows: Callable[[str], object]
    ends: bool = False

    def tasks(self) -> Iterator["Task"]:
        """The rule at each length."""
        return (Task(self, length) for length in self.lengths)


@dataclass(frozen=True, eq=False)
class Task:
    """A `family` at a `length`. As a function of a prefix it is the verifier: whether some valid string begins so.

    It knows the rule and the length, and nothing of the oracle.
    """

    family: Family
    length: int

    def __call__(self, prefix: Prefix) -> bool:
        """Whether a valid string begins with `prefix`."""
        return prefix in self._viable

    @property
    def eos(self) -> int | None:
        """The token that ends a string."""
        return len(self.family.tokens) - 1 if self.family.ends else None

    @cached_property
    def valid(self) -> frozenset[Prefix]:
        """The valid strings."""
        family = self.family
        lengths = range(1, self.length + 1) if family.ends else (self.length,)
        inner, last = (family.tokens[:-1], family.tokens[-1:]) if family.ends else (family.tokens, "")
        texts = (
            "".join(each) + last
            for length in lengths
            for each in itertools.product(inner, repeat=length - len(last))
        )
        return frozenset(tuple(map(family.tokens.index, text)) for text in texts if family.allows(text))

    @cached_property
    def _viable(self) -> frozenset[Prefix]:
        return frozenset(string[:end] for string in self.valid for end in range(len(string) + 1))


def _balanced(text: str) -> bool:
    while (shorter := text.replace("[]", "")) != text:
        text = shorter
    return not text


def _digits(text: str) -> int:
    return sum(map(int, text))


LADDER = (
    Family("first token", "abc", (3, 4), lambda text: text.startswith("a")),
    Family("no repeats", "abc", (3, 4), lambda text: all(a != b for a, b in itertools.pairwise(text))),
    Family("regex", "abc.", (5, 7), re.compile(r"(aab|c)*\.").fullmatch, ends=True),
    Family("JSON", "[01,]", (3, 5), re.compile(r"\[([01](,[01])*)?\]").fullmatch, ends=True),
    Family("all different", "abcd", (3, 4), lambda text: len(set(text)) == len(text)),
    Family("brackets", "[]", (4, 8), _balanced),
    Family("palindrome", "abc", (4, 6), lambda text: text == text[::-1]),
    Family("sum", "012", (3, 4), lambda text: _digits(text) == len(text)),
    Family("checksum", "012", (3, 4), lambda text: _digits(text) % 3 == 0),
    Family(HIDDEN, "01", (3, 6), lambda text: _digits(text) % 2 == 0),
)
"""Families of rules. Of the last the oracle is that of Theorem 3.1.1: one valid string can occur."""
VARYING = [family.name for family in LADDER if family.ends]
"""Those whose valid strings have no one length."""


def drawn_oracle(task: Task, seed: int, concentration: float) -> Autoregressive:
    """The oracle of a task that `seed` draws.

    It has a law of the next token for each last token, drawn from the Dirichlet law of this `concentration`.
    """
    if task.family.name == HIDDEN:
        return HiddenString(
            numpy_generator(seed, "hidden", task.length).integers(0, 2, task.length - 1).tolist()
        )

    def law(prefix: Prefix) -> list[float]:
        draw = numpy_generator(seed, "law", task.family.name, prefix)
        probabilities: list[float] = draw.dirichlet([concentration] * size).tolist()
        return probabilities

    size = len(task.family.tokens)
    return Table(law, size, eos=task.eos, max_length=task.length, memory=1)


def uniform_oracle(task: Task) -> Autoregressive:
    """The oracle that gives all tokens one probability."""
    size = len(task.family.tokens)
    return Table(lambda _: [1.0] * size, size, eos=task.eos, max_length=task.length)
