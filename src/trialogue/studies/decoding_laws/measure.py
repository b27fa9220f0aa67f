"""The parts of a run: of each oracle the laws of all decoding rules on all tasks, from every branch of their steps."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from trialogue.inference import Ancestral, NoisyValues, truncated
from trialogue.inference.laws import exact_law, kullback_leibler, target_law, total_variation
from trialogue.inference.verifiers.function import VerifierLike
from trialogue.ledger import Part
from trialogue.oracles import Autoregressive
from trialogue.studies.decoding_laws.config import Config
from trialogue.studies.decoding_laws.laws import (
    Probabilities,
    believed_law,
    best_of_law,
    normalised,
    weighted_law,
)
from trialogue.studies.decoding_laws.rules import EXACT, MASK, NOISY, RULES, TEMPERATURE, VERDICTS
from trialogue.studies.decoding_laws.tasks import LADDER, MARKOV, UNIFORM, Task, oracle_of
from trialogue.studies.decoding_laws.verdicts import shown
from trialogue.theory.value_guided import exact_values

Rows = Iterator[dict[str, Any]]


def parts(config: Config) -> list[Part]:
    """One per drawn oracle, and one with uniform oracles."""
    drawn = [
        Part(
            f"{MARKOV}-{seed}",
            partial(_measured, config, MARKOV, seed),
            columns={"seed": seed, "oracle": MARKOV},
        )
        for seed in config.seeds
    ]
    uniform = partial(_measured, config, UNIFORM, 0)
    return [*drawn, Part(UNIFORM, uniform, columns={"oracle": UNIFORM})]


def _measured(config: Config, kind: str, seed: int, _: Path) -> Rows:
    for family in LADDER:
        if family.name in config.families:
            for task in family.tasks():
                oracle = oracle_of(task, kind, seed, config.concentration)
                place = {"family": family.name, "length": task.length}
                for row in measure_task(config, task, oracle, seed):
                    yield {**row, **place}


def measure_task(config: Config, task: Task, oracle: Autoregressive, seed: int) -> Rows:
    """A row of what the rule of the task shows, and one per decoding rule."""
    yield {"kind": "task", "valid": len(task.valid), **shown(oracle, task)._asdict()}
    free, restricted = exact_law(Ancestral(), oracle), target_law(oracle, task)
    tempered = target_law(truncated(oracle, temperature=TEMPERATURE), task)
    exact = exact_values(oracle, task)
    noisy = NoisyValues(exact, config.error, seed=seed)
    guides: dict[str, VerifierLike] = {VERDICTS: task, EXACT: exact, NOISY: noisy}
    for name, rule in RULES.items():
        if not rule.slow or seed in config.slow_seeds:
            guide = None if rule.walk.uses == "nothing" else guides[rule.guide]
            law = exact_law(rule.walk, truncated(oracle, **rule.cut) if rule.cut else oracle, guide)
            given = law.probabilities
            believed = believed_law(rule.believed, free.probabilities, restricted, tempered, given)
            none, weights = law.failed + law.never_halts, law.weights if rule.walk.weighted else None
            yield _row(name, given, believed, restricted, law.expected_queries, none, weights)
    for number in config.candidates:
        best = best_of_law(free.probabilities, restricted, number)
        queries = number * free.expected_queries
        yield _row(f"best of {number}", best, restricted, restricted, queries)
    masked = exact_law(RULES[MASK].walk, oracle, task)
    for number in config.drawn_among:
        drawn, queries = weighted_law(masked, number), number * masked.expected_queries
        none = masked.failed**number
        yield _row(f"drawn by weight, {number}", drawn, restricted, restricted, queries, none)


def _row(
    rule: str,
    given: Probabilities,
    believed: Probabilities,
    restricted: Probabilities,
    queries: float,
    none: float = 0.0,
    weights: Probabilities | None = None,
) -> dict[str, Any]:
    """Numbers of one rule; None for what is infinite, and for what there is not.

    `variation` is the total variation to the believed law, None where a cut leaves no valid output to believe in.
    `restricted` is that to the restricted law, `weighted` that of outputs drawn by weight among infinitely many, None
    of rules without weights. `divergence` is KL(believed, law) in nats. `invalid` is the probability of an output that
    breaks the rule, `none` that of no output.
    """
    divergence = kullback_leibler(believed, given) if believed else math.inf
    return {
        "kind": "rule",
        "rule": rule,
        "variation": total_variation(given, believed) if believed else None,
        "restricted": total_variation(given, restricted),
        "weighted": None if weights is None else total_variation(normalised(weights), restricted),
        "divergence": divergence if math.isfinite(divergence) else None,
        "invalid": math.fsum(p for x, p in given.items() if x not in restricted),
        "none": none,
        "queries": queries if math.isfinite(queries) else None,
    }
