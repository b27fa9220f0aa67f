"""Tests of equations 2 to 5 against an enumeration of splices and sequences."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from one_line_errors import refusals
from refusals import expect_error
from trialogue.data import PottsChain
from trialogue.data.potts import spectrum as potts_spectrum
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import generator
from trialogue_lab.theory.potts import domain_walls, transfer_decay
from trialogue_lab.theory.potts.domain_walls import (
    crossing_length,
    free_energy_bound,
    largest_wall_energy,
    largest_wall_entropy,
    no_wall_decay_rate,
    one_wall,
    stored_pattern_count,
    stored_pattern_decay_rate,
    stored_sequences,
)


def planted_energies(vocab, width, patterns, *names):
    """Return random energies in which every window of the sequences `patterns` (N, L) has energy zero."""
    random = generator(0, "planted", vocab, width, *names)
    energies = 0.2 + torch.rand((vocab,) * width, generator=random, dtype=torch.float64)
    for window in patterns.unfold(1, width, 1).flatten(0, 1):
        energies[tuple(window.tolist())] = 0.0
    return energies


def energy_of(energies, tokens):
    return energies[tuple(tokens.unfold(1, energies.ndim, 1).unbind(2))].sum(1)


def chain_with_patterns(patterns):
    return PottsChain(torch.zeros(3), patterns)


UNIFORM = chain_with_patterns([[0], [1], [2]])
OVERLAPPING = chain_with_patterns([[0, 0], [0, 1]])
LONG = chain_with_patterns([[0, 1, 2], [0, 1, 1], [0, 0, 0]])
CASES = [
    (patterns, width, length)
    for patterns in (UNIFORM, OVERLAPPING, LONG)
    for width in (1, 2, 3, 4)
    for length in (width, 5, 8)
    if length > 1
]


def enumerate_splices(sequences):
    """Return every sequence with one wall that begins as pattern 0, from the definition."""
    stored = {tuple(row) for row in sequences.tolist()}
    first, *others = sequences.tolist()
    found = {tuple(first[:b] + other[b:]) for other in others for b in range(1, len(first))}
    return torch.tensor(sorted(found - stored), dtype=torch.int64).view(-1, len(first))


@pytest.mark.parametrize(("patterns", "width", "length"), CASES)
def test_one_wall_agrees_with_an_enumeration_of_splices(patterns, width, length):
    sequences = stored_sequences(patterns, length)
    energies, temperature = planted_energies(3, width, sequences), 0.7
    states = enumerate_splices(sequences)
    found = one_wall(energies, sequences, temperature)
    assert found.states == len(states)
    cost = energy_of(energies, states)
    if len(states):
        assert found.log_weight == pytest.approx(float((-cost / temperature).logsumexp(0)), abs=1e-12)
        assert found.largest_energy == pytest.approx(float(cost.max()), abs=1e-12)
        assert found.free_energy == pytest.approx(-temperature * found.log_weight)
        assert found.entropy == pytest.approx(math.log(len(states)))
        assert found.entropy <= largest_wall_entropy(length, len(sequences)) + 1e-12
        assert found.largest_energy <= largest_wall_energy(width, float(energies.max()))


def ignore_partial_windows(energies, patterns):
    """Return energies of splices in which W - 1 windows at every bond have the largest energy."""
    return torch.full((len(patterns) - 1, patterns.shape[1] - 1), (energies.ndim - 1) * float(energies.max()))


def test_wrong_splice_energies_are_detected(monkeypatch):
    sequences = stored_sequences(LONG, 8)
    energies = planted_energies(3, 3, sequences)
    exact = (-energy_of(energies, enumerate_splices(sequences)) / 0.7).logsumexp(0)
    assert one_wall(energies, sequences, 0.7).log_weight == pytest.approx(float(exact), abs=1e-12)
    monkeypatch.setattr(domain_walls, "splice_energies", ignore_partial_windows)
    assert one_wall(energies, sequences, 0.7).log_weight != pytest.approx(float(exact), abs=1e-3)


def test_bounds_agree_with_published_values():
    assert free_energy_bound(1000, 3, 1.0, 0.5, 2) == pytest.approx(2 - 0.5 * math.log(999))
    assert crossing_length(window=3, max_energy=1.0, temperature=0.5, patterns=2) == pytest.approx(
        1 + math.exp(4)
    )
    assert crossing_length(2, 5.0, 1.0, 2) == pytest.approx(149.4, abs=0.05)
    assert crossing_length(2, 3.0, 1.0, 4) == pytest.approx(7.7, abs=0.05)
    assert crossing_length(2, 5.0, 0.5, 2) == pytest.approx(22027.5, abs=0.05)


def test_crossing_length_that_overflows_is_infinite():
    assert crossing_length(3, 10.0, 0.01, 2) == math.inf
    assert crossing_length(3, 0.0, 0.01, 2) == 2.0


@pytest.mark.parametrize("width", [1, 2, 3])
def test_stored_pattern_count_agrees_with_enumeration(width):
    sequences = stored_sequences(LONG, 7)
    energies = planted_energies(3, width, sequences)
    listed = int((energy_of(energies, enumerate_sequences(3, 7)) == 0).sum())
    assert stored_pattern_count(energies, 7) == listed
    assert stored_pattern_count(torch.zeros(2, 2), 200) == 2**200


@pytest.mark.parametrize("temperature", [0.2, 3.0])
@pytest.mark.parametrize(("patterns", "width"), [(UNIFORM, 2), (UNIFORM, 3), (OVERLAPPING, 3), (LONG, 4)])
def test_stored_pattern_decay_rate_agrees_with_long_chains(patterns, width, temperature):
    """Products of the transfer matrix give P(energy zero) at two lengths."""
    energies = planted_energies(3, width, stored_sequences(patterns, 12))
    weights = (-energies / temperature).exp().numpy()
    is_free = (energies == 0).double().numpy()

    def total(table, length):
        vector, log_scale = np.ones(table.size // 3), 0.0
        for _ in range(length - width + 1):
            vector = (table.reshape(-1, 3) * np.resize(vector, (table.size // 3, 3))).sum(1)
            log_scale += math.log(vector.max())
            vector = vector / vector.max()
        return math.log(vector.sum()) + log_scale

    log_probabilities = [total(is_free, length) - total(weights, length) for length in (2000, 2006)]
    rate = stored_pattern_decay_rate(energies, temperature)
    assert rate == pytest.approx(-(log_probabilities[1] - log_probabilities[0]) / 6, abs=1e-6)
    assert rate > 0


@pytest.mark.parametrize("temperature", [0.3, 4.0])
@pytest.mark.parametrize(
    "chain",
    [
        PottsChain.from_patterns([[0], [1]], 2),
        PottsChain.from_patterns([[0], [1], [2]], 3, 0.7),
        PottsChain.from_patterns([[0, 1, 2], [2, 1, 0]], 2),
        PottsChain.from_patterns([[0, 0], [0, 1]], 3),
    ],
)
def test_no_wall_decay_rate_agrees_with_long_chains(chain, temperature):
    """At low temperature the most stable label dominates only after thousands of windows."""
    rate = no_wall_decay_rate(chain, temperature)
    near, far = (chain.log_no_wall_probability(length, temperature) for length in (6 * 10**6, 12 * 10**6))
    assert rate == pytest.approx((near - far) / (6 * 10**6), rel=1e-6)
    assert rate > 0


def test_sparse_and_dense_eigenvalues_agree(monkeypatch):
    energies = planted_energies(3, 5, stored_sequences(LONG, 12))
    dense = stored_pattern_decay_rate(energies, 0.6)
    monkeypatch.setattr(potts_spectrum, "DENSE_STATES", 10)
    assert stored_pattern_decay_rate(energies, 0.6) == pytest.approx(dense, abs=1e-10)


COLD = 0.01


def test_decay_rates_at_low_temperature_are_precise():
    """The rates are far below the resolution of float64 near one."""
    energies = 1 - torch.eye(3, dtype=torch.float64)
    for temperature in (0.1, 0.04, 0.03, COLD):
        exact = math.log1p(2 * math.exp(-1 / temperature))
        assert stored_pattern_decay_rate(energies, temperature) == pytest.approx(exact, rel=1e-4)
    # The window 01 has the lower label of a tie, so 0 1 0 has no wall and 0 1 1 has one.
    assert no_wall_decay_rate(PottsChain(energies[:2, :2], [[0], [1]]), COLD) == pytest.approx(
        math.exp(-1 / COLD), rel=1e-9
    )
    # A constant energy does not change the distribution.
    assert no_wall_decay_rate(PottsChain(energies[:2, :2] + 8, [[0], [1]]), COLD) == pytest.approx(
        math.exp(-1 / COLD), rel=1e-9
    )


def test_decay_rates_below_the_resolution_are_rejected():
    chain = PottsChain.from_patterns([[0], [1], [2]], 4)
    assert no_wall_decay_rate(chain, 0.3) > 0
    expect_error(r"^temperature=0.01: .*27 states", no_wall_decay_rate, chain, COLD)
    expect_error(r"^temperature=0.01: .*27 states", stored_pattern_decay_rate, chain.energies, COLD)
    assert no_wall_decay_rate(PottsChain.from_patterns([[0]], 4, vocab_size=3), COLD) == 0.0


def test_leading_eigenvalue_of_a_defective_matrix_is_exact():
    """A free path joins 0101.. and 0011.., so the matrix is defective and float64 eigenvalues are imprecise."""
    is_free = np.zeros((2,) * 4)
    for sequence in ("01010101", "00110011", "01010011001"):
        windows = np.lib.stride_tricks.sliding_window_view([int(token) for token in sequence], 4)
        is_free[tuple(windows.T)] = 1.0
    matrix = potts_spectrum.transfer_matrix(is_free)
    assert np.abs(np.linalg.eigvals(matrix.toarray())).max() != pytest.approx(1, abs=1e-9)
    assert transfer_decay.compute_leading_eigenvalue(matrix, 1.0) == pytest.approx(1, abs=1e-14)


def test_decay_rate_of_one_token_windows_sums_over_tokens():
    assert stored_pattern_decay_rate(torch.tensor([0.0, 1.0, 2.0]), 1.0) == pytest.approx(
        math.log(1 + math.exp(-1) + math.exp(-2))
    )
    assert stored_pattern_decay_rate(torch.tensor([0.0, 1.0]), COLD) == pytest.approx(math.exp(-1 / COLD))


def test_forbidden_windows_prevent_decay_and_finite_energies_do_not():
    """Control: only infinite energies of other windows give a decay rate of zero."""
    energies = torch.full((2, 2), math.inf, dtype=torch.float64)
    energies.fill_diagonal_(0.0)
    sequences = stored_sequences(UNIFORM, 9)[:2]
    assert stored_pattern_decay_rate(energies, 0.5) == 0.0
    assert one_wall(energies, sequences, 0.5).log_weight == -math.inf
    assert stored_pattern_count(energies, 9) == 2
    rates = [stored_pattern_decay_rate(energies.clamp_max(cost), 0.5) for cost in (1.0, 3.0, 9.0)]
    assert all(rate > after > 0 for rate, after in pairwise(rates))


def test_stored_sequences_contain_no_duplicates():
    assert stored_sequences(OVERLAPPING, 4).tolist() == [[0, 0, 0, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
    expect_error(r"^patterns=", stored_sequences, PottsChain(torch.zeros(2, 2)), 4)


STORED = torch.tensor([[0, 0, 0], [1, 1, 1]])


test_errors_name_the_argument_that_violates_an_assumption = refusals(
    "^{}=",
    [
        (lambda: one_wall(torch.zeros(2, 2), STORED[:1], 1.0), "patterns"),
        (lambda: stored_pattern_count(torch.zeros(2, 2), 1), "length"),
        (lambda: stored_pattern_decay_rate(torch.ones(2, 2), 1.0), "energies"),
        (lambda: stored_pattern_decay_rate(1 - torch.eye(2), 1e-320), "temperature"),
        (lambda: one_wall(1 - torch.eye(2), STORED, 1e-320), "temperature"),
        (lambda: one_wall(1 - torch.eye(2), STORED.double(), 1.0), "patterns"),
    ],
)
