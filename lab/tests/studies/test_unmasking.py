"""Tests of the study `unmasking` against naive sums over orders, texts and canvases."""

import math
from collections.abc import Callable
from itertools import combinations, permutations, product
from typing import Any

import pytest
import torch
from torch import Tensor

from trialogue import exact_distribution, unmask
from trialogue.randomness import generator
from trialogue.samplers.unmasking import (
    Confidence,
    Corrected,
    Fixed,
    Ordered,
    Random,
    RandomSizes,
    ReMDM,
    Threshold,
)
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.unmasking import orders
from trialogue_lab.studies.unmasking import statistics as stats
from trialogue_lab.studies.unmasking.config import FAMILIES
from trialogue_lab.studies.unmasking.greedy import check_theorem, decode, prompt_weights
from trialogue_lab.studies.unmasking.instances import Conditionals, conditionals, draw_joint
from trialogue_lab.studies.unmasking.measure import measure_samplers
from trialogue_lab.studies.unmasking.remasking import remask, sweep

VOCAB, SITES = 3, 4
TEXTS = list(product(range(VOCAB), repeat=SITES))
Known = dict[int, int]


def random_joint(scale: float = 1.5) -> Tensor:
    weights = scale * torch.randn((VOCAB,) * SITES, generator=generator(3), dtype=torch.float64)
    return weights.flatten().softmax(0).reshape(weights.shape)


def probability(joint: Tensor, known: Known) -> float:
    """Return the probability of the revealed tokens, as a sum over all texts."""
    texts = (text for text in TEXTS if all(text[site] == token for site, token in known.items()))
    return math.fsum(float(joint[text]) for text in texts)


def stored(model: Conditionals, known: Known, site: int, token: int) -> float:
    canvas = tuple(known.get(each, VOCAB) for each in range(SITES))
    return float(model.table[(*canvas, site, token)].exp())


def divergence(joint: Tensor, text_probability: Callable[[tuple[int, ...]], float]) -> float:
    return math.fsum(
        float(joint[text]) * math.log(float(joint[text]) / text_probability(text)) for text in TEXTS
    )


def partition_probabilities(model: Conditionals, text: tuple[int, ...], sizes: list[int]) -> list[float]:
    """Return the probability of a text for each order of all positions, cut into passes."""
    found = []
    for order in permutations(range(SITES)):
        known: Known = {}
        total = 1.0
        for start, size in zip((0, *torch.tensor(sizes).cumsum(0).tolist()), sizes, strict=False):
            new = order[start : start + size]
            total *= math.prod(stored(model, known, site, text[site]) for site in new)
            known |= {site: text[site] for site in new}
        found.append(total)
    return found


@pytest.mark.parametrize("sizes", [[1, 1, 1, 1], [2, 2], [3, 1]])
def test_scores_agree_with_a_sum_over_all_orders(sizes: list[int]) -> None:
    model = conditionals(random_joint(), noise=0.5, seed=2)
    merges = {
        orders.take_mean: lambda found: sum(map(math.log, found)) / len(found),
        orders.take_best: lambda found: math.log(max(found)),
        orders.take_mixture: lambda found: math.log(sum(found) / len(found)),
    }
    for merge, expected in merges.items():
        scores = orders.score_texts(model, sizes, merge)
        for text in TEXTS[::20]:
            naive = expected(partition_probabilities(model, text, sizes))
            assert float(scores[text]) == pytest.approx(naive, abs=1e-12)
    exact = exact_distribution(Ordered(Random(), Fixed(sizes[0])), model).probabilities
    mixture = orders.score_texts(model, sizes, orders.take_mixture).exp()
    assert {text: float(mixture[text]) for text in TEXTS} == pytest.approx(exact, abs=1e-12)


def test_blocks_restrict_the_search_for_the_best_order() -> None:
    model = conditionals(random_joint(), noise=0.5, seed=2)
    scores = orders.score_texts(model, [1] * SITES, orders.take_best, block=2)
    for text in TEXTS[::7]:
        known: Known = {}
        total = 1.0
        for block in ((0, 1), (2, 3)):
            ways = []
            for first, second in permutations(block):
                after = known | {first: text[first]}
                ways.append(
                    stored(model, known, first, text[first]) * stored(model, after, second, text[second])
                )
            total *= max(ways)
            known |= {site: text[site] for site in block}
        assert float(scores[text]) == pytest.approx(math.log(total), abs=1e-12)


def test_conditionals_agree_with_sums_over_texts_and_noise_breaks_them() -> None:
    joint, context = random_joint(), {0: 2, 3: 1}
    exact, noisy = conditionals(joint), conditionals(joint, noise=0.5, seed=2)
    for token in range(VOCAB):
        expected = probability(joint, context | {1: token}) / probability(joint, context)
        assert stored(exact, context, 1, token) == pytest.approx(expected, abs=1e-12)
        assert abs(stored(noisy, context, 1, token) - expected) > 1e-3
    assert sum(stored(noisy, context, 1, token) for token in range(VOCAB)) == pytest.approx(1)
    brackets = conditionals(draw_joint("brackets", 1, small=True), noise=0.0)
    assert (
        brackets.table[1, 4, 4, 4, 1].exp().tolist() == [0.25] * 4
    )  # No text begins with a closing bracket.


def test_the_riemann_error_is_the_divergence_of_the_orders() -> None:
    joint = random_joint()
    entropies = orders.set_entropies(joint)
    curve = orders.information_curve(entropies)

    def entropy(sites: tuple[int, ...]) -> float:
        tokens = product(range(VOCAB), repeat=len(sites))
        masses = [probability(joint, dict(zip(sites, each, strict=True))) for each in tokens]
        return -math.fsum(mass * math.log(mass) for mass in masses)

    pairs = [entropy((a,)) + entropy((b,)) - entropy((a, b)) for a, b in combinations(range(SITES), 2)]
    assert curve[:2] == pytest.approx([0, sum(pairs) / len(pairs)], abs=1e-12)
    model = conditionals(joint)
    for sizes in ([2, 2], [3, 1]):

        def order_mean(text: tuple[int, ...], sizes: list[int] = sizes) -> float:
            found = partition_probabilities(model, text, sizes)
            return math.exp(sum(map(math.log, found)) / len(found))

        assert orders.riemann_error(curve, sizes) == pytest.approx(divergence(joint, order_mean), abs=1e-12)


def test_random_sizes_average_riemann_errors() -> None:
    curve, passes = [0.0, 0.3, 0.4, 0.7], 3
    total = 0.0
    for assignment in product(range(passes), repeat=len(curve)):
        total += orders.riemann_error(curve, [assignment.count(each) for each in range(passes)])
    expected = total / passes ** len(curve)
    assert orders.random_sizes_error(curve, passes) == pytest.approx(expected, abs=1e-12)
    joint = random_joint()
    mixture = exact_distribution(Ordered(Random(), RandomSizes(2)), conditionals(joint)).probabilities
    entropies = orders.set_entropies(joint)
    bound = orders.random_sizes_error(orders.information_curve(entropies), 2)
    assert 0 < divergence(joint, mixture.__getitem__) < bound


def test_the_fewest_passes_are_those_of_the_best_schedule() -> None:
    curve = orders.coin_curve((0.1, 0.7), 6)
    for precision in (0.0, 0.02, 0.05, 0.2, 10.0):
        reached = [
            len(cuts) + 1
            for count in range(len(curve))
            for cuts in combinations(range(1, len(curve)), count)
            if orders.riemann_error(
                curve, [b - a for a, b in zip((0, *cuts), (*cuts, len(curve)), strict=True)]
            )
            <= precision
        ]
        assert orders.fewest_passes(curve, precision) == min(reached)
    heads = torch.tensor([[0.9, 0.1], [0.3, 0.7]], dtype=torch.float64)
    joint = torch.einsum("ka,kb,kc->abc", heads, heads, heads) / 2
    expected = orders.information_curve(orders.set_entropies(joint))
    assert orders.coin_curve((0.1, 0.7), 3) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("eta", [0.0, 0.3])
def test_remasking_and_sweeps_agree_with_the_samplers(eta: float) -> None:
    joint = (
        draw_joint("hidden Markov", 1, small=True)[0] / draw_joint("hidden Markov", 1, small=True)[0].sum()
    )
    model = conditionals(joint, noise=0.3, seed=1)
    found, remasked = remask(model, 3, eta)
    exact = exact_distribution(ReMDM(3, eta), model).probabilities
    assert {text: float(found[text]) for text in exact} == pytest.approx(exact, abs=1e-12)
    first = orders.score_texts(model, [2, 1], orders.take_mixture).exp()
    swept = exact_distribution(Corrected(Ordered(Random(), Fixed(2))), model).probabilities
    corrected = sweep(model, first)
    assert {text: float(corrected[text]) for text in swept} == pytest.approx(swept, abs=1e-12)
    # Before the second pass, a third of the tokens is revealed. The last pass masks nothing.
    assert remasked == pytest.approx(eta / 3)


def test_decoding_agrees_with_samples_at_temperature_zero() -> None:
    joint = random_joint()
    model = conditionals(joint)
    prompts = torch.cartesian_prod(*[torch.arange(VOCAB + 1)] * SITES)[1:-1:17]
    prompts = prompts[(prompts == VOCAB).any(1)]
    places = (prompts * (VOCAB + 1) ** torch.arange(SITES - 1, -1, -1)).sum(1)
    for size in (Fixed(2), Threshold(0.6)):
        sampler = Ordered(Confidence(), size, temperature=0)
        sampled = unmask(model, sampler, prompts.masked_fill(prompts == VOCAB, -1)).tokens
        assert decode(sampler, model)[places].equal(sampled)
    weights = prompt_weights(joint).reshape((VOCAB + 1,) * SITES)
    assert float(weights.sum()) == pytest.approx(1)
    expected = probability(joint, {1: 2}) / SITES / math.comb(SITES, 3)
    assert float(weights[VOCAB, 2, VOCAB, VOCAB]) == pytest.approx(expected)


def test_the_theorem_applies_to_confident_tokens_only() -> None:
    size, error = 3, 0.2
    joint = torch.full((2,) * size, 0.0, dtype=torch.float64)
    joint[0, 0, 0], joint[0, 0, 1], joint[1, 1, 0] = 1 - 2 * error, error, error
    cases = {case.positions: case for case in check_theorem(joint)}
    product_mass = (1 - error) ** 3
    differences = (abs(1 - 2 * error - product_mass), abs(error - error * (1 - error) ** 2)) * 2
    assert cases[3].cases == 1
    assert cases[3].different == 0
    rest = 1 - product_mass - error * (1 - error) ** 2 - error**2 * (1 - error)
    variation = (differences[0] + differences[1] + abs(error - error**2 * (1 - error)) + rest) / 2
    assert cases[3].variation_ratio == pytest.approx(variation / ((3 * size - 1) * error / 2))
    # Above 1 / (n + 1), the mode of the product can differ from that of the joint distribution.
    joint[0, 0, 0], joint[0, 0, 1], joint[1, 1, 0] = 0.4, 0.3, 0.3
    assert 3 not in {case.positions for case in check_theorem(joint)}


@pytest.mark.parametrize("family", FAMILIES)
def test_families_are_distributions_and_one_token_per_pass_samples_them(family: Any) -> None:
    joint = draw_joint(family, 5, small=True)
    assert float(joint.sum()) == pytest.approx(1)
    assert not joint.allclose(draw_joint(family, 6, small=True))
    rows = list(measure_samplers(joint, conditionals(joint), 0.0, ()))
    for row in rows:
        if row["sampler"] == "draw then select":
            assert row["divergence"] > 0.1
        elif row["sampler"] != "threshold":
            assert row["variation"] < 1e-9
            assert row["entropy"] == pytest.approx(row["true_entropy"])
            assert row["quality"] == pytest.approx(0, abs=1e-9)


def test_statistics_average_families_before_seeds() -> None:
    remasked = [
        {"kind": "remasking", "seed": seed, "family": family, "noise": 0.0, "sampler": sampler}
        | {"passes_per_token": passes, "divergence": divergence * (1 + seed)}
        for seed in (0, 1)
        for family, sampler, passes, divergence in (
            ("table", "ReMDM", 1.0, 0.2),
            ("table", "ReMDM", 4.0, 0.1),
            ("clique", "ReMDM", 1.0, 0.4),
            ("clique", "ReMDM", 4.0, 0.8),
            ("table", "no remasking", 1.0, 0.1),
            ("clique", "no remasking", 1.0, 0.1),
        )
    ]
    rows = Rows(remasked)
    assert stats.remasking(1.0, 0.0)(rows).tolist() == pytest.approx([math.sqrt(8)] * 2)
    assert stats.more_passes(1.0, 4.0, 0.0)(rows).tolist() == pytest.approx([1.0] * 2)
    assert stats.best_passes(0.0)(rows).tolist() == pytest.approx([2.0] * 2)
