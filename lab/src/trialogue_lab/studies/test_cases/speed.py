"""Queries confronted with seconds, one completion after another (section 3.4.1)."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from trialogue.randomness import seed_of
from trialogue.samplers import generate
from trialogue_lab.studies.test_cases.decodings import BASELINE, LARGE_QUOTA, TRAINED, block_best_of
from trialogue_lab.studies.test_cases.draws import after_last_case, cut, judges_of, walk_of
from trialogue_lab.studies.test_cases.models import oracle_of
from trialogue_lab.studies.test_cases.subjects import Subject

CANDIDATES = 4
TIMED = (BASELINE, TRAINED, LARGE_QUOTA, block_best_of(CANDIDATES))


def measure_speed(subject: Subject, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Queries and processor seconds of completions that are drawn one at a time, the decodings taking turns.

    The candidates of block best-of-n move together. The last row holds the rank correlation of queries and seconds
    over the completions of all decodings but that one.
    """
    oracle = oracle_of(subject, seed, artifacts)
    prompts = [(seed, *prompt) for prompt in subject.prompts(seed, False)]
    spent: dict[str, list[tuple[int, float]]] = {decoding.name: [] for decoding in TIMED}
    for prompt in prompts:
        for decoding in TIMED:
            judges = judges_of(subject, decoding, oracle, [prompt], artifacts)
            began = time.process_time()
            samples = generate(
                cut(oracle, decoding),
                [oracle.tokenization.encode(prompt[2])],
                sampler=walk_of(decoding, oracle),
                verifier=judges,
                max_new_tokens=subject.max_new_tokens,
                batch_size=max(1, decoding.candidates),
                stop=after_last_case(subject, oracle) if decoding.candidates else None,
                seed=seed_of(seed, "speed", prompt[1], decoding.name),
            )
            spent[decoding.name].append((int(samples.queries.sum()), time.process_time() - began))
    for name, completions in spent.items():
        queries, seconds = np.array(completions).T
        yield {"seed": seed, "decoding": name, "queries": queries.mean(), "cpu_seconds": seconds.mean()}
    alone = [pair for decoding in TIMED if not decoding.candidates for pair in spent[decoding.name]]
    queries, seconds = np.array(alone).T
    correlation = float(spearmanr(queries, seconds).statistic)
    yield {"seed": seed, "decoding": "one at a time", "rank_correlation": correlation}
