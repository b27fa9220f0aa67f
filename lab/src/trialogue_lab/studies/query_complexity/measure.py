"""Tasks of a run: exact numbers, simulated searches and samplers, and knapsack problems."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from trialogue.data.puzzles.hidden_string import HiddenString, all_zeros_task
from trialogue.randomness import derive_seed, numpy_generator
from trialogue.samplers import Rejection, TokenwiseRejection, generate
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.query_complexity import exact
from trialogue_lab.studies.query_complexity.config import Config
from trialogue_lab.studies.query_complexity.knapsacks import (
    solve_by_lattice_reduction,
    solve_random_knapsacks,
    solve_superincreasing_knapsacks,
)
from trialogue_lab.theory import query_complexity as theory

REJECTION, TOKENWISE = "rejection", "tokenwise rejection"
SAMPLERS: dict[str, Sampler[Any]] = {REJECTION: Rejection(), TOKENWISE: TokenwiseRejection()}


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, which measure how many model calls constrained generation needs.

    Args:
        config: Settings of the run.

    Returns:
        Tasks for exact costs, Dyck strings (balanced brackets), verifier calls, knapsack problems, simulated searches
        for a hidden string, samplers, and knapsack problems that are solved by lattice reduction.
    """
    return [
        Part(
            "exact",
            lambda _: chain(
                exact.measure_optimal_search(config.optimum_lengths),
                exact.measure_fixed_order_search(config.search_lengths),
                exact.measure_hidden_string(config.hidden_lengths, config.caps),
                exact.measure_zero_string(config.zero_lengths),
                exact.measure_tokenwise_distribution(config.law_lengths),
            ),
        ),
        Part("dyck", lambda _: exact.measure_dyck_strings(config.dyck_lengths)),
        Part(
            "verifier", lambda _: exact.measure_verifier_calls(config.dyck_lengths, config.verified_lengths)
        ),
        Part(
            "knapsacks",
            lambda _: chain(
                solve_random_knapsacks(config.knapsacks),
                solve_superincreasing_knapsacks(config.superincreasing),
            ),
        ),
        Part(
            "searches",
            lambda _: simulate_searches(config.search_lengths, config.searches, config.search_seeds),
        ),
        Part("walks", lambda _: simulate_samplers(config.walked_lengths, config.walks, config.walk_seeds)),
        Part("lattices", lambda _: solve_by_lattice_reduction(config)),
    ]


def simulate_searches(lengths: Iterable[int], searches: int, seeds: Iterable[int]) -> MeasuredRows:
    """Simulate searches for a hidden string that try all candidates in random order.

    The hidden string is the only valid string with positive probability under the model.

    Args:
        lengths: String lengths.
        searches: Number of hidden strings per length and seed.
        seeds: Seeds of the hidden strings and of the orders.

    Yields:
        Two rows per seed and length. `inferred` states whether the last remaining candidate is inferred without a model
        call. `queries` is the mean number of model calls, and `right` is the share of searches that return the hidden
        string.
    """
    for seed in seeds:
        for length in lengths:
            rng = numpy_generator(seed, "query-complexity", "hidden strings", length)
            strings = [HiddenString(rng.integers(0, 2, length - 1).tolist()) for _ in range(searches)]
            streams = [
                derive_seed(seed, "query-complexity", "search", length, index) for index in range(searches)
            ]
            for inferred in (True, False):
                found = [
                    theory.search_hidden_string(oracle, length, infer_last=inferred, seed=stream)
                    for oracle, stream in zip(strings, streams, strict=True)
                ]
                right = [run.output == oracle.answer for run, oracle in zip(found, strings, strict=True)]
                yield {
                    "kind": "search",
                    "seed": seed,
                    "length": length,
                    "inferred": inferred,
                    "queries": float(np.mean([run.queries for run in found])),
                    "right": float(np.mean(right)),
                }


def simulate_samplers(lengths: Iterable[int], walks: int, seeds: Iterable[int]) -> MeasuredRows:
    """Simulate two samplers that generate the only valid string, 00...0, with a verifier (Proposition 3.1.1).

    The model generates uniformly random bits. Rejection samples complete strings until one is valid, and tokenwise
    rejection samples each token until the verifier accepts it.

    Args:
        lengths: String lengths.
        walks: Number of outputs per sampler, length and seed.
        seeds: Seeds of the outputs.

    Yields:
        One row per seed, length and sampler. `queries` is the mean number of model calls, and `printed` is the number
        in the proposition.
    """
    for seed in seeds:
        for length in lengths:
            task = all_zeros_task(length)
            for name, sampler in SAMPLERS.items():
                run = generate(
                    task.oracle,
                    sampler=sampler,
                    verifier=task.verifier,
                    num_samples=walks,
                    # The limit is far above any likely cost, because a truncated run would look too cheap.
                    max_steps=1000 * length * 2**length,
                    seed=derive_seed(seed, "query-complexity", "walks", name, length),
                )
                yield {
                    "kind": "walk",
                    "seed": seed,
                    "walk": name,
                    "length": length,
                    "queries": float(run.queries.double().mean()),
                    "accepted": float(run.accepted.double().mean()),
                    "printed": length * (2.0**length if name == REJECTION else 2.0),
                }
