"""Tests of the map from models to Hamiltonians and its inverse by enumeration, and of wrong versions."""

import math

import numpy as np
import pytest
import torch

from one_line_errors import refusals
from trialogue.data import PottsChain, Table
from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, enumerate_sequences
from trialogue.randomness import generator
from trialogue.samplers import truncated
from trialogue_lab.theory.potts.greedy_patterns import greedy_patterns
from trialogue_lab.theory.potts.map import (
    ChainConditionals,
    context_log_probs,
    convert_to_autoregressive,
    convert_to_hamiltonian,
)

V, L = 3, 6
STATES = enumerate_sequences(V, L)


def random_oracle(width, *names, vocab=V):
    """Return a model with random conditionals for contexts of up to `width` tokens."""
    random = generator(0, "random oracle", width, *names)
    tables = [
        torch.rand([vocab] * (known + 1), generator=random, dtype=torch.float64) + 0.05
        for known in range(width + 1)
    ]
    return Table(lambda prefix: tables[min(width, len(prefix))][prefix[max(0, len(prefix) - width) :]], vocab)


def sequence_probabilities(oracle):
    """Return the probabilities (V^L,) of all sequences by the product of conditionals."""
    total = torch.zeros(len(STATES), dtype=torch.float64)
    context, rows = oracle.open(len(STATES), L), torch.arange(len(STATES))
    for place in range(L):
        at = torch.full_like(rows, place)
        scores = context.log_probs(context.features(STATES, at, at, rows))
        total += scores.gather(1, STATES[:, place, None])[:, 0]
    return total.exp()


def boltzmann(hamiltonian, temperature=1.0):
    return (-hamiltonian.energy(STATES) / temperature).softmax(0)


def distance(first, second):
    return float((first - second).abs().sum()) / 2


def random_chain(width, *names, vocab=V):
    random = generator(0, "random chain", width, *names)
    return PottsChain(2 * torch.rand([vocab] * width, generator=random, dtype=torch.float64))


@pytest.mark.parametrize("width", [0, 1, 2, 3])
def test_hamiltonian_with_one_constant_has_the_distribution_of_the_model(width):
    oracle = random_oracle(width)
    hamiltonian = convert_to_hamiltonian(oracle, width)
    assert hamiltonian.chain.window == width + 1
    assert float(hamiltonian.chain.energies.min()) == float(hamiltonian.boundary.min()) == 0.0
    assert distance(boltzmann(hamiltonian), sequence_probabilities(oracle)) < 1e-12
    constants = hamiltonian.boundary_offset + (L - width) * hamiltonian.offset
    assert torch.allclose(
        -hamiltonian.energy(STATES) - constants, sequence_probabilities(oracle).log(), rtol=0, atol=1e-12
    )
    assert hamiltonian.log_partition(L, 1.0) == pytest.approx(constants, abs=1e-12)
    for temperature in (0.3, 2.0):
        listed = float((-hamiltonian.energy(STATES) / temperature).logsumexp(0))
        assert hamiltonian.log_partition(L, temperature) == pytest.approx(listed, abs=1e-12)


@pytest.mark.parametrize("width", [0, 1, 2, 3])
def test_map_and_inverse_give_the_same_model(width):
    oracle = random_oracle(width)
    back = convert_to_autoregressive(convert_to_hamiltonian(oracle, width), L, 1.0)
    assert isinstance(back, Autoregressive)
    assert distance(sequence_probabilities(back), sequence_probabilities(oracle)) < 1e-12
    for known in range(L):
        prefixes = enumerate_sequences(V, known)
        lengths = torch.full((len(prefixes),), known)
        first, second = (each.next_log_probs(prefixes, lengths) for each in (back, oracle))
        assert float((first.exp() - second.exp()).abs().max()) < 1e-12


def test_wider_window_gives_the_same_distribution():
    oracle = random_oracle(1)
    assert distance(boltzmann(convert_to_hamiltonian(oracle, 3)), sequence_probabilities(oracle)) < 1e-12


@pytest.mark.parametrize("width", [1, 2])
def test_constants_per_context_give_another_distribution(width):
    oracle = random_oracle(width)
    found = boltzmann(convert_to_hamiltonian(oracle, width, "per-context"))
    likeliest = torch.zeros(len(STATES), dtype=torch.float64)
    for place in range(L):
        likeliest += oracle.next_log_probs(STATES, torch.full((len(STATES),), place)).amax(1)
    assert distance(found, (sequence_probabilities(oracle).log() - likeliest).softmax(0)) < 1e-12
    assert distance(found, sequence_probabilities(oracle)) > 1e-3
    chain = convert_to_hamiltonian(oracle, width, "per-context").chain
    assert not chain.energies.amin(-1).any()


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_temperature_of_the_hamiltonian_differs_from_temperature_per_token(temperature):
    oracle = random_oracle(1)
    hamiltonian = convert_to_hamiltonian(oracle, 1)
    exact = boltzmann(hamiltonian, temperature)
    assert (
        distance(sequence_probabilities(convert_to_autoregressive(hamiltonian, L, temperature)), exact)
        < 1e-12
    )
    assert distance(sequence_probabilities(truncated(oracle, temperature=temperature)), exact) > 1e-3


@pytest.mark.parametrize("width", [1, 2, 3, 6])
@pytest.mark.parametrize("temperature", [0.2, 1.0])
def test_conditionals_of_a_chain_agree_with_its_distribution(width, temperature):
    chain = random_chain(width)
    oracle = convert_to_autoregressive(chain, L, temperature)
    probabilities = chain.at(L, temperature).probabilities()
    assert distance(sequence_probabilities(oracle), probabilities) < 1e-12
    joint = Table(probabilities.view([V] * L))
    lengths = torch.arange(L).repeat(5)
    tokens = STATES[torch.randperm(len(STATES), generator=generator(1, "rows"))[: len(lengths)]]
    # Tokens after the prefix have no effect.
    assert torch.allclose(
        oracle.next_log_probs(tokens, lengths), joint.next_log_probs(tokens, lengths), rtol=0, atol=1e-10
    )


def test_long_chain_at_low_temperature_has_finite_conditionals():
    chain = PottsChain.from_patterns([[0, 1, 2], [2, 1, 0]], window=3, penalty=1.0)
    oracle = convert_to_autoregressive(chain, 1000, 0.01)
    tokens = torch.tensor([0, 1, 2]).repeat(334)[None, :1000]
    scores = oracle.next_log_probs(tokens.expand(1000, -1), torch.arange(1000))
    assert not bool(torch.isnan(scores).any())
    assert torch.allclose(scores.logsumexp(1), torch.zeros(1000, dtype=torch.float64), atol=1e-12)
    assert float(scores[3:].gather(1, tokens[0, 3:, None]).min()) > -1e-9


class LateMessages(ChainConditionals):
    """A wrong oracle whose sums over later tokens omit one window."""

    def __init__(self, chain, length, temperature):
        super().__init__(chain, length, temperature)
        self._behind = torch.cat((self._behind[:1], self._behind[:-1]))


def test_oracle_with_wrong_messages_has_another_distribution():
    chain = random_chain(3)
    assert (
        distance(sequence_probabilities(LateMessages(chain, L, 0.5)), chain.at(L, 0.5).probabilities()) > 1e-3
    )


@pytest.mark.parametrize("width", [0, 1, 2])
def test_greedy_patterns_are_the_sequences_of_zero_energy(width):
    for name in range(2):
        oracle = random_oracle(width, name)
        log_probs = context_log_probs(oracle, width)
        patterns = greedy_patterns(log_probs)
        chain = convert_to_hamiltonian(oracle, width, "per-context").chain
        assert int((chain.energy(STATES) == 0).sum()) == V**width  # one for every start
        ends = set()
        for start in enumerate_sequences(V, width).tolist():
            tokens = list(start)
            for _ in range(40):
                tokens.append(
                    int(oracle.next_log_probs(torch.tensor([tokens]), torch.tensor([len(tokens)])).argmax())
                )
            assert float(chain.energy(torch.tensor([tokens]))[0]) == 0.0
            ends |= {tuple(tokens[place : place + 3]) for place in range(20, 37)}
        followed = {
            tuple(pattern.tokens.roll(-phase).repeat(3)[:3].tolist())
            for pattern in patterns
            for phase in range(len(pattern.tokens))
        }
        assert followed == ends
        greedy = torch.zeros(V**width, V**width, dtype=torch.float64)
        token = log_probs.argmax(1)
        contexts = torch.arange(V**width)
        greedy[contexts, (contexts * V + token) % V**width] = log_probs.amax(1).exp()
        leading = float(torch.linalg.eigvals(greedy).abs().max())
        assert -math.log(leading) == pytest.approx(min(pattern.decay_rate for pattern in patterns), abs=1e-9)


def test_patterns_of_a_deterministic_model_never_decay():
    log_probs = torch.full((2, 2), -math.inf, dtype=torch.float64).fill_diagonal_(0.0)
    patterns = greedy_patterns(log_probs)
    assert [pattern.tokens.tolist() for pattern in patterns] == [[0], [1]]
    assert [pattern.decay_rate for pattern in patterns] == [0.0, 0.0]


CERTAIN = Table(lambda prefix: [1.0, 0.0] if prefix and prefix[-1] == 0 else [0.5, 0.5], 2)


test_errors_name_the_argument_without_a_map = refusals(
    "^{}=",
    [
        (lambda: convert_to_hamiltonian(CERTAIN, 1), "oracle"),
        (lambda: convert_to_hamiltonian(random_oracle(2), 1), "context"),
        (lambda: convert_to_hamiltonian(Table([[0.5, 0.5], [0.5, 0.5]]), 1), "oracle.max_length"),
        (lambda: convert_to_hamiltonian(Table(lambda prefix: [1, 1], 2, eos=1), 1), "oracle.eos"),
        (lambda: convert_to_autoregressive(random_chain(3), 9, 0.0), "temperature"),
        (lambda: greedy_patterns(torch.zeros(3, 2)), "log_probs"),
        (lambda: greedy_patterns(torch.full((2, 2), math.nan)), "log_probs"),
    ],
)


def oracle_with_lag(distance: int) -> Table:
    """Return a model of two tokens in which each token depends only on the token `distance` places before."""

    def probabilities(prefix: tuple[int, ...]) -> list[float]:
        return [0.3, 0.7] if len(prefix) >= distance and prefix[-distance] else [0.6, 0.4]

    return Table(probabilities, 2)


@pytest.mark.parametrize(("distance", "window", "further"), [(3, 1, 2), (7, 1, 6), (7, 0, 7)])
def test_oracle_with_a_longer_context_has_no_map(distance: int, window: int, further: int) -> None:
    with pytest.raises(
        InputError, match=f"^context={window}: the token {further} positions before the window changes"
    ):
        convert_to_hamiltonian(oracle_with_lag(distance), window)


def test_context_of_the_oracle_is_checked_up_to_its_window() -> None:
    for distance in (1, 2, 3):
        assert convert_to_hamiltonian(oracle_with_lag(distance), distance).chain.window == distance + 1
    with pytest.raises(InputError, match=r"^context=10+: there are 2\^10+1 contexts"):
        convert_to_hamiltonian(oracle_with_lag(1), 10**30)
    # With a larger vocabulary only a sample of the contexts is checked.
    wide = Table(lambda prefix: np.roll(np.arange(1, 31), prefix[-3] if len(prefix) > 2 else 0), 30)
    with pytest.raises(InputError, match=r"^context=1: the token 2 positions before the window changes"):
        convert_to_hamiltonian(wide, 1)
