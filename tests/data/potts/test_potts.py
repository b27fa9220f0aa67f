"""Compare Potts chains with sums over all sequences and with closed forms, and test invalid arguments."""

import math
import pickle

import pytest
import torch

from data.potts import potts_enumeration as by_hand
from refusals import expect_error
from trialogue.data import PottsChain
from trialogue.data.potts import messages as potts_messages
from trialogue.data.potts.messages import Messages

CHAINS = {
    "neighbours": PottsChain(by_hand.random_table(1, 3, 2), [[0], [1], [2]]),
    "periods": PottsChain(by_hand.random_table(2, 2, 3), [[0, 1], [1, 1]]),
    "ties": PottsChain.from_patterns([[0, 1, 2], [0, 0, 1]], window=3, penalty=0.8),
    "independent": PottsChain(by_hand.random_table(3, 3, 1), [[0, 1], [2, 2]]),
    "wide": PottsChain(by_hand.random_table(4, 2, 4), [[0, 1, 1]]),
}
LENGTHS = {"neighbours": 5, "periods": 7, "ties": 6, "independent": 4, "wide": 6}
TEMPERATURES = [0.05, 0.7, 30.0]


@pytest.fixture(params=CHAINS)
def name(request):
    return request.param


def close(first, second, tolerance=1e-12):
    first, second = (torch.as_tensor(one, dtype=torch.float64) for one in (first, second))
    torch.testing.assert_close(first, second, rtol=tolerance, atol=tolerance)


def check_thermodynamics(chain: PottsChain, length: int, temperature: float):
    distribution, log_z = by_hand.distribution(chain, length, temperature)
    x = by_hand.sequences(chain.vocab_size, length)
    energies = torch.tensor([by_hand.energy(chain, one) for one in x.tolist()], dtype=torch.float64)
    close(chain.energy(x), energies)
    close(chain.log_partition(length, temperature), log_z)
    close(chain.free_energy(length, temperature), -temperature * log_z)
    close(chain.mean_energy(length, temperature), distribution @ energies)
    close(chain.entropy(length, temperature), torch.special.entr(distribution).sum())
    sites = torch.nn.functional.one_hot(x, chain.vocab_size).double()
    close(chain.marginals(length, temperature), torch.einsum("s,slv->lv", distribution, sites))
    windows = chain.window_marginals(length, temperature)
    for begin, table in enumerate(windows):
        expected = torch.zeros_like(table)
        index = tuple(x[:, begin : begin + chain.window].T)
        close(table, expected.index_put(index, distribution, accumulate=True))


def check_walls(chain: PottsChain, length: int, temperature: float):
    distribution, _ = by_hand.distribution(chain, length, temperature)
    x, walls = by_hand.sequences(chain.vocab_size, length), by_hand.walls(chain, length)
    assert torch.equal(chain.domain_walls(x), walls)
    close(chain.wall_probabilities(length, temperature), distribution @ walls.double())
    close(chain.expected_domain_walls(length, temperature), (distribution @ walls.double()).sum())
    first = torch.cat((walls, torch.ones(len(x), 1, dtype=torch.bool)), 1).double().argmax(1)
    runs = torch.zeros(walls.shape[1] + 1, dtype=torch.float64).index_add(0, first, distribution)
    close(chain.run_length_distribution(length, temperature), runs)
    close(chain.no_wall_probability(length, temperature), runs[-1])


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_thermodynamics_against_all_sequences(name, temperature):
    check_thermodynamics(CHAINS[name], LENGTHS[name], temperature)


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_walls_against_all_sequences(name, temperature):
    check_walls(CHAINS[name], LENGTHS[name], temperature)


def test_chain_with_one_window(name):
    chain = CHAINS[name]
    check_thermodynamics(chain, chain.window, 0.7)
    assert chain.wall_probabilities(chain.window, 0.7).shape == (0,)
    assert chain.expected_domain_walls(chain.window, 0.7) == 0
    close(chain.run_length_distribution(chain.window, 0.7), torch.ones(1))


def test_labels_of_a_pattern_in_any_phase():
    chain = PottsChain.from_patterns([[0, 1, 2, 3], [3, 2, 1, 0]], window=3)
    for pattern, tokens in enumerate(chain.patterns):
        for phase in range(4):
            x = tokens[(torch.arange(20) + phase) % 4][None]
            assert chain.energy(x) == 0
            assert not chain.domain_walls(x).any()
            assert set(chain.followed(x).flatten().tolist()) == {4 * pattern + phase}
    slip = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 2, 3, 0, 1, 2, 3]])
    assert chain.domain_walls(slip).sum() >= 1
    for site in range(5):
        labels = chain.window_labels(site)
        assert labels[3, 0, 1] == by_hand.label(chain, [3, 0, 1], site)


def test_pattern_energies_are_distances_to_the_nearest_window():
    chain = PottsChain.from_patterns([[0, 1], [2, 2]], window=3, penalty=0.5)
    stored = {(0, 1, 0), (1, 0, 1), (2, 2, 2)}
    for window in by_hand.sequences(3, 3).tolist():
        nearest = min(sum(a != b for a, b in zip(window, one, strict=True)) for one in stored)
        assert chain.energies[tuple(window)] == 0.5 * nearest
    assert chain.max_energy == 1.0


def neighbours(vocab: int, coupling: float) -> PottsChain:
    return PottsChain(
        coupling * (1 - torch.eye(vocab, dtype=torch.float64)), [[token] for token in range(vocab)]
    )


@pytest.mark.parametrize("temperature", [1e-3, 0.01, 0.5, 5.0])
@pytest.mark.parametrize("length", [2, 50, 1_000_000])
def test_nearest_neighbor_chain_matches_closed_form(length, temperature):
    """The closed form is Z = V (1 + (V - 1) e^{-J/T})^(L - 1), claim S0-T1.1 (3)."""
    odds = 2 * math.exp(-1 / temperature)
    chain = neighbours(3, 1.0)
    close(chain.log_partition(length, temperature), math.log(3) + (length - 1) * math.log1p(odds), 1e-10)
    close(chain.mean_energy(length, temperature), (length - 1) * odds / (1 + odds), 1e-9)
    close(
        chain.marginals(min(length, 50), temperature),
        torch.full((min(length, 50), 3), 1 / 3, dtype=torch.float64),
    )


@pytest.mark.parametrize("temperature", [0.01, 0.03, 0.05, 0.3, 1.0, 10.0])
def test_nearest_neighbor_correlation_length_matches_closed_form(temperature):
    weight = math.exp(-1 / temperature)
    expected = 1 / (math.log1p(3 * weight) - math.log1p(-weight))
    assert neighbours(4, 1.0).correlation_length(temperature) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("vocab", "window", "temperature"), [(3, 3, 0.4), (2, 4, 0.3), (5, 3, 0.6), (23, 3, 1.0)]
)
def test_correlation_length_bounds_the_decay_of_correlations(vocab, window, temperature):
    """The decay is the slope of the largest log connected correlation over pairs of values, far from the ends."""
    chain = PottsChain(by_hand.random_table(6, vocab, window))
    xi = chain.correlation_length(temperature)
    states = vocab ** (window - 1)
    distribution = chain.window_marginals(1001, temperature)[500].reshape(states, vocab)
    forward = distribution / distribution.sum(1, keepdim=True)
    matrix = torch.zeros(states, states, dtype=torch.float64)
    target = (torch.arange(states)[:, None] * vocab + torch.arange(vocab)) % states
    matrix.scatter_(1, target, forward)
    moduli = torch.linalg.eigvals(matrix).abs().sort(descending=True).values
    assert xi == pytest.approx(-1 / math.log(float(moduli[1])), rel=1e-6)


def test_degenerate_correlation_lengths():
    assert CHAINS["independent"].correlation_length(0.5) == 0
    last_token_only = by_hand.random_table(0, 3, 1).expand(3, 3, 3)
    assert PottsChain(last_token_only).correlation_length(0.5) == 0
    # A cycle of three: the second eigenvalue is complex.
    cycle = PottsChain.from_patterns([[0, 1, 2]], window=2)
    assert 1 < cycle.correlation_length(0.3) < 100


def test_repeated_messages_equal_computed_messages(monkeypatch):
    """Disable the detection of repeated messages and compare the results."""
    chain = PottsChain(by_hand.random_table(8, 3, 3), [[0, 1], [2, 1]])
    computed = (
        chain.log_partition(2000, 1.0),
        chain.mean_energy(2000, 1.0),
        chain.expected_domain_walls(2000, 1.0),
    )
    assert len(chain.messages(1.0).backward_table()) < 200
    monkeypatch.setattr(
        potts_messages._Iterates, "_digest", lambda self, place: str((id(self), place)).encode()
    )
    plain = PottsChain(chain.energies, chain.patterns)
    assert len(plain.messages(1.0).backward_table()) == 1
    again = (
        plain.log_partition(2000, 1.0),
        plain.mean_energy(2000, 1.0),
        plain.expected_domain_walls(2000, 1.0),
    )
    assert len(plain.messages(1.0).backward_table()) == 1999
    close(torch.tensor(computed), torch.tensor(again), 1e-12)


@pytest.mark.parametrize("temperature", [0.002, 0.01])
def test_rare_walls_do_not_underflow(temperature):
    """A wall between two uniform patterns has a probability of about e^{-cost/T}, far below 2^-53."""
    chain = PottsChain.from_patterns([[0], [1]], window=3, penalty=0.5)
    probability = float(chain.wall_probabilities(9, temperature)[3])
    # Splices 0..01..1 alone: two windows of one wrong token each.
    assert math.log(probability) == pytest.approx(-1.0 / temperature, rel=1e-3)
    assert chain.no_wall_probability(9, temperature) == pytest.approx(1)
    distribution = chain.run_length_distribution(9, temperature)
    assert float(distribution[:-1].max()) < 1e-40
    assert float(distribution[3]) > 0


def test_chains_can_be_pickled():
    chain = PottsChain(by_hand.random_table(1, 3, 2), [[0], [1]])
    chain.log_partition(5, 0.5)
    again = pickle.loads(pickle.dumps(chain))
    assert again.log_partition(5, 0.5) == chain.log_partition(5, 0.5)


TABLE = by_hand.random_table(1, 3, 2)
CHAIN = PottsChain(TABLE)


@pytest.mark.parametrize(
    ("make", "field", "message"),
    [
        (lambda: PottsChain(TABLE - 5), "energies", "at least 0"),
        (lambda: PottsChain(TABLE * math.nan), "energies", "finite"),
        (lambda: PottsChain(torch.zeros(2, 3)), "energies", "W axes of one size V"),
        (lambda: PottsChain(torch.zeros(1, 1)), "energies", "at least 2"),
        (lambda: PottsChain(TABLE, [[0, 3]]), "patterns", "vocab_size - 1 = 2"),
        (lambda: PottsChain.from_patterns([[0, 1], [0]]), "patterns", "equal length"),
        (lambda: PottsChain.from_patterns([]), "patterns", "at least one"),
        (lambda: PottsChain.from_patterns([[0.5]]), "patterns", "token ids"),
        (lambda: PottsChain.from_patterns([[0, 1]], penalty=-1), "penalty", "at least 0"),
        (lambda: PottsChain.from_patterns([[0, 0]]), "vocab_size", "only token 0"),
        (lambda: PottsChain.from_patterns([[0, 9]], window=9), "window", "a vocabulary of at most 6"),
        (lambda: CHAIN.log_partition(1, 1.0), "length", "at least 2"),
        (lambda: CHAIN.at(1.5, 1.0), "length", "integer"),
        (lambda: CHAIN.marginals(5, 0.0), "temperature", "above 0"),
        (lambda: neighbours(20, 1.0).correlation_length(0.01), "temperature", "use a higher one"),
        (lambda: CHAIN.correlation_length(1e-320), "temperature", "overflows"),
        (lambda: CHAIN.energy(torch.tensor([[0, 3]])), "tokens", "V - 1 = 2"),
        (lambda: CHAIN.energy(torch.tensor([[0]])), "tokens", "L at least 2"),
        (lambda: CHAIN.expected_domain_walls(5, 1.0), "patterns", "pass patterns"),
        (lambda: CHAIN.at(30, 1.0).states(), "sites", "too many"),
        (lambda: CHAIN.window_marginals(10**9, 1.0), "length", "at most"),
        (lambda: PottsChain.from_patterns([[0], [1]]).expected_domain_walls(10**9, 1.0), "length", "at most"),
        (
            lambda: PottsChain.from_patterns([[0], [1]]).run_length_distribution(10**9, 1.0),
            "length",
            "at most",
        ),
    ],
)
def test_invalid_input_raises_one_line_errors(make, field, message):
    assert expect_error(message, make).field == field


@pytest.mark.parametrize("temperature", [0.05, 0.4, 3.0])
def test_periodic_run_weights_equal_computed_run_weights(temperature):
    """The lengths exceed the first repetition and cover all phases of the period."""
    for patterns, window in (([[0], [1]], 2), ([[0, 0, 1], [1, 1, 0]], 4), ([[0, 1, 2], [2, 1, 0]], 3)):
        chain = PottsChain.from_patterns(patterns, window)
        for length in (window, window + 1, 500, 501, 502):
            by_window = chain.run_length_distribution(length, temperature)[-1]
            found = chain.log_no_wall_probability(length, temperature)
            assert found == pytest.approx(float(by_window.log()), rel=1e-9, abs=1e-12)


def test_run_weights_take_constant_time_per_period():
    chain = PottsChain.from_patterns([[0], [1]], 2)
    kept = chain.log_no_wall_probability(10**12, 0.3)
    assert kept == pytest.approx(1000 * chain.log_no_wall_probability(10**9, 0.3), rel=1e-6)


def test_messages_that_do_not_fit_into_memory_are_rejected(monkeypatch):
    monkeypatch.setattr(potts_messages, "MAX_MESSAGES", 30)
    log_weights = -by_hand.random_table(1, 3, 2) / 0.7
    assert math.isfinite(Messages(log_weights).log_partition(9))
    expect_error("use at most 9 windows", Messages(log_weights).log_partition, 10)
