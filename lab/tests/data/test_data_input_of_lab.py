"""Puzzles and corpora: what is no number of the right kind is one line that names the field, its value and the hint."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from trialogue.errors import InputError
from trialogue_lab.data.list_append.cases import evaluate
from trialogue_lab.data.puzzles.hidden_streams import HiddenStream, RandomBits, candidate
from trialogue_lab.data.puzzles.metered_arithmetic import Arithmetic
from trialogue_lab.data.puzzles.random_activations import RandomActivations
from trialogue_lab.data.puzzles.random_primes import RandomPrimes, draw_primes, primes_of
from trialogue_lab.data.puzzles.twenty_questions import TwentyQuestions
from trialogue_lab.data.puzzles.weighted_prefixes import Listed
from trialogue_lab.studies.window_coherence.pattern_corpus import PatternCorpus

CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: PatternCorpus([[0, 1]], noise="0.1"), "noise='0.1': use a probability above 0 and below 1"),
    (lambda: PatternCorpus(None, 0.1), "patterns=None: give a list of patterns"),
    (lambda: PatternCorpus(torch.tensor([[1j, 0]]), 0.1), "patterns=torch.complex64: each pattern"),
    (lambda: primes_of([2]), r"digits=\[2\]: use a whole number"),
    (lambda: draw_primes(2, 1.5, 2, 0), "each=1.5: use a whole number"),
    (lambda: RandomPrimes(2).sample(True), "n=True: use a whole number"),
    (lambda: candidate(1.5, 2), "coins=1.5: use a whole number"),
    (lambda: HiddenStream(None, lambda hidden: (0,), 1, 2), "source='NoneType': use an oracle"),
    (lambda: HiddenStream(RandomBits(2), None, 1, 2), "public=None: give a function"),
    (lambda: Arithmetic().is_prime("7"), "number='7': use a whole number"),
    (lambda: RandomActivations(None, lambda prefix, kept: [1.0], 1, 1), "activation=None: give a function"),
    (
        lambda: RandomActivations(lambda p, k: np.array([1j]), lambda p, k: [1.0], 1, 1).law(),
        "activation=.*complex128.*: give real numbers",
    ),
    (lambda: Listed("ab", [1.0], 2), "sequences='ab': give tokens as whole numbers"),
    (lambda: Listed([[0, 1]], np.array([1j]), 2), "weights=.*complex128.*: give real numbers"),
    (lambda: TwentyQuestions(None), "answers=None: give a table"),
    (lambda: evaluate("", "f", cases=1.5), "cases=1.5: use a whole number"),
    (lambda: evaluate(None, "f"), "text=None: give a text"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message for _, message in CALLS])
def test_bad_input_is_one_line(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}") as error:
        call()
    assert "\n" not in str(error.value)
