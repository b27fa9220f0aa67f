"""What the parts of a run share: models, the errors that they make, and probes."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from trialogue.data import Dyck
from trialogue.errors import InputError
from trialogue.models.probe import hidden_states
from trialogue.models.transformer import Transformer
from trialogue.oracles import Verifier
from trialogue.randomness import seed_of
from trialogue.samplers import Ancestral, Backtracking, generate, truncated
from trialogue.samplers.prefix.sampler import Sampler
from trialogue.storage import atomic_write
from trialogue.training.observers import StoppingRule, Update
from trialogue.training.probes import ProbeConfig, train_probe
from trialogue.training.recipes import Recipe, Trained, trained
from trialogue.verifiers import ProbeVerifier
from trialogue.verifiers.function import Threshold
from trialogue.verifiers.random import RandomVerifier
from trialogue_lab.studies.dyck_backtracking.config import Config, UntilConverged

Decodings = dict[str, tuple[Sampler[Any], Verifier | None]]


class Errors(NamedTuple):
    """Strings cut right after the model's first wrong token, and correct prefixes of the same lengths."""

    wrong: Tensor  # (n, length + 1)
    wrong_lengths: Tensor  # (n,)
    correct: Tensor
    correct_lengths: Tensor
    prompts_tried: Tensor  # (): prompts completed until so many errors were found


class Prediction(NamedTuple):
    """How well a model predicts strings."""

    loss: float  # nats a token, the end of sequence among them
    closing_accuracy: float  # share of the closing brackets that are its most probable token


class Strings(NamedTuple):
    """Parameters of the law that models learn, which say what a training sees whatever else a run measures."""

    length: int
    p: float
    q: float

    def drawn(self, n: int, seed: int) -> Tensor:
        """Strings (n, length)."""
        return Dyck(self.length, (self.p, 1 - self.p), self.q).sample(n, seed)


@dataclass(frozen=True)
class Converged(StoppingRule):
    """The averaged weights predict enough of the closing brackets of strings of its own, the same at every look."""

    strings: Strings
    count: int
    accuracy: float
    look_every: int
    seed: int

    def wants(self, step: int) -> bool:
        """Every `look_every` steps."""
        return step % self.look_every == 0

    def reached(self, update: Update) -> bool:
        """Whether so large a share of them is the model's most probable token."""
        assert isinstance(update.model, Transformer)
        strings = self.strings.drawn(self.count, seed_of(self.seed, "validation"))
        return predicted(update.model, strings).closing_accuracy >= self.accuracy


def predicted(model: Transformer, strings: Tensor) -> Prediction:
    """How well `model` predicts bracket strings (n, length), whose closing brackets are the odd tokens."""
    with torch.inference_mode():
        inputs = torch.cat((torch.full((len(strings), 1), model.bos), strings), 1)
        log_probs = model(inputs.to(model.head.weight.device)).log_softmax(-1).cpu()
    targets = torch.cat((strings, torch.full((len(strings), 1), model.eos)), 1)
    loss = -log_probs.gather(2, targets[:, :, None]).double().mean()
    closing = (targets % 2 == 1) & (targets < model.eos)
    return Prediction(float(loss), float((log_probs.argmax(2) == targets)[closing].double().mean()))


def end_of_sequence(law: Dyck) -> int:
    """The token with which the models end a string."""
    return law.vocab_size


def trained_model(config: Config, seed: int, artifacts: Path) -> Transformer:
    """The trained model, from `artifacts` if it is there."""
    return training_of(config, seed, artifacts).network


def training_of(config: Config, seed: int, artifacts: Path) -> Trained[Transformer]:
    """The trained model and its losses, one for each step that was done, from `artifacts` if they are there."""
    strings = Strings(config.length, config.p, config.q)
    until = (
        Converged(strings, config.validation_strings, config.converged_accuracy, config.look_every, seed)
        if isinstance(config, UntilConverged)
        else None
    )
    data = partial(_batch, strings, config.batch_size, seed)
    recipe = Recipe(Transformer, config.model(), data, config.training(seed), until=until)
    return trained(recipe, artifacts)


def _batch(strings: Strings, size: int, seed: int, step: int) -> Tensor:
    return strings.drawn(size, seed_of(seed, "batch", step))


def collected_errors(config: Config, seed: int, artifacts: Path) -> Errors:
    """The model's errors on prompts of their own, and correct prefixes of the lengths of those for the probe."""
    path = artifacts / f"errors-{seed}.safetensors"
    if path.exists():
        return Errors(**load_file(path))
    law, wanted = config.law(), config.probe_errors + config.inducing_errors
    oracle = truncated(trained_model(config, seed, artifacts), top_p=0.9)
    chunk = min(8192, config.max_prompts)
    strings: list[Tensor] = []
    lengths: list[Tensor] = []
    found = tried = 0
    while found < wanted and tried < config.max_prompts:
        prompts = config.ood_prompts(chunk, seed, f"errors {tried}")
        samples = generate(oracle, prompts, seed=seed_of(seed, "errors", tried))
        position = law.first_error(samples.tokens, samples.lengths, end_of_sequence(law))
        # A string that ends too early is cut after its end of sequence: that is its wrong token.
        wrong = ((position >= 0) & (position < samples.lengths)).nonzero()[:, 0]
        wrong = wrong[: wanted - found]
        strings.append(samples.tokens[wrong])
        lengths.append(position[wrong] + 1)
        found += len(wrong)
        tried += int(wrong[-1]) + 1 if found == wanted else chunk
    if found < wanted:
        hint = f"the model of seed {seed} made only {found} of {wanted} errors: raise it"
        raise InputError("max_prompts", config.max_prompts, hint)
    wrong_tokens, wrong_lengths = torch.cat(strings), torch.cat(lengths)
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
    return torch.cat((wrong, correct)), torch.tensor([0] * n + [1] * n)


def decodings_of(config: Config, seed: int, probe: Verifier) -> Decodings:
    """The decodings of unseen prompts, by name: Algorithm 1 with every verifier, and what it is compared with."""
    algorithm, trained = Backtracking(4, 4), Threshold(probe, config.threshold)
    random = RandomVerifier(seed)
    return {
        "none": (Ancestral(), None),
        "trained": (algorithm, trained),
        "trained, low threshold": (algorithm, Threshold(probe, config.low_threshold)),
        "random": (algorithm, Threshold(random, config.threshold)),
        "random, low threshold": (algorithm, Threshold(random, config.low_threshold)),
        "exact": (algorithm, config.law()),
        "trained, no argmax": (Backtracking(4, 4, argmax_redo=False), trained),
        "trained, redo what was erased": (Backtracking(4, 4, redo="erased"), trained),
        "trained, as released": (Backtracking.released(4, 4), trained),
        "trained, as released, once": (Backtracking.released(4, 4, once_per_prefix=True), trained),
    }


def probe_verifier(config: Config, seed: int, artifacts: Path) -> ProbeVerifier:
    """The probe of the first split, as a verifier."""
    model, errors = trained_model(config, seed, artifacts), collected_errors(config, seed, artifacts)
    trained = train_probe(*probe_examples(config, model, errors), ProbeConfig(seed=seed_of(seed, "probe", 0)))
    return ProbeVerifier(trained.probe)
