"""The parts of a run: what verifiers learn from, how well they do, and what each decoding draws."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from trialogue.data.list_append.cases import Evaluation, distinct_correct, evaluate
from trialogue.inference import Ancestral, Backtracking, BlockBestOfN, Samples, generate, truncated
from trialogue.inference.walks.walk import Walk
from trialogue.ledger import Part
from trialogue.randomness import seed_of
from trialogue.studies.test_cases.config import ALONE, BATCH, Config
from trialogue.studies.test_cases.decodings import BASELINE, TRAINED, DecodingRule, block_best_of
from trialogue.studies.test_cases.examples import Kind
from trialogue.studies.test_cases.judges import Prompt, judge_of
from trialogue.studies.test_cases.models import TextOracle, collected, oracle_of, trained_verifier

Rows = Iterator[dict[str, Any]]

TIMED = (BASELINE, TRAINED, block_best_of(4))
"""Walks whose queries are held against seconds."""

_SHORTEST_BLOCK = 3  # tokens: a shorter line holds no case
_SAMPLES_OF_A_SEED = 1_000_000


def parts(config: Config) -> list[Part]:
    """Those of the surrogate's repetitions, then those of the model's: a lane for what is drawn together."""
    setups = [config.beside(), config] if config.surrogate_seeds else [config]
    return [
        part
        for place, setup in enumerate(setups)
        for first in range(0, len(setup.seeds), setup.together)
        for part in _parts_of(setup, setup.seeds[first : first + setup.together], place < len(setups) - 1)
    ]


def _parts_of(config: Config, seeds: Sequence[int], beside: bool) -> Iterator[Part]:
    lane = f"{'scratch-' if beside else ''}{seeds[0]}"

    def part(table: str, suffix: str, measure: Callable[..., Rows], *settings: Any) -> Part:
        columns = {"table": table, "beside": beside}
        return Part(f"{lane}-{table}{suffix}", partial(measure, config, *settings), lane, columns)

    for seed in seeds:
        yield part("collect", f"-{seed}", measure_collection, seed)
        yield part("probe", f"-{seed}", measure_probe, seed)
    drawn: dict[DecodingRule, list[int]] = {}
    for seed in seeds:
        for decoding in config.decodings(seed):
            drawn.setdefault(decoding, []).append(seed)
    for decoding, own in drawn.items():
        yield part("draw", f"-{decoding.name}", measure_decoding, own, decoding)
    for seed in seeds:
        if seed in config.seeds[: config.timed]:
            yield part("time", f"-{seed}", measure_time, seed)


def measure_collection(config: Config, seed: int, artifacts: Path) -> Rows:
    """How the completions that a verifier learns from go wrong: a count for each first error."""
    oracle = oracle_of(config, seed, artifacts)
    found: Counter[str] = Counter()
    for completion in collected(config, seed, artifacts):
        text = oracle.tokenization.text(completion.tokens[completion.start :])
        error = evaluate(text, completion.name, config.cases, final=completion.ended).error
        found["none" if error is None else error.value] += 1
    for error_name, count in sorted(found.items()):
        yield {"seed": seed, "error": error_name, "count": count}


def measure_probe(config: Config, seed: int, artifacts: Path) -> Rows:
    """Validation accuracy of the probes on every layer and of every depth (Tables 3.9 and 3.11)."""
    settings: list[tuple[Kind, int, int]] = [("token", layer, 1) for layer in config.layers]
    settings += [("token", config.layer, depth) for depth in config.depths if depth > 1]
    for kind, layer, depth in (*settings, ("block", config.layer, 1)):
        trained = trained_verifier(config, seed, kind, layer, depth, artifacts)
        yield {
            "seed": seed,
            "kind": kind,
            "layer": layer,
            "depth": depth,
            "model": config.model.rpartition("/")[2],
            "chosen": layer == config.layer,
            "examples": trained.train_size + trained.validation_size,
            "train_accuracy": trained.train_accuracy,
            "validation_accuracy": trained.validation_accuracy,
        }


def measure_decoding(config: Config, seeds: Sequence[int], decoding: DecodingRule, artifacts: Path) -> Rows:
    """One row per repetition and number of runs drawn so far: distinct correct cases, and queries (Figure 3.3)."""
    oracle = oracle_of(config, seeds[0], artifacts)
    runs = 1 if decoding.greedy else config.runs
    prompts = [
        (seed, *prompt) for seed in seeds for prompt in config.prompts(seed, decoding.out_of_distribution)
    ]
    in_repetition = config.names * runs
    ids = [seed * _SAMPLES_OF_A_SEED + place for seed in seeds for place in range(in_repetition)]
    samples, spent = _drawn(
        config,
        decoding,
        oracle,
        prompts,
        artifacts,
        num_samples=runs,
        batch_size=max(config.batch_size, decoding.candidates),
        sample_ids=torch.tensor(ids),
    )
    texts = samples.texts()
    for place, seed in enumerate(seeds):
        own = range(place * in_repetition, (place + 1) * in_repetition)
        evaluations = [evaluate(texts[index], prompts[index // runs][1], config.cases) for index in own]
        shared = {"decoding": decoding.name, "cpu_seconds": spent / len(seeds)}
        for row in _progress(config, runs, evaluations, samples, own):
            yield {"seed": seed, **shared, **row}


def measure_time(config: Config, seed: int, artifacts: Path) -> Rows:
    """Queries and seconds by walk, rows moved at once and length (section 3.4.1), on the prompts of a repetition."""
    oracle = oracle_of(config, seed, artifacts)
    prompts = [(seed, *prompt) for prompt in config.prompts(seed, False)]
    settings = [(decoding, rows, config.max_new_tokens) for decoding in TIMED for rows in (ALONE, BATCH)]
    shorter = (config.max_new_tokens // 4, config.max_new_tokens // 2)
    settings += [(decoding, ALONE, length) for decoding in TIMED[:2] for length in shorter]
    # Settings take turns, so that what slows the machine meets all; the shorter of two rounds is freer of it.
    rounds = [[_timed(config, oracle, prompts, artifacts, *each) for each in settings] for _ in range(2)]
    for rows in zip(*rounds, strict=True):
        yield {"seed": seed, **min(rows, key=lambda row: row["cpu_seconds"])}


def _timed(
    config: Config,
    oracle: TextOracle,
    prompts: Sequence[tuple[int, str, str]],
    artifacts: Path,
    decoding: DecodingRule,
    rows: int,
    length: int,
) -> dict[str, Any]:
    """Queries and CPU seconds of one sample, or of as many as move `rows` rows: of block best-of-n one moves n."""
    chosen = prompts[: 1 if rows == ALONE else len(prompts)]
    at_once = max(1, rows // max(1, decoding.candidates))
    samples, spent = _drawn(
        config,
        decoding,
        oracle,
        chosen,
        artifacts,
        num_samples=-(-at_once // len(chosen)),
        batch_size=max(rows, decoding.candidates),
        max_new_tokens=length,
    )
    return {
        "decoding": decoding.name,
        "at_once": rows,
        "tokens": length,
        "queries": int(samples.queries.sum()),
        "cpu_seconds": spent,
    }


def _drawn(
    config: Config,
    decoding: DecodingRule,
    oracle: TextOracle,
    prompts: Sequence[tuple[int, str, str]],
    artifacts: Path,
    *,
    max_new_tokens: int | None = None,
    **sampling: Any,
) -> tuple[Samples, float]:
    """Samples of `prompts`, each with its repetition and its name, and the CPU seconds that drawing them took."""
    encoded = [oracle.tokenization.encode(text) for _, _, text in prompts]
    repetitions: Mapping[Prompt, int] = {
        tuple(tokens): seed for tokens, (seed, _, _) in zip(encoded, prompts, strict=True)
    }
    names = {tuple(tokens): name for tokens, (_, name, _) in zip(encoded, prompts, strict=True)}
    judge = judge_of(config, decoding, oracle, repetitions, names, artifacts)
    began = time.process_time()
    samples = generate(
        truncated(
            oracle,
            temperature=0.0 if decoding.greedy else decoding.temperature,
            top_p=1.0 if decoding.greedy else decoding.top_p,
        ),
        encoded,
        walk=_walk(decoding, oracle),
        verifier=judge,
        max_new_tokens=max_new_tokens or config.max_new_tokens,
        stop=_after_last_case(config, oracle) if decoding.candidates else None,
        seed=seed_of(0, "draws", decoding.name),
        **sampling,
    )
    return samples, time.process_time() - began


def _progress(
    config: Config, runs: int, evaluations: Sequence[Evaluation], samples: Samples, own: range
) -> Rows:
    """What a repetition has after 1, 2, ... runs of each of its names."""
    queries = samples.queries[own.start : own.stop].view(-1, runs)
    calls = samples.verifier_calls[own.start : own.stop].view(-1, runs)
    by_name = [evaluations[first : first + runs] for first in range(0, len(evaluations), runs)]
    for done in range(1, config.runs + 1):
        drawn = min(done, runs)
        repeats = done / drawn
        requested = config.cases * config.names * done
        correct = sum(case.correct for name in by_name for one in name[:drawn] for case in one.cases)
        distinct = sum(distinct_correct(name[:drawn]) for name in by_name)
        yield {
            "runs": done,
            "whole": done == config.runs,
            "distinct_correct": distinct,
            "accuracy": repeats * correct / requested,
            "accuracy_distinct": distinct / requested,
            "queries": repeats * int(queries[:, :drawn].sum()),
            "verifier_calls": repeats * int(calls[:, :drawn].sum()),
        }


def _walk(decoding: DecodingRule, oracle: TextOracle) -> Walk[Any]:
    if decoding.candidates:
        newlines = tuple(oracle.tokenization.tokens_ending_with("\n").tolist())
        return BlockBestOfN(decoding.candidates, newlines, min_tokens=_SHORTEST_BLOCK)
    if decoding.quota:
        return Backtracking(decoding.quota, decoding.stride, argmax_redo=decoding.argmax_redo)
    return Ancestral()


def _after_last_case(config: Config, oracle: TextOracle) -> Any:
    """Whether a completion has as many lines as cases were asked for."""

    def enough(completion: tuple[int, ...]) -> bool:
        lines = oracle.tokenization.text(completion, final=False).split("\n")[:-1]
        return sum(bool(line.strip()) for line in lines) >= config.cases

    return enough
