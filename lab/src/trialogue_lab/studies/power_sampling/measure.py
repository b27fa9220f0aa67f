"""Tasks of a run: random trees, chains on random trees, and Markov models."""

from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import entr

from trialogue import power
from trialogue.randomness import numpy_generator
from trialogue.samplers import (
    ActionLevel,
    Ancestral,
    PowerMetropolis,
    SequentialMonteCarlo,
    generate,
    truncated,
)
from trialogue.samplers.exact import exact_distribution, target_distribution, total_variation
from trialogue.verifiers import RolloutTarget
from trialogue_lab.ledger import MeasuredRows, Part, parts_by_seed
from trialogue_lab.studies.power_sampling import trees
from trialogue_lab.studies.power_sampling.chains import TextTree
from trialogue_lab.studies.power_sampling.config import (
    CORRECTED,
    EARLY_ENDS,
    ONE_LENGTH,
    RELEASED,
    Config,
)
from trialogue_lab.studies.power_sampling.markov import measure_ended, measure_markov
from trialogue_lab.studies.power_sampling.trees import Array, Levels

FACTORS = tuple(2.0 ** (place / 4) for place in range(-8, 9))
"""Temperatures of the proposals whose weights are measured, as multiples of 1 / alpha."""
BLOCKS = (1, 2)
_SMALL = 3
"""Length of the texts on which samplers of the library are enumerated."""


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, which test samplers of a power of a model's distribution.

    Args:
        config: Settings of the run.

    Returns:
        One task compares implementations. The other tasks have one seed and one kind of random model each: short texts
        that can be enumerated, or Markov models of long texts.
    """
    return [
        Part("residuals", partial(measure_residuals, config)),
        *parts_by_seed(config, config.seeds, trees=measure_trees, lookahead=measure_lookahead),
        *parts_by_seed(config, config.chain_seeds, chains=measure_chains),
        *parts_by_seed(config, config.markov_seeds, ended=measure_ended, markov=measure_markov),
    ]


def measure_trees(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Measure local rules and importance weights for sampling from a power p(x)^alpha of a random model.

    A local rule chooses each token from the model's next-token distribution only, for example at a low temperature.

    Args:
        config: Settings of the run.
        seed: Seed of the model.

    Yields:
        Two kinds of rows per power alpha. "local" has total variation distances of local rules from p^alpha, and
        properties of power sums. "weights" has relative variances of importance weights, one row per temperature.
    """
    levels = trees.make_random_levels(config.horizon, seed)
    log_probs = trees.compute_log_joint(levels)
    for alpha in config.powers:
        target, futures = (
            trees.compute_power_distribution(log_probs, alpha),
            trees.compute_log_power_sums(levels, alpha),
        )
        distance = partial(_compute_tempered_distance, levels, target)
        best, least = trees.find_best_temperature(distance, alpha)
        siblings = [np.ptp(rows, axis=-1).ravel() for rows in futures[1:-1]]
        yield {
            "kind": "local",
            "alpha": alpha,
            "temperature": distance(1 / alpha),
            "best": least,
            "best_factor": best * alpha,
            "best_by_position": trees.optimize_temperatures(levels, target, alpha, best),
            "any_rule": _bound_local_error(config, levels[0], alpha, seed),
            "sibling_range": float(np.concatenate(siblings).mean()),
            "entropy_difference": _compute_entropy_difference(levels, log_probs, target, alpha),
        }
        yield from _measure_weights(levels, log_probs, alpha)


def _compute_tempered_distance(levels: Levels, target: Array, tau: float) -> float:
    """Return the total variation distance between the target and sampling each token at temperature `tau`."""
    return trees.compute_variation(
        np.exp(trees.compute_log_joint(trees.apply_temperatures(levels, [tau] * len(levels)))), target
    )


def _bound_local_error(config: Config, first: Array, alpha: float, seed: int) -> float:
    """Return a lower bound on the mean error of all methods that use next-token distributions only.

    Such a method samples the same first token on all models with the same first distribution `first` (V,).
    The error is the total variation distance from p^alpha.
    """
    marginals = []
    for number in range(config.futures):
        levels = [first, *trees.make_random_levels(config.horizon, seed, "futures", number)[1:]]
        log_weights = alpha * first + trees.compute_log_power_sums(levels, alpha)[1]
        marginals.append(np.exp(log_weights - np.logaddexp.reduce(log_weights)))
    return trees.minimize_mean_variation(np.stack(marginals))


def _compute_entropy_difference(levels: Levels, log_probs: Array, target: Array, alpha: float) -> float:
    """Return the mean entropy of completions under p^alpha minus that at temperature 1 / alpha.

    A completion follows the first token.
    """
    after = np.exp(log_probs).reshape(trees.VOCAB, -1)
    entropies = entr(after / after.sum(1, keepdims=True)).sum(1)
    chosen = target.reshape(trees.VOCAB, -1).sum(1)
    cooled = np.exp(trees.apply_temperatures(levels[:1], [1 / alpha])[0])
    return float((chosen - cooled) @ entropies)


def _measure_weights(levels: Levels, log_probs: Array, alpha: float) -> MeasuredRows:
    """Yield variances of importance weights for several temperatures and two other local proposals."""

    def proposals(tau: float) -> Levels:
        return trees.apply_temperatures(levels, [tau] * len(levels))

    def whole(tau: float) -> float:
        return trees.compute_weight_variance(log_probs, trees.compute_log_joint(proposals(tau)), alpha)

    best, least = trees.find_best_temperature(whole, alpha)
    optimal = [
        trees.compute_incremental_variances(rows, q, alpha)
        for rows, q in _pair_levels(levels, proposals(1 / alpha))
    ]
    named = {f"temperature {factor:g} / alpha": (factor, proposals(factor / alpha)) for factor in FACTORS}
    named["model"] = (0.0, levels)
    named["uniform"] = (0.0, [np.full_like(rows, -np.log(trees.VOCAB)) for rows in levels])
    for name, (factor, log_q) in named.items():
        variances = [
            trees.compute_incremental_variances(rows, q, alpha) for rows, q in _pair_levels(levels, log_q)
        ]
        yield {
            "kind": "weights",
            "alpha": alpha,
            "proposal": name,
            "factor": factor,
            "incremental": float(np.mean([each.mean() for each in variances])),
            "least_excess": min(
                float((each - other).min()) for each, other in zip(variances, optimal, strict=True)
            ),
            "whole": trees.compute_weight_variance(log_probs, trees.compute_log_joint(log_q), alpha),
            "best_whole": least,
            "best_factor": best * alpha,
        }


def _pair_levels(levels: Levels, others: Levels) -> list[tuple[Array, Array]]:
    return list(zip(levels, others, strict=True))


def measure_lookahead(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Measure lookahead, a sampler of a power p(x)^alpha of a random model that samples completions.

    For every candidate token, lookahead samples completions to estimate how much p(x)^alpha favors the token. The
    largest power alpha is used.

    Args:
        config: Settings of the run.
        seed: Seed of the model and of the completions.

    Yields:
        One row per number of completions. `variation` is the total variation distance of outputs from
        p^alpha. `calls` is the number of model calls per output, and `distinct_calls` counts repeated
        prefixes once.
    """
    alpha, levels = config.powers[-1], trees.make_random_levels(config.horizon, seed)
    target = trees.compute_power_distribution(trees.compute_log_joint(levels), alpha)
    for rollouts in config.rollouts:
        stream = numpy_generator(seed, "power-sampling", "lookahead", rollouts)
        found = trees.compute_lookahead_levels(levels, alpha, rollouts, config.rollout_draws, stream)
        samples = generate(
            trees.make_table(levels),
            sampler=ActionLevel(),
            verifier=RolloutTarget(power(alpha), rollouts, seed=seed),
            seed=seed,
        )
        yield {
            "kind": "lookahead",
            "rollouts": rollouts,
            "variation": trees.compute_variation(np.exp(trees.compute_log_joint(found)), target),
            "calls": int(samples.queries[0]),
            "distinct_calls": int(samples.distinct_queries[0]),
        }


def measure_chains(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Compute the exact output distributions of Metropolis-Hastings chains that sample from p(x)^alpha.

    The models p are random. In one kind of model, all texts x have the same length. In the other kind, a text can end
    after each token.

    Args:
        config: Settings of the run.
        seed: Seed of the models.

    Yields:
        One row per power alpha, kind of model, chain, number of blocks and number of steps. `variation` is the total
        variation distance of the output from p^alpha, and `failed` is the probability of an incomplete output.
    """
    for alpha, (ends, end) in product(config.powers, ((ONE_LENGTH, 0.0), (EARLY_ENDS, config.end))):
        tree = TextTree(seed, config.chain_horizon, end, alpha)
        target = tree.target()
        for chain in (CORRECTED, RELEASED):
            for blocks in BLOCKS:
                for steps in config.steps:
                    output = tree.output(steps, blocks, chain)
                    yield {
                        "kind": "chain",
                        "alpha": alpha,
                        "ends": ends,
                        "chain": chain,
                        "blocks": blocks,
                        "steps": steps,
                        "variation": total_variation(output, target),
                        "failed": 1 - sum(output.values()),
                    }


def measure_residuals(config: Config, _: Path) -> MeasuredRows:
    """Check that the library's samplers and this study compute the same distributions.

    Args:
        config: Settings of the run.

    Yields:
        One row per comparison, with the total variation distance between two distributions that should be equal.
    """
    seed, alpha = config.seeds[0], config.powers[-1]
    levels = trees.make_random_levels(_SMALL, seed)
    oracle, log_probs = trees.make_table(levels), trees.compute_log_joint(levels)
    target = _convert_to_dict(trees.compute_power_distribution(log_probs, alpha))
    futures = trees.compute_log_power_sums(levels, alpha)
    scaled = [
        alpha * rows + after - total[..., None]
        for rows, after, total in zip(levels, futures[1:], futures[:-1], strict=True)
    ]
    cooled = _convert_to_dict(
        np.exp(trees.compute_log_joint(trees.apply_temperatures(levels, [1 / alpha] * _SMALL)))
    )
    found = {
        "power of the study, target_distribution": (target, target_distribution(oracle, power(alpha))),
        "scaled low temperature with exact power sums, power": (
            _convert_to_dict(np.exp(trees.compute_log_joint(scaled))),
            target,
        ),
        "temperature of the study, Ancestral": (
            cooled,
            exact_distribution(Ancestral(), truncated(oracle, temperature=1 / alpha)).probabilities,
        ),
        "one particle with a mask, temperature": (
            exact_distribution(SequentialMonteCarlo(1, proposal="mask"), oracle, power(alpha)).probabilities,
            cooled,
        ),
        "weights of two particles with a mask, power": (
            _normalize(
                exact_distribution(SequentialMonteCarlo(2, proposal="mask"), oracle, power(alpha)).weights
            ),
            target,
        ),
        "weights of lookahead, power": (
            _normalize(
                exact_distribution(ActionLevel(), oracle, RolloutTarget(power(alpha), 4, seed=seed)).weights
            ),
            target,
        ),
    }
    tree = TextTree(seed, _SMALL, config.end, alpha)
    for blocks in BLOCKS:
        for chain, sampler in (
            (CORRECTED, PowerMetropolis(alpha, 2, blocks)),
            (RELEASED, PowerMetropolis.released(alpha, 2, blocks)),
        ):
            exact = exact_distribution(sampler, tree.oracle()).probabilities
            found[f"{chain} chain of the study, PowerMetropolis, blocks: {blocks}"] = (
                tree.output(2, blocks, chain),
                exact,
            )
    for name, (first, second) in found.items():
        yield {"kind": "residual", "comparison": name, "residual": total_variation(first, second)}


def _convert_to_dict(probabilities: Array) -> dict[tuple[int, ...], float]:
    return {tuple(map(int, place)): float(p) for place, p in np.ndenumerate(probabilities)}


def _normalize(weights: dict[tuple[int, ...], float]) -> dict[tuple[int, ...], float]:
    total = sum(weights.values())
    return {x: weight / total for x, weight in weights.items()}
