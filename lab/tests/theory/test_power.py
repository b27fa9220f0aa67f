"""Powers of Markov models: comparison with enumeration, and exact samples."""

import math

import numpy as np
import pytest
import torch

from refusals import expect_error
from trialogue.data import Table
from trialogue.randomness import numpy_generator
from trialogue.samplers import Ancestral, generate
from trialogue.samplers.exact import exact_distribution, target_distribution
from trialogue_lab.theory.potts.map import convert_to_autoregressive, convert_to_hamiltonian
from trialogue_lab.theory.power import (
    MarkovOracle,
    incremental_weight_variances,
    kullback_leibler_divergence,
    log_weight_second_moment,
    markov_oracle,
)

LENGTH = 4


def table(seed, eos=None, sparse=False):
    weights = numpy_generator(seed, "transitions").dirichlet([1.0] * 3, 4)
    if sparse:
        weights[1, 0] = 0.0
    return Table(
        lambda last: weights[last[-1] if last else 3].tolist(), 3, memory=1, eos=eos, max_length=LENGTH
    )


CASES = [table(0), table(1, eos=2), table(2, eos=0, sparse=True), table(3, sparse=True)]


def padded(text, eos):
    return [*text, *[eos] * (LENGTH - len(text))]


def probabilities_of(oracle):
    return exact_distribution(Ancestral(), oracle, max_new_tokens=LENGTH).probabilities


@pytest.mark.parametrize("alpha", [0.5, 2.0, 4.0])
@pytest.mark.parametrize("oracle", CASES)
def test_the_power_equals_enumeration(oracle, alpha):
    model, p = markov_oracle(oracle, LENGTH), probabilities_of(oracle)
    total = math.fsum(mass**alpha for mass in p.values() if mass)
    power = model.power(alpha)
    assert model.log_partition(alpha) == pytest.approx(math.log(total), abs=1e-12)
    target = target_distribution(oracle, lambda x: p.get(x, 1.0) ** (alpha - 1), max_new_tokens=LENGTH)
    assert probabilities_of(power) == pytest.approx(target, abs=1e-12)
    texts = torch.tensor([padded(x, oracle.eos) for x in target])
    assert power.log_prob(texts).exp().tolist() == pytest.approx(list(target.values()), abs=1e-12)


class LateSums(MarkovOracle):
    """Use the power sums of the previous position."""

    def log_power_sums(self, alpha):
        return super().log_power_sums(alpha).roll(1, 0)


def test_faulty_powers_are_rejected():
    for oracle in CASES:
        model = markov_oracle(oracle, LENGTH)
        right, wrong = (
            kind(model.log_initial, model.log_transitions, model.eos).power(2.0)
            for kind in (MarkovOracle, LateSums)
        )
        target, found = probabilities_of(right), probabilities_of(wrong)
        assert max(abs(found[x] - target[x]) for x in target) > 1e-3


@pytest.mark.parametrize("oracle", CASES)
def test_statistics_equal_enumeration(oracle):
    model = markov_oracle(oracle, LENGTH)
    power, cold = model.power(2.0), model.tempered(0.4)
    first, second = probabilities_of(power), probabilities_of(cold)
    texts = [x for x, mass in first.items() if mass]
    divergence = math.fsum(first[x] * math.log(first[x] / second[x]) for x in texts)
    assert kullback_leibler_divergence(power, cold) == pytest.approx(divergence, abs=1e-12)
    moment = math.log(math.fsum(first[x] ** 2 / second[x] for x in texts))
    assert log_weight_second_moment(power, cold) == pytest.approx(moment, abs=1e-12)
    tokens = np.array([padded(x, oracle.eos) for x in texts])
    masses = np.array([first[x] for x in texts])
    marginals = [np.bincount(column, masses, 3) for column in tokens.T]
    assert power.marginals().numpy() == pytest.approx(np.array(marginals), abs=1e-12)
    pairs = torch.eye(3, dtype=torch.bool)
    counts = np.bincount((tokens[:, 1:] == tokens[:, :-1]).sum(1), masses, LENGTH)
    assert power.pair_counts(pairs).numpy() == pytest.approx(counts, abs=1e-12)


def test_long_texts_agree_with_the_transfer_matrices_of_potts_chains():
    oracle = table(5)
    oracle.max_length = None
    power = markov_oracle(oracle, 64).power(4.0)
    chain = convert_to_autoregressive(convert_to_hamiltonian(oracle, 1), 64, 0.25)
    tokens = generate(power, num_samples=5, max_new_tokens=64).tokens
    for length in (0, 1, 30, 63):
        lengths = torch.full((5,), length)
        found, due = (one.next_log_probs(tokens, lengths) for one in (power, chain))
        assert found.exp().numpy() == pytest.approx(due.exp().numpy(), abs=1e-12)


def test_nothing_underflows_at_long_lengths():
    oracle = Table(lambda last: [0.6, 0.3, 0.1] if last[:1] == (0,) else [0.2, 0.2, 0.6], 3, memory=1)
    model = markov_oracle(oracle, 512)
    power, cold = model.power(4.0), model.tempered(0.25)
    assert model.log_partition(4.0) < -745
    assert power.marginals().sum(1).numpy() == pytest.approx(1, abs=1e-9)
    assert 0 < kullback_leibler_divergence(power, cold) < log_weight_second_moment(power, cold) < math.inf
    assert float(power.pair_counts(torch.eye(3, dtype=torch.bool)).sum()) == pytest.approx(1, abs=1e-9)


def test_the_incremental_variance_is_zero_only_at_one_temperature():
    model = markov_oracle(table(7), LENGTH)
    variances = [
        float(incremental_weight_variances(model, 4.0, model.tempered(tau)).mean())
        for tau in (0.2, 0.25, 0.3)
    ]
    assert variances[1] < 1e-14
    assert min(variances[0], variances[2]) > 1e-3


def test_bad_models_are_refused():
    second = Table(lambda prefix: [0.5 + 0.1 * (prefix[:1] == (0,)), 0.5], 2)
    expect_error("oracle='a change of 0.045'", markov_oracle, second, 4)
    expect_error("length=5: use at most 4", markov_oracle, CASES[0], 5)
    expect_error("alpha=0.0: use a number above 0", markov_oracle(CASES[0], 2).power, 0.0)
