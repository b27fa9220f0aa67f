"""Compare Ising models and grids with sums over all states and exact results, and test invalid arguments."""

import math
import time
from itertools import product

import pytest
import torch

from refusals import expect_error
from samplers.chains.small_models import random_ising, spins
from trialogue.data import Ising
from trialogue.data.ising import model as ising
from trialogue.data.ising.couplings import Clique
from trialogue.data.ising.grid import ising_grid
from trialogue.randomness import Streams
from trialogue.testing import check_energy, check_joint, check_masked
from trialogue.testing.frequencies import l1_distance, weissman_radius

FIELDS = torch.tensor([0.3, -0.2, 0.5, 0.1, 0.7, -1.0], dtype=torch.float64)
MODELS = {
    "dense": random_ising(1, 5),
    "clique": Ising.clique(6, 4, coupling=0.3, field=0.2),
    "clique-fields": Ising.clique(6, 4, coupling=0.3, field=FIELDS),
    "antiferromagnet": Ising.clique(5, 5, coupling=-0.7, field=0.1),
    "independent": Ising.clique(3, 0, coupling=0.0, field=FIELDS[:3]),
    "one": Ising(torch.zeros(1, 1), torch.tensor([0.4])),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


def by_hand(model: Ising) -> torch.Tensor:
    """Return the probabilities (2^N,) from the definition, with a sum over pairs and spins."""
    coupling, field = model.coupling.tolist(), model.field.tolist()
    weights = []
    for x in product((-1, 1), repeat=model.sites):
        pairs = sum(coupling[i][j] * x[i] * x[j] for j in range(model.sites) for i in range(j))
        weights.append(math.exp(pairs + sum(h * s for h, s in zip(field, x, strict=True))))
    return torch.tensor(weights, dtype=torch.float64)


def close(first, second, tolerance=1e-13):
    torch.testing.assert_close(first, second, rtol=tolerance, atol=tolerance)


def test_states_probabilities_and_log_partition(model):
    distribution = by_hand(model)
    assert model.states().tolist() == [list(x) for x in product((0, 1), repeat=model.sites)]
    close(model.probabilities(), distribution / distribution.sum())
    assert model.log_partition() == pytest.approx(math.log(distribution.sum()), abs=1e-13)
    close(-model.energy(model.states()), distribution.log())


def test_parameters_multiply_features(model):
    states = model.states()
    close(model.features(states) @ model.parameters, -model.energy(states))
    again = Ising.from_parameters(model.parameters, model.sites)
    assert torch.equal(again.coupling, model.coupling)
    assert torch.equal(again.field, model.field)
    close(model.moments(), (by_hand(model)[:, None] * model.features(states)).sum(0) / by_hand(model).sum())


def test_tokens_of_all_integer_types_are_accepted():
    model, tokens = Ising.clique(3, 2, 0.4, 0.1), torch.tensor([[0, 1, 1]])
    assert not Ising.clique(3, 2, 0.4).field.any()
    masked = torch.tensor([[True, False, True]])
    for given in (tokens.to(torch.uint8), tokens.int(), tokens.numpy(), tokens.tolist()):
        assert torch.equal(model.energy(given), model.energy(tokens))
        assert torch.equal(model.log_probs(given, masked), model.log_probs(tokens, masked))


def test_features_are_in_lexicographic_order():
    tokens = torch.tensor([[0, 1, 1, 0]])
    x = spins(tokens)[0].tolist()
    pairs = [x[i] * x[j] for i in range(4) for j in range(i + 1, 4)]
    assert MODELS["dense"].from_parameters(torch.zeros(10), 4).features(tokens).tolist() == [pairs + x]


def test_log_conditionals_do_not_underflow():
    coupling = torch.full((12, 12), 50.0, dtype=torch.float64).fill_diagonal_(0)
    coupling[0, 1] = coupling[1, 0] = 49
    model, tokens = (
        Ising(coupling, torch.zeros(12, dtype=torch.float64)),
        torch.zeros(2, 12, dtype=torch.int64),
    )
    masked = torch.zeros(2, 12, dtype=torch.bool)
    masked[0, 5] = masked[1, 2] = masked[1, 7] = True
    found = model.log_probs(tokens, masked)
    assert found[0, 5].tolist() == model.site_log_probs(tokens)[0, 5].tolist() == [0, -1100]
    # Both flip at a cost of 4 x 50 x 10, one of them alone at 2 x 50 x 11.
    assert found[1, [2, 7]].tolist() == [[0, -1100]] * 2


@pytest.mark.parametrize("table", [10, 0], ids=["by-table", "by-structure"])
def test_models_keep_their_contracts(model, table, monkeypatch):
    monkeypatch.setattr(ising, "COUNTED_SITES", table)
    check_energy(model)
    for seed in range(3):
        check_masked(model, distribution=by_hand(model) / by_hand(model).sum(), seed=seed)
        check_joint(model, seed=seed)


def test_empty_block_changes_nothing():
    tokens = MODELS["dense"].states()[3:5]
    drawn = MODELS["dense"].draw_block(tokens, torch.zeros(2, 5, dtype=torch.bool), None)
    assert torch.equal(drawn, tokens)


SAMPLES = 20_000


def excess(model: Ising, reference: Ising) -> float:
    """Return the excess over the expected sampling error of the distance between samples and `reference`."""
    states = [tuple(state) for state in reference.states().tolist()]
    distribution = dict(zip(states, (by_hand(reference) / by_hand(reference).sum()).tolist(), strict=True))
    samples = map(tuple, model.sample(SAMPLES, 7).tolist())
    return l1_distance(samples, distribution) - weissman_radius(len(states), SAMPLES)


@pytest.mark.parametrize("table", [10, 0], ids=["by-table", "by-structure"])
@pytest.mark.parametrize("name", ["dense", "clique-fields", "independent"])
def test_samples_follow_the_distribution(monkeypatch, name, table):
    monkeypatch.setattr(ising, "COUNTED_SITES", table)
    model = MODELS[name]
    assert excess(model, model) < 0
    assert excess(Ising(0.5 * model.coupling, 0.5 * model.field), model) > 0
    assert torch.equal(model.sample(10, 3), model.sample(50, 3)[:10])
    assert not torch.equal(model.sample(50, 3), model.sample(50, 4))
    assert model.sample(0, 3).shape == (0, model.sites)


def test_large_cliques_are_sampled_in_blocks_and_jointly():
    """The magnetization of 3,000 sites matches its closed form, and tanh of the field outside the clique."""
    model = Ising.clique(3000, 40, coupling=0.02, field=0.1)
    x = spins(model.sample(400, 1)).double()
    ups = torch.arange(41).double()
    weights = torch.lgamma(torch.tensor(41.0).double()) - torch.lgamma(ups + 1) - torch.lgamma(41 - ups)
    weights = (weights + 0.02 * ((2 * ups - 40) ** 2 - 40) / 2 + 0.1 * (2 * ups - 40)).softmax(0)
    mean = float((weights * (2 * ups - 40)).sum())
    deviation = math.sqrt(float((weights * (2 * ups - 40) ** 2).sum()) - mean**2)
    assert abs(float(x[:, :40].sum(1).mean()) - mean) < 6 * deviation / 20
    assert abs(float(x[:, 40:].mean()) - math.tanh(0.1)) < 6 / math.sqrt(400 * 2960)
    assert "coupling" not in vars(model)  # nothing of size N^2 was made
    block = torch.ones(2, 3000, dtype=torch.bool)
    block[:, :5] = False
    start = torch.zeros(2, 3000, dtype=torch.int64)
    drawn = model.draw_block(start, block, Streams(0, torch.arange(2)).choose)
    assert int(drawn[:, :5].sum()) == 0 < int(drawn.sum())


def test_partition_function_of_a_large_clique():
    """The sum is exp(h s + J (s^2 - n) / 2) over magnetizations s. Without coupling, log Z = N log(2 cosh h)."""
    assert Ising.clique(5000, 0, 0.0, 0.3).log_partition() == pytest.approx(
        5000 * math.log(2 * math.cosh(0.3)), rel=1e-13
    )
    half = Ising.clique(5000, 20, 0.1, 0.3).log_partition() - 4980 * math.log(2 * math.cosh(0.3))
    assert half == pytest.approx(Ising.clique(20, 20, 0.1, 0.3)._log_weights.logsumexp(0).item(), rel=1e-12)


def test_cliques_in_a_coupling_matrix_are_detected():
    coupling = torch.zeros(5, 5)
    for i, j in ((0, 2), (0, 4), (2, 4)):
        coupling[i, j] = coupling[j, i] = 0.5
    assert Ising(coupling, torch.zeros(5)).members.tolist() == [True, False, True, False, True]
    coupling[0, 2] = coupling[2, 0] = 0.25
    assert Ising(coupling, torch.zeros(5)).members is None


def with_entry(i, j, value):
    matrix = torch.zeros(3, 3)
    matrix[i, j] = value
    return matrix


def test_block_of_sixteen_sites_is_sampled_from_its_table():
    """A joint sample of all sites of a strongly coupled chain is one of its two aligned states."""
    coupling = torch.diag(torch.full((15,), 5.0), 1)
    model = Ising(coupling + coupling.T, torch.zeros(16))
    tokens = torch.arange(32).view(2, 16) % 2
    drawn = model.draw_block(tokens, torch.ones(2, 16).bool(), Streams(0, torch.arange(2)).choose)
    assert drawn.sum(1).tolist() in ([0, 16], [16, 0], [0, 0], [16, 16])


def test_conditionals_of_a_large_clique_use_counts_only():
    """If 1,500 equal spins are masked, the probability of +1 follows from the mean magnetization."""
    model = Ising.clique(1500, 1500, coupling=1e-4, field=0.3)
    tokens = torch.zeros(1, 1500, dtype=torch.int64)
    masked = torch.ones(1, 1500, dtype=torch.bool)
    began = time.process_time()
    up = model.log_probs(tokens, masked)[0, :, 1].exp()
    assert time.process_time() - began < 1.0
    clique = Clique(masked[0], 1e-4, model.field)
    share = (
        clique.count_log_weights(2.0 * tokens - 1, masked).softmax(1)[0] @ torch.arange(1501).double() / 1500
    )
    close(up, share.expand(1500))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ising(with_entry(0, 1, 1.0), torch.zeros(3)), r"coupling=\(1.0, 0.0\): make it symmetric"),
        (lambda: Ising(with_entry(1, 1, 1.0), torch.zeros(3)), "coupling=1.0: leave the diagonal zero"),
        (lambda: Ising(with_entry(0, 1, math.nan), torch.zeros(3)), "coupling=nan: give finite"),
        (lambda: Ising(torch.zeros(3), torch.zeros(3)), r"coupling=\(3,\): give .* shape \(sites, sites\)"),
        (
            lambda: Ising(torch.zeros(3, 3), torch.zeros(2)),
            r"field=\(2,\): give one number for each of the 3",
        ),
        (lambda: Ising(torch.zeros(2, 2), torch.tensor([0.0, math.inf])), "field=inf"),
        (lambda: Ising.clique(3, 4, 0.1, 0.0), "clique=4: use at most n=3"),
        (lambda: Ising.clique(3, 2, 0.1, torch.zeros(4)), r"field=\(4,\)"),
        (lambda: Ising.from_parameters(torch.zeros(5), 3), "3 couplings and 3 fields"),
        (lambda: random_ising(0, 21).states(), r"sites=21: .*run_chain.*2\^21 states"),
        (lambda: random_ising(0, 21).sample(1, 0), r"sites=21: .*Gibbs.*2\^21"),
        (
            lambda: random_ising(0, 17).draw_block(torch.zeros(1, 17).long(), torch.ones(1, 17).bool(), None),
            r"block=17: use smaller blocks.*2\^17 states",
        ),
        (
            lambda: MODELS["dense"].energy(spins(MODELS["dense"].states())),
            "tokens=-1: use token 0 for spin -1",
        ),
        (lambda: MODELS["dense"].energy(torch.zeros(2, 4).long()), r"tokens=\(2, 4, 'cpu'\)"),
        (
            lambda: MODELS["dense"].log_probs(torch.zeros(1, 5).long(), torch.ones(1, 5).long()),
            "masked=.*one bool for each token",
        ),
        (
            lambda: Ising(1e308 * (torch.ones(3, 3) - torch.eye(3)).double(), torch.zeros(3)),
            "coupling=1e\\+308",
        ),
    ],
)
def test_invalid_input_is_rejected(make, message):
    expect_error(message, make)


@pytest.mark.parametrize(
    "make", [Ising, lambda coupling, field, **given: Ising.clique(4, 4, 0.3, field, **given)]
)
def test_ordered_pairs_count_twice(make):
    coupling, field = torch.full((4, 4), 0.3).fill_diagonal_(0.0), torch.linspace(-0.2, 0.4, 4)
    ordered, doubled = make(coupling, field, pairs="ordered"), Ising(2 * coupling, field)
    spins = 2.0 * ordered.states() - 1
    both_ways = torch.einsum("ri,ij,rj->r", spins.double(), coupling.double(), spins.double())
    assert torch.allclose(ordered.energy(ordered.states()), -(both_ways + spins.double() @ field.double()))
    assert torch.allclose(ordered.probabilities(), doubled.probabilities())
    assert torch.equal(ordered.sample(20, seed=1), doubled.sample(20, seed=1))
    assert torch.allclose(ordered.parameters[:6], torch.full((6,), 0.3, dtype=torch.float64))
    states = ordered.states()
    assert torch.allclose(ordered.features(states) @ ordered.parameters, -ordered.energy(states))
    assert torch.allclose(ordered.moments(), ordered.probabilities() @ ordered.features(states))
    assert ordered.to("cpu").pairs == "ordered"
    again = Ising.from_parameters(ordered.parameters, 4, pairs="ordered")
    assert torch.allclose(again.coupling, ordered.coupling)
    expect_error(r"^pairs='both'", make, coupling, field, pairs="both")


def neighbours(rows, columns, periodic):
    """Return the pairs of sites that share a bond."""
    pairs = set()
    for row in range(rows):
        for column in range(columns):
            for down, right in ((0, 1), (1, 0)):
                other = (row + down, column + right)
                if periodic:
                    other = (other[0] % rows, other[1] % columns)
                if other != (row, column) and other[0] < rows and other[1] < columns:
                    pairs.add(frozenset((row * columns + column, other[0] * columns + other[1])))
    return pairs


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("sides", [(1, 1), (1, 5), (5, 1), (3, 3), (3, 4), (5, 3)])
def test_couplings_are_the_bonds_of_the_grid(sides, periodic):
    model = ising_grid(*sides, 0.7, periodic=periodic)
    bonds = {frozenset(pair) for pair in model.coupling.nonzero().tolist()}
    assert bonds == neighbours(*sides, periodic)
    assert set(model.coupling[model.coupling != 0].tolist()) <= {0.7}


def test_single_row_is_a_ring():
    coupling, sites = 0.4, 7
    exact = math.log((2 * math.cosh(coupling)) ** sites + (2 * math.sinh(coupling)) ** sites)
    assert ising_grid(1, sites, coupling).log_partition() == pytest.approx(exact, abs=1e-12)
    chain = math.log(2) + (sites - 1) * math.log(2 * math.cosh(coupling))
    assert ising_grid(sites, 1, coupling, periodic=False).log_partition() == pytest.approx(chain, abs=1e-12)


def test_a_field_acts_on_every_site():
    assert ising_grid(2, 3, 0.0, field=0.3, periodic=False).log_partition() == pytest.approx(
        6 * math.log(2 * math.cosh(0.3)), abs=1e-12
    )


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ((0, 3, 1.0), "rows"),
        ((3, 2, 1.0), "columns"),
        ((2, 3, 1.0), "rows"),
        ((3, 3.0, 1.0), "columns"),
        ((129, 128, 1.0), "rows"),
        ((3, 3, math.nan), "coupling"),
    ],
)
def test_invalid_grids_are_rejected(given, field):
    expect_error(f"^{field}=", ising_grid, *given)
    expect_error(r"^field=", ising_grid, 3, 3, 1.0, field=math.inf)
