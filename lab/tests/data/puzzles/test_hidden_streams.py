"""A hidden stream and a random seed: the public law by enumeration, and what it costs."""

import itertools
import math
from collections import Counter

import pytest
import torch
from sympy import isprime

from mutants.arithmetic import ForgetfulStream
from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue.samplers import Ancestral
from trialogue.samplers.exact import exact_distribution, total_variation
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.hidden_streams import (
    HiddenStream,
    Independent,
    RandomBits,
    candidate,
    coin_bits,
    hidden_factors,
    random_coins,
    random_seed,
)
from trialogue_lab.data.puzzles.random_primes import RandomNumbers, RandomPrimes


def target(tuples: SemiprimeTuples) -> dict[tuple[int, ...], float]:
    return {tuple(row): 1 / tuples.size for row in tuples.states().tolist()}


def distance(stream: HiddenStream, tuples: SemiprimeTuples) -> float:
    """Total variation between what the user sees and the law of the tuples."""
    return total_variation(
        stream.visible_law(exact_distribution(Ancestral(), stream).probabilities), target(tuples)
    )


@pytest.mark.parametrize("order", ["product-first", "factors-first"])
@pytest.mark.parametrize("digits", [1, 2])
def test_hidden_factors_leave_the_law_as_it_is_and_never_factor(digits: int, order: str) -> None:
    tuples = SemiprimeTuples(digits, order)
    stream = hidden_factors(tuples)
    assert (stream.hidden, stream.max_length) == (2 * digits, 6 * digits)
    assert distance(stream, tuples) < 1e-14
    cost = tuples.arithmetic.cost
    assert (cost.factorings, cost.factoring_steps) == (0, 0)
    assert cost.multiplications > 0


def test_a_forgetful_stream_is_noticed() -> None:
    tuples = SemiprimeTuples(2)
    good = hidden_factors(tuples)
    broken = ForgetfulStream(good._source, good._public, tuples.max_length, 10)
    assert distance(broken, tuples) > 0.5


@pytest.mark.parametrize("bits", [4, 9])
@pytest.mark.parametrize("digits", [1, 2])
def test_a_seed_is_within_its_bound(digits: int, bits: int) -> None:
    tuples = SemiprimeTuples(digits)
    stream = random_seed(tuples, bits)
    law = exact_distribution(Ancestral(), stream).probabilities
    seen = stream.visible_law(law)
    assert len(law) == 2**bits
    assert total_variation(seen, target(tuples)) <= min(1, tuples.size / 2**bits) + 1e-12
    seeds = Counter(round(probability * 2**bits) for probability in seen.values())
    assert set(seeds) <= {math.floor(2**bits / tuples.size), math.ceil(2**bits / tuples.size)}
    assert tuples.arithmetic.cost.factorings == 0
    if digits == 1 and bits == 4:
        assert total_variation(seen, target(tuples)) < 1e-15


def test_coins_draw_a_tuple_without_factoring() -> None:
    tuples = SemiprimeTuples(6)
    stream = random_coins(tuples, candidates=150)
    seed = torch.randint(0, 2, (stream.hidden,), generator=generator(3, "seed bits")).tolist()
    written: list[int] = []
    for _ in range(4 * 6):
        written.append(int(torch.tensor(stream.weights((*seed, *written))).argmax()))
    assert bool(tuples.valid(torch.tensor([written])).all())
    cost = tuples.arithmetic.cost
    assert (cost.factorings, cost.primes_read, cost.multiplications) == (0, 0, 24)
    assert cost.primality_tests <= 2 * 150 * 24


@pytest.mark.parametrize("digits", [1, 2])
@pytest.mark.parametrize("candidates", [1, 30])
def test_coins_are_within_their_bound(candidates: int, digits: int) -> None:
    """The law of one prime from the coins of all candidates, counted; two of them are at most twice as far."""
    first = 10 ** (digits - 1)
    bits, numbers = coin_bits(digits), range(first, 10 * first)
    # Number k has the coins from ceil(k 2^m / N) on.
    edges = [-(-((number - first) << bits) // (9 * first)) for number in (*numbers, 10 * first)]
    for number, (start, stop) in zip(numbers, itertools.pairwise(edges), strict=True):
        assert candidate(start, digits) == candidate(stop - 1, digits) == number
    chance = [(stop - start) / 2**bits for start, stop in itertools.pairwise(edges)]
    prime = sum(p for number, p in zip(numbers, chance, strict=True) if isprime(number))
    truth = 1 / sum(map(isprime, numbers))
    apart = (
        sum(
            abs(p * (1 - (1 - prime) ** candidates) / prime - truth)
            if isprime(number)
            else p * (1 - prime) ** (candidates - 1)
            for number, p in zip(numbers, chance, strict=True)
        )
        / 2
    )
    share = sum(map(isprime, numbers)) / len(numbers)
    assert 2 * apart <= 2 * (1 - share) ** candidates + 2**-15
    assert 2 * apart >= (1 - share) ** candidates


def test_independent_copies() -> None:
    law = exact_distribution(Ancestral(), Independent(RandomPrimes(1), 2)).probabilities
    assert law == pytest.approx({(p, q): 1 / 16 for p in (2, 3, 5, 7) for q in (2, 3, 5, 7)})


@pytest.mark.parametrize(
    ("stream", "prefix"),
    [
        (hidden_factors(SemiprimeTuples(2)), (1, 2)),
        (hidden_factors(SemiprimeTuples(2)), (1, 1, 1, 2, 0, 1)),
        (random_seed(SemiprimeTuples(1), 3), (0, 7, 1, 1)),
        (random_coins(SemiprimeTuples(1), 1), (3,) * (2 * coin_bits(1))),
    ],
)
def test_hidden_tokens_outside_the_law_are_refused(stream, prefix: tuple[int, ...]) -> None:
    assert not stream.begins(prefix)
    with pytest.raises(InputError, match=r"^tokens=.*no sequence of the law begins like this"):
        stream.next_log_probs(torch.tensor([[*prefix, 0]]), torch.tensor([len(prefix)]))


def test_what_is_public_has_the_length_and_vocabulary_that_were_said() -> None:
    for public in (lambda _: (1,), lambda _: (1, 1, 1), lambda _: (1, 5)):
        stream = HiddenStream(RandomBits(2), public, 2, 3)
        with pytest.raises(InputError, match=r"^public=\(1.*give 2 tokens from 0 to 2"):
            stream.weights((0, 1))
    listed = HiddenStream(RandomBits(2), lambda hidden: [*hidden], 2, 2)
    assert exact_distribution(Ancestral(), listed).probabilities == pytest.approx(
        {(a, b, a, b): 0.25 for a in (0, 1) for b in (0, 1)}
    )
    assert listed.weights((0, 1, 0, 1)) == [0.0, 0.0]
    with pytest.raises(InputError, match=r"^tokens=\(2, 3\): give a matrix \(n, 4\)"):
        listed.visible(torch.zeros(2, 3, dtype=torch.int64))


def test_a_source_without_a_length_is_refused() -> None:
    with pytest.raises(InputError, match=r"^bits=0"):
        RandomBits(0)
    endless = RandomNumbers(2)
    endless.max_length = None
    with pytest.raises(InputError, match=r"^source='RandomNumbers'"):
        HiddenStream(endless, lambda hidden: hidden, 2, 10)
