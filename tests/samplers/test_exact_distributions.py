"""Comparison of exact output distributions with rational arithmetic, on trees with probabilities down to 1e-18."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from refusals import expect_error
from trialogue.data import Table
from trialogue.errors import InputError
from trialogue.oracles import PrefixOracle, Verifier
from trialogue.samplers import (
    SAMPLERS,
    ActionLevel,
    AdaptiveRejection,
    Ancestral,
    Backtracking,
    BestOfN,
    BlockBestOfN,
    BlockValueGuided,
    MaskedDecoding,
    OutcomeRejection,
    PowerMetropolis,
    Rejection,
    Sampler,
    SequentialMonteCarlo,
    StationaryValueGuided,
    TokenwiseRejection,
    ValueGuided,
    WeightedRejection,
)
from trialogue.samplers.exact import ExactDistribution, exact_distribution, prefix_trees, target_distribution
from trialogue.samplers.prefix.contract.sampler import LogWeightState
from trialogue.testing.distributions import named_verifiers
from trialogue.testing.trees import VIABLE, RandomTree

from .rational_references import LARGEST_VALUE, ExtremeTree, RationalTree, ValuedTree, expected

EXTREME_TREES = 10
"""Number of extreme trees per sampler. Each sampler has its own trees."""
SMALLEST = Fraction(1e-300)

EXACT_SAMPLERS: list[Sampler] = [
    Ancestral(),
    Rejection(),
    AdaptiveRejection(),
    AdaptiveRejection(max_attempts=2),
    OutcomeRejection(most=LARGEST_VALUE),
    TokenwiseRejection(),
    TokenwiseRejection(max_rejections=3),
    MaskedDecoding(),
    MaskedDecoding(mask_first=False),
    WeightedRejection(),
    ActionLevel(),
    BestOfN(2),
    BlockBestOfN(2, block_tokens=1),
    Backtracking(2, 1),
    Backtracking(1, 2, argmax_redo=False),
    Backtracking.released(2, 2),
    ValueGuided(),
    ValueGuided(lazy=False),
    ValueGuided(momentum=0.5),
    StationaryValueGuided(steps=2),
    StationaryValueGuided(steps=2, node="last", tries=2),
    BlockValueGuided(2, 1),
    PowerMetropolis(num_steps=1),
    PowerMetropolis(2.0, 2, 2, 1.0),
    PowerMetropolis.released(2.0, 2, 2),
    SequentialMonteCarlo(2),
    SequentialMonteCarlo(2, proposal="mask", ess_threshold=1.0),
    SequentialMonteCarlo(2, proposal="rejection", ess_threshold=0.7),
    SequentialMonteCarlo(2, resampling="systematic", ess_threshold=0.9),
    AdaptiveRejection(max_attempts=2, then="mask"),
]


def trees_for(place: int) -> list[ExtremeTree]:
    sampler = EXACT_SAMPLERS[place]
    branching = isinstance(sampler, SequentialMonteCarlo | StationaryValueGuided | BlockValueGuided)
    short = isinstance(sampler, SequentialMonteCarlo) and sampler.proposal == "rejection"
    return [
        ExtremeTree(
            1000 * place + seed,
            vocab=2 if branching or seed % 4 else 3,
            horizon=1 if short or seed % 3 == 0 else 2,
            eos=0 if seed % 5 == 0 else None,
        )
        for seed in range(EXTREME_TREES)
    ]


def relative_error(found: float, truth: Fraction | float) -> float:
    if isinstance(truth, float):
        return 0.0 if found == truth else math.inf
    if abs(truth) < SMALLEST:
        return 0.0 if abs(found) < 2e-300 else math.inf
    return abs(float(Fraction(found) / truth - 1)) if math.isfinite(found) else math.inf


def error_of(distribution: ExactDistribution, sampler: Sampler, tree: RationalTree) -> float:
    """Return the largest relative error of the probabilities, the weights and the expected calls."""
    truth = expected(sampler, tree)
    weights = truth.distribution if truth.weights is None else truth.weights
    errors = [
        relative_error(distribution.expected_calls, truth.calls),
        relative_error(distribution.failed, truth.failed),
        relative_error(distribution.never_halts, truth.never),
    ]
    for x in distribution.probabilities.keys() | truth.distribution.keys():
        errors.append(
            relative_error(distribution.probabilities.get(x, 0.0), truth.distribution.get(x, Fraction(0)))
        )
        errors.append(relative_error(distribution.weights.get(x, 0.0), weights.get(x, Fraction(0))))
    return max(errors)


def distribution_of(sampler: Sampler, tree: RationalTree) -> ExactDistribution:
    return exact_distribution(sampler, tree.table(), tree.value)


def ordinary_trees(sampler: Sampler) -> list[ValuedTree]:
    """Return trees with and without an end of sequence and impossible tokens, with all kinds of verifiers."""
    few = StationaryValueGuided | AdaptiveRejection
    most = 8 if sampler.rows_per_sample > 1 or isinstance(sampler, few) else 16
    trees = [tree for tree in VIABLE if len(tree.distribution()) <= most]
    if isinstance(sampler, BlockBestOfN) and 2 in sampler.delimiters:
        trees = [VIABLE[3]]
    elif isinstance(sampler, SequentialMonteCarlo) and (
        sampler.particles > 2 or sampler.proposal == "rejection"
    ):
        trees = [RandomTree(41, horizon=2), RandomTree(42, vocab=3, horizon=1, sparse=True)]
    elif isinstance(sampler, SequentialMonteCarlo):
        trees = [RandomTree(41, horizon=2), RandomTree(43, eos=1)]
    elif not isinstance(sampler, ValueGuided | few) and sampler.rows_per_sample == 1:
        trees = VIABLE
    return [ValuedTree(tree, rule) for tree in trees for _, rule in named_verifiers(tree)]


ORDINARY_SAMPLERS: list[Sampler] = [
    *EXACT_SAMPLERS,
    *(Backtracking(quota, stride) for quota in (1, 2) for stride in (1, 2, 7)),
    Backtracking(2, 2, redo="erased"),
    Backtracking(2, 1, argmax_redo=False),
    *(Backtracking.released(3, stride, once_per_prefix=once) for stride in (1, 2) for once in (False, True)),
    BestOfN(3),
    BlockBestOfN(2, block_tokens=2),
    BlockBestOfN(3, block_tokens=2),
    BlockBestOfN(2, block_tokens=9),
    BlockBestOfN(2, (0,)),
    BlockBestOfN(2, (0, 2)),
    BlockBestOfN(2, (0,), min_tokens=2),
    BlockValueGuided(1, 3),
    BlockValueGuided(2, 2),
    ValueGuided(momentum=1.0, lazy=False),
    StationaryValueGuided(steps=6, node="last", tries=3),
    *(SequentialMonteCarlo(n, threshold) for n in (1, 2, 3) for threshold in (0.0, 1.0)),
    *(SequentialMonteCarlo(n, threshold, "mask") for n in (1, 3) for threshold in (0.0, 0.5)),
    SequentialMonteCarlo(1, 0.5, "rejection"),
    SequentialMonteCarlo(2, 1.0, "rejection"),
]


def test_every_registered_sampler_is_compared_with_its_reference():
    assert {type(sampler) for sampler in EXACT_SAMPLERS} == {SAMPLERS[name] for name in SAMPLERS}


def require_reference(sampler: Sampler, trees: list[RationalTree]) -> None:
    """Compare the exact distribution of a sampler with rational arithmetic on each of `trees`."""
    # One uniform number decides systematic resampling, and the sampler rounds it to 1e-16.
    systematic = isinstance(sampler, SequentialMonteCarlo) and sampler.resampling == "systematic"
    for tree in trees:
        distribution = distribution_of(sampler, tree)
        assert math.fsum(
            (*distribution.probabilities.values(), distribution.failed, distribution.never_halts)
        ) == pytest.approx(1, abs=1e-12)
        if systematic:
            truth = expected(sampler, tree)
            reference = {x: float(p) for x, p in truth.distribution.items() if p}
            found = {x: p for x, p in distribution.probabilities.items() if p}
            assert found == pytest.approx(reference, abs=1e-12)
        else:
            assert error_of(distribution, sampler, tree) < 1e-11, tree


@pytest.mark.parametrize(
    "place", range(len(EXACT_SAMPLERS)), ids=lambda place: f"{place}-{EXACT_SAMPLERS[place]}"
)
def test_extreme_trees_have_the_distribution_of_rational_arithmetic(place):
    require_reference(EXACT_SAMPLERS[place], trees_for(place))


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sampler", ORDINARY_SAMPLERS, ids=repr)
def test_ordinary_trees_have_the_distribution_of_rational_arithmetic(sampler, step):
    """Every third of the trees has each of the four kinds of verifiers in turn."""
    require_reference(sampler, ordinary_trees(sampler)[::step])


def rare(chance: float) -> Table:
    """Return a table in which the first two tokens are 1 with probability `chance` and the third is a fair coin."""
    return Table(lambda y: (1 - chance, chance) if len(y) < 2 else (0.5, 0.5), 2, max_length=3)


def starts_with_ones(sequence: tuple[int, ...]) -> float:
    return float(len(sequence) < 3 or sequence[:2] == (1, 1))


@pytest.mark.parametrize("chance", [1e-6, 1e-8, 1e-12, 1e-18, 1e-100, 1e-149])
@pytest.mark.parametrize("sampler", [ValueGuided(), Rejection()], ids=str)
def test_a_rare_end_keeps_all_probability_mass(sampler, chance):
    distribution = exact_distribution(sampler, rare(chance), starts_with_ones)
    assert {x: p for x, p in distribution.probabilities.items() if p} == pytest.approx(
        {(1, 1, 0): 0.5, (1, 1, 1): 0.5}
    )
    assert distribution.never_halts == 0


@pytest.mark.parametrize("chance", [1e-160, 1e-200])
def test_target_distributions_of_rare_sequences_do_not_underflow(chance):
    target = target_distribution(rare(chance), lambda x: x[:2] == (1, 1))
    assert target == pytest.approx({(1, 1, 0): 0.5, (1, 1, 1): 0.5}, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: exact_distribution(Rejection(), rare(1e-160), starts_with_ones),
            "probability=.*at least 1e-300",
        ),
        (
            lambda: exact_distribution(Rejection(), rare(1e-200), starts_with_ones),
            "probability=.*at least 1e-300",
        ),
        (
            lambda: exact_distribution(Rejection(), UnderflowingOracle(), lambda x: x == (1,)),
            "probability=.*at least 1e-300",
        ),
        (
            lambda: exact_distribution(ValueGuided(), rare(1e-160), starts_with_ones),
            "(probability|visits)=.*double precision",
        ),
    ],
)
def test_numbers_beyond_double_precision_are_rejected_in_one_line(call, message):
    expect_error(f"^{message}", call)


class UnderflowingOracle(PrefixOracle):
    """An oracle with one token whose probability is positive but smaller than every float."""

    vocab_size, max_length = 2, 1

    def next_log_probs(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return torch.tensor([[0.0, -1000.0]], dtype=torch.float64).expand(len(lengths), 2)


def test_outputs_of_tiny_probability_are_included():
    distribution = exact_distribution(Ancestral(), UnderflowingOracle(), None)
    assert distribution.probabilities[0,] == 1
    assert distribution.probabilities[1,] < 1e-300
    target = target_distribution(rare(1e-140), lambda x: x[:2] == (1, 1))
    assert target == pytest.approx({(1, 1, 0): 0.5, (1, 1, 1): 0.5}, rel=1e-12)


class ReweightedRejection(Rejection):
    """Rejection with a weight that is multiplied by `factor` at every rejected completion."""

    weighted = True
    factor = 1.0

    def init(self, decoding):
        return LogWeightState(torch.zeros(len(decoding.lengths), dtype=torch.float64))

    def step(self, decoding, state, verifier, choose):
        moves, _ = super().step(decoding, state, verifier, choose)
        rejected = decoding.complete & ~moves.done
        return moves, LogWeightState(state.log_weight + rejected.double() * math.log(self.factor))


@pytest.mark.parametrize(
    ("chance", "factor"), [(1e-18, 1.0), (0.25, 0.5), (0.5, 1.25), (1e-18, 0.5), (0.5, 1e-9)]
)
def test_weights_of_a_sampler_that_returns_to_a_prefix_are_exact(chance, factor):
    sampler = ReweightedRejection()
    object.__setattr__(sampler, "factor", factor)
    distribution = exact_distribution(
        sampler, Table(lambda _: (1.0, chance), 2, max_length=1), lambda x: x == (1,)
    )
    accepted = Fraction(chance) / (1 + Fraction(chance))
    weight = accepted / (1 - (1 - accepted) * Fraction(factor))
    assert distribution.probabilities[1,] == pytest.approx(1, abs=1e-12)
    assert distribution.weights[1,] == pytest.approx(float(weight), rel=1e-12, abs=0)


def test_infinite_weights_are_rejected_in_one_line():
    sampler = ReweightedRejection()
    object.__setattr__(sampler, "factor", 2.0)
    with pytest.raises(InputError, match=r"^log_weight=.*use weights that do not grow in loops"):
        exact_distribution(sampler, Table(lambda _: (0.75, 0.25), 2, max_length=1), lambda x: x == (1,))


def test_a_target_does_not_enumerate_what_a_token_mask_excludes():
    class Mask(Verifier):
        has_mask = True

        def values(self, decoding, rows):
            return (decoding.tokens[rows] == 1).all(1) | ~decoding.complete[rows]

        def children(self, decoding, rows):
            del decoding
            return torch.tensor([0.0, 1.0]).expand(len(rows), 2)

    coins = Table(lambda prefix: [0.5, 0.5], 2)
    assert target_distribution(coins, Mask(), max_new_tokens=12, max_states=30) == {(1,) * 12: 1.0}
    limits = {"max_new_tokens": 12, "max_states": 30}
    expect_error("max_states=30", target_distribution, coins, lambda prefix: all(prefix), **limits)


def test_a_tree_does_not_depend_on_the_number_of_prefixes_in_memory(monkeypatch):
    tree = RandomTree(5, vocab=3, horizon=4, eos=1)
    whole = prefix_trees.prefix_tree(tree.table(), viable=tree.allows)
    monkeypatch.setattr(prefix_trees, "_MAX_NUMBERS", 7)
    parts = prefix_trees.prefix_tree(tree.table(), viable=tree.allows)
    assert parts.prefixes == whole.prefixes
    for name in ("parent", "log_probs", "leaf"):
        assert np.array_equal(getattr(parts, name), getattr(whole, name)), name
