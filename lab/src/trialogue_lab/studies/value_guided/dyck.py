"""Models of Dyck strings (balanced brackets) that complete prompts, guided by exact, noisy and trained values.

The value of a prefix is the expected outcome of its completions.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pandas import DataFrame
from torch import Tensor

from trialogue.models.networks.transformer import Transformer
from trialogue.oracles import Verifier
from trialogue.randomness import derive_seed, numpy_generator
from trialogue.samplers import Ancestral, Backtracking, SequentialMonteCarlo, generate
from trialogue.samplers.exact import exact_values, prefix_tree, total_variation
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.training.probes.grid import ProbeConfig
from trialogue.training.probes.values import train_values
from trialogue.training.recipes import Recipe, load_or_train
from trialogue.verifiers import NoisyValues, OutcomeReward
from trialogue_lab.studies.value_guided.config import EXACT, Config
from trialogue_lab.theory.value_guided import action_level_distribution, first_leaf

Prefix = tuple[int, ...]
ExactDistribution = Mapping[Prefix, float]
NOISY, TRAINED = "noisy", "trained"
NOISE = 1.0
"""Noisy values are wrong by a factor of 1 + this number."""
PARTICLES = 8


def train_or_load_model(config: Config, seed: int, artifacts: Path) -> Transformer:
    """Train the model of Dyck strings (balanced brackets) of a seed, or load it.

    Args:
        config: Settings of the model and its training.
        seed: Seed of the training.
        artifacts: Folder of the trained models.
    """
    recipe = Recipe(
        Transformer, config.model(), partial(_sample_strings, config, seed), config.training(seed)
    )
    return load_or_train(recipe, artifacts).network


def _sample_strings(config: Config, seed: int, step: int) -> Tensor:
    return config.training_distribution().sample(32, derive_seed(seed, "batch", step))


def sample_prompts(config: Config, number: int, seed: int, role: str) -> tuple[Tensor, Tensor]:
    """Sample prompts for completing Dyck strings (balanced brackets).

    Their distribution differs from the training distribution of the models.

    Args:
        config: Settings with the distribution and the lengths.
        number: Number of prompts.
        seed: Seed of the training.
        role: Name of the random stream.

    Returns:
        Token ids (number, width) and lengths (number,) of the prompts.
    """
    lengths = (config.length - config.remaining[1], config.length - config.remaining[0])
    return config.prompt_distribution().sample_prompts(number, lengths, derive_seed(seed, "prompts", role))


def measure_dyck(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Train a language model of balanced brackets, and measure all value-guided samplers on it.

    Balanced brackets are also called Dyck strings. The value of a prefix is the expected outcome of its completions. A
    classifier of prefixes is also trained to predict values.

    Args:
        config: Settings of the run.
        seed: Seed of the training.
        artifacts: Folder of the trained models.

    Yields:
        One row per sampler and kind of values, with means over prompts.

        - "variation": total variation distance from the target.
        - "accuracy": probability of valid outputs.
        - "queries": number of model calls per output.
    """
    model = train_or_load_model(config, seed, artifacts)
    value_training = train_values(
        model,
        config.training_distribution(),
        sample_prompts(config, config.rollouts, seed, "rollouts"),
        num_samples=1,
        config=ProbeConfig(seed=derive_seed(seed, "values")),
        seed=derive_seed(seed, "rollouts"),
    )
    probe = value_training.verifier
    tokens, lengths = sample_prompts(config, config.prompts, seed, "measured")
    rows: list[dict[str, Any]] = []
    for place, (row, length) in enumerate(zip(tokens.tolist(), lengths.tolist(), strict=True)):
        rows += measure_prompt(config, model, probe, tuple(row[:length]), derive_seed(seed, "prompt", place))
    means = DataFrame(rows).groupby(["rule", "values"], sort=False).mean()
    for _, row in means.reset_index().iterrows():
        yield {"kind": "dyck"} | {str(column): value for column, value in row.dropna().items()}


def measure_prompt(
    config: Config, model: Transformer, probe: Verifier, prompt: Prefix, seed: int
) -> Iterator[dict[str, Any]]:
    """Measure all value-guided samplers of balanced brackets (Dyck strings) on one prompt.

    The value of a prefix is the expected outcome of its completions. Samplers are guided by exact, noisy or trained
    values.

    Args:
        config: Settings of the run.
        model: Trained model of Dyck strings.
        probe: Classifier of prefixes that predicts values.
        prompt: Token ids of the prompt.
        seed: Seed of the noise and of the samples.

    Yields:
        One row per sampler and kind of values.

        - "variation": total variation distance from the target.
        - "accuracy": probability of valid outputs.
        - "queries": number of model calls per output.
    """
    constraint, horizon = config.training_distribution(), config.length - len(prompt)
    tree = prefix_tree(model, prompt=prompt, max_new_tokens=horizon)
    exact = exact_values(model, constraint, prompt=prompt, max_new_tokens=horizon)
    leaves = [tree.prefixes[leaf] for leaf in np.flatnonzero(tree.leaf).tolist()]
    log_probs = dict(zip(tree.prefixes, tree.log_probs.tolist(), strict=True))
    weights = {x: math.exp(log_probs[x]) for x in leaves if exact(x) > 0}
    accepted = math.fsum(weights.values())
    target = {x: weight / accepted for x, weight in weights.items()}
    values: dict[str, Verifier] = {
        EXACT: exact,
        NOISY: NoisyValues(exact, NOISE, seed=seed),
        TRAINED: OutcomeReward(probe, exact),
    }
    for name, guide in values.items():
        found = first_leaf(model, guide, prompt=prompt, max_new_tokens=horizon)
        yield _make_row("first leaf", name, found.distribution, target, found.moves, found.nodes)
        down = action_level_distribution(model, guide, prompt=prompt, max_new_tokens=horizon)
        yield _make_row("action level", name, down, target, horizon, horizon)
    samplers: dict[tuple[str, str], tuple[Sampler[Any], Verifier | None]] = {
        ("no rule", ""): (Ancestral(), None),
        ("backtracking", ""): (Backtracking(4, 4), constraint),
    }
    for name, guide in values.items():
        samplers["sequential Monte Carlo", name] = SequentialMonteCarlo(PARTICLES, proposal="mask"), guide
    for (rule, name), (sampler, verifier) in samplers.items():
        samples = generate(
            model,
            [prompt],
            sampler=sampler,
            verifier=verifier,
            max_new_tokens=horizon,
            num_samples=config.outputs,
            seed=derive_seed(seed, rule, name),
        )
        counts = Counter(samples.sequences())
        shares = {output: count / config.outputs for output, count in counts.items()}
        yield _make_row(rule, name, shares, target, float(samples.queries.double().mean()))
    # Each attempt costs the expected length of an unconstrained completion.
    rejected = math.fsum(np.exp(tree.log_probs[~tree.leaf])) / accepted
    draw = numpy_generator(seed, "counts").multinomial(config.outputs, list(target.values())) / config.outputs
    yield _make_row("rejection", "", target, target, rejected)
    shares = dict(zip(target, draw.tolist(), strict=True))
    yield _make_row("as many draws of the restricted law", "", shares, target, rejected)


def _make_row(
    rule: str,
    values: str,
    probabilities: ExactDistribution,
    target: ExactDistribution,
    queries: float,
    nodes: float | None = None,
) -> dict[str, Any]:
    row = {
        "rule": rule,
        "values": values,
        "variation": total_variation(probabilities, target),
        "accuracy": math.fsum(p for x, p in probabilities.items() if x in target),
        "queries": queries,
    }
    return row if nodes is None else {**row, "nodes": nodes}
