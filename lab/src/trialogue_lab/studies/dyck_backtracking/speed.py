"""Measurement of the model calls and the processor time of decoding methods (section 3.4.1)."""

import time
from functools import partial
from pathlib import Path

from scipy.stats import spearmanr

from trialogue.randomness import derive_seed
from trialogue.samplers import BestOfN, generate, truncated
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.dyck_backtracking import models
from trialogue_lab.studies.dyck_backtracking.config import BATCHES, CANDIDATES, Config

_ROUNDS = 3


def measure_speed(config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    """Measure model calls and processor time of decoding methods at several batch sizes.

    Each method is timed in three rounds, and the fastest round counts. Methods alternate within a round, so that a
    slowdown of the machine affects all of them. With a batch size of 1, prompts are completed one after the other. The
    candidates of best-of-n run together at every batch size.

    Args:
        config: Settings of the run.
        seed: Seed of the model's training.
        artifacts: Folder of the trained models.

    Yields:
        One row per batch size and decoding method, with means per prompt. "rank_correlation" is the Spearman
        correlation over prompts between model calls and wall time.
    """
    oracle = truncated(models.train_or_load(config, seed, artifacts).network, top_p=0.9)
    probe = models.make_probe_verifier(config, seed, artifacts)
    all_decodings = models.make_decodings(config, seed, probe)
    names = ("none", "trained", "trained, as released", "exact")
    decodings: models.Decodings = {name: all_decodings[name] for name in names}
    decodings["best of n"] = BestOfN(CANDIDATES), probe
    complete = partial(generate, seed=derive_seed(seed, "speed"))
    tokens, lengths = config.sample_prompts(max(BATCHES.values()), seed, "speed")
    for batch, count in BATCHES.items():
        prompts = tokens[:count], lengths[:count]
        measured: dict[str, list[dict[str, float]]] = {name: [] for name in decodings}
        for _ in range(_ROUNDS):
            for name, (sampler, verifier) in decodings.items():
                start = time.process_time()
                samples = complete(oracle, prompts, sampler=sampler, verifier=verifier, batch_size=batch)
                seconds = time.process_time() - start
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
            yield {"batch": batch, "decoding": name, **min(rounds, key=lambda row: row["seconds"])}
