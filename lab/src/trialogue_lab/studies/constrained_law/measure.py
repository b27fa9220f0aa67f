"""Tasks of a run, one per question: they compute exact output distributions, and run samplers on the model."""

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from trialogue import samplers
from trialogue.randomness import derive_seed
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.constrained_law import distributions
from trialogue_lab.studies.constrained_law.cases import ModelQuestion, load_question
from trialogue_lab.studies.constrained_law.config import Config
from trialogue_lab.studies.constrained_law.tasks import TASKS
from trialogue_lab.studies.constrained_law.tree import (
    ExploredTreeModel,
    TokenTree,
    compute_first_leaf_distribution,
    explore,
)
from trialogue_lab.theory.resampling import resampled_distribution


class MeasuredSampler(NamedTuple):
    """A sampler that generates answers with the language model, and how it is measured.

    Args:
        sampler: The sampler.
        weighted: Whether its outputs have importance weights.
        timed: None to generate `config.samples` outputs. If given, only `config.samples / timed` outputs are generated.
            They measure the cost only, because the output distribution is computed without the model.
    """

    sampler: Sampler[Any]
    weighted: bool = False
    timed: int | None = None


METHODS = {
    "no rule": MeasuredSampler(samplers.Ancestral(), weighted=True),
    "masked": MeasuredSampler(samplers.MaskedDecoding(), weighted=True),
    "weighted rejection": MeasuredSampler(samplers.WeightedRejection(), weighted=True),
    "adaptive rejection": MeasuredSampler(samplers.AdaptiveRejection()),
    "adaptive rejection, shared table": MeasuredSampler(samplers.AdaptiveRejection(share=1)),
    "backtracking": MeasuredSampler(samplers.Backtracking(4, 4)),
    "smc": MeasuredSampler(samplers.SequentialMonteCarlo(16, proposal="mask"), timed=8),
    "value-guided": MeasuredSampler(samplers.ValueGuided(), timed=8),
}


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, one for each question to the language model.

    Each task computes or samples the answers of several decoding methods, and measures their distance from the target
    distribution. Every seed selects two questions. One requires answers that match a regular expression ("regex"), and
    the other one answers that fit a JSON schema ("json-schema").

    Args:
        config: Settings of the run.
    """
    return [
        Part(f"{kind}-{seed}", partial(_measure, config, kind, seed), columns={"seed": seed, "kind": kind})
        for seed in config.seeds
        for kind in TASKS
    ]


def _measure(config: Config, kind: str, seed: int, _: Path) -> MeasuredRows:
    return measure_question(load_question(config, kind, seed), config, seed)


def measure_question(case: ModelQuestion, config: Config, seed: int) -> MeasuredRows:
    """Compare the output distribution of every decoding method with the target, for one question to a language model.

    The target is the language model's distribution of answers, given that they satisfy a constraint. It is computed by
    enumerating all answers that satisfy the constraint.

    Args:
        case: The question, with the model and the constraint.
        config: Settings of the run.
        seed: Seed of the samples.

    Yields:
        Rows with the column "measure". Rows about one method have the value "exact" (computed), "simulated" (on the
        enumerated answers) or "run" (generated with the model). The value "tree" describes the enumeration. The value
        "answer" is for the probabilities of one answer under all methods.
    """
    began = time.process_time()
    limits: dict[str, Any] = {"tolerance": config.tolerance, "max_prefixes": config.max_prefixes}
    tree = explore(case.oracle, case.verifier, case.prompt, case.max_new_tokens, **limits)
    exact = {"restricted": tree.restricted, "masked": tree.masked}
    answers = {name: distributions.sum_by_text(output, case.text) for name, output in exact.items()}
    yield {
        "measure": "tree",
        "accepted_mass": tree.accepted_mass,
        "prefixes": len(tree.nodes),
        "sequences": len(tree.leaves),
        "texts": len(answers["restricted"]),
        "unexplored_p": tree.left_p / tree.accepted_mass,
        "unexplored_q": tree.left_q,
        "cpu_seconds": time.process_time() - began,
    }
    yield from _measure_on_tree(case, tree, config, seed, answers)
    yield from _measure_on_model(case, config, seed, answers)
    for text in sorted({text for distribution in answers.values() for text in distribution}):
        shares = {name: distribution.get(text, 0.0) for name, distribution in answers.items()}
        yield {"measure": "answer", "text": text, **shares}


def _measure_on_tree(
    case: ModelQuestion,
    tree: TokenTree,
    config: Config,
    seed: int,
    answers: dict[str, distributions.Distribution],
) -> MeasuredRows:
    """Compute output distributions on the tree of allowed answers, without model calls. Add them to `answers`."""
    target, restricted, masked = answers["restricted"], tree.restricted, tree.masked
    proposal = np.array([masked[x] for x in restricted])
    weights = np.array([restricted[x] / masked[x] for x in restricted])
    mean_length = float(np.average([len(x) for x in restricted], weights=proposal))
    effective_share = 1.0 / float(proposal @ weights**2)
    for number in config.sizes:
        # Masked outputs outside the explored part of the tree cannot be selected.
        drawn = proposal.sum() * resampled_distribution(proposal / proposal.sum(), weights, number)
        texts = distributions.sum_by_text(dict(zip(restricted, drawn.tolist(), strict=True)), case.text)
        yield {
            "measure": "exact",
            "rule": "masked, weighted",
            "size": number,
            "tv": distributions.distance(texts, target),
            "drawn_tv": distributions.simulate_sample_distance(texts, target, config.simulations, seed),
            "queries": number * mean_length,
            "ess_per_query": effective_share / mean_length,
        }
        answers[f"masked, weighted, {number}"] = texts
    leaves, queries = compute_first_leaf_distribution(tree)
    answers["value-guided"] = texts = distributions.sum_by_text(leaves, case.text)
    row = {"rule": "value-guided", "size": 1, "tv": distributions.distance(texts, target), "queries": queries}
    yield {"measure": "exact", **row}
    lumped = ExploredTreeModel(tree, case.oracle.eos)
    for number in config.particles:
        sampler = samplers.SequentialMonteCarlo(number, proposal="mask")
        samples = samplers.generate(
            lumped, sampler=sampler, verifier=lumped, num_samples=config.simulations, seed=seed
        )
        texts = _compute_text_frequencies(samples, lambda name: case.text(lumped.leaves[name]))
        yield {
            "measure": "simulated",
            "rule": "smc",
            "size": number,
            "tv": distributions.distance(texts, target),
            "error": distributions.estimate_sampling_error(texts, config.simulations),
            "queries": float(samples.queries.double().mean()),
        }
        answers[f"smc, {number}"] = texts


def _compute_text_frequencies(
    samples: samplers.Samples, text: Callable[[tuple[int, ...]], str]
) -> distributions.Distribution:
    """Return the frequency of each text among all samples. Rejected samples have no text."""
    accepted = zip(samples.completions(), samples.accepted.tolist(), strict=True)
    counts = Counter(text(completion) for completion, is_accepted in accepted if is_accepted)
    return {each: count / len(samples.lengths) for each, count in counts.items()}


def _measure_on_model(
    case: ModelQuestion, config: Config, seed: int, answers: dict[str, distributions.Distribution]
) -> MeasuredRows:
    """Run the samplers on the language model, and add the frequencies of sampled texts to `answers`."""
    target = answers["restricted"]
    for name, (sampler, weighted, timed) in METHODS.items():
        number = max(1, config.samples // (timed or 1))
        began = time.process_time()
        samples = samplers.generate(
            case.oracle,
            [case.prompt],
            sampler=sampler,
            verifier=case.verifier,
            max_new_tokens=case.max_new_tokens,
            num_samples=number,
            seed=derive_seed(seed, name),
            batch_size=32,
            max_queries=config.max_queries,
        )
        seconds = time.process_time() - began
        shares = _compute_text_frequencies(samples, case.text)
        weights = torch.where(samples.accepted, samples.log_weight.exp(), 0.0)
        squares = float((weights**2).sum())
        queries = int(samples.queries.sum())
        row = {
            "measure": "run",
            "rule": name,
            "samples": number,
            "valid": float(samples.accepted.double().mean()),
            "queries": queries / number,
            "distinct_queries": samples.total.distinct_queries / number,
            "forward_passes": samples.total.forward_passes,
            "positions": samples.total.positions,
            "verifier_calls": samples.total.verifier_calls / number,
            "cpu_seconds": seconds / number,
        }
        if weighted and squares:
            row["ess_per_query"] = float(weights.sum()) ** 2 / squares / queries
        if timed is None:
            row["tv"] = distributions.distance(shares, target)
            row["error"] = distributions.estimate_sampling_error(shares, number)
            answers[f"{name}, as run"] = shares
        if name == "masked":
            row["drawn_tv"] = distributions.simulate_sample_distance(answers["masked"], target, number, seed)
        yield row
