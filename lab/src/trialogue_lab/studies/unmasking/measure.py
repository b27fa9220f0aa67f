"""Tasks of a run: exact output distributions of unmasking samplers on random distributions."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue import exact_distribution
from trialogue.randomness import derive_seed, generator
from trialogue.samplers.unmasking import (
    Confidence,
    DrawThenSelect,
    Entropy,
    Fixed,
    LeftToRight,
    Margin,
    Ordered,
    Threshold,
)
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.unmasking import orders
from trialogue_lab.studies.unmasking.config import NOISE, Config
from trialogue_lab.studies.unmasking.greedy import check_theorem, decode, prompt_weights
from trialogue_lab.studies.unmasking.instances import Conditionals, conditionals, draw_joint
from trialogue_lab.studies.unmasking.remasking import remask, sweep

_ORDERS = {
    "left to right": LeftToRight(),
    "confidence": Confidence(),
    "entropy": Entropy(),
    "margin": Margin(),
}
_BLOCK = 4
"""Number of positions of a block in which DUEL searches for the best order."""
_SAMPLES = 64
"""Number of samples of which the coverage is computed."""
_THRESHOLD = 0.9
"""Default confidence threshold of Fast-dLLM."""


def parts(config: Config) -> list[Part]:
    """Return the tasks of a run: one per seed and family, and one per seed for the mixtures of coins.

    Args:
        config: Settings of the run.
    """
    tasks = [
        Part(
            f"{family.lower().replace(' ', '-')}-{seed}",
            partial(_measure_family, config, family, seed),
            columns={"seed": seed, "family": family},
        )
        for seed in config.seeds
        for family in config.families
    ]
    coins = [
        Part(f"coins-{seed}", partial(_measure_coins, config, seed), columns={"seed": seed})
        for seed in config.seeds
    ]
    return [*tasks, *coins]


def _measure_family(config: Config, family: Any, seed: int, _: Path) -> MeasuredRows:
    joint = draw_joint(family, seed)
    for noise in config.noises:
        model = conditionals(joint, noise, derive_seed(seed, "unmasking", family))
        yield from measure_samplers(joint, model, noise, config.sizes if noise in (0.0, NOISE) else ())
        yield from measure_scores(joint, model, noise)
        yield from measure_greedy(joint, model, noise)
    yield from _measure_orders(joint, conditionals(joint), config.sizes)
    yield from _measure_sizes(joint)
    for case in check_theorem(joint):
        yield {"kind": "theorem", **case._asdict()}
    yield from _measure_remasking(config, draw_joint(family, seed, small=True), seed, family)


def measure_samplers(
    joint: Tensor, model: Conditionals, noise: float, sizes: tuple[int, ...]
) -> MeasuredRows:
    """Yield the distance, the entropy and the coverage of the output distribution of each sampler.

    Args:
        joint: The true distribution (V, ..., V).
        model: Its conditionals, which may be noisy.
        noise: Standard deviation of their noise.
        sizes: Numbers of positions per pass, next to 1.
    """
    for size in (1, *sizes):
        passes = orders.equal_sizes(joint.ndim, size)
        found = orders.score_texts(model, passes, orders.take_mixture).exp()
        yield {"sampler": "random", "size": size, "passes": len(passes), **_describe(joint, found, noise)}
    samplers: dict[tuple[str, int], Any] = {("threshold", 0): Ordered(Confidence(), Threshold(_THRESHOLD))}
    for size in (1, *sizes):
        samplers["draw then select", size] = DrawThenSelect(Fixed(size))
        samplers |= {(name, size): Ordered(order, Fixed(size)) for name, order in _ORDERS.items()}
    for (name, size), sampler in samplers.items():
        exact = exact_distribution(sampler, model)
        found = _as_tensor(exact.probabilities, joint)
        described = _describe(joint, found, noise)
        yield {"sampler": name, "size": size, "passes": exact.expected_passes, **described}


def _describe(joint: Tensor, found: Tensor, noise: float) -> dict[str, Any]:
    possible = joint > 0
    invalid = float(found[~possible].sum())
    entropy = float(torch.special.entr(joint).sum())
    quality = float((found[possible] * joint[possible].log()).sum()) + entropy
    return {
        "kind": "sampler",
        "noise": noise,
        "sites": joint.ndim,
        **_distances(joint, found),
        "entropy": float(torch.special.entr(found).sum()),
        "true_entropy": entropy,
        "coverage": _coverage(joint, found),
        "true_coverage": _coverage(joint, joint),
        "invalid": invalid,
        # The mean log-probability is infinite if impossible texts occur.
        "quality": quality if invalid < 1e-12 else None,
    }


def _as_tensor(probabilities: dict[tuple[int, ...], float], joint: Tensor) -> Tensor:
    found = torch.zeros_like(joint)
    places = torch.tensor(list(probabilities)).T
    found[tuple(places)] = torch.tensor(list(probabilities.values()), dtype=torch.float64)
    return found


def _distances(joint: Tensor, found: Tensor) -> dict[str, Any]:
    """Return the divergence of `found` from the true distribution (None if infinite), and the total variation."""
    possible = joint > 0
    divergence = float((joint[possible] * (joint[possible] / found[possible]).log()).sum())
    return {
        "divergence": max(divergence, 0.0) if math.isfinite(divergence) else None,
        "variation": float((joint - found).abs().sum()) / 2,
    }


def _coverage(joint: Tensor, found: Tensor) -> float:
    """Return the expected true probability of the different texts in a set of samples."""
    return float((joint * (1 - (1 - found.clamp(max=1)) ** _SAMPLES)).sum())


def measure_scores(joint: Tensor, model: Conditionals, noise: float) -> MeasuredRows:
    """Yield the losses of scores of texts, in nats per token, at one position per pass.

    Args:
        joint: The true distribution (V, ..., V).
        model: Its conditionals, which may be noisy.
        noise: Standard deviation of their noise.
    """
    ones = [1] * joint.ndim

    def loss(scores: Tensor) -> float:
        return -float((joint[joint > 0] * scores[joint > 0]).sum()) / joint.ndim

    best = orders.score_texts(model, ones, orders.take_best)
    blocks = orders.score_texts(model, ones, orders.take_best, _BLOCK)
    yield {
        "kind": "scores",
        "noise": noise,
        "sites": joint.ndim,
        "entropy": float(torch.special.entr(joint).sum()) / joint.ndim,
        "left_to_right": loss(orders.score_texts(model, ones, orders.take_mixture, 1)),
        "mean_order": loss(orders.score_texts(model, ones, orders.take_mean)),
        "mixture": loss(orders.score_texts(model, ones, orders.take_mixture)),
        "best": loss(best),
        "best_total": float(best.exp().sum()),
        "best_normalised": loss(best - best.flatten().logsumexp(0)),
        "blocks": loss(blocks),
        "blocks_total": float(blocks.exp().sum()),
        "blocks_normalised": loss(blocks - blocks.flatten().logsumexp(0)),
    }


def _measure_orders(joint: Tensor, model: Conditionals, sizes: tuple[int, ...]) -> MeasuredRows:
    """Yield the divergence of random orders with several positions per pass, and the Riemann error."""
    curve = orders.information_curve(orders.set_entropies(joint))
    possible = joint > 0
    for size in sizes:
        passes = orders.equal_sizes(joint.ndim, size)

        def divergence(merge: orders.Merge, passes: list[int] = passes) -> float:
            logs = orders.score_texts(model, passes, merge)[possible]
            return float((joint[possible] * (joint[possible].log() - logs)).sum())

        yield {
            "kind": "orders",
            "size": size,
            "mean_of_orders": divergence(orders.take_mean),
            "mixture": divergence(orders.take_mixture),
            "riemann": orders.riemann_error(curve, passes),
        }


def _measure_sizes(joint: Tensor) -> MeasuredRows:
    """Yield the divergence per order of random and of equal sizes, next to the correlations of all positions."""
    entropies = orders.set_entropies(joint)
    curve, sites = orders.information_curve(entropies), joint.ndim
    for passes in range(2, sites):
        size, rest = divmod(sites, passes)
        yield {
            "kind": "sizes",
            "passes": passes,
            "sites": sites,
            "random": orders.random_sizes_error(curve, passes),
            "equal": orders.riemann_error(curve, [size + (number < rest) for number in range(passes)]),
            "total": sites * entropies[1] - entropies[-1],
            "dual": entropies[-1] - sites * (entropies[-1] - entropies[-2]),
        }


def measure_greedy(joint: Tensor, model: Conditionals, noise: float) -> MeasuredRows:
    """Yield how parallel decoding at temperature 0 agrees with one token per pass, and with the mode.

    Args:
        joint: The true distribution (V, ..., V).
        model: Its conditionals, which may be noisy.
        noise: Standard deviation of their noise.
    """
    single = decode(Ordered(Confidence(), Fixed(1), temperature=0), model)
    weights = prompt_weights(joint)
    probability = float(joint[tuple(single[-1])])

    def agreement(sampler: Ordered) -> float:
        return float(weights[(decode(sampler, model) == single).all(1)].sum())

    yield {
        "kind": "greedy",
        "noise": noise,
        "threshold": agreement(Ordered(Confidence(), Threshold(_THRESHOLD), temperature=0)),
        "two": agreement(Ordered(Confidence(), Fixed(2), temperature=0)),
        "variation": 1 - probability,
        "finds_mode": probability > float(joint.max()) - 1e-12,
    }


def _measure_remasking(config: Config, joint: Tensor, seed: int, family: str) -> MeasuredRows:
    for noise in config.noises:
        model = conditionals(joint, noise, derive_seed(seed, "unmasking", family, "small"))
        for multiple in config.passes_per_token:
            passes = max(1, round(multiple * joint.ndim))
            for name, eta in (("ReMDM", config.eta), ("no remasking", 0.0)):
                found, remasked = remask(model, passes, eta)
                yield {
                    "kind": "remasking",
                    "noise": noise,
                    "sampler": name,
                    "passes_per_token": multiple,
                    "passes": passes,
                    "remasked": remasked,
                    **_distances(joint, found),
                }
        for size in (1, 2):
            passes_of_size = orders.equal_sizes(joint.ndim, size)
            found = orders.score_texts(model, passes_of_size, orders.take_mixture).exp()
            for sweeps, texts in enumerate((found, sweep(model, found))):
                described = {"kind": "sweeps", "noise": noise, "size": size, "sweeps": sweeps}
                yield {**described, **_distances(joint, texts)}


def _measure_coins(config: Config, seed: int, _: Path) -> MeasuredRows:
    random = generator(seed, "unmasking", "coins")
    first, second = (0.05 + 0.9 * torch.rand(2, generator=random, dtype=torch.float64)).tolist()
    for length in config.lengths:
        curve = orders.coin_curve((first, second), length)
        yield {
            "kind": "coins",
            "length": length,
            "passes": orders.fewest_passes(curve, config.precision),
            "one_pass": orders.riemann_error(curve, [length]),
        }
