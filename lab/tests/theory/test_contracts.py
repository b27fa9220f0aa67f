"""Which values the arguments of bounds, closed forms and puzzles may have: each bad value is one line with its name."""

import math
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trialogue.data import BertMasking, Ising, PottsChain, TopicModel
from trialogue.errors import InputError
from trialogue.validation import Count, Finite, Natural, NonNegative, Positive, Probability
from trialogue_lab.analysis.attention_variation import causal_baseline
from trialogue_lab.data.hidden_string import (
    HiddenString,
    SubsetSum,
    all_zeros_task,
    fair_bits,
    some_zero_task,
    subset_sum_task,
)
from trialogue_lab.data.list_append.cases import evaluate
from trialogue_lab.data.list_append.prompts import Task
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.hidden_streams import RandomBits
from trialogue_lab.data.puzzles.integer_polynomials import RootedPolynomials
from trialogue_lab.data.puzzles.metered_arithmetic import Arithmetic
from trialogue_lab.data.puzzles.random_activations import RandomActivations
from trialogue_lab.data.puzzles.random_primes import RandomPrimes, draw_primes
from trialogue_lab.data.puzzles.sudoku import SudokuPuzzles
from trialogue_lab.data.puzzles.twenty_questions import TwentyQuestions
from trialogue_lab.data.puzzles.weighted_prefixes import Listed
from trialogue_lab.theory.cliques import bounds, chains
from trialogue_lab.theory.factoring import overlap, prime_density, randomized_algorithms, reduction
from trialogue_lab.theory.gradient_flow import GaussianFlow, SampleFlow
from trialogue_lab.theory.masking import block_laws, mixing, product_kernels, sample_bound
from trialogue_lab.theory.masking import pseudolikelihood as likelihood
from trialogue_lab.theory.memorization import (
    encoders,
    expected_rank,
)
from trialogue_lab.theory.order_truncation import keep_orders
from trialogue_lab.theory.potts import domain_walls, peierls
from trialogue_lab.theory.potts.map import hamiltonian_of
from trialogue_lab.theory.potts.nearest_neighbour import NearestNeighbourPotts
from trialogue_lab.theory.potts.pattern_survival import PatternSurvival
from trialogue_lab.theory.query_complexity import costs, hidden_strings, knapsacks, rational_laws
from trialogue_lab.theory.resampling import resampled_law
from trialogue_lab.theory.topics import attention_loss
from trialogue_lab.theory.topics.moments import least_squares, moments_of
from trialogue_lab.theory.transformer_pruning import prune_transformer, transformer

Choice, Array, Numbers, Whole = "a name of a list", Tensor, "a list of numbers", "an integer of at least 2"

GOOD_AND_BAD: dict[Any, tuple[Any, tuple[Any, ...]]] = {
    Count: (1, (0, 1.5, True, "1")),
    Whole: (2, (1, 1.5, True, "1")),
    Natural: (1, (-1, 1.5, True, "1")),
    Finite: (1.0, (math.nan, math.inf, "1", 1j)),
    NonNegative: (1.0, (-1.0, math.inf, "1", True)),
    Positive: (1.0, (0.0, math.inf, math.nan, "1")),
    Probability: (0.5, (0.0, 1.0, math.nan, "0.5")),
    bool: (True, ("no", 1)),
    Callable: (max, (None, "f")),
    Choice: (None, ("mine", 3)),
    Array: (None, ("ab", np.array([1j]), 3j)),
    Numbers: ((1,), ("12", 3, None, (-1,), (0.5,))),
}
"""A good value of each type of argument, if there is one for all, and bad values."""

SPINS = Ising(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.zeros(2))
LAW, EVEN, PAIR = torch.full((4,), 0.25), torch.full((2, 2), 0.5), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
BLOCKS = {
    "probabilities": LAW,
    "data": LAW,
    "model": SPINS,
    "distribution": block_laws.block_law(2, 2, block_size=1),
}
CHAIN, TOPICS, TUPLES = PottsChain(PAIR, [[0], [1]]), TopicModel(3, 2, 1), SemiprimeTuples(1)
PATTERN, FLOW = PatternSurvival([[0], [1]], 1, 0), GaussianFlow(torch.eye(2))
HIDDEN, ROWS, ORDER = (
    {"oracle": HiddenString((1,)), "verifier": bool},
    {"log_probs": EVEN.log()},
    "product-first",
)
TRIALS = {"order": ORDER, "arithmetic": Arithmetic()}
BOTH = {"values": "block", "variant": "mask"}

CONTRACTS: list[tuple[Callable[..., Any], dict[Any, str], dict[str, Any]]] = [
    (
        bounds.hitting_bound,
        {Whole: "sites clique", Count: "block_size", Positive: "excess clique_field", Probability: "delta"},
        {},
    ),
    (bounds.stuck_bound, {Whole: "clique", Positive: "excess", Probability: "delta"}, {}),
    (
        bounds.one_step_corollary,
        {
            Whole: "sites clique",
            Count: "block_size steps",
            Positive: "excess clique_field",
            Probability: "delta",
        },
        {},
    ),
    (bounds.least_parameters, {Whole: "clique", Count: "steps", Probability: "delta"}, {}),
    (bounds.least_block_size, {Whole: "sites clique", Probability: "delta"}, {}),
    (chains.block_chain, {Count: "sites clique block_size", Finite: "coupling field"}, {}),
    (chains.parallel_chain, {Count: "clique", Finite: "coupling field"}, {}),
    (chains.log_hitting_times, {Array: "log_matrix"}, {}),
    (chains.hitting_probability, {Array: "log_matrix", Natural: "steps"}, {"log_matrix": EVEN.log()}),
    (chains.escape_probability, {Natural: "up steps"}, {"log_matrix": EVEN.log()}),
    (
        sample_bound.sample_bound,
        {
            Count: "sites samples masks vocab_size",
            NonNegative: "loss eps",
            Positive: "tensorization cells",
            Probability: "beta delta",
        },
        {},
    ),
    (sample_bound.empirical_law_bound, {Count: "sites samples vocab_size", Probability: "delta"}, {}),
    (
        sample_bound.mask_average_bound,
        {Probability: "beta delta", Count: "sites masks samples vocab_size"},
        {},
    ),
    (
        sample_bound.mask_average_deviation,
        {Count: "sites samples masks vocab_size", Positive: "eps t", Probability: "beta"},
        {},
    ),
    (block_laws.block_law, {Count: "sites vocab_size"}, {}),
    (mixing.mixing_time, {Probability: "eps"}, {"transitions": EVEN}),
    (
        mixing.chi_square_decay,
        {Array: "times", bool: "discrete"},
        {"transitions": EVEN, "start": LAW, "times": [1]},
    ),
    (product_kernels.joint_law, {Array: "sites"}, {}),
    (product_kernels.closest_in_divergence, {Array: "law"}, {}),
    (product_kernels.closest_in_variation, {Array: "law", Natural: "starts"}, {"law": EVEN / 2}),
    (product_kernels.factorization_gap, {Array: "transitions", Count: "sites"}, {"transitions": EVEN}),
    (likelihood.pseudolikelihood_loss, {Array: "log_weights"}, BLOCKS),
    (likelihood.pseudolikelihood_information, {Array: "features"}, BLOCKS),
    (likelihood.information_equality, {Array: "shift"}, BLOCKS),
    (overlap.overlap_bound, {Array: "success"}, {}),
    (prime_density.mean_density, {Natural: "first last"}, {}),
    (prime_density.density_integral, {Array: "numbers"}, {}),
    (prime_density.uniform_variation, {Count: "digits"}, {}),
    (randomized_algorithms.derandomized, {Callable: "function", Count: "outcomes length vocab_size"}, {}),
    (
        randomized_algorithms.law_over_coins,
        {Callable: "function", Count: "outcomes length", bool: "fresh"},
        {},
    ),
    (randomized_algorithms.randomness_test, {Numbers: "numbers"}, {}),
    (reduction.factor_by_generating, {Numbers: "products"}, {"oracle": TUPLES}),
    (reduction.PrimeByTrials, {Count: "digits most"}, {"arithmetic": Arithmetic()}),
    (reduction.TupleByTrials, {Count: "digits most", Choice: "order"}, TRIALS),
    (domain_walls.largest_wall_energy, {Count: "window", NonNegative: "max_energy"}, {}),
    (domain_walls.largest_wall_entropy, {Whole: "length patterns"}, {}),
    (
        domain_walls.crossing_length,
        {Positive: "temperature", NonNegative: "max_energy", Whole: "patterns"},
        {"window": 1},
    ),
    (domain_walls.one_wall, {Positive: "temperature"}, {"energies": PAIR, "patterns": [[0, 0], [1, 1]]}),
    (domain_walls.stored_pattern_count, {Count: "length"}, {"energies": PAIR}),
    (peierls.peierls_temperature, {Positive: "min_energy"}, {}),
    (
        peierls.peierls_free_energy_bound,
        {Count: "perimeter", Whole: "patterns", Positive: "min_energy temperature"},
        {},
    ),
    (peierls.peierls_magnetisation_bound, {Positive: "temperature coupling"}, {}),
    (peierls.critical_temperature, {Positive: "coupling"}, {}),
    (peierls.onsager_magnetisation, {Positive: "temperature coupling"}, {}),
    (NearestNeighbourPotts, {Whole: "vocab_size", Positive: "temperature"}, {"coupling": math.inf}),
    (NearestNeighbourPotts(2, 1.0, 1.0).log_partition, {Count: "length"}, {}),
    (hamiltonian_of, {Natural: "window", Choice: "constant"}, {"oracle": TUPLES, "constant": "global"}),
    (PatternSurvival, {Natural: "label"}, {"patterns": [[0], [1]], "window": 1}),
    (PATTERN.curve, {Natural: "steps"}, ROWS),
    (PATTERN.decay_rate, {Finite: "tolerance"}, ROWS),
    (costs.tokenwise_cost, {Count: "max_rejections max_nodes"}, HIDDEN),
    (hidden_strings.hidden_string_optimum, {Count: "length"}, {}),
    (hidden_strings.hidden_string_values, {Count: "candidates", bool: "infer_last"}, {}),
    (hidden_strings.search_hidden_string, {Count: "length", bool: "infer_last"}, HIDDEN),
    (knapsacks.knapsack_by_table, {Numbers: "weights", Natural: "total"}, {}),
    (knapsacks.knapsack_by_lattice, {Natural: "total"}, {"weights": (1,)}),
    (rational_laws.tokenwise_law, {Callable: "conditional accepts", Count: "length"}, {}),
    (resampled_law, {Array: "proposal weights", Count: "number"}, {"proposal": [1.0], "weights": [1.0]}),
    (
        keep_orders,
        {Array: "probabilities", Count: "order", Positive: "tolerance"},
        {"probabilities": EVEN / 2},
    ),
    (SampleFlow, {Array: "target others"}, {"target": [1.0], "others": [[1.0]]}),
    (GaussianFlow, {Array: "covariance"}, {}),
    (FLOW.fixed_point, {NonNegative: "decay"}, {}),
    (attention_loss, {Choice: "values variant"}, {"model": TOPICS, "alpha": 1.0, "beta": 1.0, **BOTH}),
    (moments_of, {Count: "lengths"}, {"model": TOPICS, "masking": BertMasking()}),
    (least_squares, {NonNegative: "ridge"}, {"moments": moments_of(TOPICS, BertMasking(), 2)}),
    (transformer, {Positive: "floor"}, {"weights": ()}),
    (prune_transformer, {Natural: "first"}, {"target": (), "large": ()}),
    (encoders.harmonic_vectors, {Whole: "vocab_size width"}, {}),
    (expected_rank, {Whole: "vocab_size", Count: "context width head_width", Natural: "heads"}, {}),
    (causal_baseline, {Count: "length"}, {}),
    (HiddenString, {Numbers: "hidden"}, {}),
    (SubsetSum, {Numbers: "weights totals"}, {}),
    (subset_sum_task, {Probability: "chance"}, {"weights": (1,), "total": 1}),
    (fair_bits, {Count: "length"}, {}),
    (all_zeros_task, {Count: "length"}, {}),
    (some_zero_task, {Count: "length"}, {}),
    (evaluate, {Count: "cases", bool: "final"}, {"text": "", "name": "f"}),
    (Task, {Count: "cases", Natural: "examples example_length"}, {}),
    (SemiprimeTuples, {Count: "digits", Choice: "order"}, {"order": ORDER}),
    (RandomBits, {Count: "bits"}, {}),
    (RootedPolynomials, {Count: "degree largest", Choice: "order"}, {"order": "roots-first"}),
    (Arithmetic, {Choice: "factoring"}, {}),
    (RandomActivations, {Callable: "activation token", Count: "length vocab_size layers"}, {}),
    (RandomActivations(max, max, 1, 1).sample, {Natural: "n"}, {}),
    (RandomPrimes, {Count: "digits"}, {}),
    (draw_primes, {Natural: "n seed", Count: "each digits"}, {}),
    (SudokuPuzzles, {Natural: "clues", Choice: "order"}, {"order": "puzzle-first"}),
    (SudokuPuzzles(2).sample, {Natural: "n"}, {}),
    (TwentyQuestions, {Array: "answers", Count: "rounds"}, {"answers": PAIR}),
    (TwentyQuestions.of_hashes, {Count: "objects rounds"}, {}),
    (TwentyQuestions(PAIR).transcript, {Natural: "number"}, {}),
    (Listed, {Array: "sequences weights", Count: "vocab_size"}, {"sequences": [[0]], "weights": [1.0]}),
]
"""A function, the names of its arguments by their type, and good values of other arguments."""


def fault(function: Callable[..., Any], given: dict[str, Any], name: str, value: Any) -> str:
    """How a call with a bad value of one argument is not refused as it should be; empty if it is."""
    names = signature(function).parameters
    known = {key: each for key, each in given.items() if key in names or "limits" in names}
    try:
        function(**known | {name: value})
    except InputError as error:
        return "" if error.field == name and "\n" not in str(error) else f"says {error}"
    except Exception as error:
        return f"raises {error!r}"
    return "is not refused"


def test_bad_values_are_refused_with_the_name_of_the_argument() -> None:
    faults = []
    for function, kinds, others in CONTRACTS:
        good = {
            name: GOOD_AND_BAD[kind][0] for kind, names in kinds.items() for name in names.split()
        } | others
        faults += [
            f"{getattr(function, '__qualname__', function)}({name}={value!r}) {found}"
            for kind, names in kinds.items()
            for name in names.split()
            for value in GOOD_AND_BAD[kind][1]
            if (found := fault(function, good, name, value))
        ]
    assert not faults, "\n".join(faults)
