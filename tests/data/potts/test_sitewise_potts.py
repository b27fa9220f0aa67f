"""Chains with a table of their own at every window: against enumeration, and against chains of equal windows."""

import math

import pytest
import torch

from trialogue.data import PottsChain, SitewisePottsChain
from trialogue.data.potts import sitewise
from trialogue.errors import InputError
from trialogue.inference import Gibbs, run_chain
from trialogue.randomness import Streams, generator
from trialogue.testing.frequencies import weissman_radius

CASES = [(2, 2, 5), (3, 2, 4), (2, 3, 6), (3, 3, 4), (2, 1, 3), (2, 4, 4)]
T = 0.7


def random_chain(vocab: int, window: int, length: int, patterns=((0, 1), (1, 1))) -> SitewisePottsChain:
    shape = [length - window + 1] + [vocab] * window
    energies = 2 * torch.rand(shape, generator=generator(0, "sitewise", vocab, window), dtype=torch.float64)
    return SitewisePottsChain(energies, patterns)


def enumerated(chain: SitewisePottsChain) -> tuple[torch.Tensor, torch.Tensor, float]:
    """All sequences, their probabilities, and log Z, window by window from the definition."""
    states = torch.cartesian_prod(*[torch.arange(chain.vocab_size)] * chain.length).view(-1, chain.length)
    energies = torch.zeros(len(states), dtype=torch.float64)
    for place, table in enumerate(chain.energies):
        energies += table[tuple(states[:, place : place + chain.window].T)]
    return states, (-energies / T).softmax(0), float((-energies / T).logsumexp(0))


@pytest.mark.parametrize("case", CASES)
def test_everything_is_that_of_the_enumeration(case) -> None:
    chain = random_chain(*case)
    states, p, log_partition = enumerated(chain)
    assert chain.log_partition(T) == pytest.approx(log_partition, abs=1e-12)
    assert chain.free_energy(T) == pytest.approx(-T * log_partition)
    assert torch.allclose(chain.at(T).probabilities(), p, atol=1e-13)
    one_hot = torch.nn.functional.one_hot(states, chain.vocab_size).double()
    assert torch.allclose(chain.marginals(T), torch.einsum("s,siv->iv", p, one_hot), atol=1e-13)
    assert chain.mean_energy(T) == pytest.approx(float(p @ chain.energy(states)), abs=1e-12)
    assert chain.entropy(T) == pytest.approx(float(-(p * p.log()).sum()), abs=1e-11)
    for place, law in enumerate(chain.window_marginals(T)):
        for window in torch.cartesian_prod(*[torch.arange(chain.vocab_size)] * chain.window).view(
            -1, chain.window
        ):
            shown = (states[:, place : place + chain.window] == window).all(1)
            assert float(law[tuple(window)]) == pytest.approx(float(p[shown].sum()), abs=1e-13)
    walls = chain.domain_walls(states)
    assert torch.allclose(chain.wall_probabilities(T), (p[:, None] * walls).sum(0), atol=1e-13)
    assert chain.expected_domain_walls(T) == pytest.approx(float(p @ walls.sum(1).double()), abs=1e-12)
    runs = torch.where(walls.any(1), walls.int().argmax(1) if walls.shape[1] else 0, walls.shape[1])
    law = torch.zeros(walls.shape[1] + 1, dtype=torch.float64).index_add(0, runs, p)
    assert torch.allclose(chain.run_length_law(T), law, atol=1e-13)
    assert chain.no_wall_probability(T) == pytest.approx(float(law[-1]), abs=1e-13)


@pytest.mark.parametrize("case", CASES)
def test_conditionals_and_blocks_are_those_of_the_enumeration(case) -> None:
    chain = random_chain(*case)
    states, p, _ = enumerated(chain)
    law = chain.at(T)
    masked = torch.rand(3, chain.length, generator=generator(1, "masks")) < 0.5
    for row in range(3):
        tokens = states[[len(states) // (row + 2)]]
        fits = (states[:, ~masked[row]] == tokens[:, ~masked[row]]).all(1)
        found = law.log_probs(tokens, masked[[row]])[0].exp()
        for site in range(chain.length):
            shown = torch.zeros(chain.vocab_size, dtype=torch.float64).index_add(
                0, states[fits, site], p[fits]
            )
            assert torch.allclose(found[site], shown / p[fits].sum(), atol=1e-12)
        drawn = law.draw_block(
            tokens.expand(4000, -1), masked[[row]].expand(4000, -1), Streams(5, torch.arange(4000)).choose
        )
        assert torch.equal(drawn[:, ~masked[row]], tokens[:, ~masked[row]].expand(4000, -1))
        counts = torch.zeros(len(states))
        places = chain.vocab_size ** torch.arange(chain.length - 1, -1, -1)
        counts.index_add_(0, (drawn * places).sum(1), torch.ones(4000))
        truth = torch.where(fits, p, 0.0) / p[fits].sum()
        assert float((counts / 4000 - truth).abs().sum()) < weissman_radius(int(fits.sum()), 4000)


def test_samples_follow_the_law_and_depend_on_their_place() -> None:
    chain = random_chain(2, 3, 6)
    _, p, _ = enumerated(chain)
    drawn = chain.sample(20_000, T, seed=2)
    places = 2 ** torch.arange(5, -1, -1)
    shares = torch.bincount((drawn * places).sum(1), minlength=64).double() / 20_000
    assert float((shares - p).abs().sum()) < weissman_radius(64, 20_000)
    assert torch.equal(chain.sample(7, T, seed=2), drawn[:7])
    run = run_chain(Gibbs(), chain.at(T), start=drawn[:2000], steps=30, seed=3)
    moved = torch.bincount((run.tokens * places).sum(1), minlength=64).double() / 2000
    assert float((moved - p).abs().sum()) < weissman_radius(64, 2000)


def agrees_with_equal_windows(length: int = 7) -> bool:
    chain = PottsChain.from_patterns([[0, 1], [1, 2]], 3, 0.8, 3)
    same = SitewisePottsChain(chain.energies.expand(length - 2, 3, 3, 3), chain.patterns)
    pairs = [
        (same.log_partition(T), chain.log_partition(length, T)),
        (same.marginals(T), chain.marginals(length, T)),
        (same.wall_probabilities(T), chain.wall_probabilities(length, T)),
        (same.run_length_law(T), chain.run_length_law(length, T)),
    ]
    return all(torch.allclose(torch.as_tensor(a), torch.as_tensor(b), atol=1e-12) for a, b in pairs)


def test_equal_windows_are_those_of_a_chain_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert agrees_with_equal_windows()
    right = sitewise.SitewisePottsLaw.backward

    def without_the_last_window(law, known=None):
        return [*right(law, known)[1:], right(law, known)[-1]]

    monkeypatch.setattr(sitewise.SitewisePottsLaw, "backward", without_the_last_window)
    assert not agrees_with_equal_windows()


def test_a_wall_is_pinned_where_the_table_pays_for_it() -> None:
    """Two patterns, and one bond in the middle that costs what all others save: the wall is there."""
    energies = (1 - torch.eye(2, dtype=torch.float64)).repeat(9, 1, 1)
    energies[4] = torch.eye(2)
    chain = SitewisePottsChain(energies, [[0], [1]])
    pinned, plain = chain.at(0.2).site_marginals()[0].exp(), chain.wall_probabilities(0.2)
    assert torch.allclose(pinned, torch.full((10, 2), 0.5, dtype=torch.float64))
    assert plain.shape == (8,)
    assert chain.no_wall_probability(0.2) < math.exp(-4)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: SitewisePottsChain(torch.zeros(3)), r"^energies=\(3,\)"),
        (lambda: SitewisePottsChain(torch.zeros(3, 2, 3)), r"^energies=\(3, 2, 3\)"),
        (lambda: SitewisePottsChain(torch.zeros(0, 2, 2)), r"^energies=\(0, 2, 2\)"),
        (lambda: SitewisePottsChain(-torch.ones(3, 2, 2)), r"^energies=-1\.0"),
        (lambda: random_chain(2, 2, 4, None).wall_probabilities(1.0), "^patterns=None"),
        (lambda: random_chain(2, 2, 4).log_partition(0.0), r"^temperature=0\.0"),
        (lambda: random_chain(2, 2, 4).at(1e-309), "^temperature=1e-309: E / T overflows"),
        (lambda: random_chain(2, 2, 4).energy(torch.zeros(1, 5).long()), r"^tokens=\(1, 5\)"),
    ],
)
def test_bad_input(make, told: str) -> None:
    with pytest.raises(InputError, match=told):
        make()
