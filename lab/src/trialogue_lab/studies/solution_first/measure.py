"""Tasks of a run: exact numbers for every experiment, and the counted cost of the first number of a tuple."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import get_args

import torch

from trialogue.data.puzzles.sudoku import Order as SudokuOrder
from trialogue.data.puzzles.sudoku import SudokuPuzzles, dead_end_probability
from trialogue.data.puzzles.twenty_questions import IndexedTwentyQuestions, TwentyQuestions
from trialogue.data.puzzles.weighted_prefixes import Prefix, WithStopToken
from trialogue.randomness import generator
from trialogue.samplers import Ancestral
from trialogue.samplers.exact import exact_distribution, total_variation
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.random_activations import activated_factors
from trialogue_lab.data.puzzles.random_primes import RandomNumbers
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.solution_first.config import ORDERS, Config
from trialogue_lab.studies.type_signature.exact import enumerate_distribution
from trialogue_lab.theory.factoring.overlap import optimal_generator, overlap_bound
from trialogue_lab.theory.factoring.prime_density import density_variation
from trialogue_lab.theory.factoring.reduction import first_number_costs

_BATCH = 100


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, which measure the cost of writing a problem before its solution.

    Args:
        config: Settings of the run.

    Returns:
        One task per exact experiment (random numbers, products of primes, Sudoku, twenty questions and others). One
        task per seed counts operations of algorithms.
    """
    return [
        Part("stop", lambda _: measure_stopping(config)),
        Part("activations", lambda _: measure_activations()),
        Part("sudoku", lambda _: measure_sudoku(config)),
        Part("questions", lambda _: measure_questions(config)),
        Part("density", lambda _: measure_density(config)),
        Part("overlap", lambda _: measure_overlap(config)),
        *(Part(f"costs-{seed}", partial(measure_costs, config, seed)) for seed in config.cost_seeds),
    ]


def measure_stopping(config: Config) -> MeasuredRows:
    """Compute how far generated numbers are from uniform, if each number ends with a stop token.

    Args:
        config: Numbers of digits.

    Yields:
        One row per number of digits, with the total variation distance from the uniform distribution.
    """
    for digits in config.stopped_digits:
        numbers = RandomNumbers(digits)
        oracle = WithStopToken(numbers)
        written = exact_distribution(Ancestral(), oracle).probabilities
        uniform = {(*row, oracle.eos): 1 / numbers.size for row in numbers.states().tolist()}
        yield {"kind": "stop", "digits": digits, "variation": total_variation(written, uniform)}


def measure_activations() -> MeasuredRows:
    """Compare generated tuples [pq, p, q] of a product and its factors with uniformly distributed ones.

    The generator first samples the primes p and q into its hidden activations. It can then write the product pq first
    without factoring it.

    Yields:
        One row per number of digits of the primes. `variation` is the total variation distance, and `factorings` is the
        number of factorings that generation needs.
    """
    for digits in (1, 2):
        tuples = SemiprimeTuples(digits)
        uniform = {tuple(row): 1 / tuples.size for row in tuples.states().tolist()}
        yield {
            "kind": "activations",
            "digits": digits,
            "variation": total_variation(activated_factors(tuples).distribution(), uniform),
            "factorings": tuples.arithmetic.cost.factorings,
        }


def measure_sudoku(config: Config) -> MeasuredRows:
    """Count the look-ups that are needed to generate a Sudoku puzzle together with its solution.

    Either the puzzle or the solution is written first. A look-up reads one cell of one of the 288 complete 4
    x 4 grids.

    Args:
        config: Numbers of clues and puzzles.

    Yields:
        One row with the probability of a dead end, and one row per number of clues and order of writing.
        `looks` is the mean and `dearest` the maximum number of look-ups per token. `error` is the largest
        error of a log-probability: all sequences must be equally likely.
    """
    yield {"kind": "dead ends", "probability": dead_end_probability()}
    for clues, order in product(config.clues, get_args(SudokuOrder)):
        puzzles = SudokuPuzzles(clues, order)
        errors, looks = [], torch.zeros(puzzles.max_length, dtype=torch.float64)
        for row in puzzles.sample(config.puzzles).tolist():
            log_probability = 0.0
            for place, token in enumerate(row):
                looked_at, weights = _count_lookups(puzzles, tuple(row[:place]))
                looks[place] += looked_at
                log_probability += math.log(weights[token] / sum(weights))
            errors.append(abs(log_probability + math.log(puzzles.size)))
        looks /= config.puzzles
        yield {
            "kind": "sudoku",
            "clues": clues,
            "order": order,
            "error": max(errors),
            "looks": float(looks.mean()),
            "dearest": float(looks.max()),
        }


def measure_questions(config: Config) -> MeasuredRows:
    """Count the look-ups that are needed to generate one answer in a game of twenty questions.

    A look-up reads one answer about one object. A player with an index knows which objects fit all previous
    answers. A player without an index must find them again for every answer.

    Args:
        config: Numbers of objects and questions.

    Yields:
        One row per number of objects and of previous answers i. `fitting` is the number of objects divided by
        2^i. `indexed` and `rescanned` are the mean numbers of look-ups with and without an index. `variation`
        is the total variation distance from games about a fixed object.
    """
    for objects in config.objects:
        indexed = IndexedTwentyQuestions.from_hashes(objects, config.rounds)
        rescanning = TwentyQuestions.from_hashes(objects, config.rounds)
        games = enumerate_distribution(indexed.distribution())
        variation = total_variation(exact_distribution(Ancestral(), indexed).probabilities, games)
        for asked in range(config.rounds):
            reached: dict[Prefix, float] = {}
            for game, share in games.items():
                reached[game[:asked]] = reached.get(game[:asked], 0.0) + share
            looks = [
                sum(share * _count_lookups(player, transcript)[0] for transcript, share in reached.items())
                for player in (indexed, rescanning)
            ]
            yield {
                "kind": "question",
                "objects": objects,
                "asked": asked,
                "fitting": objects / 2**asked,
                "indexed": looks[0],
                "rescanned": looks[1],
                "variation": variation,
            }


def _count_lookups(player: TwentyQuestions | SudokuPuzzles, prefix: Prefix) -> tuple[int, Sequence[float]]:
    """Return the number of look-ups for the next token, and the weights of all next tokens."""
    before = player.looked_up
    weights = player.weights(prefix)
    return player.looked_up - before, weights


def measure_density(config: Config) -> MeasuredRows:
    """Compute the error of sampling the first digits of a random prime by the approximate density of primes.

    The density is 1 / log x, and k of n digits are sampled. The error is the total variation distance from the first k
    digits of a uniformly random prime. Sampling the last n - k digits by exact counts of primes adds no error.

    Args:
        config: Settings with the numbers n of digits.

    Yields:
        One row per n and k. `variation` is the error.
    """
    for digits in config.density_digits:
        for length, variation in enumerate(density_variation(digits).tolist(), start=1):
            place = {"digits": digits, "length": length, "counted": digits - length}
            yield {"kind": "density", **place, "variation": variation}


def measure_overlap(config: Config) -> MeasuredRows:
    """Check that no generator of products with their factors comes closer to a target than a bound allows.

    A generator writes a product first and then its factors. For each product, a success probability limits how often
    the factors are correct. The overlap is 1 minus the total variation distance from the target distribution. The
    largest possible overlap is compared with the bound, the square root of the mean success probability. This is
    repeated for many random vectors of success probabilities.

    Args:
        config: Number of vectors of success probabilities.

    Yields:
        One row per batch of vectors. `excess` is the largest overlap - bound, and `ratio` the largest overlap / bound.
    """
    for start in range(0, config.vectors, _BATCH):
        batch = range(start, min(start + _BATCH, config.vectors))
        stream = generator(0, "solution-first", "chances", start)
        worst = [-math.inf, 0.0]
        for vector in batch:
            success = torch.rand(2 + vector % 99, dtype=torch.float64, generator=stream) ** (
                0.2 + vector % 11
            )
            overlap, bound = optimal_generator(success).overlap, overlap_bound(success)
            worst = [max(worst[0], overlap - bound), max(worst[1], overlap / bound)]
        yield {"kind": "overlap", "vectors": len(batch), "excess": worst[0], "ratio": worst[1]}


def measure_costs(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Count the operations that are needed to write each digit of the first number in a tuple.

    The tuple contains two primes and their product. Depending on its order, the first number is the product or a prime.

    Args:
        config: Settings of the run, with the numbers of digits of the primes and the number of tuples.
        seed: Seed of the tuples.

    Yields:
        One row per number of digits, order and position of the digit, with the mean numbers of primality tests,
        multiplications and factoring steps.
    """
    for digits, order in product(config.cost_digits, ORDERS):
        costs = first_number_costs(digits, order, config.cost_samples, seed)
        for position, spent in enumerate(costs):
            yield {
                "kind": "first number",
                "seed": seed,
                "digits": digits,
                "order": order,
                "position": position,
                "tests": spent.primality_tests / config.cost_samples,
                "products": spent.multiplications / config.cost_samples,
                "factoring_steps": spent.factoring_steps / config.cost_samples,
            }
