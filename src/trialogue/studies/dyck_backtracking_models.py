"""Config of the study `dyck-backtracking`, and what its parts share: models, their errors, probes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from trialogue.data import Dyck
from trialogue.errors import InputError
from trialogue.inference import ProbeVerifier, generate, truncated
from trialogue.ledger.study import require_seeds
from trialogue.models.probe import hidden_states
from trialogue.models.transformer import Transformer, TransformerConfig
from trialogue.randomness import seed_of
from trialogue.storage import atomic_write
from trialogue.training.checkpoints import load_model, save_model
from trialogue.training.config import TrainingConfig
from trialogue.training.loop import train
from trialogue.training.probes import ProbeConfig, train_probe

STRIDES_FORCED = (1, 2, 4, 8)


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
        require_seeds("seeds", self.seeds)
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


def end_of_sequence(law: Dyck) -> int:
    """The token with which the models end a string."""
    return law.vocab_size


def trained_model(config: Config, seed: int, artifacts: Path) -> Transformer:
    """The trained model, from `artifacts` if it is there."""
    path = artifacts / f"model-{seed}.safetensors"
    if path.exists():
        return load_model(path, Transformer)
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


def collected_errors(config: Config, seed: int, artifacts: Path) -> Errors:
    """The model's errors on prompts of their own, and correct prefixes of the lengths of those for the probe."""
    path = artifacts / f"errors-{seed}.safetensors"
    if path.exists():
        return Errors(**load_file(path))
    law, wanted = config.law(), config.probe_errors + config.inducing_errors
    oracle = truncated(trained_model(config, seed, artifacts), top_p=0.9)
    chunk = min(8192, config.max_prompts)
    found: list[Tensor] = []
    lengths: list[Tensor] = []
    tried = 0
    while sum(map(len, lengths)) < wanted and tried < config.max_prompts:
        prompts = config.ood_prompts(chunk, seed, f"errors {tried}")
        samples = generate(oracle, prompts, seed=seed_of(seed, "errors", tried))
        position = law.first_error(samples.tokens, samples.lengths, end_of_sequence(law))
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


def probe_examples(config: Config, model: Transformer, errors: Errors) -> tuple[Tensor, Tensor]:
    """Hidden states (2n, width) and labels (2n,) of the probe's examples."""
    n = config.probe_errors
    wrong = hidden_states(model, errors.wrong[:n], errors.wrong_lengths[:n])[:, 0]
    correct = hidden_states(model, errors.correct, errors.correct_lengths)[:, 0]
    return torch.cat((wrong, correct)), torch.cat((torch.zeros(n), torch.ones(n)))


def probe_verifier(config: Config, seed: int, artifacts: Path) -> ProbeVerifier:
    """The probe of the first split, as a verifier."""
    model, errors = trained_model(config, seed, artifacts), collected_errors(config, seed, artifacts)
    trained = train_probe(*probe_examples(config, model, errors), ProbeConfig(seed=seed_of(seed, "probe", 0)))
    return ProbeVerifier(trained.probe)
