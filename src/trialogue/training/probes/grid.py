"""Training a probe to tell correct from erroneous prefixes by their hidden states: one, or the best of a grid."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from trialogue.arrays import real_tensor, whole_tensor
from trialogue.errors import InputError
from trialogue.models.networks.probe import Probe
from trialogue.randomness import generator, seed_of
from trialogue.validation import Count, Natural, NonNegative, Positive, Probability, validated


@validated
@dataclass(frozen=True, kw_only=True)
class ProbeConfig:
    """How a probe is built and trained; `validation` is the share of examples held out."""

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
    """A probe, the examples it learned from, and its accuracy on them and on those held out."""

    probe: Probe
    train_size: int
    validation_size: int
    train_accuracy: float
    validation_accuracy: float


def train_probe(states: Tensor, labels: Tensor, config: ProbeConfig | None = None) -> TrainedProbe:
    """Train on hidden `states` (n, width) with `labels` (n,): 1 for correct, 0 for erroneous.

    Raises `InputError` where one of the two labels is missing from what is left to train on.
    """
    config = ProbeConfig() if config is None else config
    hint = "give hidden states (n, width), and one label for each"
    shape = real_tensor("states", states, hint).shape
    labels = real_tensor("labels", labels, "give 1 for correct and 0 for erroneous, (n,)")
    if not bool(((labels == 0) | (labels == 1)).all()):
        raise InputError("labels", labels.tolist(), "give 1 for correct and 0 for erroneous, (n,)")
    labels = labels.long()
    if len(shape) != 2 or labels.shape != shape[:1]:
        raise InputError("states", tuple(shape), hint)
    permutation = _permutations(config)
    order = permutation(len(states))
    held_out = max(1, round(len(states) * config.validation))
    validation, train = order[:held_out], order[held_out:]
    probe = _initial(states, labels, train, config)
    for _ in _epochs(probe, states, labels, train, config, permutation):
        pass

    def accuracy(rows: Tensor) -> float:
        return float((probe(states[rows]).argmax(-1) == labels[rows]).double().mean())

    return TrainedProbe(probe, len(train), held_out, accuracy(train), accuracy(validation))


@dataclass(frozen=True)
class Candidate:
    """A probe of a grid: where it reads, its depth, the epoch it is from, and its numbers on held-out examples."""

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
    """Train a probe for every layer and depth; the best first.

    `states` (n, len(layers), width) are the hidden states of the examples with `labels` (n,), `train` and
    `selection` (k,) the rows to learn from and to compare by. What counts is the log-loss on `selection`: it rewards
    probabilities, of which a threshold may use any, and has no ties where examples are few, as accuracy has. Each
    probe is taken from the epoch where it is least; training stops after `patience` epochs without a new least.
    `trained` is told of every candidate. Raises `InputError` where one of the two labels is missing from `train`.
    """
    labels = whole_tensor("labels", labels, "give 1 for correct and 0 for erroneous, (n,)")
    candidates = []
    for place, layer in enumerate(layers):
        of_layer = states[:, place].contiguous()
        for depth in depths:
            seed = seed_of(config.seed, "layer", layer, "depth", depth)
            of_probe = replace(config, depth=depth, seed=seed)
            candidate = _best_epoch(of_layer, labels, layer, train, selection, of_probe, patience)
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
    probe = _initial(states, labels, train, config)
    best: Candidate | None = None
    permutation = _permutations(config)
    for epoch in _epochs(probe, states, labels, train, config, permutation):
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


def _initial(states: Tensor, labels: Tensor, train: Tensor, config: ProbeConfig) -> Probe:
    for label, meaning in ((0, "erroneous"), (1, "correct")):
        if not bool((labels[train] == label).any()):
            raise InputError("labels", label, f"give more {meaning} examples: none is left to train on")
    probe = Probe(states.shape[1], config.depth, config.hidden, config.seed)
    probe.standardise(states[train])
    return probe


def _permutations(config: ProbeConfig) -> Callable[[int], Tensor]:
    """A function that draws one random permutation after another."""
    return partial(torch.randperm, generator=generator(config.seed, "probe examples"))


def _epochs(
    probe: Probe,
    states: Tensor,
    labels: Tensor,
    train: Tensor,
    config: ProbeConfig,
    permutation: Callable[[int], Tensor],
) -> Iterator[int]:
    """Train `probe`, pausing after every epoch; in the end it is in eval mode and needs no gradients."""
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
