"""Queries confronted with seconds, by decoding and batch (section 3.4.1)."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

from trialogue.oracles import Verifier
from trialogue.randomness import seed_of
from trialogue.samplers import Ancestral, Backtracking, BestOfN, generate, truncated
from trialogue.samplers.prefix.sampler import Sampler
from trialogue.verifiers.function import Threshold
from trialogue_lab.studies.dyck_backtracking.config import BATCHES, CANDIDATES, Config
from trialogue_lab.studies.dyck_backtracking.models import probe_verifier, trained_model

_ROUNDS = 3


def measure_speed(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Queries and processor seconds of a completion, and how its queries and its wall time go together.

    With a batch of 1 prompts are completed one after the other; the candidates of best of n move together. Decodings
    take turns, so that what slows the machine meets all of them; the least of the rounds is free of it.
    """
    oracle = truncated(trained_model(config, seed, artifacts), top_p=0.9)
    probe = probe_verifier(config, seed, artifacts)
    trained = Threshold(probe, config.threshold)
    decodings: dict[str, tuple[Sampler[Any], Verifier | None]] = {
        "none": (Ancestral(), None),
        "trained": (Backtracking(4, 4), trained),
        "trained, as released": (Backtracking.released(4, 4), trained),
        "exact": (Backtracking(4, 4), config.law()),
        "best of n": (BestOfN(CANDIDATES), probe),
    }
    prompts = config.ood_prompts(max(BATCHES.values()), seed, "speed")
    for batch, count in BATCHES.items():
        tokens, lengths = (each[:count] for each in prompts)
        measured: dict[str, list[dict[str, float]]] = {name: [] for name in decodings}
        for _ in range(_ROUNDS):
            for name, (walk, verifier) in decodings.items():
                before = time.process_time()
                samples = generate(
                    oracle,
                    (tokens, lengths),
                    sampler=walk,
                    verifier=verifier,
                    batch_size=batch,
                    seed=seed_of(seed, "speed"),
                )
                seconds = time.process_time() - before
                queries = samples.queries.double()
                measured[name].append(
                    {
                        "seconds": seconds / count,
                        "queries": float(queries.mean()),
                        "verifier_calls": float(samples.verifier_calls.double().mean()),
                        "rank_correlation": float(spearmanr(queries, samples.seconds).statistic),
                    }
                )
        for name, rounds in measured.items():
            yield {"batch": batch, "decoding": name, **min(rounds, key=lambda each: each["seconds"])}
