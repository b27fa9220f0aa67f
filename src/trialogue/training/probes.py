"""Training a probe to tell correct from erroneous prefixes by their hidden states."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from trialogue.errors import InputError
from trialogue.models.probe import Probe
from trialogue.randomness import generator


@dataclass(frozen=True, kw_only=True)
class ProbeConfig:
    """How a probe is built and trained; `validation` is the share of examples held out."""

    depth: int = 1
    hidden: int = 256
    epochs: int = 100
    batch_size: int = 64
    learning_rate: float = 1e-2
    weight_decay: float = 0.1
    validation: float = 90 / 882
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise InputError(name, getattr(self, name), "use at least 1")
        if not 0 < self.validation < 1:
            raise InputError("validation", self.validation, "hold out a share between 0 and 1")


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
    labels = labels.long()
    draw = generator(config.seed, "probe examples")
    order = torch.randperm(len(states), generator=draw)
    held_out = max(1, round(len(states) * config.validation))
    validation, train = order[:held_out], order[held_out:]
    for label, meaning in ((0, "erroneous"), (1, "correct")):
        if not bool((labels[train] == label).any()):
            raise InputError("labels", label, f"give more {meaning} examples: none is left to train on")
    probe = Probe(states.shape[1], config.depth, config.hidden, config.seed)
    probe.standardise(states[train])
    optimizer = torch.optim.AdamW(
        probe.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    for _ in range(config.epochs):
        shuffled = train[torch.randperm(len(train), generator=draw)]
        for batch in shuffled.split(config.batch_size):
            loss = cross_entropy(probe(states[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    probe.eval().requires_grad_(False)

    def accuracy(rows: Tensor) -> float:
        return float((probe(states[rows]).argmax(-1) == labels[rows]).double().mean())

    return TrainedProbe(probe, len(train), held_out, accuracy(train), accuracy(validation))
