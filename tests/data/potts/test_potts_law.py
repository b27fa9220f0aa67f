"""The distribution of a Potts chain of one length: its conditionals, whatever is masked, and joint draws of blocks."""

import pytest
import torch

from data.potts import potts_enumeration as by_hand
from trialogue.data import PottsChain
from trialogue.enumeration import Enumeration
from trialogue.errors import InputError
from trialogue.oracles import Energy, Joint, Masked
from trialogue.randomness import Streams, generator
from trialogue.samplers import BlockGibbs, Gibbs, run_chain
from trialogue.samplers.chains.simulation.heat_bath import HeatBath
from trialogue.samplers.exact import transition_matrix
from trialogue.testing.frequencies import l1_distance, weissman_radius

CHAINS = {
    "neighbours": (PottsChain(by_hand.random_table(1, 3, 2)), 4),
    "three": (PottsChain(by_hand.random_table(2, 2, 3)), 6),
    "independent": (PottsChain(by_hand.random_table(3, 3, 1)), 4),
    "wide": (PottsChain(by_hand.random_table(4, 2, 4)), 6),
    "one-window": (PottsChain(by_hand.random_table(5, 2, 4)), 4),
}
TEMPERATURE = 0.6


@pytest.fixture(params=CHAINS)
def case(request):
    chain, length = CHAINS[request.param]
    distribution, _ = by_hand.distribution(chain, length, TEMPERATURE)
    return chain.at(length, TEMPERATURE), by_hand.sequences(chain.vocab_size, length), distribution


def close(first, second, tolerance=1e-12):
    torch.testing.assert_close(first, second, rtol=tolerance, atol=tolerance)


def conditional(x, distribution, row, masked):
    """The distribution (V^L,) given the sites of `x[row]` that are not masked."""
    same = (x[:, ~masked] == x[row, ~masked]).all(1)
    return distribution * same / (distribution * same).sum()


def some_masks(x):
    masks = torch.rand(len(x), x.shape[1], generator=generator(1, "masks")) < 0.5
    masks[0], masks[1] = False, True
    return masks


def test_it_answers_every_protocol(case):
    model, x, distribution = case
    assert isinstance(model, Masked)
    assert isinstance(model, Energy)
    assert isinstance(model, Joint)
    assert torch.equal(model.states(), x)
    close(model.probabilities(), distribution)
    close((-model.energy(x) - model.log_partition()).exp(), distribution)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [([[0, -1, 0, 0]], "-1: use tokens from 0 to V - 1 = 2"), ([[0, 3, 0, 0]], "3: "), ([[0] * 6], "shape"),
     ([[0.0, 1.0, 0.0, 0.0]], "shape"), ([0, 1, 0, 0], r"shape \(rows, 4\)")],
)  # fmt: skip
def test_tokens_of_no_state_are_refused(tokens, said):
    model, wrong = CHAINS["neighbours"][0].at(4, TEMPERATURE), torch.tensor(tokens)
    for ask in (model.energy, model.site_log_probs, lambda x: model.log_probs(x, x > 0)):
        with pytest.raises(InputError, match="^tokens=.*" + said):
            ask(wrong)
    right = torch.tensor([[0, 1, 2, 0]])
    for mask in (right, right[:, 1:] > 0):
        with pytest.raises(InputError, match=r"^masked=.*one bool for each token"):
            model.log_probs(right, mask)


def test_conditionals_of_masked_sites(case):
    model, x, distribution = case
    masks = some_masks(x)
    rows = range(0, len(x), max(1, len(x) // 40))
    answer = model.log_probs(x, masks).exp()
    assert torch.isfinite(answer).all()
    for row in rows:
        given = conditional(x, distribution, row, masks[row])
        for site in range(x.shape[1]):
            values = torch.zeros(model.vocab_size, dtype=torch.float64).index_add(0, x[:, site], given)
            close(answer[row, site], values)


def test_conditionals_of_single_sites(case):
    model, x, _ = case
    single = model.site_log_probs(x)
    for site in range(x.shape[1]):
        masked = torch.zeros_like(x, dtype=torch.bool)
        masked[:, site] = True
        close(single[:, site], model.log_probs(x, masked)[:, site])
        weights = model.site_log_weights(x, torch.full((len(x),), site))
        close(weights.log_softmax(1), single[:, site])


def drawn_law(model, tokens, block):
    """The distribution of a joint draw, from every branch of its choices: (rows, V^N)."""
    places = model.vocab_size ** torch.arange(tokens.shape[1] - 1, -1, -1)
    distribution = torch.zeros(len(tokens), model.vocab_size ** tokens.shape[1], dtype=torch.float64)
    enumeration = Enumeration(len(tokens), 1)
    for weights, drawn in enumeration.branches(lambda: model.draw_block(tokens, block, enumeration.choose)):
        distribution.index_put_(
            (torch.arange(len(tokens)), (drawn * places).sum(1)), weights, accumulate=True
        )
    return distribution


def test_blocks_are_drawn_jointly(case):
    model, x, distribution = case
    rows = torch.arange(0, len(x), max(1, len(x) // 12))
    masks = some_masks(x)[rows]
    drawn = drawn_law(model, x[rows], masks)
    for row, one in zip(rows.tolist(), drawn, strict=True):
        close(one, conditional(x, distribution, row, masks[rows.tolist().index(row)]))


def test_a_draw_depends_on_its_own_block_alone(case):
    model, x, _ = case
    masks = some_masks(x)
    streams = Streams(1, torch.arange(len(x)))
    together = model.draw_block(x, masks, streams.choose)
    for row in range(0, len(x), max(1, len(x) // 10)):
        alone = Streams(1, torch.tensor([row]))
        assert torch.equal(
            model.draw_block(x[row : row + 1], masks[row : row + 1], alone.choose)[0], together[row]
        )
        assert torch.equal(together[row, ~masks[row]], x[row, ~masks[row]])


def test_long_sequences_cost_what_their_block_needs():
    """Two sites far apart in a thousand, exactly; the rest stays."""
    model = PottsChain(by_hand.random_table(6, 3, 3)).at(1000, TEMPERATURE)
    x = model.sample(4, seed=1)
    block = torch.zeros_like(x, dtype=torch.bool)
    block[:, [0, 1, 500, 999]] = True
    drawn = model.draw_block(x, block, Streams(0, torch.arange(4)).choose)
    assert torch.equal(drawn[~block], x[~block])
    masked = torch.zeros_like(block)
    masked[:, [500]] = True
    close(model.log_probs(x, masked)[:, 500], model.site_log_probs(x)[:, 500])


@pytest.mark.parametrize("chain", [Gibbs(), Gibbs("sweep"), BlockGibbs(2)], ids=["random", "sweep", "blocks"])
def test_chains_leave_the_law_invariant(chain):
    model = PottsChain(by_hand.random_table(7, 2, 3)).at(5, TEMPERATURE)
    distribution = model.probabilities()
    matrix = transition_matrix(chain, model)
    close(distribution @ matrix, distribution)
    assert float((distribution @ matrix.roll(1, 1) - distribution).abs().max()) > 1e-3


def test_run_chain_reaches_the_law():
    model = PottsChain(by_hand.random_table(8, 3, 2)).at(4, TEMPERATURE)
    start = torch.zeros(8_000, 4, dtype=torch.int64)
    tokens = run_chain(Gibbs("sweep"), model, start=start, steps=10, seed=1).tokens
    distribution = dict(zip(map(tuple, model.states().tolist()), model.probabilities().tolist(), strict=True))
    assert l1_distance(map(tuple, tokens.tolist()), distribution) < weissman_radius(81, 8_000)


def test_the_compiled_heat_bath_reaches_the_law():
    """Tables of its conditionals, and sweeps in bulk; frequencies of a wrong distribution would be twice as far off."""
    model = PottsChain(by_hand.random_table(9, 3, 3)).at(4, TEMPERATURE)
    simulation = HeatBath(model, 40_000, 1)
    simulation.advance(20)
    distribution = dict(zip(map(tuple, model.states().tolist()), model.probabilities().tolist(), strict=True))
    radius = weissman_radius(81, 40_000)
    assert l1_distance(map(tuple, simulation.tokens.tolist()), distribution) < radius
    hotter = PottsChain(by_hand.random_table(9, 3, 3)).at(4, 3 * TEMPERATURE).probabilities()
    assert float((hotter - model.probabilities()).abs().sum()) > 2 * radius
