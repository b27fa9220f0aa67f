"""Targets: powers of probabilities and rewards, with every sampler, compared with enumeration."""

import math

import pytest
import torch

from refusals import expect_error
from samplers.reference_distributions import normalised, truncation
from trialogue import exact_distribution, generate, power, target_distribution, tilted, total_variation
from trialogue.data.table import Table
from trialogue.oracles import Target
from trialogue.samplers import (
    ActionLevel,
    AdaptiveRejection,
    Ancestral,
    BestOfN,
    MaskedDecoding,
    OutcomeRejection,
    Rejection,
    SequentialMonteCarlo,
    StationaryValueGuided,
    ValueGuided,
    WeightedRejection,
    truncated,
)
from trialogue.testing.trees import RandomTree
from trialogue.verifiers import (
    All,
    FunctionVerifier,
    NoisyValues,
    OutcomeReward,
    Product,
    RolloutTarget,
    RolloutValues,
    Threshold,
)

CLOSE = 1e-9
WEIGHTED = [
    ActionLevel(),
    AdaptiveRejection(),
    MaskedDecoding(),
    Rejection(),
    SequentialMonteCarlo(2),
    SequentialMonteCarlo(2, proposal="mask"),
    SequentialMonteCarlo(2, proposal="rejection"),
    WeightedRejection(),
]


def tree(seed, horizon=3):
    return RandomTree(seed, vocab=2, horizon=horizon, eos=1)


def reward(tokens):
    return 1.5 * tokens[0] - len(tokens)


def even(tokens):
    return tokens.count(0) <= 2


def powered(distribution, alpha, value=lambda x: 1.0):
    return normalised({x: p**alpha * value(x) for x, p in distribution.items()})


def residual(sampler, oracle, target, expected):
    """Return the distance of a sampler's normalised weights from a distribution."""
    return total_variation(normalised(exact_distribution(sampler, oracle, target).weights), expected)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 4.0])
def test_power_and_reward_are_the_stated_distributions(alpha):
    for seed in range(8):
        oracle = tree(seed, horizon=4)
        expected = powered(oracle.distribution(), alpha)
        assert total_variation(target_distribution(oracle.table(), power(alpha)), expected) < 1e-13
        expected = powered(oracle.distribution(), alpha, lambda x: even(x) * math.exp(0.7 * reward(x)))
        target = Product(even, power(alpha), tilted(reward, 0.7))
        assert total_variation(target_distribution(oracle.table(), target), expected) < 1e-13


@pytest.mark.parametrize("sampler", WEIGHTED, ids=str)
def test_weights_of_every_sampler_have_the_target(sampler):
    for seed in range(4):
        oracle = tree(seed)
        target = Product(even, tilted(reward, 0.7, whole=seed % 2 == 0), power(3.0))
        expected = powered(oracle.distribution(), 3.0, lambda x: even(x) * math.exp(0.7 * reward(x)))
        assert residual(sampler, oracle.table(), target, expected) < CLOSE
        assert residual(Ancestral(), oracle.table(), target, expected) < CLOSE


@pytest.mark.parametrize("sampler", [Ancestral(), SequentialMonteCarlo(2, proposal="mask")], ids=str)
def test_a_target_of_prefixes_only_is_rejected(sampler):
    class OfPrefixes(Target):
        def log_values(self, decoding, rows):
            complete = decoding.complete[rows]
            return power(3.0).log_values(decoding, rows).masked_fill(complete, 0.0)

    oracle = tree(2)
    assert residual(sampler, oracle.table(), OfPrefixes(), powered(oracle.distribution(), 3.0)) > 0.05


def test_samplers_without_weights_use_targets():
    oracle = tree(3)
    expected = powered(oracle.distribution(), 2.0)
    exact = exact_distribution(OutcomeRejection(), oracle.table(), power(2.0))
    assert total_variation(exact.probabilities, expected) < CLOSE
    best = exact_distribution(BestOfN(2), oracle.table(), power(2.0)).probabilities
    assert best == pytest.approx(exact_distribution(BestOfN(2), oracle.table(), power(5.0)).probabilities)
    assert max(best, key=best.get) == max(expected, key=expected.get)
    walk = StationaryValueGuided(node="last", steps=100)
    assert (
        total_variation(exact_distribution(walk, oracle.table(), power(2.0)).probabilities, expected) < 1e-6
    )


def test_one_particle_with_a_mask_is_the_temperature_of_each_token():
    oracle, alpha = tree(4, horizon=4), 3.0
    one = exact_distribution(SequentialMonteCarlo(1, proposal="mask"), oracle.table(), power(alpha))
    cooled = exact_distribution(Ancestral(), truncated(oracle.table(), temperature=1 / alpha))
    assert total_variation(one.probabilities, cooled.probabilities) < CLOSE
    assert total_variation(one.probabilities, powered(oracle.distribution(), alpha)) > 0.02


def test_the_power_includes_temperature_and_truncation():
    oracle = RandomTree(5, vocab=3, horizon=3)
    cut = truncated(oracle.table(), temperature=0.7, top_k=2)
    expected = {}
    for x in oracle.distribution():
        steps = [
            truncation([p for _, p in oracle.children(x[:place])], 0.7, top_k=2)[x[place]]
            for place in range(len(x))
        ]
        expected[x] = math.prod(steps) ** 2
    assert total_variation(target_distribution(cut, power(2.0)), normalised(expected)) < 1e-6
    assert residual(WeightedRejection(), cut, power(2.0), normalised(expected)) < 1e-6


def test_lookahead_keeps_the_target_and_approaches_it():
    oracle, alpha = tree(6, horizon=4), 4.0
    expected = powered(oracle.distribution(), alpha)
    distances = []
    for rollouts in (1, 16, 256):
        exact = exact_distribution(
            ActionLevel(), oracle.table(), RolloutTarget(power(alpha), rollouts, seed=1)
        )
        assert total_variation(normalised(exact.weights), expected) < CLOSE
        distances.append(total_variation(exact.probabilities, expected))
    assert distances[2] < distances[1] < distances[0] / 2


def test_long_sequences_do_not_underflow():
    oracle = Table(lambda prefix: [0.5, 0.3, 0.2], 3, max_length=400)
    for sampler in (Ancestral(), SequentialMonteCarlo(2, proposal="mask"), WeightedRejection()):
        samples = generate(oracle, sampler=sampler, verifier=power(4.0), num_samples=2, seed=1)
        assert samples.accepted.all()
        assert torch.isfinite(samples.log_weight).all()
        assert (samples.log_weight < -700).all()
    ancestral = generate(oracle, sampler=Ancestral(), verifier=power(4.0), num_samples=4, seed=1)
    assert torch.allclose(ancestral.log_weight, 3 * ancestral.log_prob, rtol=1e-12)
    assert ancestral.queries.tolist() == [400] * 4
    linear = generate(
        oracle,
        sampler=SequentialMonteCarlo(1),
        verifier=lambda x: math.exp(3 * sum(math.log((0.5, 0.3, 0.2)[token]) for token in x)),
        seed=1,
    )
    assert not linear.accepted.any()


def test_prompts_with_different_targets_and_prompts_that_are_part_of_a_reward():
    oracle = RandomTree(7, vocab=2, horizon=4)
    targets = [power(2.0), tilted(sum), None]
    samples = generate(oracle.table(), [(0,), (1, 0), (1,)], sampler=Ancestral(), verifier=targets, seed=2)
    sums = sum(samples.tokens[1].tolist())
    assert samples.log_weight.tolist() == pytest.approx([float(samples.log_prob[0]), sums, 0.0])
    whole = target_distribution(oracle.table(), tilted(sum, scope="completion"), prompt=(1,))
    expected = normalised({x: p * math.exp(sum(x[1:])) for x, p in oracle.distribution((1,)).items()})
    assert total_variation(whole, expected) < 1e-13


def test_a_verifier_can_be_the_reward():
    oracle = tree(8)
    target = target_distribution(oracle.table(), tilted(Product(even), 2.0))
    expected = normalised({x: p * math.exp(2.0 * even(x)) for x, p in oracle.distribution().items()})
    assert total_variation(target, expected) < 1e-13


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.nan, math.inf, "2"])
def test_an_exponent_must_be_positive(alpha):
    expect_error("alpha", power, alpha)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_a_reward_must_be_finite(value):
    def wrong(tokens):
        return value

    expect_error("reward wrong.*finite number", target_distribution, tree(9).table(), tilted(wrong))
    expect_error("beta", tilted, wrong, math.inf)


def test_a_budget_does_not_change_weights_of_accepted_samples():
    oracle = Table(lambda prefix: [0.5, 0.5], 2, max_length=2)
    budgets = [{"max_queries": 2}, {"max_steps": 2}, {"max_queries": 3}, {"max_steps": 3}]
    cases = [
        (OutcomeRejection(), lambda x: 0.1 if x[:1] == (1,) else 1.0, {0.0}),
        (SequentialMonteCarlo(1), lambda x: 0.5, {math.log(0.5)}),
        (SequentialMonteCarlo(1, proposal="mask"), tilted(len), {2.0}),
        (AdaptiveRejection(max_attempts=5, then="mask"), First(), {0.0, math.log(0.5)}),
    ]
    for sampler, verifier, weights in cases:
        for budget in budgets:
            samples = generate(oracle, sampler=sampler, verifier=verifier, num_samples=200, seed=3, **budget)
            found = {round(float(weight), 12) for weight in samples.log_weight[samples.accepted]}
            assert found <= {round(weight, 12) for weight in weights}, (sampler, budget)
            assert {x[0] for x in samples.tokens[samples.accepted].tolist()} <= {0, 1}
    short = generate(oracle, sampler=OutcomeRejection(), verifier=cases[0][1], num_samples=400, max_queries=2)
    assert not short.accepted.any()
    assert {*short.stopped} == {"max_queries"}


class First(FunctionVerifier):
    """Reject sequences whose first token is 1, by a mask."""

    has_mask = True

    def __init__(self):
        super().__init__(lambda x: x[:1] != (1,))

    def children(self, decoding, rows):
        mask = torch.ones(len(rows), 2, dtype=torch.bool)
        mask[decoding.lengths[rows] == 0, 1] = False
        return mask


def test_targets_are_not_evaluated_for_rejected_samples():
    def picky(tokens):
        assert 1 not in tokens
        return 1.0

    oracle = Table(lambda prefix: [0.5, 0.5], 2, max_length=2)
    target = Product(lambda x: 1 not in x, tilted(picky))
    samples = generate(oracle, sampler=Ancestral(), verifier=target, num_samples=20, seed=1)
    assert samples.log_weight.tolist() == samples.accepted.double().tolist()
    assert exact_distribution(Ancestral(), oracle, target).weights[0, 0] == pytest.approx(0.25 * math.e)


def test_lookahead_ignores_text_after_a_stop_string():
    class Stopped(Target):
        def __init__(self, stop=()):
            self.stop = stop

        def log_values(self, decoding, rows):
            return torch.zeros(len(rows), dtype=torch.float64)

        def up_to(self, stop):
            return Stopped(stop)

    assert RolloutTarget(Stopped()).up_to(("a",))._target.stop == ("a",)


def test_targets_are_no_verdicts():
    expect_error("use Product", All, power(2.0))
    expect_error("RolloutTarget", RolloutValues, power(2.0))
    expect_error("give one target", RolloutTarget, Product(even, power(2.0)))
    expect_error("outcome='Power'", OutcomeReward, even, power(2.0))
    expect_error("values='Power'", NoisyValues, power(2.0), 0.1)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, "raise"])
@pytest.mark.parametrize(
    "sampler",
    [Ancestral(), AdaptiveRejection(max_attempts=1, then="mask"), SequentialMonteCarlo(2, proposal="mask")],
    ids=["ancestral", "exact", "smc"],
)
def test_an_error_of_a_reward_rejects_the_sample_like_an_error_of_a_verifier(sampler, value):
    def broken(tokens):
        if tokens[0] == 1:
            assert value != "raise"
            return value
        return 0.5

    oracle = Table(lambda prefix: [0.5, 0.5], 2, max_length=2)
    settings = {"sampler": sampler, "num_samples": 30, "seed": 1}
    hint = r"it raised AssertionError" if value == "raise" else f"it returned {value}; return a finite number"
    expect_error(rf"reward broken=\(1, [01]\): {hint}", generate, oracle, verifier=tilted(broken), **settings)
    for target in (tilted(broken), Product(even, tilted(broken))):
        samples = generate(oracle, verifier=target, on_error="reject", **settings)
        assert samples.accepted.tolist() == [x[0] == 0 for x in samples.tokens.tolist()]
        assert samples.accepted.any()
        assert torch.isfinite(samples.log_weight[samples.accepted]).all()
        for sample in samples:
            if not sample.accepted:
                assert "reward broken=(1, " in sample.error
            else:
                assert sample.error is None
    if sampler == Ancestral():
        assert not samples.accepted.all()


def test_errors_of_targets_with_children_reject_single_sequences():
    class Broken(Target):
        def log_values(self, decoding, rows):
            assert (decoding.tokens[rows, 0] == 0).all()
            return torch.zeros(len(rows), dtype=torch.float64)

        def log_children(self, decoding, rows):
            inner = decoding.lengths[rows] > 0
            assert (decoding.tokens[rows[inner], 0] == 0).all()
            return torch.zeros(len(rows), 2, dtype=torch.float64)

    oracle = Table(lambda prefix: [0.5, 0.5], 2, max_length=2)
    for sampler in (WeightedRejection(), SequentialMonteCarlo(2, proposal="mask")):
        settings = {"sampler": sampler, "verifier": Broken(), "num_samples": 20, "seed": 1}
        samples = generate(oracle, on_error="reject", **settings)
        assert samples.accepted.any()
        assert not samples.tokens[samples.accepted][:, 0].any()


def test_a_target_that_returns_an_invalid_number_ends_the_run():
    class Invalid(Target):
        def log_values(self, decoding, rows):
            return torch.full((len(rows),), math.nan)

    hint = "target=nan: return finite log-values"
    expect_error(hint, generate, tree(1).table(), verifier=Invalid(), on_error="reject")


def test_a_threshold_of_a_target_compares_logarithms():
    oracle = Table(lambda prefix: [0.75, 0.25], 2, max_length=400)
    bound = 400 * math.log(0.75)

    def accepted(verifier):
        return generate(
            oracle, verifier=verifier, sampler=BestOfN(8), num_samples=5, seed=1
        ).accepted.tolist()

    assert accepted(Threshold(tilted(lambda x: bound), 0.0)) == [True] * 5
    assert accepted(Threshold(tilted(lambda x: -720.0), 1e-320)) == [True] * 5
    assert accepted(Threshold(tilted(lambda x: -740.0), 1e-320)) == [False] * 5
    big = tilted(lambda x: 800.0)
    assert accepted(Threshold(big, 1.0)) == [True] * 5
    assert accepted(Threshold(Product(big, lambda x: 1e-300, power(1.0)), 1e30)) == [True] * 5
    assert accepted(Threshold(Product(big, lambda x: 1e-300, power(1.0)), 1e60)) == [False] * 5
    assert accepted(Threshold(Product(lambda x: 0.0, tilted(lambda x: 1 / 0)), 1e-9)) == [False] * 5
    assert accepted(Threshold(Product(lambda x: 0.0, power(2.0)), 0.0)) == [True] * 5


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_threshold_of_an_invalid_target_is_an_error(value):
    class Invalid(Target):
        def log_values(self, decoding, rows):
            return torch.full((len(rows),), value)

    for target in (Invalid(), Product(even, Invalid())):
        expect_error(
            f"verifier={value}: return finite", generate, tree(1).table(), verifier=Threshold(target, 0.5)
        )


class Excluding(Target):
    """Target that is zero for sequences in which one of the tokens 0 and 1 is at a position."""

    def __init__(self, position):
        self._position = position

    def log_values(self, decoding, rows):
        reached = decoding.lengths[rows] > self._position
        wrong = reached & (decoding.tokens[rows, self._position] < 2)
        return torch.zeros(len(rows), dtype=torch.float64).masked_fill(wrong, -math.inf)


@pytest.mark.parametrize("fields", [{"candidates": 2}, {"nucleus": 0.8}, {"candidates": 2, "momentum": 1.0}])
def test_a_walk_whose_candidates_all_have_target_zero_fails_or_turns_back(fields):
    oracle = Table(lambda prefix: [0.6, 0.3, 0.1], 3, max_length=2)
    for sampler in (ValueGuided(**fields), StationaryValueGuided(tries=2, **fields)):
        samples = generate(oracle, sampler=sampler, verifier=Excluding(0), num_samples=5, seed=1)
        assert samples.stopped == ["failed"] * 5
        assert not samples.lengths.any()
        assert sampler.failure_reason.startswith("no first token among the candidates has a value above 0")
        exact = exact_distribution(sampler, oracle, Excluding(0))
        assert (exact.probabilities, exact.failed) == ({}, pytest.approx(1))
        walk = generate(oracle, sampler=sampler, verifier=Excluding(1), num_samples=5, seed=1, max_steps=50)
        assert not walk.accepted.any()
        assert int(walk.lengths.max()) == 1
    every = exact_distribution(ValueGuided(), oracle, Excluding(0)).probabilities
    assert {x[0] for x in every} == {2}
    assert ValueGuided().failure_reason == "no first token has a value above 0"
