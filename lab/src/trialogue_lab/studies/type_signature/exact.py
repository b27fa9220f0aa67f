"""Exact measurements: output distributions by enumeration, the reduction, bounds, and work-arounds."""

from collections.abc import Sequence
from itertools import chain, product

import torch

from trialogue.data.puzzles.integer_polynomials import RootedPolynomials
from trialogue.data.puzzles.twenty_questions import TwentyQuestions
from trialogue.data.puzzles.weighted_prefixes import ListedDistribution, Prefix, WeightedPrefixes
from trialogue.randomness import generator
from trialogue.samplers import Ancestral
from trialogue.samplers.exact import exact_distribution, total_variation
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.hidden_streams import HiddenStream, hidden_factors, random_seed
from trialogue_lab.data.puzzles.random_primes import RandomPrimes
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.type_signature.config import FACTORS_FIRST, HIDDEN, STREAMS
from trialogue_lab.theory.factoring import overlap, randomized_algorithms
from trialogue_lab.theory.factoring.prime_density import density_variation, uniform_variation
from trialogue_lab.theory.factoring.reduction import factor_by_generating, share_factored

GPT4: tuple[int, ...] = (
    *(253489, 572931, 523749, 935271, 754823, 543219, 523891, 523689),
    *(537218, 247856, 527893, 537891, 523198, 523817, 523481, 254839),
)
"""Answers of GPT-4 at temperature 1 to the question for a random 6-digit number (footnote 2)."""


def measure_exactly(vectors: int) -> MeasuredRows:
    """Compute all measurements of the study that need no sampling.

    Most of them are about tuples of a semiprime pq and its prime factors p and q, which a generator writes digit by
    digit.

    Args:
        vectors: Number of random vectors of factoring probabilities on which the overlap bound is tested.

    Yields:
        The rows of all other functions of this module, and one row that tests whether published answers of GPT-4 to the
        question for a random number are random.
    """
    for rows in (
        measure_orders,
        measure_seeded_generators,
        measure_reduction,
        measure_trials,
        measure_density,
    ):
        yield from rows()
    yield from chain(
        measure_overlap(vectors), measure_trial_division(), measure_randomized_generators(), measure_games()
    )
    yield {"kind": "gpt-4", **randomized_algorithms.randomness_test(GPT4)._asdict()}


def measure_orders() -> MeasuredRows:
    """Compare the output of generators of tuples of numbers with the uniform distribution over tuples.

    A tuple contains a semiprime pq and its prime factors p and q. Each generator writes them digit by digit, in one of
    several orders.

    Yields:
        One row per number of digits and order. `variation` is the total variation distance, and `factorings` is the
        number of factorings that generation needs.
    """
    for digits, stream in product((1, 2), STREAMS):
        tuples = SemiprimeTuples(digits, "factors-first" if stream == FACTORS_FIRST else "product-first")
        oracle = hidden_factors(tuples) if stream == HIDDEN else tuples
        yield {
            "kind": "law",
            "digits": digits,
            "stream": stream,
            "tuples": tuples.size,
            "variation": total_variation(
                _compute_visible_distribution(oracle), _make_uniform_distribution(tuples)
            ),
            "factorings": tuples.arithmetic.cost.factorings,
        }


def measure_seeded_generators() -> MeasuredRows:
    """Compare generators that use a random seed with the uniform distribution over tuples.

    A tuple contains a semiprime pq and its prime factors p and q. The generator computes it from b random bits.

    Yields:
        One row per number of digits and number b of bits. `variation` is the total variation distance, and `bound` is
        its upper bound N / 2^b, where N is the number of tuples.
    """
    for digits, bits in product((1, 2), (4, 6, 8, 10)):
        tuples = SemiprimeTuples(digits)
        yield {
            "kind": "seed",
            "digits": digits,
            "bits": bits,
            "variation": total_variation(
                _compute_visible_distribution(random_seed(tuples, bits)), _make_uniform_distribution(tuples)
            ),
            "bound": min(1.0, tuples.size / 2**bits),
            "factorings": tuples.arithmetic.cost.factorings,
        }


def measure_reduction(sizes: Sequence[int] = (1, 2, 3)) -> MeasuredRows:
    """Test that a generator of tuples [pq, p, q] can be used to factor numbers.

    A tuple contains a semiprime pq and its prime factors p and q. The generator samples tuples exactly, one digit after
    another. If its output is forced to begin with a given semiprime, the digits that follow are the factors.

    Args:
        sizes: Numbers of digits of the factors.

    Yields:
        One row per number of digits of the factors. `semiprimes` is the number of semiprimes of this size, and
        `factored` is the number of those that were factored.
    """
    for digits in sizes:
        tuples = SemiprimeTuples(digits)
        products = list(overlap.semiprime_masses(tuples))
        factored = sum(factors is not None for factors in factor_by_generating(tuples, products))
        yield {"kind": "reduction", "digits": digits, "semiprimes": len(products), "factored": factored}


def measure_trials() -> MeasuredRows:
    """Compute the expected number of random completions that turn a prefix of digits into a prime.

    Yields:
        One row per number of digits of the prime and length of the prefix. `trials` is the expected number of
        completions, and `primes` is the number of primes with this many digits.
    """
    for digits in range(1, 7):
        primes = RandomPrimes(digits)
        for position, trials in enumerate(primes.expected_trials().tolist()):
            row = {"kind": "trials", "digits": digits, "position": position}
            yield {**row, "primes": primes.size, "trials": trials}


def measure_density() -> MeasuredRows:
    """Compute the error of sampling the first digits of a prime approximately.

    The first digits are sampled in proportion to an approximate density of primes. The error is the total variation
    distance from the first digits of a uniformly random prime.

    Yields:
        One row per number of digits, length of the prefix, and number `counted` of last digits that are sampled by
        exact counts. `variation` is the error. `uniform` is the error if digits are uniformly random.
    """
    for digits, counted in product((4, 5, 6), (0, 4)):
        both = torch.stack((density_variation(digits, counted), uniform_variation(digits)), 1).tolist()
        for length, (variation, uniform) in enumerate(both, 1):
            row = {"kind": "density", "digits": digits, "counted": counted, "length": length}
            yield {**row, "variation": variation, "uniform": uniform}


def measure_overlap(vectors: int) -> MeasuredRows:
    """Compare the largest possible overlap of a generator with its upper bound sqrt(epsilon).

    A generator writes a semiprime pq and then its prime factors p and q. Its overlap is 1 minus the total variation
    distance from the uniform distribution over such tuples. Epsilon is the mean probability that the generator can
    factor a semiprime.

    Args:
        vectors: Number of random vectors of factoring probabilities.

    Yields:
        Rows of the kind "tight" for probabilities that attain the bound, "chances" for random probabilities, and
        "generator" for generators that attain the largest overlap.
    """
    for factored in (1, 5, 10, 25, 50, 100):
        yield {
            "kind": "tight",
            "factored": factored,
            **_compare_overlap(overlap.tightest_success(100, factored)),
        }
    for vector in range(vectors):
        stream = generator(0, "type-signature", "chances", vector)
        success = torch.rand(2 + vector % 99, dtype=torch.float64, generator=stream) ** (0.2 + vector % 11)
        yield {"kind": "chances", "epsilon": float(success.mean()), **_compare_overlap(success)}
    for digits in (1, 2):
        tuples = SemiprimeTuples(digits)
        masses = overlap.semiprime_masses(tuples)
        target = torch.tensor(list(masses.values()), dtype=torch.float64)
        stream = generator(0, "type-signature", "generators", digits)
        success = torch.rand(len(masses), dtype=torch.float64, generator=stream) ** 4
        oracle = overlap.best_generator_oracle(tuples, dict(zip(masses, success.tolist(), strict=True)))
        yield {
            "kind": "generator",
            "digits": digits,
            "reached": 1
            - total_variation(_compute_visible_distribution(oracle), _make_uniform_distribution(tuples)),
            **_compare_overlap(success, target),
        }


def measure_trial_division() -> MeasuredRows:
    """Compute the share of semiprimes that trial division factors in polynomial time.

    A semiprime is the product of two primes of n digits. At most n^k divisions are allowed.

    Yields:
        One row per exponent k and number n, with the share in `share`.
    """
    for exponent, digits in product((4, 5, 6), range(1, 8)):
        share = share_factored(digits, digits**exponent)
        yield {"kind": "support", "exponent": exponent, "digits": digits, "share": share}


def measure_randomized_generators() -> MeasuredRows:
    """Compare a randomized generator with a generator that averages over its random bits (footnote 1 of the source).

    The averaged generator samples each digit from the mean distribution over random bits, given the previous
    digits. Both write tuples of a semiprime and its factors.

    Yields:
        One row for a generator with fresh random bits for every digit, and one for a generator that reuses
        the same bits. `from_averaged` and `from_tuples` are total variation distances from the averaged
        generator and from the uniform distribution over tuples.
    """
    states = [tuple(row) for row in SemiprimeTuples(1).states().tolist()]

    def digit(prefix: Prefix, coins: int) -> int:
        return states[coins][len(prefix)]

    averaged = exact_distribution(
        Ancestral(), randomized_algorithms.derandomize(digit, len(states), 10, 4)
    ).probabilities
    uniform = dict.fromkeys(states, 1 / len(states))
    for fresh in (True, False):
        own = randomized_algorithms.distribution_over_coins(digit, len(states), 4, fresh=fresh)
        yield {
            "kind": "coins",
            "fresh": fresh,
            "from_averaged": total_variation(averaged, own),
            "from_tuples": total_variation(own, uniform),
        }


def measure_games() -> MeasuredRows:
    """Compare two ways of generating the same sequences: with a solution chosen in advance, and without one.

    In twenty questions, a sequence consists of yes/no answers about one object. A player can choose the object first,
    or give answers that agree with at least one object. For polynomials, a sequence consists of coefficients and roots,
    and either of them can be written first.

    Yields:
        One row per number of objects, and one row per degree of the polynomials. `variation` is the total variation
        distance between the two distributions of sequences. For twenty questions, `looked_up` is the mean number of
        objects that the player without a chosen object looks up per answer.
    """
    for objects in (16, 64, 256, 1024):
        player = TwentyQuestions.from_hashes(objects, 8)
        variation = total_variation(
            _compute_visible_distribution(player), enumerate_distribution(player.distribution())
        )
        before = player.looked_up
        transcript = player.transcript(0)
        for length in range(len(transcript)):
            player.weights(transcript[:length])
        looked_up = (player.looked_up - before) / len(transcript)
        yield {"kind": "questions", "objects": objects, "variation": variation, "looked_up": looked_up}
    for degree in (2, 3):
        polynomials = RootedPolynomials(degree, 3)
        roots_first = RootedPolynomials(degree, 3, "roots-first")
        swapped = {
            (*x[degree:], *x[:degree]): p for x, p in _compute_visible_distribution(roots_first).items()
        }
        variation = total_variation(_compute_visible_distribution(polynomials), swapped)
        yield {"kind": "polynomials", "degree": degree, "variation": variation}


def _compare_overlap(success: torch.Tensor, target: torch.Tensor | None = None) -> dict[str, float]:
    found = overlap.optimal_generator(success, target).overlap
    return {"overlap": found, "bound": overlap.overlap_bound(success, target)}


def _compute_visible_distribution(oracle: WeightedPrefixes) -> dict[Prefix, float]:
    """Return the distribution of the visible tokens under token-by-token sampling."""
    probabilities = exact_distribution(Ancestral(), oracle).probabilities
    return oracle.visible_distribution(probabilities) if isinstance(oracle, HiddenStream) else probabilities


def enumerate_distribution(listed: ListedDistribution) -> dict[Prefix, float]:
    """Return the probabilities of all sequences of an enumerated distribution.

    Args:
        listed: The distribution.

    Returns:
        A mapping from each sequence of token ids to its probability.
    """
    return dict(zip(map(tuple, listed.states().tolist()), listed.probabilities().tolist(), strict=True))


def _make_uniform_distribution(tuples: SemiprimeTuples) -> dict[Prefix, float]:
    return {tuple(row): 1 / tuples.size for row in tuples.states().tolist()}
