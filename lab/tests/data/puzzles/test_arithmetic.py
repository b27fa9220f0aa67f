"""Tuples of primes and their products, against enumeration, and what asking for their digits costs."""

from collections.abc import Iterable
from fractions import Fraction
from itertools import product

import pytest
import torch
from sympy import isprime, primerange

from mutants.arithmetic import (
    CarelessProduct,
    LeadingZeros,
    OneOrderOfFactors,
    UncheckedFactors,
    UnorderedPairs,
)
from one_line_errors import refusals
from trialogue.errors import InputError
from trialogue.samplers import Ancestral, generate
from trialogue.samplers.exact import exact_distribution
from trialogue_lab.data.puzzles.arithmetic import PAIR_DIGITS, SemiprimeTuples
from uniform_rows import uniform_p_value

ORDERS = ("product-first", "factors-first")


def primes(digits: int) -> list[int]:
    return list(primerange(10 ** (digits - 1), 10**digits))


def brute_force(digits: int, order: str) -> dict[tuple[int, ...], Fraction]:
    """The law by its definition: both primes drawn, the tuple written as text of fixed width."""
    law: dict[tuple[int, ...], Fraction] = {}
    pairs = list(product(primes(digits), repeat=2))
    for p, q in pairs:
        factors, whole = f"{p}{q}", str(p * q).rjust(2 * digits, "0")
        text = whole + factors if order == "product-first" else factors + whole
        key = tuple(map(int, text))
        law[key] = law.get(key, Fraction(0)) + Fraction(1, len(pairs))
    return law


def law_excess(tuples: SemiprimeTuples) -> float:
    """The largest error of the law that token-by-token sampling has, over all sequences."""
    law = exact_distribution(Ancestral(), tuples)
    truth = brute_force(tuples.digits, tuples.order)
    found = law.probabilities
    return max(abs(found.get(x, 0.0) - float(truth.get(x, 0))) for x in found.keys() | truth.keys())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("digits", [1, 2])
def test_the_oracle_has_the_exact_law(digits: int, order: str) -> None:
    assert law_excess(SemiprimeTuples(digits, order)) < 1e-15


def brute_force_weights(law: dict[tuple[int, ...], Fraction], prefix: tuple[int, ...]) -> list[Fraction]:
    after = [Fraction(0)] * 10
    for sequence, probability in law.items():
        if sequence[: len(prefix)] == prefix:
            after[sequence[len(prefix)]] += probability
    return after


def answers_as_the_law(tuples: SemiprimeTuples, prefixes: Iterable[tuple[int, ...]]) -> bool:
    """Whether the oracle answers with the conditional of the law after each prefix, and refuses where there is none."""
    law = brute_force(tuples.digits, tuples.order)
    for prefix in prefixes:
        truth = brute_force_weights(law, prefix)
        tokens = torch.tensor([[*prefix, 0]])
        try:
            found = tuples.next_log_probs(tokens, torch.tensor([len(prefix)]))[0].exp()
        except InputError:
            if any(truth):
                return False
            continue
        if not any(truth):
            return False
        expected = torch.tensor([float(weight / sum(truth)) for weight in truth], dtype=torch.float64)
        if not torch.allclose(found, expected, atol=1e-15):
            return False
    return True


def hostile_prefixes(digits: int, order: str) -> list[tuple[int, ...]]:
    """Beginnings of tuples with a digit changed, and of tuples of numbers that are no primes of this width."""
    states = SemiprimeTuples(digits, order).states().tolist()
    rows = states[:: max(1, len(states) // 12)]
    for p, q in ((11, 12), (12, 11), (21, 21), (5, 7), (2, 83), (1, 97), (0, 13), (49, 2)):
        fields = (p * q, p, q) if order == "product-first" else (p, q, p * q)
        widths = (4, 2, 2) if order == "product-first" else (2, 2, 4)
        rows.append(
            [int(c) for field, width in zip(fields, widths, strict=True) for c in f"{field:0{width}d}"]
        )
    prefixes = {tuple(row[:length]) for row in rows for length in range(4 * digits)}
    for row in rows:
        for place in range(4 * digits - 1):
            changed = [*row[:place], (row[place] + 1) % 10, *row[place + 1 :]]
            prefixes |= {tuple(changed[:length]) for length in range(place + 1, 4 * digits)}
    return sorted(prefixes)


@pytest.mark.parametrize("order", ORDERS)
def test_every_prefix_has_its_conditional_or_is_refused(order: str) -> None:
    prefixes = [prefix for length in range(4) for prefix in product(range(10), repeat=length)]
    assert answers_as_the_law(SemiprimeTuples(1, order), prefixes)
    assert answers_as_the_law(SemiprimeTuples(2, order), hostile_prefixes(2, order))


@pytest.mark.parametrize("broken", [UncheckedFactors, LeadingZeros])
def test_an_oracle_that_goes_on_after_anything_is_noticed(broken: type[SemiprimeTuples]) -> None:
    assert not all(answers_as_the_law(broken(2, order), hostile_prefixes(2, order)) for order in ORDERS)


@pytest.mark.parametrize("broken", [UnorderedPairs, OneOrderOfFactors, LeadingZeros, CarelessProduct])
def test_a_broken_oracle_is_noticed(broken: type[SemiprimeTuples]) -> None:
    def excess(order: str) -> float:
        try:
            return law_excess(broken(2, order))
        except InputError:
            return 1.0

    assert max(map(excess, ORDERS)) > 1e-4


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("digits", "size"), [(1, 16), (2, 441)])
def test_states_are_all_tuples(digits: int, size: int, order: str) -> None:
    tuples = SemiprimeTuples(digits, order)
    states = tuples.states()
    assert (tuples.size, SemiprimeTuples(3).size) == (size, 20449)
    assert set(map(tuple, states.tolist())) == set(brute_force(digits, order))
    assert torch.equal(tuples.probabilities(), torch.full((size,), 1 / size, dtype=torch.float64))
    assert bool(tuples.valid(states[:: max(1, size // 500)]).all())
    assert torch.equal(tuples.encode(tuples.decode(states[:300])), states[:300])


def test_both_orders_write_the_same_tuples() -> None:
    first, last = SemiprimeTuples(2, "product-first"), SemiprimeTuples(2, "factors-first")
    drawn, other = first.sample(50, seed=3), last.sample(50, seed=3)
    assert list(map(last.factors_last, last.decode(other))) == first.decode(drawn)
    assert last.encode([(11, 13, 143)]).tolist() == [[1, 1, 1, 3, 0, 1, 4, 3]]


@pytest.mark.parametrize("order", ORDERS)
def test_samples_are_uniform(order: str) -> None:
    tuples = SemiprimeTuples(2, order)
    drawn = tuples.sample(10_000, seed=1)
    assert uniform_p_value(drawn, tuples.states()) > 1e-4
    # Leaving out one prime of 21 in one place removes 1/21 of the mass: seen without fail at this size.
    without = drawn[torch.tensor([97 not in numbers[1:2] for numbers in tuples.decode(drawn)])]
    assert uniform_p_value(without, tuples.states()) < 1e-6


@pytest.mark.parametrize("digits", [2, 12])
def test_a_sample_depends_on_its_number_and_the_seed_alone(digits: int) -> None:
    tuples = SemiprimeTuples(digits)
    drawn = tuples.sample(6, seed=4)
    assert torch.equal(tuples.sample(3, seed=4), drawn[:3])
    assert not torch.equal(tuples.sample(6, seed=5), drawn)
    assert bool(tuples.valid(drawn).all())
    assert drawn.shape == (6, 4 * digits)
    for number, p, q in tuples.decode(drawn):
        assert number == p * q
        assert isprime(p)
        assert isprime(q)
        assert len(str(p)) == len(str(q)) == digits


def test_only_the_hard_order_factors() -> None:
    easy, hard = SemiprimeTuples(3, "factors-first"), SemiprimeTuples(3, "product-first")
    generate(easy, num_samples=5)
    generate(hard, num_samples=5)
    assert easy.arithmetic.cost.factorings == 0 < hard.arithmetic.cost.factorings
    before = hard.arithmetic.cost
    prefix = tuple(map(int, "010403"))
    for written in ("", "1", "10"):
        hard.weights((*prefix, *map(int, written)))
    spent = hard.arithmetic.cost - before
    assert (spent.factorings, spent.primes_read) == (3, 0)
    hard.weights((*prefix, *map(int, "1011")))
    assert (hard.arithmetic.cost - before).factorings == 3


def test_what_is_no_tuple_is_not_valid() -> None:
    tuples = SemiprimeTuples(2)
    wrong = [(143, 13, 12), (121, 11, 12), (143, 1, 143 % 100), (15 * 17, 15, 17), (35, 5, 7)]
    assert not bool(tuples.valid(tuples.encode(wrong)).any())
    assert bool(tuples.valid(tuples.encode([(143, 13, 11)])).all())
    # Tokens that are no digits write no number, whatever their text looks like.
    odd = torch.tensor([[0, 0, 14, 3, 1, 1, 1, 3], [0, 1, 4, 3, 1, 1, 1, -3], [0, 1, 4, 3, 1, 1, 1, 3]])
    assert tuples.valid(odd).tolist() == [False, False, True]
    none = tuples.valid(tuples.sample(0))
    assert (none.shape, none.dtype) == ((0,), torch.bool)
    assert tuples.arithmetic.cost.primality_tests == 0


test_bad_input_is_one_line = refusals(
    "{}",
    [
        (lambda: SemiprimeTuples(4).probabilities(), r"^digits=4: 1125721 sequences are too many"),
        (lambda: SemiprimeTuples(PAIR_DIGITS + 1).weights(()), r"^digits=7: .* at most 6 digits"),
        (lambda: SemiprimeTuples(1000).size, r"^digits=1000: there are about 3\.9e\+996 such primes"),
        (lambda: SemiprimeTuples(2).decode(torch.zeros(3, 7).long()), r"^tokens=\(3, 7\)"),
        (
            lambda: SemiprimeTuples(2).valid(torch.zeros(3, 8)),
            r"^tokens=torch.float32: give an integer matrix",
        ),
        (lambda: SemiprimeTuples(2).decode(torch.full((3, 8), 12)), r"^tokens=12: use digits from 0 to 9"),
        (lambda: SemiprimeTuples(2).encode([(143, 11)]), r"^tuples=\(143, 11\): give three numbers"),
        (lambda: SemiprimeTuples(2).encode([(143, 11, 130)]), r"^tuples=\(143, 11, 130\): .* 4, 2, 2 digits"),
        (lambda: generate(SemiprimeTuples(2), [[9, 9, 9, 9]]), r"^semiprime=9999: give a product of two"),
        (
            lambda: generate(SemiprimeTuples(2, "factors-first"), [[4, 4]]),
            r"^tokens=\(4, 4\): use a prefix of a sequence",
        ),
        (
            lambda: SemiprimeTuples(1).next_log_probs(torch.tensor([[0, 6, 2, 3]]), torch.tensor([4])),
            r"^tokens=\(0, 6, 2, 3\): use prefixes of fewer than 4",
        ),
    ],
)
