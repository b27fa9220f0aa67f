"""Tasks of a run, each of which measures one trained model for one group of tables."""

import itertools
import math
import operator
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trialogue.randomness import derive_seed, numpy_generator
from trialogue.samplers import Backtracking, Samples, generate, truncated
from trialogue.training.probes.grid import ProbeConfig, train_probe
from trialogue.verifiers.functions.function import Threshold
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.dyck_backtracking import models
from trialogue_lab.studies.dyck_backtracking.config import CLUSTERS, QUOTAS, STRIDES, STRIDES_FORCED, Config
from trialogue_lab.studies.dyck_backtracking.speed import measure_speed
from trialogue_lab.studies.dyck_backtracking.traces import find_rejected_prefixes, find_remaining_errors

_TOP_PS = (0.9, 1.0)


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, one for each trained language model and group of measurements.

    A language model is trained on bracket strings. A task measures the model itself, its hidden states, or one or more
    decoding methods that complete prompts with it. Tasks with the same seed run in order and share the trained model.

    Args:
        config: Settings of the run.
    """
    return [
        Part(f"{stage}-{seed}", partial(measure, config, seed), str(seed), {"seed": seed, "table": stage})
        for seed in config.seeds
        for stage, measure in STAGES.items()
    ]


def measure_training(config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    """Train a language model on bracket strings, and measure its loss and accuracy on new strings.

    One kind of strings is distributed like the training strings. In the other kind, like in the prompts, the bracket
    types have other probabilities.

    Args:
        config: Settings of the run.
        seed: Seed of the training.
        artifacts: Folder of the trained models.

    Yields:
        One row per kind of strings.
    """
    model, losses, _ = models.train_or_load(config, seed, artifacts)
    for name, distribution in (
        ("in-distribution", config.training_distribution()),
        ("out-of-distribution", config.prompt_distribution()),
    ):
        strings = distribution.sample(4096, derive_seed(seed, "held out", name))
        yield {
            "data": name,
            "steps": len(losses),
            **models.evaluate_predictions(model, strings)._asdict(),
            "entropy": float(-distribution.log_prob(strings).mean() / (config.length + 1)),
        }


def measure_probe(config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    """Train probes of a language model's hidden states, and measure their accuracy (Figure 3.1).

    A probe classifies the hidden state of a prefix of a bracket string as correct or erroneous.

    Args:
        config: Settings of the run.
        seed: Seed of the model's training.
        artifacts: Folder of the trained models.

    Yields:
        One row per random split into training and validation examples, with the validation accuracy. For the first
        seed, also one row per example with its coordinates in a t-SNE projection.
    """
    errors = models.collect_errors(config, seed, artifacts)
    states, labels = models.load_probe_examples(config, seed, artifacts)
    for repetition in range(config.probe_repetitions):
        trained = train_probe(states, labels, ProbeConfig(seed=derive_seed(seed, "probe", repetition)))
        yield {
            "repetition": repetition,
            "validation_accuracy": trained.validation_accuracy,
            "train_accuracy": trained.train_accuracy,
            "error_rate": len(errors.wrong) / int(errors.prompts_tried),
        }
    if seed == config.seeds[0]:
        from sklearn.manifold import TSNE

        perplexity = min(30.0, (len(states) - 1) / 3)
        plane = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(states.numpy())
        for (x, y), label in zip(plane.tolist(), labels.tolist(), strict=True):
            yield {"x": x, "y": y, "correct": bool(label)}


def measure_clusters(config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    """Cluster the hidden states of correct and erroneous prefixes by k-means (Figure 3.1).

    Args:
        config: Settings of the run.
        seed: Seed of the model's training.
        artifacts: Folder of the trained models.

    Yields:
        One row per number of clusters, with the purity. The purity is the fraction of prefixes that have the most
        frequent label of their cluster, "correct" or "erroneous". "shuffled_purity" is the purity for randomly permuted
        labels.
    """
    from sklearn.cluster import KMeans

    states, labels = (tensor.numpy() for tensor in models.load_probe_examples(config, seed, artifacts))
    shuffled = numpy_generator(seed, "shuffled labels").permutation(labels)
    for clusters in CLUSTERS:
        assigned = KMeans(clusters, n_init=10, random_state=seed).fit_predict(states)
        purity, shuffled_purity = _compute_purity(assigned, labels), _compute_purity(assigned, shuffled)
        yield {"clusters": clusters, "purity": purity, "shuffled_purity": shuffled_purity}


def measure_inducing(config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    """Complete prefixes after which the language model made an error before, with several decoding methods.

    One method is backtracking (Algorithm 1). If a verifier rejects a prefix, it erases the last B tokens (the stride).
    It does so at most Q times per string (the quota). The results are compared with Tables 3.1, 3.2 and 3.4 of the
    thesis.

    Args:
        config: Settings of the run.
        seed: Seed of the model's training.
        artifacts: Folder of the trained models.

    Yields:
        One row per decoding method, quota and stride, with the fraction of correct completions.
    """
    model = models.train_or_load(config, seed, artifacts).network
    errors = models.collect_errors(config, seed, artifacts)
    nucleus, greedy = truncated(model, top_p=0.9), truncated(model, temperature=0)
    tokens = errors.wrong[config.probe_errors :, : config.length]
    lengths = errors.wrong_lengths[config.probe_errors :] - 1
    complete = _make_completion_function(seed, "inducing")
    for name, oracle in (("nucleus", nucleus), ("greedy", greedy)):
        yield {"walk": name, **_score(config, complete(oracle, (tokens, lengths)))}
    for stride in STRIDES_FORCED:
        redone = generate(greedy, (tokens, lengths - stride), max_new_tokens=stride)
        samples = complete(nucleus, (redone.tokens, redone.lengths))
        yield {"walk": "forced", "stride": stride, **_score(config, samples)}
    verifier = Threshold(models.make_probe_verifier(config, seed, artifacts), config.threshold)
    at_first_quota: dict[tuple[str, int], list[tuple[int, ...]]] = {}
    for quota, stride in itertools.product(QUOTAS, STRIDES):
        place = {"quota": quota, "stride": stride}
        samplers = {
            "backtracking": Backtracking(quota, stride, erase_prompt=True),
            "released": Backtracking.released(quota, stride, erase_prompt=True),
            "released, once": Backtracking.released(quota, stride, erase_prompt=True, once_per_prefix=True),
        }
        for name, sampler in samplers.items():
            samples = complete(nucleus, (tokens, lengths), sampler=sampler, verifier=verifier)
            outputs = samples.sequences()
            first = at_first_quota.setdefault((name, stride), outputs)
            same = sum(map(operator.eq, outputs, first)) / len(outputs)
            yield {"walk": name, **place, **_score(config, samples), "same_as_at_first_quota": same}
            if name == "backtracking":
                prefixes = find_rejected_prefixes(samples, tokens)
        backtracks = len(prefixes[1])
        for name, oracle in (("nucleus", nucleus), ("greedy", greedy)):
            row = _score(config, complete(oracle, prefixes)) if backtracks else {"accuracy": math.nan}
            yield {"walk": f"{name} at backtracks", **place, "backtracks": backtracks, **row}


def measure_unseen(config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    """Complete new prompts with every decoding method, and count the errors (Tables 3.3 and 3.16).

    Args:
        config: Settings of the run.
        seed: Seed of the model's training.
        artifacts: Folder of the trained models.

    Yields:
        One row per method, top-p and repetition, with the number of errors and of model calls. One row per error that
        remains with backtracking (section 3.2.1.8).
    """
    model = models.train_or_load(config, seed, artifacts).network
    prompts = config.sample_prompts(config.unseen_prompts, seed, "unseen")
    decodings = models.make_decodings(config, seed, models.make_probe_verifier(config, seed, artifacts))
    for repetition, top_p in itertools.product(range(config.draws), _TOP_PS):
        complete = _make_completion_function(seed, f"unseen {repetition}")
        for name, (sampler, verifier) in decodings.items():
            samples = complete(truncated(model, top_p=top_p), prompts, sampler=sampler, verifier=verifier)
            yield {
                "repetition": repetition,
                "verifier": name,
                "top_p": top_p,
                **_score(config, samples),
                "queries": float(samples.queries.double().mean()),
                "verifier_calls": float(samples.verifier_calls.double().mean()),
                "microseconds_per_query": 1e6 * samples.total.seconds / int(samples.queries.sum()),
            }
            if (top_p, name) == (0.9, "trained"):
                for row in find_remaining_errors(config.training_distribution(), model, samples, quota=4):
                    yield {"kind": "remaining error", "verifier": name, "repetition": repetition, **row}
    samples = _make_completion_function(seed, "greedy")(truncated(model, temperature=0), prompts)
    mean_queries = float(samples.queries.double().mean())
    yield {"verifier": "greedy", "top_p": 0.0, **_score(config, samples), "queries": mean_queries}


def measure_diversity(config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    """Count the distinct completions of each prompt, for every decoding method (Table 3.5).

    Args:
        config: Settings of the run.
        seed: Seed of the model's training.
        artifacts: Folder of the trained models.

    Yields:
        One row per decoding method with the mean and the standard deviation over prompts.
    """
    model = models.train_or_load(config, seed, artifacts).network
    decodings = models.make_decodings(config, seed, models.make_probe_verifier(config, seed, artifacts))
    prompts = config.sample_prompts(config.diversity_prompts, seed, "diversity")
    completions = config.completions
    for name, oracle, decoding in (
        ("Q=4, B=4, top-p 1.0", model, "trained"),
        ("Q=4, B=4, top-p 1.0, low threshold", model, "trained, low threshold"),
        ("no verifier, top-p 0.9", truncated(model, top_p=0.9), "none"),
        ("no verifier, top-p 1.0", model, "none"),
        ("the law itself", config.training_distribution(), "none"),
    ):
        sampler, verifier = decodings[decoding]
        stream = derive_seed(seed, "diversity", name)
        sequences = generate(
            oracle, prompts, sampler=sampler, verifier=verifier, num_samples=completions, seed=stream
        ).sequences()
        groups = (sequences[first : first + completions] for first in range(0, len(sequences), completions))
        distinct = np.array([len(set(group)) for group in groups])
        yield {"decoding": name, "distinct": float(distinct.mean()), "deviation": float(distinct.std(ddof=1))}


STAGES = {
    "training": measure_training,
    "probe": measure_probe,
    "clusters": measure_clusters,
    "inducing": measure_inducing,
    "unseen": measure_unseen,
    "diversity": measure_diversity,
    "speed": measure_speed,
}


def _make_completion_function(seed: int, stream: str) -> Callable[..., Samples]:
    """Return the function `generate` with tracing enabled and the random numbers of the named stream."""
    return partial(generate, seed=derive_seed(seed, "completions", stream), trace=True)


def _score(config: Config, samples: Samples) -> dict[str, float]:
    """Return the fraction of valid completions (Definition 3.2.2), and the number of errors."""
    distribution = config.training_distribution()
    valid = distribution.is_member(samples.tokens, samples.lengths, distribution.vocab_size)
    return {"accuracy": float(valid.double().mean()), "errors": int((~valid).sum()), "n": len(valid)}


def _compute_purity(clusters: NDArray[np.integer[Any]], labels: NDArray[np.integer[Any]]) -> float:
    """Return the fraction of examples (n,) that have the most frequent label of their cluster."""
    from sklearn.metrics.cluster import contingency_matrix

    return float(contingency_matrix(labels, clusters).max(axis=0).sum() / len(labels))
