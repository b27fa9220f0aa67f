"""Tests of the study `power-sampling`: local rules, weights, chains and lumped distances against plain enumeration."""

import math
from itertools import product

import numpy as np
import pytest
import torch

from trialogue.randomness import numpy_generator
from trialogue.samplers.exact import total_variation
from trialogue_lab.studies.power_sampling import chains, markov, trees
from trialogue_lab.studies.power_sampling.chains import TextTree
from trialogue_lab.studies.power_sampling.config import CORRECTED, EARLY_ENDS, ONE_LENGTH, PRESETS, RELEASED
from trialogue_lab.studies.power_sampling.measure import measure_chains, measure_residuals, measure_trees

LEVELS = trees.make_random_levels(3, 5)
TEXTS = list(product(range(trees.VOCAB), repeat=3))


def probability(x):
    return math.exp(sum(float(LEVELS[depth][x[: depth + 1]]) for depth in range(3)))


def test_powers_power_sums_and_weights_agree_with_plain_sums():
    log_probs = trees.compute_log_joint(LEVELS)
    for x in TEXTS:
        assert log_probs[x] == pytest.approx(math.log(probability(x)), abs=1e-12)
    total = sum(probability(x) ** 4 for x in TEXTS)
    assert trees.compute_power_distribution(log_probs, 4.0)[1, 2, 0] == pytest.approx(
        probability((1, 2, 0)) ** 4 / total
    )
    futures = trees.compute_log_power_sums(LEVELS, 4.0)
    assert futures[0] == pytest.approx(math.log(total))
    # The source gives the distribution of the first token: its probability to the power, times the power sum.
    first = np.exp(4 * LEVELS[0] + futures[1])
    expected = [sum(probability(x) ** 4 for x in TEXTS if x[0] == token) for token in range(trees.VOCAB)]
    assert first == pytest.approx(expected)
    cooled = trees.compute_log_joint(trees.apply_temperatures(LEVELS, [0.3] * 3))
    weights = np.exp(4 * log_probs - cooled)
    mean = (np.exp(cooled) * weights).sum()
    variance = (np.exp(cooled) * weights**2).sum() / mean**2 - 1
    assert trees.compute_weight_variance(log_probs, cooled, 4.0) == pytest.approx(variance)


def test_no_distribution_is_closer_on_average_than_the_bound():
    stream = numpy_generator(0, "power-sampling", "test")
    distributions = stream.dirichlet(np.ones(3), 12)
    bound = trees.minimize_mean_variation(distributions)
    tried = stream.dirichlet(np.ones(3), 4000)
    means = np.abs(tried[:, None] - distributions).sum(2).mean(1) / 2
    assert bound - 1e-9 <= means.min() < bound + 0.01
    assert trees.minimize_mean_variation(distributions[:1]) == pytest.approx(0.0, abs=1e-9)


def test_lookahead_by_many_completions_is_the_power_and_by_one_is_enumerated():
    target = trees.compute_power_distribution(trees.compute_log_joint(LEVELS), 4.0)
    stream = numpy_generator(1, "power-sampling", "test")
    many = np.exp(trees.compute_log_joint(trees.compute_lookahead_levels(LEVELS, 4.0, 2000, 20, stream)))
    assert trees.compute_variation(many, target) < 0.02
    one = np.exp(trees.compute_lookahead_levels(LEVELS, 4.0, 1, 20_000, stream)[0])
    completions = [
        [(probability((token, *y)) / math.exp(LEVELS[0][token])) for y in product(range(3), repeat=2)]
        for token in range(3)
    ]
    expected = np.zeros(3)
    for chosen in product(*completions):
        weights = np.exp(4 * LEVELS[0]) * np.array(chosen) ** 3
        expected += math.prod(chosen) * weights / weights.sum()
    assert one == pytest.approx(expected, abs=0.01)


def test_samplers_of_the_library_agree_with_the_study(tmp_path):
    rows = list(measure_residuals(PRESETS["smoke"], tmp_path))
    assert len(rows) == 10
    assert max(row["residual"] for row in rows) < 1e-9


@pytest.mark.parametrize("end", [0.0, 0.15])
def test_a_corrected_step_is_reversible_and_a_released_one_is_not(end, monkeypatch):
    tree = TextTree(3, 3, end, 4.0)
    texts, matrix = tree.transitions(3, CORRECTED)
    target = tree.target()
    flow = np.array([target[x] for x in texts])[:, None] * matrix
    assert matrix.sum(1) == pytest.approx(np.ones(len(texts)))
    assert abs(flow - flow.T).max() < 1e-12
    texts, matrix = tree.transitions(3, RELEASED)
    flow = np.array([target.get(x, 0.0) for x in texts])[:, None] * matrix
    assert matrix.sum(1) == pytest.approx(np.ones(len(texts)))
    assert (abs(flow - flow.T).max() > 1e-3) == (end > 0)
    if end:
        monkeypatch.setattr(chains, "math", _WithoutCuts)
        broken = TextTree(3, 3, end, 4.0)
        flow = np.array(list(target.values()))[:, None] * broken.transitions(3, CORRECTED)[1]
        assert abs(flow - flow.T).max() > 1e-4


class _WithoutCuts:
    """The module `math`, with a logarithm that leaves the factor for cuts out of the ratio."""

    exp = staticmethod(math.exp)

    @staticmethod
    def log(_: float) -> float:
        return 0.0


def test_chains_approach_the_power_only_where_they_should(tmp_path):
    config = PRESETS["smoke"]
    rows = list(measure_chains(config, 2, tmp_path))
    assert all(abs(row["failed"]) < 1e-9 for row in rows if row["chain"] == CORRECTED)
    for blocks in (1, 2):
        for ends, chain in product((ONE_LENGTH, EARLY_ENDS), (CORRECTED, RELEASED)):
            tree = TextTree(2, 3, 0.15 if ends == EARLY_ENDS else 0.0, 4.0)
            distance = total_variation(tree.output(3000, blocks, chain), tree.target())
            assert (distance > 0.1) == (ends == EARLY_ENDS and chain == RELEASED)


def test_variances_are_smallest_at_the_inverse_power_only_for_incremental_weights(tmp_path):
    rows = list(measure_trees(PRESETS["smoke"], 1, tmp_path))
    weights = [row for row in rows if row["kind"] == "weights"]
    assert all(row["least_excess"] > 1e-12 for row in weights if row["factor"] != 1)
    assert all(abs(row["incremental"]) < 1e-12 for row in weights if row["factor"] == 1)
    assert all(row["best_whole"] <= row["whole"] + 1e-9 for row in weights)
    for row in rows:
        if row["kind"] == "local":
            assert row["best_by_position"] <= row["best"] + 1e-9 <= row["temperature"] + 2e-9


def test_counts_and_lengths_of_markov_models_are_exact():
    model = markov.make_random_model(4, 5)
    pairs, target = markov.mark_predictable_token(model, 4.0), model.power(4.0)
    tokens = torch.tensor(list(product(range(4), repeat=5)))
    counts = markov.count_pairs(tokens, pairs)
    exact = np.bincount(counts, weights=target.log_prob(tokens).exp().numpy(), minlength=5)
    assert target.pair_counts(pairs).numpy() == pytest.approx(exact)
    stream = numpy_generator(0, "power-sampling", "test")
    drawn = stream.choice(len(tokens), 20_000, p=target.log_prob(tokens).exp().numpy())
    assert markov.estimate_count_variation(counts[drawn], exact) < 0.02
    assert markov.estimate_count_variation(counts, exact) > 0.2
    ended = markov.make_random_ended_model(4, 4, 0.15)
    shares = np.zeros(4)
    for x in product(range(3), repeat=4):
        length = x.index(0) + 1 if 0 in x else 4
        if all(token == 0 for token in x[length:]):
            shares[length - 1] += math.exp(float(ended.log_prob(torch.tensor([x]))))
    assert markov.compute_length_distribution(ended) == pytest.approx(shares)
