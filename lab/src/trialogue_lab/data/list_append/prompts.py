"""Prompts that ask a model for test cases of a list-append function (thesis Tables 3.7 and 3.14)."""

import string
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from trialogue.errors import InputError
from trialogue.randomness import numpy_generator
from trialogue.validation import Count, Natural, validated

TRAINING_NAMES = ("ovs", "cyk", "mcl", "heh", "fgu", "knk", "zmf")
"""Function names in the training set of the authors' verifier. Unseen names exclude them."""

OOD_NAMES = ("pop", "add", "sub", "mul", "div", "max", "min", "std", "avg", "exp")
"""Function names that suggest another operation than append (Table 3.14)."""

_TARGET = "def {name}(l, item):\n    assert type(l) is list\n    l.append(item)\n    return l\n\n"
_REQUEST = "List {cases} test cases of the above function {name}, one in each line:\n"
_LETTERS = np.array(list(string.ascii_lowercase))


@validated
def random_names(n: Count, seed: int, unlike: Iterable[str] = ()) -> list[str]:
    """Return random function names of three lower-case letters.

    Args:
        n: Number of names, which are all different.
        seed: Seed of the names.
        unlike: Names to exclude.
    """
    generator, names = numpy_generator(seed, "names"), dict.fromkeys(unlike)
    taken = len(names)
    if taken + n > len(_LETTERS) ** 3:
        raise InputError("n", n, f"there are only {len(_LETTERS) ** 3} names")
    while len(names) < taken + n:
        names.setdefault("".join(generator.choice(_LETTERS, 3)))
    return list(names)[taken:]


@validated
@dataclass(frozen=True, kw_only=True)
class PromptLayout:
    """Layout of a prompt: test cases of an addition function as an example, then the target function.

    Args:
        cases: Number of test cases per function.
        examples: Number of additional examples of the target function under random names, which the thesis does not
            have.
        example_length: Largest number of digits in a list of these examples.
    """

    cases: Count = 8
    examples: Natural = 0
    example_length: Natural = 3

    def prompt(self, name: str, seed: int) -> str:
        """Return a prompt that requests test cases of a function.

        Args:
            name: Name of the function.
            seed: Seed of the numbers in the examples.
        """
        draw = numpy_generator(seed, "demonstrations", name)
        sums = (draw.integers(1, 10, 2).tolist() for _ in range(self.cases))
        parts = [
            "def f(a, b):\n    return a + b\n\n",
            _REQUEST.format(cases=self.cases, name="f"),
            *(f"assert f({a}, {b}) == {a + b}\n" for a, b in sums),
            "\n",
        ]
        for shown in (
            random_names(self.examples, seed, (*TRAINING_NAMES, *OOD_NAMES, name)) if self.examples else ()
        ):
            parts += [_TARGET.format(name=shown), _REQUEST.format(cases=self.cases, name=shown)]
            for _ in range(self.cases):
                length = draw.integers(0, self.example_length + 1)
                *items, item = draw.integers(1, 10, length + 1).tolist()
                parts.append(f"assert {shown}({items}, {item}) == {[*items, item]}\n")
            parts.append("\n")
        return "".join((*parts, _TARGET.format(name=name), _REQUEST.format(cases=self.cases, name=name)))
