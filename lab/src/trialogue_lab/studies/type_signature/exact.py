"""Exact measurements: laws by enumeration, the reduction, bounds, work-arounds."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import torch

from trialogue.data.puzzles.integer_polynomials import RootedPolynomials
from trialogue.data.puzzles.twenty_questions import TwentyQuestions
from trialogue.data.puzzles.weighted_prefixes import Listed, Prefix, WeightedPrefixes
from trialogue.randomness import generator
from trialogue.samplers import Ancestral
from trialogue.samplers.exact import exact_distribution, total_variation
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.hidden_streams import HiddenStream, hidden_factors, random_seed
from trialogue_lab.data.puzzles.random_primes import RandomPrimes
from trialogue_lab.studies.type_signature.config import FACTORS_FIRST, HIDDEN, STREAMS
from trialogue_lab.theory.factoring.overlap import (
    cheating_generator,
    optimal_cheating,
    overlap_bound,
    semiprime_masses,
    tightest_success,
)
from trialogue_lab.theory.factoring.prime_density import density_variation, uniform_variation
from trialogue_lab.theory.factoring.randomized_algorithms import derandomized, law_over_coins, randomness_test
from trialogue_lab.theory.factoring.reduction import factor_by_generating, share_factored

Rows = Iterator[dict[str, Any]]

GPT4: tuple[int, ...] = (
    *(253489, 572931, 523749, 935271, 754823, 543219, 523891, 523689),
    *(537218, 247856, 527893, 537891, 523198, 523817, 523481, 254839),
)
"""Footnote 2: answers of GPT-4 at temperature 1 to the question for a random 6-digit number."""


def exact_rows(vectors: int) -> Rows:
    """Everything that is computed and not drawn; the overlap bound is tried on so many vectors of chances."""
    for rows in (law_rows, seed_rows, reduction_rows, trial_rows, density_rows):
        yield from rows()
    yield from overlap_rows(vectors)
    for rows in (support_rows, coin_rows, game_rows):
        yield from rows()
    # Footnote 2: how random the answers of GPT-4 are.
    yield {"kind": "gpt-4", **randomness_test(GPT4)._asdict()}


def law_rows() -> Rows:
    """TV of each oracle's law from the law of the tuples, what it cost to compute it, and the number of queries."""
    for digits, stream in product((1, 2), STREAMS):
        tuples = SemiprimeTuples(digits, "factors-first" if stream == FACTORS_FIRST else "product-first")
        law = _law(hidden_factors(tuples) if stream == HIDDEN else tuples)
        yield {
            "kind": "law",
            "digits": digits,
            "stream": stream,
            "tuples": tuples.size,
            "variation": total_variation(law, _uniform(tuples)),
            "factorings": tuples.arithmetic.cost.factorings,
        }


def seed_rows() -> Rows:
    """TV of the public law of a random seed of b bits, and the bound N / 2^b."""
    for digits, bits in product((1, 2), (4, 6, 8, 10)):
        tuples = SemiprimeTuples(digits)
        yield {
            "kind": "seed",
            "digits": digits,
            "bits": bits,
            "variation": total_variation(_law(random_seed(tuples, bits)), _uniform(tuples)),
            "bound": min(1.0, tuples.size / 2**bits),
            "factorings": tuples.arithmetic.cost.factorings,
        }


def reduction_rows() -> Rows:
    """How many of all semiprimes an exact generator of [pq, p, q] factors when prompted with them."""
    for digits in (1, 2, 3):
        tuples = SemiprimeTuples(digits)
        products = list(semiprime_masses(tuples))
        factored = sum(factors is not None for factors in factor_by_generating(tuples, products))
        yield {"kind": "reduction", "digits": digits, "semiprimes": len(products), "factored": factored}


def trial_rows() -> Rows:
    """Expected number of random completions until one is prime, at each digit of a random prime."""
    for digits in range(1, 7):
        law = RandomPrimes(digits)
        for position, trials in enumerate(law.expected_trials().tolist()):
            place = {"digits": digits, "position": position}
            yield {"kind": "trials", **place, "primes": law.size, "trials": trials}


def density_rows() -> Rows:
    """TV of the law of the first k digits of a prime by density, with none or four of the last digits counted."""
    for digits, counted in product((4, 5, 6), (0, 4)):
        both = torch.stack((density_variation(digits, counted), uniform_variation(digits)), 1).tolist()
        for length, (variation, uniform) in enumerate(both, 1):
            place = {"digits": digits, "counted": counted, "length": length}
            yield {"kind": "density", **place, "variation": variation, "uniform": uniform}


def overlap_rows(vectors: int) -> Rows:
    """The best overlap against sqrt(epsilon): where it is tight, over random chances, and of generators as oracles."""
    for factored in (1, 5, 10, 25, 50, 100):
        yield {"kind": "tight", "factored": factored, **_overlap(tightest_success(100, factored))}
    for vector in range(vectors):
        stream = generator(0, "type-signature", "chances", vector)
        success = torch.rand(2 + vector % 99, dtype=torch.float64, generator=stream) ** (0.2 + vector % 11)
        yield {"kind": "chances", "epsilon": float(success.mean()), **_overlap(success)}
    for digits in (1, 2):
        tuples = SemiprimeTuples(digits)
        masses = semiprime_masses(tuples)
        target = torch.tensor(list(masses.values()), dtype=torch.float64)
        stream = generator(0, "type-signature", "generators", digits)
        success = torch.rand(len(masses), dtype=torch.float64, generator=stream) ** 4
        oracle = cheating_generator(tuples, dict(zip(masses, success.tolist(), strict=True)))
        yield {
            "kind": "generator",
            "digits": digits,
            "reached": 1 - total_variation(_law(oracle), _uniform(tuples)),
            **_overlap(success, target),
        }


def support_rows() -> Rows:
    """Share of the tuples that trial division with n^k divisions factors: the overlap it reaches."""
    for exponent, digits in product((4, 5, 6), range(1, 8)):
        share = share_factored(digits, digits**exponent)
        yield {"kind": "support", "exponent": exponent, "digits": digits, "share": share}


def coin_rows() -> Rows:
    """Footnote 1: a randomized algorithm, without its coins, and with coins that it keeps."""
    states = [tuple(row) for row in SemiprimeTuples(1).states().tolist()]

    def digit(prefix: Prefix, coins: int) -> int:
        return states[coins][len(prefix)]

    law = exact_distribution(Ancestral(), derandomized(digit, len(states), 10, 4)).probabilities
    uniform = dict.fromkeys(states, 1 / len(states))
    for fresh in (True, False):
        own = law_over_coins(digit, len(states), 4, fresh=fresh)
        yield {
            "kind": "coins",
            "fresh": fresh,
            "from_averaged": total_variation(law, own),
            "from_tuples": total_variation(own, uniform),
        }


def game_rows() -> Rows:
    """Twenty questions and polynomials: laws with and without a solution that was fixed first, and what it costs."""
    for objects in (16, 64, 256, 1024):
        player = TwentyQuestions.of_hashes(objects, 8)
        variation = total_variation(_law(player), listed_law(player.law()))
        before = player.looked_up
        transcript = player.transcript(0)
        for length in range(len(transcript)):
            player.weights(transcript[:length])
        looked_up = (player.looked_up - before) / len(transcript)
        yield {"kind": "questions", "objects": objects, "variation": variation, "looked_up": looked_up}
    for degree in (2, 3):
        polynomials = RootedPolynomials(degree, 3)
        drawn = RootedPolynomials(degree, 3, "roots-first")
        swapped = {(*x[degree:], *x[:degree]): p for x, p in _law(drawn).items()}
        variation = total_variation(_law(polynomials), swapped)
        yield {"kind": "polynomials", "degree": degree, "variation": variation}


def _overlap(success: torch.Tensor, target: torch.Tensor | None = None) -> dict[str, float]:
    overlap = optimal_cheating(success, target).overlap
    return {"overlap": overlap, "bound": overlap_bound(success, target)}


def _law(oracle: WeightedPrefixes) -> dict[Prefix, float]:
    """What the user sees when tokens are drawn one by one."""
    law = exact_distribution(Ancestral(), oracle).probabilities
    return oracle.visible_law(law) if isinstance(oracle, HiddenStream) else law


def listed_law(listed: Listed) -> dict[Prefix, float]:
    """Return the probability of each listed sequence."""
    return dict(zip(map(tuple, listed.states().tolist()), listed.probabilities().tolist(), strict=True))


def _uniform(tuples: SemiprimeTuples) -> dict[Prefix, float]:
    return {tuple(row): 1 / tuples.size for row in tuples.states().tolist()}
