"""Queries confronted with seconds, by decoding and batch (section 3.4.1)."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

from trialogue.randomness import seed_of
from trialogue.samplers import BestOfN, generate, truncated
from trialogue_lab.studies.dyck_backtracking import models
from trialogue_lab.studies.dyck_backtracking.config import BATCHES, CANDIDATES, Config

_ROUNDS = 3


def measure_speed(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Queries and processor seconds of a completion, and how its queries and its wall time go together.

    With a batch of 1 prompts are completed one after the other; the candidates of best of n move together. Decodings
    take turns, so that what slows the machine meets all of them; the least of the rounds is free of it.
    """
    oracle = truncated(models.trained_model(config, seed, artifacts), top_p=0.9)
    probe = models.probe_verifier(config, seed, artifacts)
    known = models.decodings_of(config, seed, probe)
    decodings: models.Decodings = {
        name: known[name] for name in ("none", "trained", "trained, as released", "exact")
    }
    decodings["best of n"] = BestOfN(CANDIDATES), probe
    completed = partial(generate, seed=seed_of(seed, "speed"))
    prompts = config.ood_prompts(max(BATCHES.values()), seed, "speed")
    for batch, count in BATCHES.items():
        tokens, lengths = prompts
        asked = tokens[:count], lengths[:count]
        measured: dict[str, list[dict[str, float]]] = {name: [] for name in decodings}
        for _ in range(_ROUNDS):
            for name, (walk, verifier) in decodings.items():
                before = time.process_time()
                samples = completed(oracle, asked, sampler=walk, verifier=verifier, batch_size=batch)
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
