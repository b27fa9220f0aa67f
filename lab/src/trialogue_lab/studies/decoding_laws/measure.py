"""The parts of a run: of each oracle the laws of all decoding rules on all tasks, from every branch of their steps."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from trialogue.oracles import Autoregressive
from trialogue.samplers import Ancestral, truncated
from trialogue.samplers.exact import exact_distribution, exact_values, target_distribution, total_variation
from trialogue.verifiers import NoisyValues
from trialogue.verifiers.function import VerifierLike
from trialogue_lab.ledger import Part
from trialogue_lab.studies.decoding_laws import laws
from trialogue_lab.studies.decoding_laws.config import Config
from trialogue_lab.studies.decoding_laws.rules import EXACT, MASK, NOISY, RULES, TEMPERATURE, VERDICTS
from trialogue_lab.studies.decoding_laws.tasks import HIDDEN, LADDER, Task, drawn_oracle, uniform_oracle
from trialogue_lab.studies.decoding_laws.verdicts import shown

Rows = Iterator[dict[str, Any]]


def parts(config: Config) -> list[Part]:
    """One per drawn oracle, and one with uniform oracles."""
    drawn = [
        Part(f"oracle-{seed}", partial(_drawn, config, seed), columns={"seed": seed}) for seed in config.seeds
    ]
    return [*drawn, Part("uniform", partial(_uniform, config))]


def _tasks(config: Config) -> Iterator[tuple[Task, dict[str, Any]]]:
    """The tasks, and the columns that say which."""
    for family in LADDER:
        if family.name in config.families:
            for task in family.tasks():
                yield task, {"family": family.name, "length": task.length}


def _drawn(config: Config, seed: int, _: Path) -> Rows:
    for task, place in _tasks(config):
        oracle = drawn_oracle(task, seed, config.concentration)
        for row in measure_task(config, task, oracle, seed):
            yield {**row, **place}


def _uniform(config: Config, _: Path) -> Rows:
    """Masked decoding of oracles that give all tokens one probability."""
    for task, place in _tasks(config):
        if task.family.name != HIDDEN:
            oracle = uniform_oracle(task)
            masked = exact_distribution(RULES[MASK].walk, oracle, task).probabilities
            variation = total_variation(masked, target_distribution(oracle, task))
            yield {"kind": "uniform", "variation": variation, **place}


def measure_task(config: Config, task: Task, oracle: Autoregressive, seed: int) -> Rows:
    """A row of what the rule of the task shows, and one per decoding rule."""
    yield {"kind": "task", **shown(oracle, task)._asdict()}
    free, restricted = exact_distribution(Ancestral(), oracle), target_distribution(oracle, task)
    tempered = target_distribution(truncated(oracle, temperature=TEMPERATURE), task)
    exact = exact_values(oracle, task)
    noisy = NoisyValues(exact, config.error, seed=seed)
    guides: dict[str, VerifierLike] = {VERDICTS: task, EXACT: exact, NOISY: noisy}
    for name, rule in RULES.items():
        guide = None if rule.walk.uses == "nothing" else guides[rule.guide]
        law = exact_distribution(rule.walk, truncated(oracle, **rule.cut) if rule.cut else oracle, guide)
        given = law.probabilities
        believed = laws.believed_law(rule.believed, free.probabilities, restricted, tempered, given)
        weights = law.weights if rule.walk.weighted else None
        none = law.failed + law.never_halts
        yield _row(name, given, believed, restricted, law.expected_calls, none, weights)
    for number in config.candidates:
        best = laws.best_of_law(free.probabilities, restricted, number)
        queries = number * free.expected_calls
        yield _row(f"best of {number}", best, restricted, restricted, queries)
    masked = exact_distribution(RULES[MASK].walk, oracle, task)
    for number in config.drawn_among:
        drawn, queries = laws.weighted_law(masked, number), number * masked.expected_calls
        none = masked.failed**number
        yield _row(f"drawn by weight, {number}", drawn, restricted, restricted, queries, none)


def _row(
    rule: str,
    given: laws.Probabilities,
    believed: laws.Probabilities,
    restricted: laws.Probabilities,
    queries: float,
    none: float = 0.0,
    weights: laws.Probabilities | None = None,
) -> dict[str, Any]:
    """Numbers of one rule; None for what is infinite, and for what there is not.

    `variation` is the total variation to the believed law, None where a cut leaves no valid output to believe in.
    `weighted` is that of outputs drawn by weight among infinitely many, None of rules without weights. `restricted` is
    the total variation to the restricted law. `invalid` is the probability of an output that breaks the rule, `none`
    that of no output. `queries` is what a run is expected to take.
    """
    return {
        "kind": "rule",
        "rule": rule,
        "variation": total_variation(given, believed) if believed else None,
        "restricted": total_variation(given, restricted),
        "weighted": total_variation(laws.normalised(weights), believed) if weights and believed else None,
        "invalid": math.fsum(p for x, p in given.items() if x not in restricted),
        "none": none,
        "queries": queries if math.isfinite(queries) else None,
    }
