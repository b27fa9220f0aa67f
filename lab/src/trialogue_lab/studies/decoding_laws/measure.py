"""Tasks of a run: they compute the output distributions of all decoding methods under all constraints."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from trialogue.oracles import Autoregressive
from trialogue.samplers import Ancestral, truncated
from trialogue.samplers.exact import exact_distribution, exact_values, target_distribution, total_variation
from trialogue.verifiers import NoisyValues
from trialogue.verifiers.functions.function import VerifierLike
from trialogue_lab.ledger import MeasuredRows, Part, parts_by_seed
from trialogue_lab.studies.decoding_laws import distributions, tasks
from trialogue_lab.studies.decoding_laws.config import Config
from trialogue_lab.studies.decoding_laws.difficulty import compute_difficulty
from trialogue_lab.studies.decoding_laws.methods import EXACT, MASK, METHODS, NOISY, TEMPERATURE, VERDICTS


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run: one for each seed of the random language models, and one for uniform models.

    Each task computes the exact output distributions of decoding methods on small language models under constraints,
    and their distances from the expected distributions.

    Args:
        config: Settings of the run.
    """
    return [
        *parts_by_seed(config, config.seeds, oracle=_measure_random_models),
        Part("uniform", partial(_measure_uniform_models, config)),
    ]


def _list_tasks(config: Config) -> Iterator[tuple[tasks.ConstraintTask, dict[str, Any]]]:
    """Yield every constraint with each maximum length, and the table columns that identify both."""
    for family in tasks.LADDER:
        if family.name in config.families:
            for task in family.tasks():
                yield task, {"family": family.name, "length": task.length}


def _measure_random_models(config: Config, seed: int, _: Path) -> MeasuredRows:
    for task, columns in _list_tasks(config):
        oracle = tasks.make_random_model(task, seed, config.concentration)
        for row in measure_task(config, task, oracle, seed):
            yield {**row, **columns}


def _measure_uniform_models(config: Config, _: Path) -> MeasuredRows:
    """Yield the distance of masked decoding from its target, for models with uniform next-token distributions.

    Masked decoding never samples a forbidden token. The distance is the total variation.
    """
    for task, columns in _list_tasks(config):
        if task.family.name != tasks.HIDDEN:
            oracle = tasks.make_uniform_model(task)
            masked = exact_distribution(METHODS[MASK].sampler, oracle, task).probabilities
            variation = total_variation(masked, target_distribution(oracle, task))
            yield {"kind": "uniform", "variation": variation, **columns}


def measure_task(
    config: Config, task: tasks.ConstraintTask, oracle: Autoregressive, seed: int
) -> MeasuredRows:
    """Compute the output distribution of every decoding method for one model under one constraint.

    Args:
        config: Settings of the run.
        task: The constraint and the maximum length.
        oracle: The language model.
        seed: Seed of the noisy values that guide some methods.

    Yields:
        One row with the difficulty of the constraint. One row per decoding method, with its total variation distances
        from the expected distribution and its expected number of model calls.
    """
    yield {"kind": "task", **compute_difficulty(oracle, task)._asdict()}
    free, restricted = exact_distribution(Ancestral(), oracle), target_distribution(oracle, task)
    tempered = target_distribution(truncated(oracle, temperature=TEMPERATURE), task)
    exact = exact_values(oracle, task)
    noisy = NoisyValues(exact, config.error, seed=seed)
    guides: dict[str, VerifierLike] = {VERDICTS: task, EXACT: exact, NOISY: noisy}
    for name, method in METHODS.items():
        guide = None if method.sampler.uses == "nothing" else guides[method.guide]
        model = truncated(oracle, **method.cut) if method.cut else oracle
        output = exact_distribution(method.sampler, model, guide)
        expected = distributions.select_expected_distribution(
            method.believed, free.probabilities, restricted, tempered, output.probabilities
        )
        weights = output.weights if method.sampler.weighted else None
        none = output.failed + output.never_halts
        yield _make_row(
            name, output.probabilities, expected, restricted, output.expected_calls, none, weights
        )
    for number in config.candidates:
        best = distributions.compute_best_of_distribution(free.probabilities, restricted, number)
        queries = number * free.expected_calls
        yield _make_row(f"best of {number}", best, restricted, restricted, queries)
    masked = exact_distribution(METHODS[MASK].sampler, oracle, task)
    for number in config.drawn_among:
        drawn, queries = (
            distributions.compute_weighted_distribution(masked, number),
            number * masked.expected_calls,
        )
        none = masked.failed**number
        yield _make_row(f"drawn by weight, {number}", drawn, restricted, restricted, queries, none)


def _make_row(
    rule: str,
    output: distributions.Probabilities,
    expected: distributions.Probabilities,
    restricted: distributions.Probabilities,
    queries: float,
    none: float = 0.0,
    weights: distributions.Probabilities | None = None,
) -> dict[str, Any]:
    """Return a row with the errors and the cost of one decoding method.

    Args:
        rule: Name of the method.
        output: Probability of each output.
        expected: Probabilities that users expect. Empty if a truncation leaves no valid output.
        restricted: Probabilities under the model given the constraint.
        queries: Expected number of model calls, which can be infinite.
        none: Probability that the method returns no output.
        weights: Importance weight of each output, if the method has weights.

    Returns:
        The row. "variation" is the total variation distance from `expected`. "weighted" is this distance if
        one of infinitely many outputs is selected by its weight.
    """
    weighted = total_variation(distributions.normalize(weights), expected) if weights and expected else None
    return {
        "kind": "rule",
        "rule": rule,
        "variation": total_variation(output, expected) if expected else None,
        "restricted": total_variation(output, restricted),
        "weighted": weighted,
        "invalid": math.fsum(p for x, p in output.items() if x not in restricted),
        "none": none,
        "queries": queries if math.isfinite(queries) else None,
    }
