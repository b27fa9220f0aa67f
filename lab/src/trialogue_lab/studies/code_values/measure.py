"""Tasks of a run. Each task trains a language model and its values, and samples test cases with every method."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from trialogue.oracles import Autoregressive
from trialogue.randomness import derive_seed
from trialogue.samplers import (
    ActionLevel,
    Ancestral,
    BlockValueGuided,
    Rejection,
    Samples,
    SequentialMonteCarlo,
    ValueGuided,
    generate,
    truncated,
    values,
)
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.training.probes.grid import ProbeConfig
from trialogue.training.probes.values import train_values
from trialogue.verifiers import OutcomeReward
from trialogue_lab.data.list_append.cases import Evaluation, distinct_correct, evaluate
from trialogue_lab.data.list_append.prompts import random_names
from trialogue_lab.ledger import MeasuredRows, Part, parts_by_seed
from trialogue_lab.studies.code_values.config import Config
from trialogue_lab.studies.test_cases.surrogate import PieceTokens, make_surrogate_prompt, train_surrogate

TOP_P = 0.95
METHODS: dict[str, Sampler[Any]] = {
    "no verifier": Ancestral(),
    "rejection": Rejection(),
    "action level": ActionLevel(),
    "first leaf": ValueGuided(lazy=False),
    "momentum": ValueGuided(lazy=False, momentum=1.0),
    "blocks": BlockValueGuided(candidates=4, block_tokens=4),
    "particles": SequentialMonteCarlo(particles=8, proposal="mask", mask_first=False),
}
"""Sampler of each method. All but the first two are guided by trained values."""

Tokens = tuple[int, ...]


def parts(config: Config) -> list[Part]:
    """Return the tasks of a run, one per seed.

    Args:
        config: Settings of the run.
    """
    return parts_by_seed(config, config.seeds, cases=_measure)


def evaluate_sequence(tokens: Tokens, cases: int) -> Evaluation:
    """Evaluate the test cases in the completion of a prompt.

    Args:
        tokens: Token ids of the prompt, which is a function name in one line, and of its completion.
        cases: Number of requested test cases.
    """
    name, _, completion = PieceTokens().text(tokens).partition("\n")
    return evaluate(completion, name, cases)


def is_accepted(tokens: Tokens, cases: int) -> bool:
    """Return whether a completion consists of the requested number of test cases, all correct and distinct.

    Args:
        tokens: Token ids of the prompt and its completion.
        cases: Number of requested test cases.
    """
    evaluation = evaluate_sequence(tokens, cases)
    return evaluation.error is None and evaluation.correct == cases


def count_items(evaluation: Evaluation) -> int:
    """Count the numbers in all lists that the test cases of a completion pass to the function under test.

    Args:
        evaluation: The test cases that were found in the completion.
    """
    return sum(kind == "number" for case in evaluation.cases for kind, _ in case.key[:-1])


def estimate_squared_distance(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Estimate the squared Euclidean distance between two discrete distributions, without bias.

    With counts x_k of n draws and y_k of m draws, the estimate is the sum over k of
    x_k (x_k - 1) / (n (n - 1)) + y_k (y_k - 1) / (m (m - 1)) - 2 x_k y_k / (n m). It can be negative.

    Args:
        first: Counts (k,) of independent draws from one distribution, at least 2 in total.
        second: Counts (k,) of independent draws from the other one, at least 2 in total.
    """
    n, m = first.sum(), second.sum()
    own = (first * (first - 1)).sum() / (n * (n - 1)) + (second * (second - 1)).sum() / (m * (m - 1))
    return float(own - 2 * (first * second).sum() / (n * m))


def _measure(config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    stream = partial(derive_seed, seed, "code-values")
    surrogate = train_surrogate(config.cases, config.training_steps, stream("model"), artifacts)
    oracle = truncated(surrogate, top_p=TOP_P)
    outcome = partial(is_accepted, cases=config.cases)
    chosen = random_names(config.rollout_names + config.names, stream("names"))
    prompts = [surrogate.tokenization.encode(make_surrogate_prompt(name)) for name in chosen]
    trained = train_values(
        oracle,
        outcome,
        prompts[config.names :],
        num_samples=config.rollouts,
        max_new_tokens=config.max_new_tokens,
        config=ProbeConfig(
            depth=config.probe_depth,
            epochs=config.probe_epochs,
            learning_rate=3e-3,
            validation=0.1,
            seed=stream("probe"),
        ),
        seed=stream("rollouts"),
    )
    guide = OutcomeReward(trained.verifier, outcome)
    prompts = prompts[: config.names]

    def sample(method: str, outputs: int, role: str) -> Samples:
        verifier = {"no verifier": None, "rejection": outcome}.get(method, guide)
        return generate(
            oracle,
            prompts,
            sampler=METHODS[method],
            verifier=verifier,
            max_new_tokens=config.max_new_tokens,
            num_samples=outputs,
            max_queries=config.max_queries,
            seed=stream(role, method),
        )

    checked = sample("no verifier", config.references, "checked values").sequences()
    yield from _check_values(oracle, trained.verifier, checked, config.cases)
    reference = _count_totals(sample("rejection", config.references, "reference"), config.cases)
    for method in METHODS:
        yield {"kind": "method", "method": method} | _summarize(
            sample(method, config.outputs, "outputs"), reference, config
        )


def _check_values(oracle: Autoregressive, guide: Any, sequences: list[Tokens], cases: int) -> MeasuredRows:
    """Measure how well trained values after each line predict whether a completion is accepted."""
    tokenization, newlines = PieceTokens(), set(PieceTokens().tokens_ending_with("\n").tolist())
    start = len(tokenization.encode(make_surrogate_prompt("abc")))
    accepted = np.array([is_accepted(tokens, cases) for tokens in sequences])
    for line in range(1, cases + 1):
        stops = [
            [place + 1 for place in range(start, len(tokens)) if tokens[place] in newlines][line - 1 : line]
            for tokens in sequences
        ]
        present = np.array([len(stop) > 0 for stop in stops])
        prefixes = [tokens[: stop[0]] for tokens, stop in zip(sequences, stops, strict=True) if stop]
        good = accepted[present]
        row = {"kind": "values", "line": line, "prefixes": len(prefixes), "accepted": int(good.sum())}
        if 0 < good.sum() < len(good):
            found = values(guide, oracle, prefixes, prompt_lengths=start).numpy()
            ranks = mannwhitneyu(found[good], found[~good]).statistic
            row |= {
                "auc": float(ranks / (good.sum() * (~good).sum())),
                "brier": float(np.mean((found - good) ** 2)),
                "variance": float(good.var()),
            }
        yield row


def _count_totals(samples: Samples, cases: int) -> NDArray[np.int64]:
    """Count the accepted outputs by their total number of list items."""
    outputs = [tokens for tokens in samples.sequences() if is_accepted(tokens, cases)]
    totals = [count_items(evaluate_sequence(tokens, cases)) for tokens in outputs]
    return np.bincount(np.array(totals, dtype=np.int64), minlength=20 * cases)


def _summarize(samples: Samples, reference: NDArray[np.int64], config: Config) -> dict[str, Any]:
    """Return the quality and the cost of a method's outputs."""
    evaluations = [evaluate_sequence(tokens, config.cases) for tokens in samples.sequences()]
    by_name = [
        evaluations[first : first + config.outputs] for first in range(0, len(evaluations), config.outputs)
    ]
    totals = _count_totals(samples, config.cases)
    comparable = min(totals.sum(), reference.sum()) > 1
    return {
        "outputs": len(samples),
        "accepted": int(totals.sum()),
        "correct": sum(evaluation.correct for evaluation in evaluations),
        "distinct": sum(map(distinct_correct, by_name)),
        "queries": int(samples.queries.sum()),
        "distinct_queries": int(samples.distinct_queries.sum()),
        "positions": int(samples.positions.sum()),
        "stopped": sum(reason == "max_queries" for reason in samples.stopped),
        "distance": estimate_squared_distance(totals, reference) if comparable else None,
        "items": _mean(totals) if comparable else None,
        "reference_items": _mean(reference) if comparable else None,
    }


def _mean(counts: NDArray[np.int64]) -> float:
    return float(counts @ np.arange(len(counts)) / counts.sum())
