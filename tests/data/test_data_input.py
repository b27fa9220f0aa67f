"""Distributions: what is no number of the right kind is one line that names the field, its value and the hint."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from trialogue.data import Dyck, Ising, PottsChain, Table, ising_grid
from trialogue.errors import InputError
from trialogue.samplers import generate
from trialogue_lab.data.list_append.cases import evaluate
from trialogue_lab.data.puzzles.hidden_streams import HiddenStream, RandomBits, candidate
from trialogue_lab.data.puzzles.metered_arithmetic import Arithmetic
from trialogue_lab.data.puzzles.random_activations import RandomActivations
from trialogue_lab.data.puzzles.random_primes import RandomPrimes, draw_primes, primes_of
from trialogue_lab.data.puzzles.twenty_questions import TwentyQuestions
from trialogue_lab.data.puzzles.weighted_prefixes import Listed
from trialogue_lab.studies.window_coherence.pattern_corpus import PatternCorpus

PAIR = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
HUGE = PottsChain(1e308 * PAIR)
CHAIN = PottsChain(PAIR, [[0, 1]])
SPINS = Ising(PAIR, torch.zeros(2))
COMPLEX = torch.tensor([[0, 1j], [1j, 0]])


def raising(prefix: tuple[int, ...]) -> list[float]:
    raise KeyError("no such\nprefix")


CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: Dyck(length=2.0), "length=2.0: must be a whole number"),
    (lambda: Dyck(length="8"), "length='8': must be a whole number"),
    (lambda: Dyck(length=None), "length=None: must be a whole number"),
    (lambda: Dyck(8, type_probs=0.5), "type_probs=0.5: must be positive and sum to 1"),
    (lambda: Dyck(8, type_probs=None), "type_probs=None: give a sequence of probabilities"),
    (lambda: Dyck(8, type_probs=np.array([0.5 + 1j, 0.5])), "type_probs=.*complex128.*: give real numbers"),
    (lambda: Dyck(8, open_prob="1"), "open_prob='1': must lie strictly between 0 and 1"),
    (lambda: Dyck(8, open_prob=np.complex64(0.5 + 1j)), "open_prob=.*: must lie strictly"),
    (lambda: Dyck(8, max_depth=1.5), "max_depth=1.5: must be a whole number"),
    (lambda: Dyck(8, max_depth=math.nan), "max_depth=nan: must be a whole number"),
    (lambda: Dyck(8, max_depth=True), "max_depth=True: must be a whole number"),
    (lambda: Dyck(8, complete="no"), "complete='no': use True or False"),
    (lambda: Dyck(8).sample(2.5), "n=2.5: use a whole number of at least 0"),
    (lambda: Dyck(8).sample("2"), "n='2': use a whole number"),
    (lambda: Dyck(8).sample_prompts(2, lengths=None), "lengths=None: must be a range within 0..8"),
    (lambda: Dyck(8).sample_prompts(2, lengths=(1.5, 3)), r"lengths=\(1.5, 3\): must be a range"),
    (lambda: Dyck(8).log_prob(None), "x=None: must be integer tokens"),
    (lambda: Dyck(8).is_prefix(torch.tensor([[True]])), "tokens=torch.bool: must be integers"),
    (
        lambda: Dyck(8).is_member(torch.zeros(1, 8).long(), lengths=torch.tensor([7.5])),
        "lengths=torch.float32",
    ),
    (lambda: Dyck(8).errors(torch.zeros(1, 8).long(), eos=math.nan), "eos=nan: must not be a bracket"),
    (lambda: Table(lambda prefix: [0.5, 0.5], 2.0), "vocab_size=2.0: give the number of tokens"),
    (lambda: Table(lambda prefix: [0.5, 0.5], "2"), "vocab_size='2': give the number of tokens"),
    (lambda: Table(lambda prefix: [0.5, 0.5], 2, max_length=2.5), "max_length=2.5: use a whole number"),
    (lambda: Table(lambda prefix: [0.5, 0.5], 2, max_length=-1), "max_length=-1: use at least 0"),
    (lambda: Table(lambda prefix: [0.5, 0.5], 2, eos=0.5), "eos=0.5: name a token below vocab_size=2"),
    (lambda: Table(lambda prefix: [0.5, 0.5], 2, eos="1"), "eos='1': name a token below vocab_size=2"),
    (lambda: Table([0.5, 0.5], max_length=0.5), "max_length=0.5: the array has 1 positions"),
    (lambda: Table([0.5, 0.5], vocab_size=2.0), "vocab_size=2.0: the array has 2 tokens"),
    (
        lambda: Table(np.array([0.5, 0.5j])),
        "distribution=.*complex128.*: give real numbers, not complex ones",
    ),
    (
        lambda: Table([1e308, 1e308]),
        "distribution=inf: give non-negative probabilities .* whose sum is finite",
    ),
    (
        lambda: generate(Table(raising, 2, max_length=2)),
        r"distribution=\(\): after this prefix it raised KeyError: .*no such",
    ),
    (
        lambda: generate(Table(lambda p: np.array([1, 1j]), 2, max_length=2)),
        "distribution=.*complex128.*: give real numbers",
    ),
    (
        lambda: generate(Table(lambda p: [1e308, 1e308], 2, max_length=2)),
        r"distribution=\[1e\+308, 1e\+308\]: after",
    ),
    (lambda: PatternCorpus([[0, 1]], noise="0.1"), "noise='0.1': use a number"),
    (lambda: PatternCorpus(None, 0.1), "patterns=None: give a list of patterns"),
    (lambda: PatternCorpus(torch.tensor([[1j, 0]]), 0.1), "patterns=torch.complex64: each pattern"),
    (lambda: PottsChain("ab"), "energies='ab': give W axes"),
    (lambda: PottsChain(None), "energies=None: give W axes"),
    (lambda: PottsChain(COMPLEX), "energies=torch.complex64: give real numbers, not complex ones"),
    (
        lambda: PottsChain.from_patterns([[0, 1]], 2, penalty="1"),
        "penalty='1': use a finite number of at least 0",
    ),
    (lambda: PottsChain.from_function(None, 2, 2), "function=None: give a function from tokens"),
    (
        lambda: PottsChain.from_function(lambda tokens: 1j * tokens.sum(1), 2, 2),
        "function=torch.complex64: give real numbers",
    ),
    (
        lambda: HUGE.energy(torch.tensor([[0, 1, 0]])),
        r"energies=1e\+308: the energies of 2 windows, .* overflow",
    ),
    (lambda: HUGE.log_partition(4, 1.0), r"energies=1e\+308: the energies of 3 windows, .* overflow"),
    (lambda: HUGE.sample(1, 4, 1.0), r"energies=1e\+308: the energies of 3 windows, .* overflow"),
    (lambda: PottsChain(1e300 * PAIR).at(200, 1e-6), r"energies=1e\+300: the energies of 199 windows"),
    (
        lambda: PottsChain(1e200 * PAIR).coupling_matrix(4),
        r"energies=1e\+200: squares of the energies overflow",
    ),
    (lambda: CHAIN.free_energy(4, "1"), "temperature='1': use a finite number above 0"),
    (lambda: CHAIN.at(4, True), "temperature=True: use a finite number above 0"),
    (lambda: CHAIN.at(4, np.complex64(1 + 1j)), "temperature=.*: use a finite number above 0"),
    (lambda: CHAIN.at(4, 10**400), "temperature=1000.*000: use a finite number above 0"),
    (lambda: CHAIN.sample(True, 4, 1.0), "n=True: use a whole number"),
    (lambda: CHAIN.energy("ab"), "tokens='ab': give token ids"),
    (lambda: CHAIN.at(4, 1.0).log_probs(torch.zeros(1, 4).long(), None), "masked=None: give one bool"),
    (lambda: Ising(None, None), r"coupling=None: give a square matrix \(N, N\)"),
    (lambda: Ising(PAIR, None), "field=None: give one number for each of the 2 sites"),
    (lambda: Ising(COMPLEX, torch.zeros(2)), "coupling=torch.complex64: give real numbers"),
    (lambda: Ising(PAIR, np.array([1j, 0])), "field=.*complex128.*: give real numbers"),
    (lambda: Ising.clique(4, 2, "1", 0.0), "coupling='1': give one number"),
    (lambda: Ising.clique(4, True, 1.0, 0.0), "clique=True: use a whole number"),
    (lambda: Ising.clique(4, 2, 1.0, "0"), "field='0': give one number"),
    (lambda: SPINS.energy(None), "tokens=None: give tokens of shape"),
    (lambda: SPINS.log_probs(torch.zeros(1, 2).long(), None), "masked=None: give one bool for each token"),
    (lambda: SPINS.to("nope"), "device='nope': it cannot be used here"),
    (lambda: ising_grid(3, 3, "1"), "coupling='1': use a finite number"),
    (lambda: ising_grid(3, 3, 1.0, field=[1.0, 2.0]), r"field=\[1.0, 2.0\]: use a finite number"),
    (lambda: ising_grid(3, 3, 1.0, periodic="no"), "periodic='no': use True or False"),
    (lambda: primes_of([2]), r"digits=\[2\]: use a whole number"),
    (lambda: draw_primes(2, 1.5, 2, 0), "each=1.5: use a whole number"),
    (lambda: RandomPrimes(2).sample(True), "n=True: use a whole number"),
    (lambda: candidate(1.5, 2), "coins=1.5: use a whole number"),
    (lambda: HiddenStream(None, lambda hidden: (0,), 1, 2), "source='NoneType': use an oracle"),
    (lambda: HiddenStream(RandomBits(2), None, 1, 2), "public=None: give a function"),
    (lambda: Arithmetic().is_prime("7"), "number='7': use a whole number"),
    (lambda: RandomActivations(None, lambda prefix, kept: [1.0], 1, 1), "activation=None: give a function"),
    (
        lambda: RandomActivations(lambda p, k: np.array([1j]), lambda p, k: [1.0], 1, 1).distribution(),
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


def test_numbers_of_numpy_and_tensors_are_numbers() -> None:
    dyck = Dyck(np.int64(8), np.array([0.25, 0.75], np.float32), np.float64(0.5), torch.tensor(2))
    assert (dyck.length, dyck.max_depth, dyck.type_probs) == (8, 2, (0.25, 0.75))
    assert dyck.sample(np.int32(3)).shape == (3, 8)
    assert CHAIN.at(np.int64(4), np.float32(0.5)).sites == 4
    assert Table(np.array([0.5, 0.5])[::-1], max_length=np.int64(1)).max_length == 1


def test_nothing_of_a_bounded_depth_exceeds_it() -> None:
    """A depth of 1.5 let strings of depth 2 begin, and complete ones end unbalanced."""
    for depth in (1, 2, 3):
        drawn = Dyck(8, max_depth=depth).sample(200)
        assert int(Dyck(8).depth(drawn).max()) == depth
        assert bool(Dyck(8, max_depth=depth).is_member(drawn).all())
