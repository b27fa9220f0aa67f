"""The map and its inverse by enumeration: laws of all sequences, exact laws of walks, and readings that are neither."""

import math

import numpy as np
import pytest
import torch

from one_line_errors import refusals
from trialogue.data import PottsChain, Table
from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, whole_sequences
from trialogue.randomness import generator
from trialogue.samplers import truncated
from trialogue_lab.theory.potts.greedy_patterns import greedy_patterns
from trialogue_lab.theory.potts.map import (
    ChainConditionals,
    autoregressive_of,
    context_log_probs,
    hamiltonian_of,
)

V, L = 3, 6
STATES = whole_sequences(V, L)


def random_oracle(width, *names, vocab=V):
    """A model of `width` tokens of context with random conditionals, also for the shorter contexts at the start."""
    draws = generator(0, "random oracle", width, *names)
    laws = [
        torch.rand([vocab] * (known + 1), generator=draws, dtype=torch.float64) + 0.05
        for known in range(width + 1)
    ]
    return Table(lambda prefix: laws[min(width, len(prefix))][prefix[max(0, len(prefix) - width) :]], vocab)


def log_probs_from_scores(oracle):
    """Probabilities (V^L,) of all sequences by the product of conditionals."""
    total = torch.zeros(len(STATES), dtype=torch.float64)
    context, rows = oracle.open(len(STATES), L), torch.arange(len(STATES))
    for place in range(L):
        at = torch.full_like(rows, place)
        answer = context.log_probs(context.features(STATES, at, at, rows))
        total += answer.gather(1, STATES[:, place, None])[:, 0]
    return total.exp()


def boltzmann(hamiltonian, temperature=1.0):
    return (-hamiltonian.energy(STATES) / temperature).softmax(0)


def distance(first, second):
    return float((first - second).abs().sum()) / 2


def random_chain(width, *names, vocab=V):
    draws = generator(0, "random chain", width, *names)
    return PottsChain(2 * torch.rand([vocab] * width, generator=draws, dtype=torch.float64))


@pytest.mark.parametrize("width", [0, 1, 2, 3])
def test_with_one_constant_the_law_of_the_hamiltonian_is_the_model(width):
    oracle = random_oracle(width)
    hamiltonian = hamiltonian_of(oracle, width)
    assert hamiltonian.chain.window == width + 1
    assert float(hamiltonian.chain.energies.min()) == float(hamiltonian.boundary.min()) == 0.0
    assert distance(boltzmann(hamiltonian), log_probs_from_scores(oracle)) < 1e-12
    constants = hamiltonian.boundary_offset + (L - width) * hamiltonian.offset
    assert torch.allclose(
        -hamiltonian.energy(STATES) - constants, log_probs_from_scores(oracle).log(), rtol=0, atol=1e-12
    )
    assert hamiltonian.log_partition(L, 1.0) == pytest.approx(constants, abs=1e-12)
    for temperature in (0.3, 2.0):
        listed = float((-hamiltonian.energy(STATES) / temperature).logsumexp(0))
        assert hamiltonian.log_partition(L, temperature) == pytest.approx(listed, abs=1e-12)


@pytest.mark.parametrize("width", [0, 1, 2, 3])
def test_there_and_back(width):
    oracle = random_oracle(width)
    back = autoregressive_of(hamiltonian_of(oracle, width), L, 1.0)
    assert isinstance(back, Autoregressive)
    assert distance(log_probs_from_scores(back), log_probs_from_scores(oracle)) < 1e-12
    for known in range(L):
        prefixes = whole_sequences(V, known)
        lengths = torch.full((len(prefixes),), known)
        first, second = (one.next_log_probs(prefixes, lengths) for one in (back, oracle))
        assert float((first.exp() - second.exp()).abs().max()) < 1e-12


def test_a_window_may_be_wider_than_the_model_looks():
    oracle = random_oracle(1)
    assert distance(boltzmann(hamiltonian_of(oracle, 3)), log_probs_from_scores(oracle)) < 1e-12


@pytest.mark.parametrize("width", [1, 2])
def test_a_constant_for_every_context_is_another_law(width):
    oracle = random_oracle(width)
    found = boltzmann(hamiltonian_of(oracle, width, "per-context"))
    likeliest = torch.zeros(len(STATES), dtype=torch.float64)
    for place in range(L):
        likeliest += oracle.next_log_probs(STATES, torch.full((len(STATES),), place)).amax(1)
    assert distance(found, (log_probs_from_scores(oracle).log() - likeliest).softmax(0)) < 1e-12
    assert distance(found, log_probs_from_scores(oracle)) > 1e-3
    chain = hamiltonian_of(oracle, width, "per-context").chain
    assert not chain.energies.amin(-1).any()


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_another_temperature_is_not_that_of_every_token(temperature):
    oracle = random_oracle(1)
    hamiltonian = hamiltonian_of(oracle, 1)
    exact = boltzmann(hamiltonian, temperature)
    assert distance(log_probs_from_scores(autoregressive_of(hamiltonian, L, temperature)), exact) < 1e-12
    assert distance(log_probs_from_scores(truncated(oracle, temperature=temperature)), exact) > 1e-3


@pytest.mark.parametrize("width", [1, 2, 3, 6])
@pytest.mark.parametrize("temperature", [0.2, 1.0])
def test_conditionals_of_a_chain_are_those_of_its_law(width, temperature):
    chain = random_chain(width)
    oracle = autoregressive_of(chain, L, temperature)
    law = chain.at(L, temperature).probabilities()
    assert distance(log_probs_from_scores(oracle), law) < 1e-12
    joint = Table(law.view([V] * L))
    lengths = torch.arange(L).repeat(5)
    tokens = STATES[torch.randperm(len(STATES), generator=generator(1, "rows"))[: len(lengths)]]
    # Tokens behind the prefix mean nothing.
    assert torch.allclose(
        oracle.next_log_probs(tokens, lengths), joint.next_log_probs(tokens, lengths), rtol=0, atol=1e-10
    )


def test_a_long_cold_chain_has_finite_answers():
    chain = PottsChain.from_patterns([[0, 1, 2], [2, 1, 0]], window=3, penalty=1.0)
    oracle = autoregressive_of(chain, 1000, 0.01)
    tokens = torch.tensor([0, 1, 2]).repeat(334)[None, :1000]
    answers = oracle.next_log_probs(tokens.expand(1000, -1), torch.arange(1000))
    assert not bool(torch.isnan(answers).any())
    assert torch.allclose(answers.logsumexp(1), torch.zeros(1000, dtype=torch.float64), atol=1e-12)
    assert float(answers[3:].gather(1, tokens[0, 3:, None]).min()) > -1e-9


class LateMessages(ChainConditionals):
    """Broken on purpose: what is to come is summed over one window too few."""

    def __init__(self, chain, length, temperature):
        super().__init__(chain, length, temperature)
        self._behind = torch.cat((self._behind[:1], self._behind[:-1]))


@pytest.mark.parametrize("broken", [LateMessages])
def test_a_broken_oracle_is_not_the_law(broken):
    chain = random_chain(3)
    assert distance(log_probs_from_scores(broken(chain, L, 0.5)), chain.at(L, 0.5).probabilities()) > 1e-3


@pytest.mark.parametrize("width", [0, 1, 2])
def test_greedy_patterns_are_the_sequences_without_energy(width):
    for name in range(2):
        oracle = random_oracle(width, name)
        log_probs = context_log_probs(oracle, width)
        patterns = greedy_patterns(log_probs)
        chain = hamiltonian_of(oracle, width, "per-context").chain
        assert int((chain.energy(STATES) == 0).sum()) == V**width  # one for every start
        ends = set()
        for start in whole_sequences(V, width).tolist():
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


def test_a_model_that_is_certain_stays_for_ever():
    log_probs = torch.full((2, 2), -math.inf, dtype=torch.float64).fill_diagonal_(0.0)
    patterns = greedy_patterns(log_probs)
    assert [pattern.tokens.tolist() for pattern in patterns] == [[0], [1]]
    assert [pattern.decay_rate for pattern in patterns] == [0.0, 0.0]


CERTAIN = Table(lambda prefix: [1.0, 0.0] if prefix and prefix[-1] == 0 else [0.5, 0.5], 2)


test_what_has_no_map_is_named = refusals(
    "^{}=",
    [
        (lambda: hamiltonian_of(CERTAIN, 1), "oracle"),
        (lambda: hamiltonian_of(random_oracle(2), 1), "context"),
        (lambda: hamiltonian_of(Table([[0.5, 0.5], [0.5, 0.5]]), 1), "oracle.max_length"),
        (lambda: hamiltonian_of(Table(lambda prefix: [1, 1], 2, eos=1), 1), "oracle.eos"),
        (lambda: autoregressive_of(random_chain(3), 9, 0.0), "temperature"),
        (lambda: greedy_patterns(torch.zeros(3, 2)), "log_probs"),
    ],
)


def looking_back(distance: int) -> Table:
    """Two tokens, the next one by the one `distance` tokens back alone."""

    def law(prefix: tuple[int, ...]) -> list[float]:
        return [0.3, 0.7] if len(prefix) >= distance and prefix[-distance] else [0.6, 0.4]

    return Table(law, 2)


@pytest.mark.parametrize(("distance", "window", "further"), [(3, 1, 2), (7, 1, 6), (7, 0, 7)])
def test_an_oracle_that_looks_further_back_has_no_map(distance: int, window: int, further: int) -> None:
    with pytest.raises(
        InputError, match=f"^context={window}: the token {further} positions further back changes"
    ):
        hamiltonian_of(looking_back(distance), window)


def test_an_oracle_is_asked_as_far_back_as_its_window_needs() -> None:
    for distance in (1, 2, 3):
        assert hamiltonian_of(looking_back(distance), distance).chain.window == distance + 1
    with pytest.raises(InputError, match=r"^context=10+: there are 2\^10+1 contexts"):
        hamiltonian_of(looking_back(1), 10**30)
    # Of larger vocabularies not all contexts are listed: some are drawn.
    wide = Table(lambda prefix: np.roll(np.arange(1, 31), prefix[-3] if len(prefix) > 2 else 0), 30)
    with pytest.raises(InputError, match=r"^context=1: the token 2 positions further back changes"):
        hamiltonian_of(wide, 1)
