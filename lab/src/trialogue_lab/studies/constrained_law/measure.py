"""The parts of a run: for each question exact laws from the token tree, and walks as they run."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from trialogue.randomness import seed_of
from trialogue.samplers import (
    Ancestral,
    Backtracking,
    MaskedDecoding,
    Samples,
    SequentialMonteCarlo,
    ValueGuided,
    WeightedRejection,
    generate,
)
from trialogue.samplers.prefix.sampler import Sampler
from trialogue_lab.ledger import Part
from trialogue_lab.studies.constrained_law.cases import Case, case_of
from trialogue_lab.studies.constrained_law.config import Config
from trialogue_lab.studies.constrained_law.laws import (
    ExactDistribution,
    by_text,
    distance,
    drawn_distance,
    sampling_error,
)
from trialogue_lab.studies.constrained_law.tasks import TASKS
from trialogue_lab.studies.constrained_law.tree import Lumped, TokenTree, explore, first_leaf
from trialogue_lab.theory.resampling import resampled_law


class Rule(NamedTuple):
    """A walk that is run on the model.

    `weighted` says whether the weights of its outputs make them samples of the restricted law. Where the law is known
    otherwise, the walk is only timed, on `1 / timed` of the outputs.
    """

    walk: Sampler[Any]
    weighted: bool = False
    timed: int | None = None


RULES = {
    "no rule": Rule(Ancestral(), weighted=True),
    "masked": Rule(MaskedDecoding(), weighted=True),
    "weighted rejection": Rule(WeightedRejection(), weighted=True),
    "backtracking": Rule(Backtracking(4, 4)),
    "smc": Rule(SequentialMonteCarlo(16, proposal="mask"), timed=8),
    "value-guided": Rule(ValueGuided(), timed=8),
}


def parts(config: Config) -> list[Part]:
    """One part per seed and kind of rule."""
    return [
        Part(f"{kind}-{seed}", partial(_measured, config, kind, seed), columns={"seed": seed, "kind": kind})
        for seed in config.seeds
        for kind in TASKS
    ]


def _measured(config: Config, kind: str, seed: int, _: Path) -> Iterator[dict[str, Any]]:
    return measure(case_of(config, kind, seed), config, seed)


def measure(case: Case, config: Config, seed: int) -> Iterator[dict[str, Any]]:
    """Measure every decoding rule on `case`."""
    began = time.process_time()
    tree = explore(
        case.oracle,
        case.verifier,
        case.prompt,
        case.max_new_tokens,
        tolerance=config.tolerance,
        max_prefixes=config.max_prefixes,
    )
    target, masked = by_text(tree.restricted, case.text), by_text(tree.masked, case.text)
    yield {
        "measure": "tree",
        "accepted_mass": tree.accepted_mass,
        "prefixes": len(tree.nodes),
        "sequences": len(tree.leaves),
        "texts": len(target),
        "unexplored_p": tree.left_p / tree.accepted_mass,
        "unexplored_q": tree.left_q,
        "cpu_seconds": time.process_time() - began,
    }
    laws: dict[str, ExactDistribution] = {"restricted": target, "masked": masked}
    yield from _exact(case, tree, config, seed, laws)
    yield from _run(case, config, seed, laws)
    for text in sorted({text for law in laws.values() for text in law}):
        yield {"measure": "answer", "text": text} | {rule: law.get(text, 0.0) for rule, law in laws.items()}


def _exact(
    case: Case, tree: TokenTree, config: Config, seed: int, laws: dict[str, ExactDistribution]
) -> Iterator[dict[str, Any]]:
    """Exact laws from the tree, and what is simulated on it; `laws` takes up each."""
    target = laws["restricted"]
    restricted, masked = tree.restricted, tree.masked
    q = np.array([masked[x] for x in restricted])
    w = np.array([restricted[x] / masked[x] for x in restricted])
    mean_length = float(np.average([len(x) for x in restricted], weights=q))
    share = 1.0 / float(q @ w**2)
    for number in config.sizes:
        # What is drawn by weight among what was explored.
        law = q.sum() * resampled_law(q / q.sum(), w, number)
        texts = by_text(dict(zip(restricted, law.tolist(), strict=True)), case.text)
        yield {
            "measure": "exact",
            "rule": "masked, weighted",
            "size": number,
            "tv": distance(texts, target),
            "drawn_tv": drawn_distance(texts, target, config.simulations, seed),
            "queries": number * mean_length,
            "ess_per_query": share / mean_length,
        }
        laws[f"masked, weighted, {number}"] = texts
    guided, queries = first_leaf(tree)
    laws["value-guided"] = texts = by_text(guided, case.text)
    row = {"rule": "value-guided", "size": 1, "tv": distance(texts, target), "queries": queries}
    yield {"measure": "exact", **row}
    lumped = Lumped(tree, case.oracle.eos)
    for number in config.particles:
        walk = SequentialMonteCarlo(number, proposal="mask")
        drawn = generate(lumped, sampler=walk, verifier=lumped, num_samples=config.simulations, seed=seed)
        texts = _shares(drawn, lambda name: case.text(lumped.leaves[name]))
        yield {
            "measure": "simulated",
            "rule": "smc",
            "size": number,
            "tv": distance(texts, target),
            "error": sampling_error(texts, config.simulations),
            "queries": float(drawn.queries.double().mean()),
        }
        laws[f"smc, {number}"] = texts


def _shares(drawn: Samples, text: Callable[[tuple[int, ...]], str]) -> ExactDistribution:
    """The share of each text among all that were `drawn`; what was rejected is none."""
    accepted = zip(drawn.completions(), drawn.accepted.tolist(), strict=True)
    counts = Counter(text(completion) for completion, is_accepted in accepted if is_accepted)
    return {found: count / len(drawn.lengths) for found, count in counts.items()}


def _run(
    case: Case, config: Config, seed: int, laws: dict[str, ExactDistribution]
) -> Iterator[dict[str, Any]]:
    """Walks on the model itself: what they give, and what it costs."""
    for name, (walk, weighted, timed) in RULES.items():
        samples = max(1, config.samples // (timed or 1))
        began = time.process_time()
        drawn = generate(
            case.oracle,
            [case.prompt],
            sampler=walk,
            verifier=case.verifier,
            max_new_tokens=case.max_new_tokens,
            num_samples=samples,
            seed=seed_of(seed, name),
            batch_size=32,
            max_queries=config.max_queries,
        )
        seconds = time.process_time() - began
        counts = _shares(drawn, case.text)
        weights = torch.where(drawn.accepted, drawn.log_weight.exp(), 0.0)
        squares = float((weights**2).sum())
        queries = int(drawn.queries.sum())
        row = {
            "measure": "run",
            "rule": name,
            "samples": samples,
            "valid": float(drawn.accepted.double().mean()),
            "queries": queries / samples,
            "distinct_queries": drawn.total.distinct_queries / samples,
            "forward_passes": drawn.total.forward_passes,
            "positions": drawn.total.positions,
            "verifier_calls": drawn.total.verifier_calls / samples,
            "cpu_seconds": seconds / samples,
        }
        if weighted and squares:
            row["ess_per_query"] = float(weights.sum()) ** 2 / squares / queries
        if timed is None:
            row |= {"tv": distance(counts, laws["restricted"]), "error": sampling_error(counts, samples)}
            laws[f"{name}, as run"] = counts
        if name == "masked":
            row["drawn_tv"] = drawn_distance(laws["masked"], laws["restricted"], samples, seed)
        yield row
