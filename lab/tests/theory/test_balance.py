"""Tests of the balance of attention to brackets: its definition on tokens, exact constructions, and Theorem 2.2.2."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from refusals import expect_error
from trialogue.data import Dyck
from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue_lab.models.dyck_transformer import (
    DyckTransformer,
    DyckTransformerConfig,
    balanced_transformer,
    uniform_attention_transformer,
)
from trialogue_lab.theory.balance import (
    PairContributions,
    balance_violation,
    inequality_chain,
    log_weight_decay,
    pumped_distances,
    state_vectors,
)

RANDOM = DyckTransformerConfig(types=2, depth=3, width=6, key_width=5, double=True, initial_scale=0.6)


def random_network(seed: int, config: DyckTransformerConfig = RANDOM) -> DyckTransformer:
    return DyckTransformer(config, seed).eval()


def perturbed_network(seed: int, spread: float) -> DyckTransformer:
    network = balanced_transformer(types=2, depth=3, logits_std=1.0, seed=seed)
    weight = network.attention.query.weight
    with torch.no_grad():
        noise = torch.empty(weight.shape, dtype=weight.dtype).normal_(generator=generator(seed, "noise"))
        weight += spread * noise
    return network


def attention_sum(network: DyckTransformer, tokens: list[int], query: int) -> Tensor:
    """Return the unnormalised and centred attention output of a query by a sum over tokens (equations 2.44, 2.45)."""
    with torch.no_grad():
        x = network.embed(torch.tensor([tokens]))[0]
        attention = network.attention
        scores = attention.key(x) @ attention.query(x[query])
        values = attention.value(x[: query + 1])
        return (scores[: query + 1].exp()[:, None] * (values - values.mean(1, keepdim=True))).sum(0)


def violation_by_tokens(network: DyckTransformer, statistic: str) -> float:
    """Return the statistic by sums over prefixes with and without a pair of brackets."""
    k, depth = network.config.types, network.config.depth
    ratios = []
    for d, j in product(range(2, depth + 1), range(k)):
        strings = list(product(range(k), repeat=d - 1))
        ends = {s: [*(2 * kind for kind in s), 2 * j, 2 * j + 1] for s in strings}
        lengths = {s: float(attention_sum(network, end, len(end)).norm()) for s, end in ends.items()}
        shortest = min(strings, key=lengths.__getitem__)
        other = min(lengths[s] for s in strings if s[-1] != shortest[-1])
        sizes = []
        for at, i in product(range(1, depth + 1), range(k)):
            outer = [[2 * i] * (at - 1), [2 * i + 1] * (at - 1)]
            without, with_pair = (
                [*outer[0], *pair, *outer[1], *ends[shortest]] for pair in ([], [2 * i, 2 * i + 1])
            )
            pair = attention_sum(network, with_pair, len(with_pair)) - attention_sum(
                network, without, len(without)
            )
            sizes.append(float(pair.norm()))
        ratios.append(
            sum(sizes) / len(sizes) / other if statistic == "thesis" else max(sizes) / lengths[shortest]
        )
    return sum(ratios) / len(ratios)


@pytest.mark.parametrize("statistic", ["thesis", "released"])
def test_violation_agrees_with_sums_over_prefixes(statistic: str) -> None:
    for config in (
        RANDOM,
        replace(RANDOM, embedding="angles", residual=True),
        replace(RANDOM, embedding="sums"),
    ):
        network = random_network(1, config)
        found = balance_violation(network, statistic)  # type: ignore[arg-type]
        assert found == pytest.approx(violation_by_tokens(network, statistic), rel=1e-9)
        assert found != pytest.approx(violation_by_tokens(random_network(2, config), statistic), rel=1e-3)


def test_constructions_are_balanced_and_noise_increases_the_violation() -> None:
    networks = [balanced_transformer(types=3, depth=4, seed=seed) for seed in (0, 1)]
    for network in (*networks, uniform_attention_transformer(2, 5)):
        assert balance_violation(network) < 1e-12
        assert balance_violation(network, "released") < 1e-9
    found = [balance_violation(perturbed_network(0, spread)) for spread in (1e-3, 1e-2, 1e-1)]
    assert found == sorted(found)
    assert found[0] > 1e-4


def test_state_vectors_encode_type_and_depth() -> None:
    assert torch.allclose(
        state_vectors(uniform_attention_transformer(2, 3)), torch.eye(13).double(), atol=1e-9
    )


@pytest.mark.parametrize("kind", ["random", "perturbed", "residual"])
def test_inequality_chain_holds(kind: str) -> None:
    for seed in range(4):
        if kind == "perturbed":
            network = perturbed_network(seed, 10.0 ** -(seed % 4 + 1))
        else:
            residual = replace(RANDOM, residual=True, mlps=((9, 4),), key_width=7)
            network = random_network(seed, residual if kind == "residual" else RANDOM)
        chain = inequality_chain(network, (24, 40), target="closing" if kind == "random" else "next")
        assert bool((chain.distance >= chain.required).all())
        assert bool((chain.total <= chain.total_bound).all())
        assert bool((chain.pair <= chain.pair_bound).all())
        if kind == "perturbed":
            assert bool((chain.required > 0).any())


def test_errors_in_the_inequality_chain_agree_with_the_network() -> None:
    """The errors in the chain equal the errors of the network on the tokens."""
    network = perturbed_network(1, 0.3)
    dyck = Dyck(60, (0.5, 0.5), 0.5, 3, complete=False)
    chain = inequality_chain(network, (24,))
    chain_by_prefix = iter((chain.required * chain.lipschitz).tolist())
    balance = PairContributions(network)
    for d, j in product((2, 3), (0, 1)):
        t, other, _, _ = balance.shortest(j, d)
        for outer, i in product(range(3), (0, 1)):
            middle = [2 * i, 2 * i + 1] * (12 - outer - d - 1)
            pumped = [2 * i] * outer + middle + [2 * i + 1] * outer
            rows = torch.tensor([[*pumped, *(2 * kind for kind in s), 2 * j, 2 * j + 1] for s in (t, other)])
            lengths = torch.full((2,), rows.shape[1])
            exact, found = (each.next_log_probs(rows, lengths).exp() for each in (dyck, network))
            expected = float((exact[0] - exact[1]).norm() - (exact - found).norm(dim=1).sum())
            assert next(chain_by_prefix) == pytest.approx(expected, abs=1e-9)


def test_unbalanced_pairs_dominate_open_brackets() -> None:
    network = random_network(3)
    near, far = (pumped_distances(network, pairs) for pairs in (10**4, 10**6))
    assert torch.allclose(near.log10() - far.log10(), torch.tensor(2.0).double(), atol=0.05)
    balanced = balanced_transformer(types=2, depth=3, logits_std=1.0)
    assert torch.allclose(pumped_distances(balanced, 10), pumped_distances(balanced, 10**5), atol=1e-6)


def test_log_weight_decay_agrees_with_theorem_2_2_2() -> None:
    network = uniform_attention_transformer(2, 3)
    squared = sum(float(parameter.detach().square().sum()) for parameter in network.parameters())
    found = log_weight_decay(network, 3, 0.1)
    assert math.exp(found) * squared / 2 == pytest.approx((0.25 / 4) ** 3 * 0.1)


def test_invalid_input_is_rejected() -> None:
    with pytest.raises(InputError, match=r"^types=1: use at least two types"):
        balance_violation(random_network(0, replace(RANDOM, types=1)))
    tokens = DyckTransformerConfig(
        embedding="tokens", width=12, residual=True, mlps=((12,), ()), initial_scale=0.6
    )
    with pytest.raises(InputError, match=r"^network='2 layers': the input of its last layer depends"):
        balance_violation(random_network(0, tokens))
    with pytest.raises(InputError, match=r"^norm='sum'"):
        balance_violation(random_network(0, replace(RANDOM, norm="sum", residual=True)))
    expect_error(r"^depth=22: 2\^21 strings", balance_violation, random_network(0, replace(RANDOM, depth=22)))
    expect_error(r"^lengths=10: use at least 24", inequality_chain, random_network(0), (10,))
