"""Tasks of a run, which compute exact distributions on random trees and sample from a chat model."""

import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import torch

from trialogue import samplers
from trialogue.randomness import derive_seed
from trialogue.samplers import AdaptiveRejection, MaskedDecoding, Samples
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.verifiers.languages.grammar import GrammarVerifier
from trialogue_lab.ledger import MeasuredRows, Part, record_model
from trialogue_lab.ledger.runs.results import COMMITTED, load_rows
from trialogue_lab.studies.constrained_law.cases import (
    ModelQuestion,
    load_question,
    loaded,
    make_toy_question,
)
from trialogue_lab.studies.constrained_law.config import PRESETS as KNOWN
from trialogue_lab.studies.constrained_law.config import Config as Questions
from trialogue_lab.studies.constrained_law.distributions import (
    Distribution,
    distance,
    simulate_sample_distance,
    sum_by_text,
)
from trialogue_lab.studies.constrained_law.tasks import TASKS
from trialogue_lab.studies.constrained_law.tree import explore
from trialogue_lab.studies.exact_rejection.config import Config
from trialogue_lab.studies.exact_rejection.requests import FREE, SCHEMAS, make_request
from trialogue_lab.studies.exact_rejection.trees import measure_rare_trees, measure_trees

_ATTEMPTS = 256
"""Number of single attempts that estimate the model calls of an attempt of rejection sampling."""
_MASKED = 32
"""Number of outputs of masked decoding of a question."""


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, each of which measures exact sampling under constraints.

    There is one task per random tree, on which output distributions are computed exactly. The other tasks sample from a
    chat model, with one task per question and one per request for JSON.

    Args:
        config: Settings of the run.
    """
    trees = [
        *(
            Part(f"tree-{seed}", partial(_measure_trees, measure_trees, config, seed), columns={"seed": seed})
            for seed in config.tree_seeds
        ),
        *(
            Part(
                f"rare-tree-{seed}",
                partial(_measure_trees, measure_rare_trees, config, seed),
                columns={"seed": seed},
            )
            for seed in config.rare_tree_seeds
        ),
    ]
    questions = [
        Part(
            f"{kind}-{seed}",
            partial(_measure_question, config, kind, seed),
            columns={"seed": seed, "kind": kind},
        )
        for seed in config.seeds
        for kind in TASKS
    ]
    requests = [
        Part(
            f"request-{seed}-{name.replace(', ', '-').replace(' ', '-')}",
            partial(_measure_request, config, name, seed),
            columns={"seed": seed, "schema": name, "free": name in FREE},
        )
        for seed in config.request_seeds
        for name in SCHEMAS
    ]
    return [*requests, *questions, *trees]


def _measure_trees(rows_of: Any, config: Config, seed: int, _: Path) -> MeasuredRows:
    return rows_of(seed, config.history)


def _sample_answers(
    case: ModelQuestion, sampler: Sampler[Any], number: int, seed: int, name: str, **options: Any
) -> Samples:
    return samplers.generate(
        case.oracle,
        [case.prompt],
        sampler=sampler,
        verifier=case.verifier,
        max_new_tokens=case.max_new_tokens,
        num_samples=number,
        seed=derive_seed(seed, "exact rejection", name),
        **options,
    )


def _measure_outputs(measure: str, samples: Samples, prompt: tuple[int, ...]) -> MeasuredRows:
    """Yield one row per output, with its model calls, its number of tokens, and whether it is accepted."""
    columns = (samples.queries, samples.distinct_queries, samples.lengths - len(prompt), samples.accepted)
    for number, values in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        yield {
            "measure": measure,
            "output": number,
            **dict(zip(("calls", "distinct", "length", "accepted"), values, strict=True)),
        }


def _load_or_compute_target(
    case: ModelQuestion, config: Config, kind: str, seed: int
) -> tuple[Distribution, float]:
    """Return the exact distribution of answers given the constraint, and the probability of the constraint.

    Both are loaded from the committed result of `constrained-law` if it contains the question, and computed otherwise.
    """
    known = KNOWN["default"]
    if config.model == known.model and seed in known.seeds:
        rows = load_rows("constrained-law", COMMITTED)
        rows = rows[(rows.seed == seed) & (rows.kind == kind)]
        answers, mass = rows[rows.measure == "answer"], rows[rows.measure == "tree"].accepted_mass.item()
        return dict(zip(answers.text, answers.restricted, strict=True)), float(mass)
    limits: dict[str, Any] = {"tolerance": known.tolerance, "max_prefixes": known.max_prefixes}
    tree = explore(case.oracle, case.verifier, case.prompt, case.max_new_tokens, **limits)
    return sum_by_text(tree.restricted, case.text), tree.accepted_mass


def _measure_question(config: Config, kind: str, seed: int, _: Path) -> MeasuredRows:
    """Sample answers to one question with a constraint, and yield measurements of the samplers.

    In the column "measure", "first" stands for outputs that start from an empty table of rejected prefixes,
    "shared" for successive outputs with one table, "masked" for masked decoding, and "question" for the whole
    question.
    """
    case = load_question(Questions(model=config.model, max_new_tokens=config.max_new_tokens), kind, seed)
    began = time.process_time()
    shared = _sample_answers(case, AdaptiveRejection(share=1), config.outputs, seed, "shared")
    seconds = time.process_time() - began
    yield from _measure_outputs("shared", shared, case.prompt)
    first = _sample_answers(case, AdaptiveRejection(), config.first_outputs, seed, "first")
    yield from _measure_outputs("first", first, case.prompt)
    yield from _measure_outputs(
        "masked", _sample_answers(case, MaskedDecoding(), _MASKED, seed, "masked", batch_size=8), case.prompt
    )
    # An attempt from an empty table equals an attempt of rejection sampling that stops at the first rejected token.
    attempts = _sample_answers(
        case, AdaptiveRejection(max_attempts=1), _ATTEMPTS, seed, "attempts", batch_size=8
    )
    target, mass = _load_or_compute_target(case, config, kind, seed)
    counts = Counter(map(case.text, shared.completions()))
    found = {text: count / config.outputs for text, count in counts.items()}
    calls = float(attempts.queries.double().mean())
    yield {
        "measure": "question",
        "tv": distance(found, target),
        "drawn_tv": simulate_sample_distance(target, target, config.outputs, seed),
        "allowed_mass": mass,
        "calls_of_attempt": calls,
        "stopping_calls": calls / mass,
        "valid": float(shared.accepted.double().mean()),
        "cpu_seconds": seconds / config.outputs,
    }


def _measure_request(config: Config, name: str, seed: int, _: Path) -> MeasuredRows:
    """Sample answers to one request for JSON, and yield measurements.

    The column "measure" is "request output" for single outputs, and "request" for the whole request.
    """
    case = _make_request_question(config, name, seed)
    number, masked_number = 2 * config.round_size, 2 * config.round_size
    sampler = AdaptiveRejection(config.max_attempts, config.round_size)
    began = time.process_time()
    exact = _sample_answers(case, sampler, number, seed, name, batch_size=config.round_size)
    seconds = time.process_time() - began
    for row in _measure_outputs("request output", exact, case.prompt):
        yield {**row, "round": row["output"] // config.round_size}
    began = time.process_time()
    masked = _sample_answers(case, MaskedDecoding(), masked_number, seed, f"{name}, masked")
    masked_seconds = time.process_time() - began
    weights = torch.where(masked.accepted, masked.log_weight.exp(), 0.0)
    effective = float(weights.sum()) ** 2 / float((weights**2).sum()) if weights.any() else 0.0
    accepted = int(exact.accepted.sum())
    calls, masked_calls = int(exact.queries.sum()), int(masked.queries.sum())
    yield {
        "measure": "request",
        "outputs": number,
        "accepted": accepted,
        "calls": calls,
        "distinct": exact.total.distinct_queries,
        "masked_outputs": masked_number,
        "masked_accepted": int(masked.accepted.sum()),
        "masked_calls": masked_calls,
        "masked_distinct": masked.total.distinct_queries,
        "masked_length": float((masked.lengths - len(case.prompt)).double().mean()),
        "masked_effective": effective,
        "estimated_mass": float(weights.mean()),
        "cpu_seconds": seconds,
        "masked_cpu_seconds": masked_seconds,
    }


def _make_request_question(config: Config, name: str, seed: int) -> ModelQuestion:
    if not config.model:
        kind = "regex" if name in FREE else "json-schema"
        return make_toy_question(Questions(model="", max_new_tokens=config.request_tokens), kind, seed)
    oracle, asked = loaded(config.model), make_request(name, seed)
    record_model(oracle.describe())
    tokenization = oracle.tokenization
    verifier = GrammarVerifier.json_schema(asked.schema, tokenization)
    return ModelQuestion(
        oracle, verifier, tuple(tokenization.chat(asked.text)), tokenization.text, config.request_tokens
    )
