"""Named random streams and the enumeration of choices."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from scipy import stats

from mutants import streams as mutants
from refusals import expect_error
from trialogue.enumeration import Enumeration
from trialogue.errors import InputError
from trialogue.randomness import Streams, derive_seed, generator, numpy_generator, select_index

ALPHA = 1e-9
INF = math.inf


def weights(*rows):
    return torch.tensor(rows, dtype=torch.float64).log()


def test_seeds_depend_on_every_name():
    seeds = {
        derive_seed(seed, *names)
        for seed in (0, 1)
        for names in ((), ("a",), ("b",), ("a", "b"), ("ab",), (1,))
    }
    assert len(seeds) == 12
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert derive_seed(3, "a", 1) == derive_seed(3, "a", 1)


def test_a_seed_is_a_non_negative_integer():
    assert derive_seed(np.int64(1), "a") == derive_seed(torch.tensor(1), "a") == derive_seed(1, "a")
    for wrong in (1.0, None, -1, "1", True):
        expect_error(r"^seed=.*use ", derive_seed, wrong, "a")


def test_generators_depend_on_their_names():
    first, again, other = (torch.rand(3, generator=generator(1, name)) for name in "aab")
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert numpy_generator(1, "a").random() == numpy_generator(1, "a").random()
    assert numpy_generator(1, "a").random() != numpy_generator(2, "a").random()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_index_of_inverts_the_cumulative_distribution(dtype):
    uniform = torch.arange(0, 1, 1 / 512, dtype=torch.float64) + 1 / 1024
    for row in ([1.0, 2.0, 4.0, 1.0], [0.0, 3.0, 0.0, 1.0], [1.0], [5.0, 0.0, 0.0]):
        log_weights = weights(row).to(dtype).expand(len(uniform), -1)
        shares = np.cumsum(row) / np.sum(row)
        expected = np.searchsorted(shares, uniform.numpy(), side="right")
        for shift in (0.0, 300.0, -300.0):
            assert select_index(uniform, log_weights + shift).tolist() == expected.tolist()


@pytest.mark.parametrize("uniform", [0.0, 2.0**-53, 0.5, 1 - 2.0**-53, 1.0])  # Rounding can give 1.0.
def test_index_of_never_returns_an_index_of_weight_zero(uniform):
    rows = [row for row in product((0.0, 1e-300, 0.1, 1 / 3, 1.0), repeat=4) if any(row)]
    index = select_index(torch.full((len(rows),), uniform, dtype=torch.float64), weights(*rows))
    assert all(row[place] > 0 for row, place in zip(rows, index.tolist(), strict=True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_index_of_never_exceeds_the_last_positive_weight(dtype):
    # Rounding errors of the sum could lead past the last index.
    log_weights = torch.randn(64, 1000, generator=generator(5, "weights"), dtype=dtype)
    log_weights[:, 500:] = -INF
    index = select_index(torch.full((64,), 1 - 2.0**-53, dtype=torch.float64), log_weights)
    assert bool((index < 500).all())


def test_index_of_float32_weights_has_the_distribution_of_float64_weights():
    log_weights = 5 * torch.randn(8, 700, generator=generator(6, "weights"))
    log_weights[:, 3:300] = -INF
    uniform = torch.rand(8, generator=generator(6, "uniform"), dtype=torch.float64)
    below = log_weights.double().softmax(1).cumsum(1)
    for row in range(8):
        ends = below[row].contiguous()
        # A number close to the end of a cumulative probability, within 1e-6, may give either index.
        near = torch.cat((ends - 1e-6, ends + 1e-6, uniform)).clamp(0, 1)
        found = select_index(near, log_weights[row].expand(len(near), -1))
        least, most = (torch.searchsorted(ends, (near + shift).clamp(0, 1)) for shift in (-1e-6, 1e-6))
        assert bool(((found >= least) & (found <= most.clamp_max(699))).all())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("row", [[-INF, -INF], [math.nan, 0.0], [INF, 0.0]])
def test_index_of_rejects_weights_without_a_distribution(row, dtype):
    log_weights = torch.tensor([[0.0, 0.0], row], dtype=dtype)
    expect_error("log_weights", select_index, torch.full((2,), 0.5, dtype=torch.float64), log_weights)


def numbers(streams_type, samples=2_000, length=20, seed=1):
    """Return the first `length` numbers of each of `samples` streams, as a tensor (samples, length)."""
    streams, rows = streams_type(seed, torch.arange(samples)), torch.arange(samples)
    return torch.stack([streams.uniform(rows) for _ in range(length)], 1)


def depends_on_key_only(streams_type) -> bool:
    """Return whether the numbers of a stream are independent of the order and of the other rows of the batch."""
    all_numbers = numbers(streams_type, 12, 6)
    order = torch.tensor([5, 1, 11, 0, 7])
    streams = streams_type(1, order)
    same = [torch.equal(streams.uniform(torch.arange(5)), all_numbers[order, 0])]
    same.append(torch.equal(streams.uniform(torch.tensor([3, 1])), all_numbers[order[[3, 1]], 1]))
    streams.select(torch.tensor([3, 0]))
    streams.extend(streams_type(1, torch.tensor([9])))
    mixed = streams.uniform(torch.arange(3))
    same.append(
        mixed.tolist() == [float(all_numbers[0, 2]), float(all_numbers[5, 1]), float(all_numbers[9, 0])]
    )
    return all(same)


def uniformity(streams_type) -> float:
    """Return the smallest p-value of chi-square tests of the numbers, of consecutive pairs and of lower digits."""
    uniforms = numbers(streams_type).numpy()
    cells = np.floor(uniforms * 1024).astype(int).ravel()
    pairs = (np.floor(uniforms[:, :-1] * 32) * 32 + np.floor(uniforms[:, 1:] * 32)).astype(int).ravel()
    fine = np.floor(uniforms * 2.0**18 % 1024).astype(int).ravel()
    counts = (np.bincount(values, minlength=1024) for values in (cells, pairs, fine))
    return min(float(stats.chisquare(count).pvalue) for count in counts)


def correlation(streams_type) -> float:
    """Return the largest absolute correlation within (lags 1 to 3) and between streams, in standard errors."""
    uniforms = numbers(streams_type).numpy() - 0.5
    products = [uniforms[:, lag:] * uniforms[:, :-lag] for lag in (1, 2, 3)]
    products += [uniforms[lag:] * uniforms[:-lag] for lag in (1, 2)]
    products += [uniforms[1:, :-1] * uniforms[:-1, 1:]]
    return max(abs(float(p.mean())) * 12 * math.sqrt(p.size) for p in products)


BOUND = float(stats.norm.isf(ALPHA / 2))


def test_streams_depend_on_keys_only_and_are_uniform_and_uncorrelated():
    assert depends_on_key_only(Streams)
    assert uniformity(Streams) > ALPHA
    assert correlation(Streams) < BOUND
    uniforms = numbers(Streams)
    assert bool(((uniforms >= 0) & (uniforms < 1)).all())
    assert uniforms.unique().numel() == uniforms.numel()
    assert not torch.equal(uniforms, numbers(Streams, seed=2))


@pytest.mark.parametrize(
    "mutant", [mutants.PlaceKeyedStreams, mutants.MisplacedStreams, mutants.SharedStreams]
)
def test_streams_that_depend_on_other_values_than_their_keys_are_detected(mutant):
    assert not depends_on_key_only(mutant)


@pytest.mark.parametrize("mutant", [mutants.StandingStreams, mutants.EqualStreams, mutants.CorrelatedStreams])
def test_correlated_streams_are_detected(mutant):
    assert correlation(mutant) > BOUND


def test_coarse_numbers_are_detected():
    assert uniformity(mutants.CoarseStreams) < ALPHA


def test_choose_uses_the_stream_of_each_row():
    uniforms, streams = Streams(1, torch.arange(4)), Streams(1, torch.arange(4))
    rows, log_weights = torch.tensor([2, 0]), weights([1.0, 3.0, 0.0], [2.0, 0.0, 1.0])
    assert torch.equal(streams.choose(log_weights, rows), select_index(uniforms.uniform(rows), log_weights))


def test_branches_of_nested_choices_sum_to_one():
    """Group 0 makes one or two choices and group 1 makes two. The second choice depends on the first."""
    enumeration = Enumeration(2, 1)
    distribution = [{}, {}]
    second = weights([0.5, 0.5, 0.0], [0.1, 0.2, 0.7])

    def run():
        first = enumeration.choose(weights([0.3, 0.7], [0.6, 0.4]), torch.arange(2))
        choosing = torch.tensor([row for row in range(2) if row == 1 or first[row] == 1])
        after = torch.full((2,), -1)
        after[choosing] = enumeration.choose(second[choosing], choosing)
        return torch.stack((first, after), 1).tolist()

    for probabilities, results in enumeration.branches(run):
        for group, p in enumerate(probabilities.tolist()):
            if p:
                outcome = tuple(results[group])
                distribution[group][outcome] = distribution[group].get(outcome, 0.0) + p
    assert distribution[0] == pytest.approx({(0, -1): 0.3, (1, 0): 0.35, (1, 1): 0.35})
    assert distribution[1] == pytest.approx(
        {(a, b): p * q for (a, p), (b, q) in product(enumerate((0.6, 0.4)), enumerate((0.1, 0.2, 0.7)))}
    )


def test_branches_of_groups_with_absent_members_sum_to_one():
    enumeration = Enumeration(3, 2)
    present = torch.tensor([0, 1, 2, 5])  # Both members of group 0, and one member of groups 1 and 2 each.
    distribution = [{}, {}, {}]

    def run():
        index = torch.full((6,), -1)
        index[present] = enumeration.choose(
            weights([0.25, 0.75], [0.5, 0.5], [0.1, 0.9], [1.0, 0.0]), present
        )
        return index.view(3, 2).tolist()

    for probabilities, results in enumeration.branches(run):
        for group, p in enumerate(probabilities.tolist()):
            if p:
                distribution[group][tuple(results[group])] = (
                    distribution[group].get(tuple(results[group]), 0.0) + p
                )
    assert distribution[0] == pytest.approx({(0, 0): 0.125, (0, 1): 0.125, (1, 0): 0.375, (1, 1): 0.375})
    assert distribution[1] == pytest.approx({(0, -1): 0.1, (1, -1): 0.9})
    assert distribution[2] == pytest.approx({(-1, 0): 1.0})


def test_groups_share_runs_but_not_branches():
    """One group has three branches and the other nine. They take nine runs, not 27 or 12."""
    enumeration, runs, totals = Enumeration(2, 1), 0, torch.zeros(2, dtype=torch.float64)
    third = weights([1.0, 1.0, 1.0])

    def run():
        nonlocal runs
        runs += 1
        enumeration.choose(third.expand(2, 3), torch.arange(2))
        enumeration.choose(third, torch.tensor([1]))

    for probabilities, _ in enumeration.branches(run):
        totals += probabilities
    assert runs == 9
    assert totals.tolist() == pytest.approx([1, 1])


def test_enumeration_rejects_weights_without_a_distribution():
    enumeration = Enumeration(1, 1)
    with pytest.raises(InputError, match="log_weights"):
        enumeration.choose(torch.full((1, 2), -INF), torch.zeros(1, dtype=torch.int64))
