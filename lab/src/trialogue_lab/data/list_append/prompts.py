"""The prompts that ask a model for test cases of list append (thesis Tables 3.7 and 3.14)."""

import string
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from trialogue.errors import InputError
from trialogue.randomness import numpy_generator
from trialogue.validation import Count, Natural, validated

TRAINING_NAMES = ("ovs", "cyk", "mcl", "heh", "fgu", "knk", "zmf")
"""Names of the target function that the authors' verifier was trained with; no unseen name is one of them."""

OOD_NAMES = ("pop", "add", "sub", "mul", "div", "max", "min", "std", "avg", "exp")
"""Names that mean something other than append (Table 3.14)."""

_TARGET = "def {name}(l, item):\n    assert type(l) is list\n    l.append(item)\n    return l\n\n"
_REQUEST = "List {cases} test cases of the above function {name}, one in each line:\n"
_LETTERS = np.array(list(string.ascii_lowercase))


@validated
def random_names(n: Count, seed: int, unlike: Iterable[str] = ()) -> list[str]:
    """`n` different names of three lower-case letters, none of them in `unlike`."""
    generator, names = numpy_generator(seed, "names"), dict.fromkeys(unlike)
    taken = len(names)
    if taken + n > len(_LETTERS) ** 3:
        raise InputError("n", n, f"there are only {len(_LETTERS) ** 3} names")
    while len(names) < taken + n:
        names.setdefault("".join(generator.choice(_LETTERS, 3)))
    return list(names)[taken:]


@validated
@dataclass(frozen=True, kw_only=True)
class Task:
    """The layout of a prompt: a demonstration of addition, then the target function, `cases` test cases of each.

    `examples` further demonstrations, which the thesis does not have, show the target function itself under other
    random names with correct test cases on lists of up to `example_length` digits.
    """

    cases: Count = 8
    examples: Natural = 0
    example_length: Natural = 3

    def prompt(self, name: str, seed: int) -> str:
        """A prompt for test cases of the function `name`; `seed` draws the numbers of the demonstrations."""
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
