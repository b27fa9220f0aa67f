"""Does a verifier that may erase the last few tokens mend what a trained model gets wrong, and what does it cost?

Thesis section 3.2.1. Transformers learn Dyck strings of length 32 (type probability p = 0.2, opening probability
q = 0.5) and then complete prompts drawn with p = 0.8, where they err. A probe on the hidden states of erroneous and
correct prefixes becomes the verifier of tokenwise rejection sampling with backtracking (Algorithm 1). Every table
of the section is measured, with the controls that the thesis leaves out: greedy decoding, a random verifier, and
the exact process verifier. One replication is one training, with its own errors, probe and prompts.

Deviations: the models of the presets smoke and default are small, train for fewer steps at a higher learning rate
with a cosine schedule and without averaged weights, and complete 2,000 unseen prompts twice instead of 10,000 five
times. The error-inducing prompts of Tables 3.1, 3.2 and 3.4 are errors that the probe was not trained on. As in the
thesis, the probe's erroneous examples end in what the model wrote and the correct ones are drawn from the law of the
prompts, so that it may learn more than correctness.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file, save
from sklearn.manifold import TSNE
from torch import Tensor

from trialogue.data import Dyck, DyckError
from trialogue.errors import InputError
from trialogue.inference import Ancestral, Backtracking, Samples, generate, truncated
from trialogue.inference.verifiers.function import Threshold
from trialogue.inference.verifiers.probe import ProbeVerifier
from trialogue.inference.verifiers.random import RandomVerifier
from trialogue.inference.walks.walk import Walk
from trialogue.models.probe import hidden_states
from trialogue.models.transformer import Transformer, TransformerConfig
from trialogue.oracles import Autoregressive, Verifier
from trialogue.randomness import seed_of
from trialogue.storage import atomic_write
from trialogue.studies.dyck_backtracking_claims import CLAIMS, FIGURES, TABLES
from trialogue.studies.study import Study
from trialogue.training.checkpoints import load_model, save_model
from trialogue.training.config import TrainingConfig
from trialogue.training.loop import train
from trialogue.training.probes import ProbeConfig, train_probe

STRIDES_FORCED = (1, 2, 4, 8)
QUOTAS, STRIDES = (1, 2, 4), (2, 4, 6)
TOP_PS = (0.9, 1.0)
BRACKETS = "[]()"


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings of one run; the defaults are those of the preset `default`."""

    seeds: tuple[int, ...] = tuple(range(8))
    """One training each."""
    length: int = 32
    p: float = 0.2
    """Probability that a bracket that opens is square."""
    q: float = 0.5
    """Probability that a bracket opens where it may."""
    ood_p: float = 0.8
    prompt_lengths: tuple[int, int] = (25, 31)
    layers: int = 2
    heads: int = 4
    width: int = 64
    mlp_width: int = 256
    steps: int = 2400
    batch_size: int = 32
    learning_rate: float = 3e-3
    weight_decay: float = 0.1
    beta_2: float = 0.99
    warmup_steps: int = 100
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    ema: Literal["none", "constant", "power"] = "none"
    """Average of the weights; the thesis uses "power"."""
    probe_errors: int = 441
    """Errors, and as many correct prefixes, to train the probe on."""
    inducing_errors: int = 164
    """Further errors, for the tables on error-inducing prompts."""
    max_prompts: int = 200_000
    """Prompts to search for errors before giving up."""
    probe_repetitions: int = 10
    threshold: float = 0.5
    """A prefix is rejected where the probe gives it a lower probability of being correct."""
    low_threshold: float = 0.1
    unseen_prompts: int = 2000
    draws: int = 2
    """Repetitions of each decoding of the unseen prompts."""
    diversity_prompts: int = 100
    completions: int = 10

    def __post_init__(self) -> None:
        for name in ("p", "q", "ood_p"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(name, getattr(self, name), "must lie strictly between 0 and 1")
        for name in ("threshold", "low_threshold"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(name, getattr(self, name), "must lie between 0 and 1")
        if self.length < 2 or self.length % 2:
            raise InputError("length", self.length, "must be an even number, at least 2")
        first, last = self.prompt_lengths
        if not max(STRIDES_FORCED) <= first <= last < self.length:
            mend = f"must be a range within {max(STRIDES_FORCED)}..{self.length - 1}"
            raise InputError("prompt_lengths", self.prompt_lengths, mend)
        least = {"probe_errors": 10, "diversity_prompts": 2}
        for name in (
            "inducing_errors",
            "probe_repetitions",
            "unseen_prompts",
            "draws",
            "completions",
            *least,
        ):
            if getattr(self, name) < least.get(name, 1):
                raise InputError(name, getattr(self, name), f"must be at least {least.get(name, 1)}")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise InputError("seeds", self.seeds, "give one or more seeds, each once")
        self.model()
        self.training(0)

    def model(self) -> TransformerConfig:
        """Shape of the models."""
        return TransformerConfig(
            vocab_size=4,
            layers=self.layers,
            heads=self.heads,
            width=self.width,
            mlp_width=self.mlp_width,
            max_length=self.length,
        )

    def training(self, seed: int) -> TrainingConfig:
        """How the model of `seed` is trained."""
        return TrainingConfig(
            steps=self.steps,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            beta_2=self.beta_2,
            warmup_steps=min(self.warmup_steps, self.steps),
            schedule=self.schedule,
            ema=self.ema,
            seed=seed,
        )

    def law(self) -> Dyck:
        """What the models are trained on."""
        return Dyck(self.length, (self.p, 1 - self.p), self.q)

    def ood_law(self) -> Dyck:
        """What the prompts are drawn from."""
        return Dyck(self.length, (self.ood_p, 1 - self.ood_p), self.q)

    def ood_prompts(self, n: int, seed: int, role: str) -> tuple[Tensor, Tensor]:
        """Out-of-distribution prompts of the training `seed` (Definition 3.2.2): tokens and lengths."""
        return self.ood_law().sample_prompts(n, self.prompt_lengths, seed_of(seed, "prompts", role))


PRESETS = {
    "smoke": Config(
        seeds=(0, 1),
        width=32,
        mlp_width=64,
        steps=100,
        probe_errors=60,
        inducing_errors=30,
        max_prompts=4000,
        probe_repetitions=2,
        unseen_prompts=200,
        draws=2,
        diversity_prompts=10,
    ),
    "default": Config(),
    "paper": Config(
        layers=6,
        heads=8,
        width=512,
        mlp_width=1024,
        steps=9375,
        learning_rate=3e-4,
        beta_2=0.999,
        schedule="linear",
        ema="power",
        max_prompts=400_000,
        unseen_prompts=10_000,
        draws=5,
    ),
}


class Errors(NamedTuple):
    """Strings cut right after the model's first wrong token, and correct prefixes of the same lengths."""

    wrong: Tensor  # (n, length + 1)
    wrong_lengths: Tensor  # (n,)
    correct: Tensor
    correct_lengths: Tensor
    prompts_tried: Tensor  # (): prompts completed until so many errors were found


def parts(config: Config) -> list[str]:
    """One part per training and group of tables."""
    return [f"{stage}-{seed}" for seed in config.seeds for stage in STAGES]


def run(config: Config, part: str, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Measure one part."""
    stage, _, seed = part.partition("-")
    for row in STAGES[stage](config, int(seed), artifacts):
        yield {"seed": int(seed), "table": stage, **row}


def measure_training(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Train a model; its loss against the entropy of the law, and the accuracy of its closing brackets."""
    law = config.law()
    model = _model(config, seed, artifacts)
    for name, data in (("in-distribution", law), ("out-of-distribution", config.ood_law())):
        tokens = data.sample(4096, seed_of(seed, "held out", name))
        with torch.inference_mode():
            inputs = torch.cat((torch.full((len(tokens), 1), model.bos), tokens), 1)
            log_probs = model(inputs.to(model.head.weight.device)).log_softmax(-1).cpu()
        targets = torch.cat((tokens, torch.full((len(tokens), 1), model.eos)), 1)
        loss = -log_probs.gather(2, targets[:, :, None]).double().mean()
        closing = (targets % 2 == 1) & (targets < law.vocab_size)
        yield {
            "data": name,
            "loss": float(loss),
            "entropy": float(-data.log_prob(tokens).mean() / targets.shape[1]),
            "closing_accuracy": float((log_probs.argmax(2) == targets)[closing].double().mean()),
        }


def measure_probe(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Validation accuracy of the probe over splits, and what separates its examples in the plane (Figure 3.1)."""
    model, errors = _model(config, seed, artifacts), _errors(config, seed, artifacts)
    states, labels = _examples(config, model, errors)
    for repetition in range(config.probe_repetitions):
        trained = train_probe(states, labels, ProbeConfig(seed=seed_of(seed, "probe", repetition)))
        yield {
            "repetition": repetition,
            "validation_accuracy": trained.validation_accuracy,
            "train_accuracy": trained.train_accuracy,
            "error_rate": len(errors.wrong) / int(errors.prompts_tried),
        }
    if seed == config.seeds[0]:
        perplexity = min(30.0, (len(states) - 1) / 3)
        plane = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(states.numpy())
        for (x, y), label in zip(plane.tolist(), labels.tolist(), strict=True):
            yield {"x": x, "y": y, "correct": bool(label)}


def measure_inducing(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Tables 3.1, 3.2 and 3.4: completing the prefixes that made the model err."""
    model, errors = _model(config, seed, artifacts), _errors(config, seed, artifacts)
    nucleus, greedy = truncated(model, top_p=0.9), truncated(model, top_p=0.0)
    tokens = errors.wrong[config.probe_errors :, : config.length]
    lengths = errors.wrong_lengths[config.probe_errors :] - 1
    draw = _Drawer(config, seed, "inducing")
    for name, oracle in (("nucleus", nucleus), ("greedy", greedy)):
        yield {"walk": name, **draw(oracle, (tokens, lengths))}
    for stride in STRIDES_FORCED:
        redone = generate(greedy, (tokens, lengths - stride), max_new_tokens=stride)
        yield {"walk": "forced", "stride": stride, **draw(nucleus, (redone.tokens, redone.lengths))}
    verifier = Threshold(_verifier(config, seed, artifacts), config.threshold)
    for quota in QUOTAS:
        for stride in STRIDES:
            walk = Backtracking(quota, stride, erase_prompt=True)
            samples = draw.samples(nucleus, (tokens, lengths), walk, verifier)
            yield {"walk": "backtracking", "quota": quota, "stride": stride, **draw.score(samples)}
            prefixes = _rejected_prefixes(samples, tokens)
            for name, oracle in (("nucleus", nucleus), ("greedy", greedy)):
                row = draw(oracle, prefixes) if len(prefixes[1]) else {"accuracy": math.nan}
                kept = {"quota": quota, "stride": stride, "backtracks": len(prefixes[1])}
                yield {"walk": f"{name} at backtracks", **kept, **row}


def measure_unseen(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Tables 3.3 and 3.16 with all controls, and the errors that are left (section 3.2.1.8)."""
    model = _model(config, seed, artifacts)
    prompts = config.ood_prompts(config.unseen_prompts, seed, "unseen")
    probe = _verifier(config, seed, artifacts)
    algorithm = Backtracking(4, 4)
    decodings: list[tuple[str, Walk[Any], Verifier | None]] = [
        ("none", Ancestral(), None),
        ("trained", algorithm, Threshold(probe, config.threshold)),
        ("trained, low threshold", algorithm, Threshold(probe, config.low_threshold)),
        ("random", algorithm, Threshold(RandomVerifier(seed), config.threshold)),
        ("random, low threshold", algorithm, Threshold(RandomVerifier(seed), config.low_threshold)),
        ("exact", algorithm, config.law()),
        ("trained, no argmax", Backtracking(4, 4, argmax_redo=False), Threshold(probe, config.threshold)),
        (
            "trained, redo what was erased",
            Backtracking(4, 4, redo_erased_only=True),
            Threshold(probe, config.threshold),
        ),
    ]
    for repetition in range(config.draws):
        draw = _Drawer(config, seed, f"unseen {repetition}")
        for top_p in TOP_PS:
            for name, walk, verifier in decodings:
                samples = draw.samples(truncated(model, top_p=top_p), prompts, walk, verifier)
                yield {
                    "repetition": repetition,
                    "verifier": name,
                    "top_p": top_p,
                    **draw.score(samples),
                    "queries": float(samples.queries.double().mean()),
                    "verifier_calls": float(samples.verifier_calls.double().mean()),
                    "microseconds_per_query": 1e6 * samples.seconds / int(samples.queries.sum()),
                }
                if (top_p, name) == (0.9, "trained"):
                    yield from _remaining_errors(config, model, samples, name, repetition, algorithm.quota)
    greedy = _Drawer(config, seed, "greedy")
    samples = greedy.samples(truncated(model, top_p=0.0), prompts, Ancestral(), None)
    mean_queries = float(samples.queries.double().mean())
    yield {"verifier": "greedy", "top_p": 0.0, **greedy.score(samples), "queries": mean_queries}


def measure_diversity(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Table 3.5: distinct completions among those drawn for each fresh prompt."""
    model, probe = _model(config, seed, artifacts), _verifier(config, seed, artifacts)
    prompts = config.ood_prompts(config.diversity_prompts, seed, "diversity")
    algorithm = Backtracking(4, 4)
    decodings: list[tuple[str, Autoregressive, Walk[Any], Verifier | None]] = [
        ("Q=4, B=4, top-p 1.0", model, algorithm, Threshold(probe, config.threshold)),
        ("Q=4, B=4, top-p 1.0, low threshold", model, algorithm, Threshold(probe, config.low_threshold)),
        ("no verifier, top-p 0.9", truncated(model, top_p=0.9), Ancestral(), None),
        ("no verifier, top-p 1.0", model, Ancestral(), None),
        ("the law itself", config.law(), Ancestral(), None),
    ]
    for name, oracle, walk, verifier in decodings:
        samples = generate(
            oracle,
            prompts,
            walk=walk,
            verifier=verifier,
            num_samples=config.completions,
            seed=seed_of(seed, "diversity", name),
        )
        sequences = samples.sequences()
        groups = [
            sequences[first : first + config.completions]
            for first in range(0, len(sequences), config.completions)
        ]
        distinct = np.array([len(set(group)) for group in groups])
        yield {"decoding": name, "distinct": float(distinct.mean()), "deviation": float(distinct.std(ddof=1))}


STAGES = {
    "training": measure_training,
    "probe": measure_probe,
    "inducing": measure_inducing,
    "unseen": measure_unseen,
    "diversity": measure_diversity,
}


class _Drawer:
    """Completes prompts with random streams named after the role, and scores the completions."""

    def __init__(self, config: Config, seed: int, role: str) -> None:
        self._law, self._seed = config.law(), seed_of(seed, "completions", role)

    def samples(
        self,
        oracle: Autoregressive,
        prompts: tuple[Tensor, Tensor],
        walk: Walk[Any] | None = None,
        verifier: Verifier | None = None,
    ) -> Samples:
        """Complete every prompt once, and keep the trace."""
        return generate(oracle, prompts, walk=walk, verifier=verifier, seed=self._seed, trace=True)

    def score(self, samples: Samples) -> dict[str, float]:
        """Accuracy (Definition 3.2.2) and number of errors."""
        valid = self._law.is_member(samples.tokens, samples.lengths, _eos(self._law))
        return {"accuracy": float(valid.double().mean()), "errors": int((~valid).sum()), "n": len(valid)}

    def __call__(self, oracle: Autoregressive, prompts: tuple[Tensor, Tensor]) -> dict[str, float]:
        return self.score(self.samples(oracle, prompts))


def _eos(law: Dyck) -> int:
    return law.vocab_size


def _model(config: Config, seed: int, artifacts: Path) -> Transformer:
    """The trained model, from `artifacts` if it is there."""
    path = artifacts / f"model-{seed}.safetensors"
    if path.exists():
        return load_model(path)
    law = config.law()
    model = Transformer(config.model(), seed=seed)
    result = train(
        model,
        lambda step: law.sample(config.batch_size, seed_of(seed, "batch", step)),
        config.training(seed),
        checkpoint_dir=artifacts / f"training-{seed}",
    )
    assert isinstance(result.model, Transformer)
    save_model(result.model, path)
    return result.model


def _errors(config: Config, seed: int, artifacts: Path) -> Errors:
    """The model's errors on prompts of their own, and correct prefixes of the lengths of those for the probe."""
    path = artifacts / f"errors-{seed}.safetensors"
    if path.exists():
        return Errors(**load_file(path))
    law, wanted = config.law(), config.probe_errors + config.inducing_errors
    oracle = truncated(_model(config, seed, artifacts), top_p=0.9)
    chunk = min(8192, config.max_prompts)
    found: list[Tensor] = []
    lengths: list[Tensor] = []
    tried = 0
    while sum(map(len, lengths)) < wanted and tried < config.max_prompts:
        prompts = config.ood_prompts(chunk, seed, f"errors {tried}")
        samples = generate(oracle, prompts, seed=seed_of(seed, "errors", tried))
        position = law.first_error(samples.tokens, samples.lengths, _eos(law))
        # A string that ends too early is cut after its end of sequence: that is its wrong token.
        wrong = ((position >= 0) & (position < samples.lengths)).nonzero()[:, 0]
        wrong = wrong[: wanted - sum(map(len, lengths))]
        found.append(samples.tokens[wrong])
        lengths.append(position[wrong] + 1)
        tried += int(wrong[-1]) + 1 if sum(map(len, lengths)) == wanted else chunk
    if sum(map(len, lengths)) < wanted:
        mend = f"the model of seed {seed} made only {sum(map(len, lengths))} of {wanted} errors: raise it"
        raise InputError("max_prompts", config.max_prompts, mend)
    wrong_tokens, wrong_lengths = torch.cat(found), torch.cat(lengths)
    correct_lengths = wrong_lengths[: config.probe_errors].clamp_max(config.length)
    correct = config.ood_law().sample(config.probe_errors, seed_of(seed, "correct"))
    errors = Errors(wrong_tokens, wrong_lengths, correct, correct_lengths, torch.tensor(tried))
    atomic_write(path, save(errors._asdict()))
    return errors


def _examples(config: Config, model: Transformer, errors: Errors) -> tuple[Tensor, Tensor]:
    """Hidden states (2n, width) and labels (2n,) of the probe's examples."""
    n = config.probe_errors
    wrong = hidden_states(model, errors.wrong[:n], errors.wrong_lengths[:n])[:, 0]
    correct = hidden_states(model, errors.correct, errors.correct_lengths)[:, 0]
    return torch.cat((wrong, correct)), torch.cat((torch.zeros(n), torch.ones(n)))


def _verifier(config: Config, seed: int, artifacts: Path) -> ProbeVerifier:
    """The probe of the first split, as a verifier."""
    model, errors = _model(config, seed, artifacts), _errors(config, seed, artifacts)
    trained = train_probe(*_examples(config, model, errors), ProbeConfig(seed=seed_of(seed, "probe", 0)))
    return ProbeVerifier(trained.probe)


def _rejected_prefixes(samples: Samples, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Every prefix at which a sample went back: tokens (n, capacity), lengths (n,).

    Replays the trace from the prompts `tokens` (samples, width).
    """
    assert samples.trace is not None
    trace = samples.trace
    current = torch.zeros_like(samples.tokens)
    current[:, : tokens.shape[1]] = tokens[:, : current.shape[1]]
    rejected: list[Tensor] = []
    columns = (trace.sample, trace.length, trace.kept, trace.token)
    for sample, length, kept, token in zip(*(column.tolist() for column in columns), strict=True):
        if kept < length:
            rejected.append(current[sample, :length].clone())
        if token >= 0:
            current[sample, kept] = token
    width = current.shape[1]
    prefixes = torch.zeros(len(rejected), width, dtype=torch.int64)
    for row, prefix in enumerate(rejected):
        prefixes[row, : len(prefix)] = prefix
    return prefixes, torch.tensor([len(prefix) for prefix in rejected], dtype=torch.int64)


def _remaining_errors(
    config: Config, model: Transformer, samples: Samples, verifier: str, repetition: int, quota: int
) -> Iterator[dict[str, Any]]:
    """One row per error that is left: its kind, its probability, and the quota that was left."""
    assert samples.trace is not None
    law = config.law()
    position, kind = law.errors(samples.tokens, samples.lengths, _eos(law))
    rows = ((position >= 0) & (position < samples.lengths)).nonzero()[:, 0]
    if not len(rows):
        return
    went_back = samples.trace.sample[samples.trace.kept < samples.trace.length]
    backtracks = torch.bincount(went_back, minlength=len(samples.lengths))
    context = model.open(len(rows), samples.tokens.shape[1])
    stop = position[rows]
    with torch.inference_mode():
        features = context.features(
            samples.tokens[rows], torch.zeros_like(stop), stop, torch.arange(len(rows))
        )
        probs = context.log_probs(features).double().exp()
    tokens = samples.tokens[rows, stop]
    best = probs.max(1)
    for index, row in enumerate(rows.tolist()):
        yield {
            "kind": "remaining error",
            "verifier": verifier,
            "repetition": repetition,
            "error": DyckError(int(kind[row])).name,
            "prefix": _text(samples.tokens[row, : int(stop[index])].tolist()),
            "token": _text([int(tokens[index])]),
            "token_prob": float(probs[index, tokens[index]]),
            "best": _text([int(best.indices[index])]),
            "best_prob": float(best.values[index]),
            "quota_left": quota - int(backtracks[row]),
        }


def _text(tokens: Sequence[int]) -> str:
    return "".join(BRACKETS[token] if token < len(BRACKETS) else "⟨eos⟩" for token in tokens)


STUDY = Study(
    name="dyck-backtracking",
    doc=__doc__,
    source="Thesis section 3.2.1: Tables 3.1 to 3.5 and 3.16, Figures 3.1 and 3.2, Algorithm 1",
    version=1,
    presets=PRESETS,
    parts=parts,
    lane=lambda part: part.partition("-")[2],
    run=run,
    claims=CLAIMS,
    tables=TABLES,
    figures=FIGURES,
)
