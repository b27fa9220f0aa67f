"""Training of probes, which classify prefixes as correct or erroneous from hidden states."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from trialogue.arrays import integer_tensor, real_tensor
from trialogue.errors import InputError
from trialogue.models.networks.probe import Probe
from trialogue.randomness import derive_seed, generator
from trialogue.validation import Count, Natural, NonNegative, Positive, Probability, validated


@validated
@dataclass(frozen=True, kw_only=True)
class ProbeConfig:
    """Architecture and training hyperparameters of a probe, a small classifier of hidden states.

    Args:
        depth: Number of linear layers. 1 is a linear probe, larger values are MLPs.
        hidden: Units per hidden layer.
        epochs: Maximum number of epochs.
        batch_size: Examples per gradient step.
        learning_rate: Learning rate of AdamW.
        weight_decay: Weight decay of AdamW.
        validation: Fraction of examples held out.
        seed: Seed for initial weights and shuffling.

    Raises:
        InputError: If a field is out of range.
    """

    depth: Count = 1
    hidden: Count = 256
    epochs: Count = 100
    batch_size: Count = 64
    learning_rate: Positive = 1e-2
    weight_decay: NonNegative = 0.1
    validation: Probability = 90 / 882
    seed: Natural = 0


@dataclass(frozen=True)
class TrainedProbe:
    """A trained probe with its accuracy. Result of `train_probe`.

    Args:
        probe: The trained probe.
        train_size: Number of training examples.
        validation_size: Number of held-out examples.
        train_accuracy: Accuracy on the training examples.
        validation_accuracy: Accuracy on the held-out examples.
    """

    probe: Probe
    train_size: int
    validation_size: int
    train_accuracy: float
    validation_accuracy: float


def train_probe(states: Tensor, labels: Tensor, config: ProbeConfig | None = None) -> TrainedProbe:
    """Train a probe and measure its accuracy on held-out examples.

    Args:
        states: Hidden states, (n, width).
        labels: 1 for correct and 0 for erroneous examples, (n,).
        config: Architecture and hyperparameters. The defaults of `ProbeConfig` by default.

    Raises:
        InputError: If a class is missing from the training examples.
    """
    config = ProbeConfig() if config is None else config
    hint = "use hidden states of shape (n, width), with one label for each"
    shape = real_tensor("states", states, hint).shape
    labels = real_tensor("labels", labels, "give 1 for correct and 0 for erroneous, (n,)")
    if not bool(((labels == 0) | (labels == 1)).all()):
        raise InputError("labels", labels.tolist(), "give 1 for correct and 0 for erroneous, (n,)")
    labels = labels.long()
    if len(shape) != 2 or labels.shape != shape[:1]:
        raise InputError("states", tuple(shape), hint)
    permutation = _permutation_sampler(config)
    order = permutation(len(states))
    held_out = max(1, round(len(states) * config.validation))
    validation, train = order[:held_out], order[held_out:]
    probe = _build_probe(states, labels, train, config)
    for _ in _train_epochs(probe, states, labels, train, config, permutation):
        pass

    def accuracy(rows: Tensor) -> float:
        return float((probe(states[rows]).argmax(-1) == labels[rows]).double().mean())

    return TrainedProbe(probe, len(train), held_out, accuracy(train), accuracy(validation))


@dataclass(frozen=True)
class Candidate:
    """A trained probe of a grid search over layers and depths.

    Args:
        layer: Layer whose hidden states the probe reads.
        depth: Number of linear layers of the probe.
        epoch: Epoch with the smallest log-loss, from which the weights are taken.
        log_loss: Log-loss on the selection examples in nats.
        accuracy: Accuracy on the selection examples.
        probe: The probe with the weights of this epoch.
    """

    layer: int
    depth: int
    epoch: int
    log_loss: float
    accuracy: float
    probe: Probe


def search_probes(
    states: Tensor,
    labels: Tensor,
    layers: Sequence[int],
    depths: Sequence[int],
    train: Tensor,
    selection: Tensor,
    config: ProbeConfig,
    *,
    patience: int = 10,
    trained: Callable[[Candidate], object] | None = None,
) -> list[Candidate]:
    """Train a probe for each layer and depth, with early stopping, and rank them by log-loss.

    Args:
        states: Hidden states, (n, len(layers), width).
        labels: 1 for correct and 0 for erroneous examples, (n,) int64.
        layers: Layers of the hidden states.
        depths: Depths of the probes.
        train: Rows of the training examples, (k,) int64.
        selection: Rows of the examples on which probes are compared, (k,) int64.
        config: Hyperparameters of each probe. Its depth and seed are replaced.
        patience: Number of epochs without improvement after which training stops.
        trained: Function called with each candidate.

    Returns:
        Candidates in order of increasing log-loss, each with the weights of its best epoch.

    Raises:
        InputError: If a class is missing from the training examples.
    """
    labels = integer_tensor("labels", labels, "give 1 for correct and 0 for erroneous, (n,)")
    candidates = []
    for place, layer in enumerate(layers):
        layer_states = states[:, place].contiguous()
        for depth in depths:
            seed = derive_seed(config.seed, "layer", layer, "depth", depth)
            probe_config = replace(config, depth=depth, seed=seed)
            candidate = _best_epoch(layer_states, labels, layer, train, selection, probe_config, patience)
            candidates.append(candidate)
            if trained is not None:
                trained(candidate)
    return sorted(candidates, key=lambda candidate: candidate.log_loss)


def _best_epoch(
    states: Tensor,
    labels: Tensor,
    layer: int,
    train: Tensor,
    selection: Tensor,
    config: ProbeConfig,
    patience: int,
) -> Candidate:
    probe = _build_probe(states, labels, train, config)
    best: Candidate | None = None
    permutation = _permutation_sampler(config)
    for epoch in _train_epochs(probe, states, labels, train, config, permutation):
        with torch.no_grad():
            logits = probe(states[selection])
            loss = float(cross_entropy(logits.double(), labels[selection]))
        if best is None or loss < best.log_loss:
            accuracy = float((logits.argmax(-1) == labels[selection]).double().mean())
            best = Candidate(layer, config.depth, epoch, loss, accuracy, probe.rescaled(1.0, 0.0))
        elif epoch - best.epoch >= patience:
            break
    assert best is not None
    return best


def _build_probe(states: Tensor, labels: Tensor, train: Tensor, config: ProbeConfig) -> Probe:
    for label, meaning in ((0, "erroneous"), (1, "correct")):
        if not bool((labels[train] == label).any()):
            raise InputError("labels", label, f"give more {meaning} examples; there is none to train on")
    probe = Probe(states.shape[1], config.depth, config.hidden, config.seed)
    probe.standardise(states[train])
    return probe


def _permutation_sampler(config: ProbeConfig) -> Callable[[int], Tensor]:
    """Return a function that samples random permutations."""
    return partial(torch.randperm, generator=generator(config.seed, "probe examples"))


def _train_epochs(
    probe: Probe,
    states: Tensor,
    labels: Tensor,
    train: Tensor,
    config: ProbeConfig,
    permutation: Callable[[int], Tensor],
) -> Iterator[int]:
    """Train `probe` and yield after each epoch. At the end, switch to eval mode and disable gradients."""
    optimizer = torch.optim.AdamW(
        probe.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    for epoch in range(1, config.epochs + 1):
        shuffled = train[permutation(len(train))]
        for batch in shuffled.split(config.batch_size):
            loss = cross_entropy(probe(states[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield epoch
    probe.eval().requires_grad_(False)
