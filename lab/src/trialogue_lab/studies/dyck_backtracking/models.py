"""Trained models, their errors, and probes of their hidden states, shared by all tasks of a training seed."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from trialogue.data import Dyck
from trialogue.errors import InputError
from trialogue.models.networks.probe import hidden_states
from trialogue.models.networks.transformer import Transformer
from trialogue.oracles import Verifier
from trialogue.randomness import derive_seed
from trialogue.samplers import Ancestral, Backtracking, generate, truncated
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.storage import atomic_write
from trialogue.training.observers import StoppingRule, Update
from trialogue.training.probes.grid import ProbeConfig, train_probe
from trialogue.training.recipes import Recipe, Trained, load_or_train
from trialogue.verifiers import ProbeVerifier
from trialogue.verifiers.functions.function import Threshold
from trialogue.verifiers.random import RandomVerifier
from trialogue_lab.studies.dyck_backtracking.config import Config, EarlyStoppingConfig

Decodings = dict[str, tuple[Sampler[Any], Verifier | None]]


class ErrorStrings(NamedTuple):
    """Strings in which a language model made an error, and correct prefixes of the same lengths.

    Attributes:
        wrong: Token ids (n, length + 1) of strings that end with the model's first wrong token.
        wrong_lengths: Lengths (n,) of these strings, including the wrong token.
        correct: Token ids (m, length) of correct strings.
        correct_lengths: Lengths (m,) of the prefixes of correct strings that are used.
        prompts_tried: Number of prompts () that were completed to find n errors.
    """

    wrong: Tensor
    wrong_lengths: Tensor
    correct: Tensor
    correct_lengths: Tensor
    prompts_tried: Tensor


class PredictionQuality(NamedTuple):
    """Loss and accuracy with which a language model predicts bracket strings.

    Attributes:
        loss: Mean loss in nats per token, including the end of sequence.
        closing_accuracy: Fraction of closing brackets that are the model's most probable token.
    """

    loss: float
    closing_accuracy: float


class Strings(NamedTuple):
    """Distribution of strings of square and round brackets on which models are trained.

    Attributes:
        length: Length of the strings.
        p: Probability that an opening bracket is square.
        q: Probability that the next bracket is an opening one, if a closing one is also possible.
    """

    length: int
    p: float
    q: float

    def sample(self, n: int, seed: int) -> Tensor:
        """Sample bracket strings.

        Args:
            n: Number of strings.
            seed: Seed of the strings.

        Returns:
            Token ids (n, length).
        """
        return Dyck(self.length, (self.p, 1 - self.p), self.q).sample(n, seed)


@dataclass(frozen=True)
class AccuracyStoppingRule(StoppingRule):
    """Stopping rule that ends a training when the model predicts closing brackets accurately enough.

    Args:
        strings: Distribution of the validation strings.
        count: Number of validation strings, which are the same at every validation.
        accuracy: Accuracy at which the training ends.
        look_every: Number of steps between validations.
        seed: Seed of the validation strings.
    """

    strings: Strings
    count: int
    accuracy: float
    look_every: int
    seed: int

    def is_due(self, step: int) -> bool:
        """Return whether to validate the model after a training step.

        Args:
            step: Number of completed training steps.
        """
        return step % self.look_every == 0

    def reached(self, update: Update) -> bool:
        """Return whether the model with averaged weights reaches the required accuracy.

        Args:
            update: State of the training after a step.
        """
        assert isinstance(update.model, Transformer)
        strings = self.strings.sample(self.count, derive_seed(self.seed, "validation"))
        return evaluate_predictions(update.model, strings).closing_accuracy >= self.accuracy


def evaluate_predictions(model: Transformer, strings: Tensor) -> PredictionQuality:
    """Measure the loss and the accuracy of a model on bracket strings.

    Args:
        model: The language model.
        strings: Token ids (n, length). Opening brackets are even and closing brackets are odd.
    """
    with torch.inference_mode():
        inputs = torch.cat((torch.full((len(strings), 1), model.bos), strings), 1)
        log_probs = model(inputs.to(model.head.weight.device)).log_softmax(-1).cpu()
    targets = torch.cat((strings, torch.full((len(strings), 1), model.eos)), 1)
    loss = -log_probs.gather(2, targets[:, :, None]).double().mean()
    closing = (targets % 2 == 1) & (targets < model.eos)
    return PredictionQuality(float(loss), float((log_probs.argmax(2) == targets)[closing].double().mean()))


def train_or_load(config: Config, seed: int, artifacts: Path) -> Trained[Transformer]:
    """Train the language model of a seed, or load it if it was trained before.

    Args:
        config: Settings of the model and its training.
        seed: Seed of the training.
        artifacts: Folder in which trained models are stored.

    Returns:
        The network, and its losses with one entry per completed step.
    """
    strings = Strings(config.length, config.p, config.q)
    until = None
    if isinstance(config, EarlyStoppingConfig):
        until = AccuracyStoppingRule(
            strings, config.validation_strings, config.converged_accuracy, config.look_every, seed
        )
    data = partial(_sample_batch, strings, config.batch_size, seed)
    recipe = Recipe(Transformer, config.model(), data, config.training(seed), until=until)
    return load_or_train(recipe, artifacts)


def _sample_batch(strings: Strings, size: int, seed: int, step: int) -> Tensor:
    return strings.sample(size, derive_seed(seed, "batch", step))


def collect_errors(config: Config, seed: int, artifacts: Path) -> ErrorStrings:
    """Collect strings in which the model makes an error, and correct strings of the same lengths.

    The model completes prompts until it has made enough errors. The result is stored in `artifacts` and loaded by later
    calls.

    Args:
        config: Settings of the run.
        seed: Seed of the model's training.
        artifacts: Folder of the trained models.

    Raises:
        InputError: If `max_prompts` prompts yield too few errors.
    """
    path = artifacts / f"errors-{seed}.safetensors"
    if path.exists():
        return ErrorStrings(**load_file(path))
    distribution, needed = config.training_distribution(), config.probe_errors + config.inducing_errors
    oracle = truncated(train_or_load(config, seed, artifacts).network, top_p=0.9)
    chunk = min(8192, config.max_prompts)
    strings: list[Tensor] = []
    lengths: list[Tensor] = []
    found = tried = 0
    while found < needed and tried < config.max_prompts:
        prompts = config.sample_prompts(chunk, seed, f"errors {tried}")
        samples = generate(oracle, prompts, seed=derive_seed(seed, "errors", tried))
        # The wrong token of a string that ends too early is its end of sequence.
        position = distribution.first_error(samples.tokens, samples.lengths, distribution.vocab_size)
        wrong = ((position >= 0) & (position < samples.lengths)).nonzero()[: needed - found, 0]
        strings.append(samples.tokens[wrong])
        lengths.append(position[wrong] + 1)
        found += len(wrong)
        tried += int(wrong[-1]) + 1 if found == needed else chunk
    if found < needed:
        hint = (
            f"the model of seed {seed} made only {found} of {needed} errors. Use a larger number of prompts"
        )
        raise InputError("max_prompts", config.max_prompts, hint)
    wrong_tokens, wrong_lengths = torch.cat(strings), torch.cat(lengths)
    correct_lengths = wrong_lengths[: config.probe_errors].clamp_max(config.length)
    correct = config.prompt_distribution().sample(config.probe_errors, derive_seed(seed, "correct"))
    errors = ErrorStrings(wrong_tokens, wrong_lengths, correct, correct_lengths, torch.tensor(tried))
    atomic_write(path, save(errors._asdict()))
    return errors


def load_probe_examples(config: Config, seed: int, artifacts: Path) -> tuple[Tensor, Tensor]:
    """Return hidden states of a model with labels, which are the examples for training the probe.

    The probe classifies hidden states into correct and erroneous prefixes.

    Args:
        config: Settings of the run.
        seed: Seed of the model's training.
        artifacts: Folder of the trained models.

    Returns:
        Hidden states (2n, width) of n erroneous and n correct prefixes, and their labels (2n,), 0 for erroneous and 1
        for correct.
    """
    model, errors = train_or_load(config, seed, artifacts).network, collect_errors(config, seed, artifacts)
    n = config.probe_errors
    wrong = hidden_states(model, errors.wrong[:n], errors.wrong_lengths[:n])[:, 0]
    correct = hidden_states(model, errors.correct, errors.correct_lengths)[:, 0]
    return torch.cat((wrong, correct)), torch.tensor([0] * n + [1] * n)


def make_probe_verifier(config: Config, seed: int, artifacts: Path) -> ProbeVerifier:
    """Return a verifier that rates prefixes by a trained probe.

    The probe is a classifier of the model's hidden states. It is trained on the first random split into training and
    validation examples.

    Args:
        config: Settings of the run.
        seed: Seed of the model's training.
        artifacts: Folder of the trained models.
    """
    states, labels = load_probe_examples(config, seed, artifacts)
    return ProbeVerifier(train_probe(states, labels, ProbeConfig(seed=derive_seed(seed, "probe", 0))).probe)


def make_decodings(config: Config, seed: int, probe: Verifier) -> Decodings:
    """Return the decoding methods that complete new prompts: plain sampling, and variants of backtracking.

    Backtracking (Algorithm 1) erases the last tokens of a prefix that its verifier rejects. The variants have different
    verifiers and settings.

    Args:
        config: Settings with the thresholds of the verifiers. A prefix with a lower value is rejected.
        seed: Seed of the random verifier, which is a baseline.
        probe: The trained verifier, a classifier of hidden states.

    Returns:
        Pairs of a sampler and its verifier, by name.
    """
    algorithm, trained = Backtracking(4, 4), Threshold(probe, config.threshold)
    random = RandomVerifier(seed)
    return {
        "none": (Ancestral(), None),
        "trained": (algorithm, trained),
        "trained, low threshold": (algorithm, Threshold(probe, config.low_threshold)),
        "random": (algorithm, Threshold(random, config.threshold)),
        "random, low threshold": (algorithm, Threshold(random, config.low_threshold)),
        "exact": (algorithm, config.training_distribution()),
        "trained, no argmax": (Backtracking(4, 4, argmax_redo=False), trained),
        "trained, redo what was erased": (Backtracking(4, 4, redo="erased"), trained),
        "trained, as released": (Backtracking.released(4, 4), trained),
        "trained, as released, once": (Backtracking.released(4, 4, once_per_prefix=True), trained),
    }
