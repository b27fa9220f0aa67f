"""What each decoding draws: distinct correct cases against queries (Figure 3.3), and seconds (section 3.4.1)."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

from trialogue.oracles import Verifier
from trialogue.randomness import seed_of
from trialogue.samplers import Ancestral, Backtracking, BlockBestOfN, Samples, generate, truncated
from trialogue.samplers.prefix.sampler import Sampler
from trialogue.verifiers import ProbeVerifier, RandomVerifier, Threshold
from trialogue_lab.data.list_append.cases import Evaluation, distinct_correct, evaluate
from trialogue_lab.studies.test_cases.config import Subject
from trialogue_lab.studies.test_cases.decodings import (
    BASELINE,
    LARGE_QUOTA,
    TRAINED,
    DecodingRule,
    block_best_of,
)
from trialogue_lab.studies.test_cases.learning import (
    GroundTruth,
    Kind,
    TextOracle,
    oracle_of,
    trained_verifier,
)

CANDIDATES = 4
TIMED = (BASELINE, TRAINED, LARGE_QUOTA, block_best_of(CANDIDATES))
"""The decodings that are timed, one completion after another."""

_SHORTEST_BLOCK = 3  # tokens: a shorter line holds no case
_SAMPLES_OF_A_SEED = 1_000_000

Prompt = tuple[int, str, str]
"""Seed of the repetition, name of the target function, and text."""


def measure_decoding(
    subject: Subject, seeds: Sequence[int], decoding: DecodingRule, artifacts: Path
) -> Iterator[dict[str, Any]]:
    """A row for the whole of each repetition in `seeds`, and one for each number of runs on the way there.

    The repetitions move as one batch: they must share the model. Each is judged by its own verifier.
    """
    oracle = oracle_of(subject, seeds[0], artifacts)
    runs = 1 if decoding.greedy else subject.runs
    prompts = [
        (seed, *prompt) for seed in seeds for prompt in subject.prompts(seed, decoding.out_of_distribution)
    ]
    in_repetition = subject.names * runs
    ids = [seed * _SAMPLES_OF_A_SEED + place for seed in seeds for place in range(in_repetition)]
    samples, spent = drawn(
        subject,
        decoding,
        oracle,
        prompts,
        artifacts,
        num_samples=runs,
        batch_size=max(subject.batch_size, decoding.candidates),
        seed=seed_of(0, "draws", decoding.name),
        sample_ids=torch.tensor(ids),
    )
    texts = samples.texts()
    for place, seed in enumerate(seeds):
        own = range(place * in_repetition, (place + 1) * in_repetition)
        evaluations = [evaluate(texts[index], prompts[index // runs][1], subject.cases) for index in own]
        steps = progress(subject, runs, evaluations, samples, own)
        shared = {"seed": seed, "decoding": decoding.name}
        seconds = spent / len(seeds) * subject.runs / runs
        yield {"table": "draw", **shared, **steps[-1], "slope": slope(steps), "cpu_seconds": seconds}
        for row in steps[:-1]:
            columns = ("runs", "distinct_correct", "queries")
            yield {"table": "progress", **shared, **{column: row[column] for column in columns}}


def progress(
    subject: Subject, runs: int, evaluations: Sequence[Evaluation], samples: Samples, own: range
) -> list[dict[str, float]]:
    """What a repetition has after 1, 2, ... runs of each of its names; those of a greedy decoding are all equal."""
    queries = samples.queries[own.start : own.stop].view(-1, runs)
    calls = samples.verifier_calls[own.start : own.stop].view(-1, runs)
    by_name = [evaluations[first : first + runs] for first in range(0, len(evaluations), runs)]
    rows = []
    for done in range(1, subject.runs + 1):
        drawn = min(done, runs)
        repeats = done / drawn
        requested = subject.cases * subject.names * done
        correct = sum(case.correct for name in by_name for one in name[:drawn] for case in one.cases)
        distinct = sum(distinct_correct(name[:drawn]) for name in by_name)
        rows.append(
            {
                "runs": done,
                "distinct_correct": distinct,
                "correct": repeats * correct,
                "accuracy": repeats * correct / requested,
                "accuracy_distinct": distinct / requested,
                "queries": repeats * int(queries[:, :drawn].sum()),
                "verifier_calls": repeats * int(calls[:, :drawn].sum()),
            }
        )
    return rows


def slope(rows: Sequence[dict[str, float]]) -> float:
    """Distinct correct cases per 100 queries as runs are added: the slope of a least-squares line with an intercept."""
    queries = np.array([row["queries"] for row in rows])
    found = np.array([row["distinct_correct"] for row in rows])
    centred = queries - queries.mean()
    return float(100 * (centred * found).sum() / (centred**2).sum())


def drawn(
    subject: Subject,
    decoding: DecodingRule,
    oracle: TextOracle,
    prompts: Sequence[Prompt],
    artifacts: Path,
    **settings: Any,
) -> tuple[Samples, float]:
    """Draw completions of `prompts`, and measure the processor seconds; `settings` are arguments of `generate`."""
    judges = judges_of(subject, decoding, oracle, prompts, artifacts)
    began = time.process_time()
    samples = generate(
        truncated(
            oracle,
            temperature=0.0 if decoding.greedy else decoding.temperature,
            top_p=1.0 if decoding.greedy else decoding.top_p,
        ),
        [oracle.tokenization.encode(text) for _, _, text in prompts],
        sampler=sampler_of(decoding, oracle),
        verifier=judges,
        max_new_tokens=subject.max_new_tokens,
        stop=after_last_case(subject, oracle) if decoding.candidates else None,
        **settings,
    )
    return samples, time.process_time() - began


def sampler_of(decoding: DecodingRule, oracle: TextOracle) -> Sampler[Any]:
    """Return the sampler of a decoding."""
    if decoding.candidates:
        newlines = tuple(oracle.tokenization.tokens_ending_with("\n").tolist())
        return BlockBestOfN(decoding.candidates, newlines, min_tokens=_SHORTEST_BLOCK)
    if decoding.released:
        return Backtracking.released(decoding.quota, decoding.stride)
    if decoding.quota:
        return Backtracking(decoding.quota, decoding.stride, argmax_redo=decoding.argmax_redo)
    return Ancestral()


def judges_of(
    subject: Subject,
    decoding: DecodingRule,
    oracle: TextOracle,
    prompts: Sequence[Prompt],
    artifacts: Path,
) -> list[Verifier] | None:
    """Return the verifier of each prompt. Prompts of one repetition share it."""
    if decoding.judge == "none":
        return None
    by_seed: dict[int, Verifier] = {}
    for seed in dict.fromkeys(seed for seed, _, _ in prompts):
        if decoding.judge == "trained":
            layer = subject.layer if decoding.layer is None else decoding.layer
            kind: Kind = "block" if decoding.candidates else "token"
            trained = trained_verifier(subject, seed, kind, layer, decoding.depth or 1, artifacts)
            probe = ProbeVerifier(trained.probe, layer)
            by_seed[seed] = probe if decoding.candidates else Threshold(probe, decoding.threshold)
        elif decoding.judge == "random":
            by_seed[seed] = Threshold(RandomVerifier(seed), decoding.threshold)
        else:
            encode = oracle.tokenization.encode
            names = {tuple(encode(text)): name for owner, name, text in prompts if owner == seed}
            by_seed[seed] = GroundTruth(names, oracle.tokenization, subject.cases, oracle.eos)
    return [by_seed[seed] for seed, _, _ in prompts]


def after_last_case(subject: Subject, oracle: TextOracle) -> Callable[[Sequence[int]], bool]:
    """Whether a completion has as many lines as cases were asked for."""

    def enough(completion: Sequence[int]) -> bool:
        lines = oracle.tokenization.text(completion, final=False).split("\n")[:-1]
        return sum(bool(line.strip()) for line in lines) >= subject.cases

    return enough


def measure_speed(subject: Subject, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Queries and processor seconds of completions that are drawn one at a time, the decodings taking turns.

    The candidates of block best-of-n move together. The last row holds the rank correlation of queries and seconds
    over the completions of all decodings but that one.
    """
    oracle = oracle_of(subject, seed, artifacts)
    spent: dict[DecodingRule, list[tuple[int, float]]] = {decoding: [] for decoding in TIMED}
    for name, text in subject.prompts(seed, False):
        for decoding in TIMED:
            samples, seconds = drawn(
                subject,
                decoding,
                oracle,
                [(seed, name, text)],
                artifacts,
                batch_size=max(1, decoding.candidates),
                seed=seed_of(seed, "speed", name, decoding.name),
            )
            spent[decoding].append((int(samples.queries.sum()), seconds))
    shared = {"table": "speed", "seed": seed}
    for decoding, completions in spent.items():
        queries, cpu_seconds = np.mean(completions, axis=0)
        yield {**shared, "decoding": decoding.name, "queries": queries, "cpu_seconds": cpu_seconds}
    alone = np.array([pair for decoding in TIMED if not decoding.candidates for pair in spent[decoding]])
    correlation = float(spearmanr(*alone.T).statistic)
    yield {**shared, "decoding": "one at a time", "rank_correlation": correlation}
