"""The parts of a run: what verifiers learn from, how well they do, and what each decoding draws."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from trialogue.data.list_append.cases import Evaluation, distinct_correct, evaluate
from trialogue.inference import (
    Ancestral,
    Backtracking,
    BlockBestOfN,
    ProbeVerifier,
    RandomVerifier,
    Samples,
    Threshold,
    generate,
    truncated,
)
from trialogue.inference.walks.walk import Walk
from trialogue.ledger import Part
from trialogue.oracles import Verifier
from trialogue.randomness import seed_of
from trialogue.studies.test_cases.config import Config
from trialogue.studies.test_cases.decodings import DecodingRule
from trialogue.studies.test_cases.examples import GroundTruth, Kind
from trialogue.studies.test_cases.models import TextOracle, collected, oracle_of, trained_verifier

Rows = Iterator[dict[str, Any]]

_SHORTEST_BLOCK = 3  # tokens: a shorter line holds no case
_SAMPLES_OF_A_SEED = 1_000_000


def parts(config: Config) -> list[Part]:
    """Per verifier: its completions, its probes, and one part per decoding, all in one lane."""
    return [part for verifier in range(config.verifiers) for part in _parts_of(config, verifier)]


def _parts_of(config: Config, verifier: int) -> Iterator[Part]:
    def part(table: str, suffix: str, measure: Callable[..., Rows], *settings: Any) -> Part:
        measured = partial(measure, config, verifier, *settings)
        return Part(
            f"{verifier}-{table}{suffix}", measured, str(verifier), {"table": table, "verifier": verifier}
        )

    for place in range(config.collection_parts):
        yield part("collect", f"-{place}", measure_collection, place)
    yield part("probe", "", measure_probe)
    for decoding in config.decodings():
        yield part("draw", f"-{decoding.name}", measure_decoding, decoding)


def measure_collection(config: Config, verifier: int, part: int, artifacts: Path) -> Rows:
    """How the completions that a verifier learns from go wrong: a count for each first error."""
    oracle = oracle_of(config, artifacts)
    found: Counter[str] = Counter()
    for completion in collected(config, verifier, part, artifacts):
        text = oracle.tokenization.text(completion.tokens[completion.start :])
        error = evaluate(text, completion.name, config.cases, final=completion.ended).error
        found["none" if error is None else error.value] += 1
    for error_name, count in sorted(found.items()):
        yield {"seed": config.seeds[verifier], "error": error_name, "count": count}


def measure_probe(config: Config, verifier: int, artifacts: Path) -> Rows:
    """Validation accuracy of the probes on every layer and of every depth (Tables 3.9 and 3.11)."""
    settings: list[tuple[Kind, int, int]] = [("token", layer, 1) for layer in config.layers]
    settings += [("token", config.layer, depth) for depth in config.depths if depth > 1]
    for kind, layer, depth in (*settings, ("block", config.layer, 1)):
        trained = trained_verifier(config, verifier, kind, layer, depth, artifacts)
        yield {
            "seed": config.seeds[verifier],
            "kind": kind,
            "layer": layer,
            "depth": depth,
            "model": config.model.rpartition("/")[2],
            "chosen": layer == config.layer,
            "examples": trained.train_size + trained.validation_size,
            "train_accuracy": trained.train_accuracy,
            "validation_accuracy": trained.validation_accuracy,
        }


def measure_decoding(config: Config, verifier: int, decoding: DecodingRule, artifacts: Path) -> Rows:
    """One row per repetition and number of runs drawn so far: distinct correct cases, and queries (Figure 3.3)."""
    oracle, seeds = oracle_of(config, artifacts), config.repetitions(verifier)
    runs = 1 if decoding.greedy else config.runs
    prompts = [
        (seed, *prompt) for seed in seeds for prompt in config.prompts(seed, decoding.out_of_distribution)
    ]
    encoded = [oracle.tokenization.encode(text) for _, _, text in prompts]
    names = {tuple(tokens): name for tokens, (_, name, _) in zip(encoded, prompts, strict=True)}
    judge = _judge(config, verifier, decoding, oracle, names, artifacts)
    in_repetition = config.names * runs
    ids = [seed * _SAMPLES_OF_A_SEED + place for seed in seeds for place in range(in_repetition)]
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
        num_samples=runs,
        max_new_tokens=config.max_new_tokens,
        batch_size=max(config.batch_size, decoding.candidates),
        stop=_after_last_case(config, oracle) if decoding.candidates else None,
        seed=seed_of(0, "draws", decoding.name),
        sample_ids=torch.tensor(ids),
    )
    spent = time.process_time() - began
    texts = samples.texts()
    for place, seed in enumerate(seeds):
        own = range(place * in_repetition, (place + 1) * in_repetition)
        evaluations = [evaluate(texts[index], prompts[index // runs][1], config.cases) for index in own]
        shared = {"decoding": decoding.name, "cpu_seconds": spent / len(seeds)}
        for row in _progress(config, runs, evaluations, samples, own):
            yield {"seed": seed, **shared, **row}


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


def _judge(
    config: Config,
    verifier: int,
    decoding: DecodingRule,
    oracle: TextOracle,
    names: dict[tuple[int, ...], str],
    artifacts: Path,
) -> Verifier | None:
    if decoding.judge == "trained":
        kind: Kind = "block" if decoding.candidates else "token"
        layer = config.layer if decoding.layer is None else decoding.layer
        trained = trained_verifier(config, verifier, kind, layer, decoding.depth or 1, artifacts)
        probe = ProbeVerifier(trained.probe, layer)
        return probe if decoding.candidates else Threshold(probe, decoding.threshold)
    if decoding.judge == "random":
        return Threshold(RandomVerifier(config.seeds[verifier]), decoding.threshold)
    if decoding.judge == "ground truth":
        return GroundTruth(names, oracle.tokenization, config.cases, oracle.eos)
    return None


def _after_last_case(config: Config, oracle: TextOracle) -> Any:
    """Whether a completion has as many lines as cases were asked for."""

    def enough(completion: tuple[int, ...]) -> bool:
        lines = oracle.tokenization.text(completion, final=False).split("\n")[:-1]
        return sum(bool(line.strip()) for line in lines) >= config.cases

    return enough
