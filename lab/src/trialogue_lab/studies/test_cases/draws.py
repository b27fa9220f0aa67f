"""Completions of each decoding method: numbers of correct test cases, model calls, and processor time."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

from trialogue.oracles import Verifier
from trialogue.randomness import derive_seed
from trialogue.samplers import Ancestral, Backtracking, BlockBestOfN, Samples, generate, truncated
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.verifiers import ProbeVerifier, RandomVerifier, Threshold
from trialogue_lab.data.list_append.cases import Evaluation, distinct_correct, evaluate
from trialogue_lab.studies.test_cases import decodings, learning
from trialogue_lab.studies.test_cases.config import MeasuredModel

CANDIDATES = 4
TIMED = (
    decodings.BASELINE,
    decodings.TRAINED,
    decodings.LARGE_QUOTA,
    decodings.make_block_best_of(CANDIDATES),
)
"""Decoding methods whose time is measured, one completion after the other."""

_MIN_BLOCK_TOKENS = 3  # A shorter line contains no case.
_IDS_PER_SEED = 1_000_000

Prompt = tuple[int, str, str]
"""Seed of the repetition, name of the target function, and text of the prompt."""


def measure_decoding(
    subject: MeasuredModel, seeds: Sequence[int], decoding: decodings.DecodingRule, artifacts: Path
) -> Iterator[dict[str, Any]]:
    """Generate test cases of Python functions with a decoding method, and evaluate them for each repetition.

    Args:
        subject: The language model and the sizes of its measurements.
        seeds: Seeds of the repetitions. They run in one batch and share the language model. Each one has a separate
            verifier.
        decoding: The decoding method.
        artifacts: Folder of models, training completions and hidden states.

    Yields:
        For each repetition, one row for all completions, and one row for each smaller number of completions per prompt.
    """
    oracle = learning.load_oracle(subject, seeds[0], artifacts)
    runs = 1 if decoding.greedy else subject.runs
    prompts = [
        (seed, *prompt) for seed in seeds for prompt in subject.prompts(seed, decoding.out_of_distribution)
    ]
    per_repetition = subject.names * runs
    ids = [seed * _IDS_PER_SEED + place for seed in seeds for place in range(per_repetition)]
    samples, seconds = generate_completions(
        subject,
        decoding,
        oracle,
        prompts,
        artifacts,
        num_samples=runs,
        batch_size=max(subject.batch_size, decoding.candidates),
        seed=derive_seed(0, "draws", decoding.name),
        sample_ids=torch.tensor(ids),
    )
    texts = samples.texts()
    for place, seed in enumerate(seeds):
        own = range(place * per_repetition, (place + 1) * per_repetition)
        evaluations = [evaluate(texts[index], prompts[index // runs][1], subject.cases) for index in own]
        rows = compute_cumulative_totals(subject, runs, evaluations, samples, own)
        shared = {"seed": seed, "decoding": decoding.name}
        cpu_seconds = seconds / len(seeds) * subject.runs / runs
        yield {"table": "draw", **shared, **rows[-1], "slope": fit_slope(rows), "cpu_seconds": cpu_seconds}
        for row in rows[:-1]:
            columns = ("runs", "distinct_correct", "queries")
            yield {"table": "progress", **shared, **{column: row[column] for column in columns}}


def compute_cumulative_totals(
    subject: MeasuredModel, runs: int, evaluations: Sequence[Evaluation], samples: Samples, own: range
) -> list[dict[str, float]]:
    """Return totals over the first 1, 2, ... completions of each prompt for test cases.

    Args:
        subject: Sizes of the measurement.
        runs: Number of generated completions per prompt. It is 1 for greedy decoding, whose completions are all equal.
            The single completion is then counted several times.
        evaluations: Evaluations of the completions of this repetition, ordered by prompt and then by completion.
        samples: Generated samples of all repetitions.
        own: Indices of the samples of this repetition.

    Returns:
        One row per number of completions, with the numbers of correct and of different correct test cases, accuracies,
        model calls and verifier calls.
    """
    queries = samples.queries[own.start : own.stop].view(-1, runs)
    calls = samples.verifier_calls[own.start : own.stop].view(-1, runs)
    by_name = [evaluations[first : first + runs] for first in range(0, len(evaluations), runs)]
    rows = []
    for done in range(1, subject.runs + 1):
        generated = min(done, runs)
        repeats = done / generated
        requested = subject.cases * subject.names * done
        correct = sum(case.correct for name in by_name for one in name[:generated] for case in one.cases)
        distinct = sum(distinct_correct(name[:generated]) for name in by_name)
        rows.append(
            {
                "runs": done,
                "distinct_correct": distinct,
                "correct": repeats * correct,
                "accuracy": repeats * correct / requested,
                "accuracy_distinct": distinct / requested,
                "queries": repeats * int(queries[:, :generated].sum()),
                "verifier_calls": repeats * int(calls[:, :generated].sum()),
            }
        )
    return rows


def fit_slope(rows: Sequence[dict[str, float]]) -> float:
    """Return how many more different correct test cases 100 additional model calls give.

    The result is 100 times the slope of a least-squares line, with an intercept.

    Args:
        rows: Totals after each number of completions, as returned by `compute_cumulative_totals`.
    """
    queries = np.array([row["queries"] for row in rows])
    distinct = np.array([row["distinct_correct"] for row in rows])
    centered = queries - queries.mean()
    return float(100 * (centered * distinct).sum() / (centered**2).sum())


def generate_completions(
    subject: MeasuredModel,
    decoding: decodings.DecodingRule,
    oracle: learning.TextOracle,
    prompts: Sequence[Prompt],
    artifacts: Path,
    **settings: Any,
) -> tuple[Samples, float]:
    """Generate completions of prompts with a decoding method.

    Args:
        subject: The language model and the sizes of its measurements.
        decoding: The decoding method.
        oracle: The loaded language model.
        prompts: The prompts.
        artifacts: Folder of training completions and hidden states.
        **settings: Further arguments of `generate`.

    Returns:
        The generated samples, and the processor time in seconds.
    """
    verifiers = make_verifiers(subject, decoding, oracle, prompts, artifacts)
    start = time.process_time()
    samples = generate(
        truncated(
            oracle,
            temperature=0.0 if decoding.greedy else decoding.temperature,
            top_p=1.0 if decoding.greedy else decoding.top_p,
        ),
        [oracle.tokenization.encode(text) for _, _, text in prompts],
        sampler=make_sampler(decoding, oracle),
        verifier=verifiers,
        max_new_tokens=subject.max_new_tokens,
        stop=stop_after_cases(subject, oracle) if decoding.candidates else None,
        **settings,
    )
    return samples, time.process_time() - start


def make_sampler(decoding: decodings.DecodingRule, oracle: learning.TextOracle) -> Sampler[Any]:
    """Return the sampler of a decoding method.

    Args:
        decoding: The decoding method.
        oracle: The language model. Its tokenization defines the line ends of block best-of-n.
    """
    if decoding.candidates:
        newlines = tuple(oracle.tokenization.tokens_ending_with("\n").tolist())
        return BlockBestOfN(decoding.candidates, newlines, min_tokens=_MIN_BLOCK_TOKENS)
    if decoding.released:
        return Backtracking.released(decoding.quota, decoding.stride)
    if decoding.quota:
        return Backtracking(decoding.quota, decoding.stride, argmax_redo=decoding.argmax_redo)
    return Ancestral()


def make_verifiers(
    subject: MeasuredModel,
    decoding: decodings.DecodingRule,
    oracle: learning.TextOracle,
    prompts: Sequence[Prompt],
    artifacts: Path,
) -> list[Verifier] | None:
    """Return the verifier of each prompt, or None for a decoding method without a verifier.

    Prompts of the same repetition share a verifier.

    Args:
        subject: The language model and the sizes of its measurements.
        decoding: The decoding method.
        oracle: The loaded language model.
        prompts: The prompts.
        artifacts: Folder of training completions and hidden states.
    """
    if decoding.judge == "none":
        return None
    by_seed: dict[int, Verifier] = {}
    for seed in dict.fromkeys(seed for seed, _, _ in prompts):
        if decoding.judge == "trained":
            layer = subject.layer if decoding.layer is None else decoding.layer
            kind: learning.Kind = "block" if decoding.candidates else "token"
            trained = learning.train_verifier(subject, seed, kind, layer, decoding.depth or 1, artifacts)
            probe = ProbeVerifier(trained.probe, layer)
            by_seed[seed] = probe if decoding.candidates else Threshold(probe, decoding.threshold)
        elif decoding.judge == "random":
            by_seed[seed] = Threshold(RandomVerifier(seed), decoding.threshold)
        else:
            encode = oracle.tokenization.encode
            names = {tuple(encode(text)): name for owner, name, text in prompts if owner == seed}
            by_seed[seed] = learning.GroundTruth(names, oracle.tokenization, subject.cases, oracle.eos)
    return [by_seed[seed] for seed, _, _ in prompts]


def stop_after_cases(subject: MeasuredModel, oracle: learning.TextOracle) -> Callable[[Sequence[int]], bool]:
    """Return a function that stops a completion after as many lines as requested test cases.

    Args:
        subject: Settings with the number of requested test cases.
        oracle: The loaded language model, whose tokenization defines the ends of lines.
    """

    def has_all_lines(completion: Sequence[int]) -> bool:
        lines = oracle.tokenization.text(completion, final=False).split("\n")[:-1]
        return sum(bool(line.strip()) for line in lines) >= subject.cases

    return has_all_lines


def measure_speed(subject: MeasuredModel, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Measure model calls and processor seconds of all decoding methods, with one completion at a time.

    Decoding methods alternate, so that a slowdown of the machine affects all of them. The candidates of block best-of-n
    form one batch.

    Args:
        subject: The language model and the sizes of its measurements.
        seed: Seed of the repetition.
        artifacts: Folder of models, training completions and hidden states.

    Yields:
        One row per decoding method. The last row has the rank correlation of model calls and seconds over the
        completions of all methods except block best-of-n.
    """
    oracle = learning.load_oracle(subject, seed, artifacts)
    measured: dict[decodings.DecodingRule, list[tuple[int, float]]] = {decoding: [] for decoding in TIMED}
    for name, text in subject.prompts(seed, False):
        for decoding in TIMED:
            samples, seconds = generate_completions(
                subject,
                decoding,
                oracle,
                [(seed, name, text)],
                artifacts,
                batch_size=max(1, decoding.candidates),
                seed=derive_seed(seed, "speed", name, decoding.name),
            )
            measured[decoding].append((int(samples.queries.sum()), seconds))
    shared = {"table": "speed", "seed": seed}
    for decoding, completions in measured.items():
        queries, cpu_seconds = np.mean(completions, axis=0)
        yield {**shared, "decoding": decoding.name, "queries": queries, "cpu_seconds": cpu_seconds}
    alone = np.array([pair for decoding in TIMED if not decoding.candidates for pair in measured[decoding]])
    correlation = float(spearmanr(*alone.T).statistic)
    yield {**shared, "decoding": "one at a time", "rank_correlation": correlation}
