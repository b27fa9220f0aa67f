"""What the study `constrained-law` measures of one question: exact laws from the token tree, and walks as they run."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from trialogue.inference import (
    Ancestral,
    Backtracking,
    SequentialMonteCarlo,
    TokenwiseRejection,
    ValueGuided,
    WeightedRejection,
    generate,
)
from trialogue.inference.walks.walk import Walk
from trialogue.oracles import Autoregressive, Verifier
from trialogue.randomness import numpy_generator, seed_of
from trialogue.studies.constrained_law_tree import Lumped, TokenTree, explore, first_leaf

Law = dict[str, float]


class Rule(NamedTuple):
    """A walk that is run on the model.

    `weighted` says whether the weights of its outputs make them samples of the restricted law. Where the law is known
    otherwise, the walk is only timed, on `1 / timed` of the outputs.
    """

    walk: Walk[Any]
    weighted: bool = False
    timed: int | None = None


RULES = {
    "no rule": Rule(Ancestral(), weighted=True),
    "masked": Rule(TokenwiseRejection("mask"), weighted=True),
    "weighted rejection": Rule(WeightedRejection(), weighted=True),
    "backtracking": Rule(Backtracking(4, 4)),
    "smc": Rule(SequentialMonteCarlo(16, proposal="mask"), timed=8),
    "value-guided": Rule(ValueGuided(), timed=8),
}


@dataclass(frozen=True)
class Case:
    """One question: who answers, the prompt (token ids), the rule, and the text of a completion."""

    oracle: Autoregressive
    verifier: Verifier
    prompt: tuple[int, ...]
    text: Callable[[tuple[int, ...]], str]
    max_new_tokens: int


@dataclass(frozen=True)
class Effort:
    """How much to measure; the fields are those of the study's config."""

    sizes: tuple[int, ...]
    particles: tuple[int, ...]
    simulations: int
    samples: int
    tolerance: float
    max_prefixes: int
    max_queries: int


def by_text(law: Mapping[tuple[int, ...], float], text: Callable[[tuple[int, ...]], str]) -> Law:
    """The law of the texts, from that of the completions."""
    summed: Law = {}
    for completion, probability in law.items():
        summed[text(completion)] = summed.get(text(completion), 0.0) + probability
    return summed


def distance(first: Law, second: Law) -> float:
    """Total variation; what a law lacks of 1 is output that breaks the rule."""
    texts = first.keys() | second.keys()
    missing = abs(math.fsum(first.values()) - math.fsum(second.values()))
    return (math.fsum(abs(first.get(t, 0.0) - second.get(t, 0.0)) for t in texts) + missing) / 2


def sampling_error(law: Law, number: int) -> float:
    """The total variation between `law` and `number` draws of it that is to be expected, by the normal limit."""
    return math.fsum(math.sqrt(2 * p * max(0.0, 1 - p) / (math.pi * number)) for p in law.values()) / 2


def drawn_distance(law: Law, target: Law, number: int, seed: int, rounds: int = 2000) -> float:
    """The expected total variation between `target` and the counts of `number` draws of `law`, by simulation.

    Counts are further from the target than the law that they are drawn from. What `law` lacks of 1 breaks the rule.
    """
    texts = sorted(law.keys() | target.keys())
    p = np.array([law.get(text, 0.0) for text in texts])
    outcomes = np.append(p, max(0.0, 1.0 - p.sum()))
    expected = np.append(
        [target.get(text, 0.0) for text in texts], max(0.0, 1.0 - math.fsum(target.values()))
    )
    draw = numpy_generator(seed, "counts", number)
    counts = draw.multinomial(number, outcomes / outcomes.sum(), size=rounds) / number
    return float(np.abs(counts - expected).sum(1).mean() / 2)


def resampled_law(
    proposal: NDArray[np.float64], weights: NDArray[np.float64], number: int, rounds: int, seed: int
) -> NDArray[np.float64]:
    """The law (k,) of one draw by weight among `number` draws of `proposal` (k,), whose weights are `weights` (k,).

    Given the sum S of the others' weights, outcome x is the output with probability number q(x) E[w(x)/(w(x) + S)],
    by exchangeability: only the law of S is simulated, in `rounds` rounds.
    """
    if number == 1:
        return proposal
    draw = numpy_generator(seed, "resampling", number)
    others = draw.multinomial(number - 1, proposal / proposal.sum(), size=rounds) @ weights
    share = (weights[None, :] / (weights[None, :] + others[:, None])).mean(0)
    return number * proposal * share


def measure(case: Case, effort: Effort, seed: int) -> Iterator[dict[str, Any]]:
    """Measure every decoding rule on `case`."""
    began = time.process_time()
    tree = explore(
        case.oracle,
        case.verifier,
        case.prompt,
        case.max_new_tokens,
        tolerance=effort.tolerance,
        max_prefixes=effort.max_prefixes,
    )
    target = by_text(tree.restricted, case.text)
    masked = by_text(tree.masked, case.text)
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
    laws: dict[str, Law] = {"restricted": target, "masked": masked}
    yield from _exact(case, tree, target, effort, seed, laws)
    yield from _run(case, target, masked, effort, seed, laws)
    for text in sorted({text for law in laws.values() for text in law}):
        yield {"measure": "answer", "text": text} | {rule: law.get(text, 0.0) for rule, law in laws.items()}


def _exact(
    case: Case, tree: TokenTree, target: Law, effort: Effort, seed: int, laws: dict[str, Law]
) -> Iterator[dict[str, Any]]:
    restricted, masked = tree.restricted, tree.masked
    q = np.array([masked[x] for x in restricted])
    w = np.array([restricted[x] / masked[x] for x in restricted])
    mean_length = float(q @ np.array([len(x) for x in restricted]) / q.sum())
    share = 1.0 / float(q @ w**2)
    for number in effort.sizes:
        law = resampled_law(q, w, number, 4000, seed)
        texts = by_text(dict(zip(restricted, law.tolist(), strict=True)), case.text)
        yield {
            "measure": "exact",
            "rule": "masked, weighted",
            "size": number,
            "tv": distance(texts, target),
            "drawn_tv": drawn_distance(texts, target, effort.simulations, seed),
            "queries": number * mean_length,
            "ess_per_query": share / mean_length,
        }
        laws[f"masked, weighted, {number}"] = texts
    guided, guided_queries = first_leaf(tree)
    texts = by_text(guided, case.text)
    laws["value-guided"] = texts
    yield {
        "measure": "exact",
        "rule": "value-guided",
        "size": 1,
        "tv": distance(texts, target),
        "queries": guided_queries,
    }
    lumped = Lumped(tree, case.oracle.eos)
    for number in effort.particles:
        walk = SequentialMonteCarlo(number, proposal="mask")
        drawn = generate(lumped, walk=walk, verifier=lumped, num_samples=effort.simulations, seed=seed)
        counts: dict[tuple[int, ...], float] = {}
        for sequence, accepted in zip(drawn.sequences(), drawn.accepted.tolist(), strict=True):
            if accepted:
                completion = lumped.leaves[sequence]
                counts[completion] = counts.get(completion, 0.0) + 1 / len(drawn.lengths)
        texts = by_text(counts, case.text)
        yield {
            "measure": "simulated",
            "rule": "smc",
            "size": number,
            "tv": distance(texts, target),
            "error": sampling_error(texts, effort.simulations),
            "queries": float(drawn.queries.double().mean()),
        }
        laws[f"smc, {number}"] = texts


def _run(
    case: Case, target: Law, masked: Law, effort: Effort, seed: int, laws: dict[str, Law]
) -> Iterator[dict[str, Any]]:
    """Walks on the model itself: what they give, and what it costs."""
    for name, (walk, weighted, timed) in RULES.items():
        samples = max(1, effort.samples // (timed or 1))
        began = time.process_time()
        drawn = generate(
            case.oracle,
            [case.prompt],
            walk=walk,
            verifier=case.verifier,
            max_new_tokens=case.max_new_tokens,
            num_samples=samples,
            seed=seed_of(seed, name),
            batch_size=32,
            max_queries=effort.max_queries,
        )
        seconds = time.process_time() - began
        counts: Law = {}
        for completion, accepted in zip(drawn.completions(), drawn.accepted.tolist(), strict=True):
            if accepted:
                text = case.text(completion)
                counts[text] = counts.get(text, 0.0) + 1 / samples
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
            row |= {"tv": distance(counts, target), "error": sampling_error(counts, samples)}
            laws[f"{name}, as run"] = counts
        if name == "masked":
            row["drawn_tv"] = drawn_distance(masked, target, samples, seed)
        yield row
