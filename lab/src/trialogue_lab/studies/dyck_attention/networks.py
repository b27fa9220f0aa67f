"""The networks of the study, how they are trained, and the prefixes that they are asked about."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trialogue.data import Dyck, DyckWords
from trialogue.training import train
from trialogue_lab.models.dyck_transformer import DyckTransformer, DyckTransformerConfig
from trialogue_lab.studies.dyck_attention.config import Config
from trialogue_lab.training.brackets import (
    Contrast,
    Strings,
    bracket_batches,
    bracket_training,
    closing_loss,
    contrastive_loss,
)

TRAINED_LENGTH = 28
FAR = (400, 500)
"""Lengths of prefixes, of 16 times the trained length and more"""
NESTED = (0,) * 4 + (1,) * 4 + (2,) * 4 + (3,) * 4
"""The prefix whose attention is compared: four nested pairs of one type, then four of another"""
_EVALUATED = 40

_MINIMAL = DyckTransformerConfig(norm_floor=1e-5)
_STANDARD = DyckTransformerConfig(
    embedding="tokens", residual=True, norm="sum", norm_floor=1e-5, mlps=((50, 50), (50, 50))
)
_BEHIND_THE_NORM = replace(_STANDARD, norm="attention")


class Arm(NamedTuple):
    """The shape of a network, the strings it is trained on, what regularises it, and whether weights decay."""

    shape: DyckTransformerConfig
    strings: Strings = "words"
    contrast: Contrast = "none"
    decays: bool = False


MINIMAL_ARMS = {
    "words": Arm(_MINIMAL),
    "words, contrast": Arm(_MINIMAL, contrast="nested"),
    "words, released contrast": Arm(_MINIMAL, contrast="released"),
    "words, decay": Arm(_MINIMAL, decays=True),
    "words, sums": Arm(replace(_MINIMAL, embedding="sums")),
    "words, angles": Arm(replace(_MINIMAL, embedding="angles")),
    "prefixes": Arm(_MINIMAL, "prefixes"),
    "prefixes, contrast": Arm(_MINIMAL, "prefixes", "nested"),
}
STANDARD_ARMS = {
    "standard": Arm(_STANDARD),
    "standard, linear": Arm(replace(_STANDARD, positions="linear")),
    "standard, uniform": Arm(replace(_STANDARD, uniform=True)),
}


class Setting(NamedTuple):
    """A row of Table 2.6: types and depth of the language, layers of the network."""

    types: int
    depth: int
    layers: int

    @property
    def arm(self) -> Arm:
        """Its network: the residual joins behind the norm, (2.42)."""
        return Arm(replace(_BEHIND_THE_NORM, mlps=((50, 50),) * self.layers))

    def __str__(self) -> str:
        return f"k = {self.types}, D = {self.depth}, {self.layers} layers"


SETTINGS = tuple(Setting(types, depth, layers) for types in (2, 3) for depth in (4, 8) for layers in (2, 3))


def trained(
    config: Config, arm: Arm, seed: int, types: int, depth: int, steps: int
) -> tuple[DyckTransformer, float]:
    """A network of `arm` trained on the language for so many steps, and its mean loss at the end."""
    network = DyckTransformer(replace(arm.shape, types=types, depth=depth), seed)
    loss: Callable[..., Tensor] = partial(closing_loss, decay=config.decay if arm.decays else 0.0)
    if arm.contrast != "none":
        loss = partial(contrastive_loss, weight=config.contrast_weight)
    language = {"types": types, "depth": depth, "longest": TRAINED_LENGTH}
    batches = partial(bracket_batches, seed=seed, strings=arm.strings, contrast=arm.contrast, **language)
    reads_tokens = arm.shape.embedding == "tokens"
    rate = config.standard_learning_rate if reads_tokens else config.learning_rate
    losses = train(network, batches, bracket_training(steps, rate, seed), loss=loss, progress=False).losses
    return network, float(losses[-20:].mean())


def pattern_rows(network: DyckTransformer, prefix: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Rows of what every layer of a network attends to on a prefix."""
    for layer, (pattern,) in enumerate(network.attention_weights(torch.tensor([prefix])), 1):
        weights = [[round(weight, 4) for weight in line] for line in pattern.tolist()]
        yield {"kind": "pattern", "layer": layer, "weights": json.dumps(weights)}


def prefixes(types: int, depth: int, seed: int, length: int) -> Tensor:
    """Forty prefixes (40, length) of the language, by the stream of `seed`."""
    law = (1 / types,) * types
    return Dyck(length, law, 0.5, depth, complete=False).sample(_EVALUATED, seed)


def trained_words(types: int, depth: int, seed: int) -> list[Tensor]:
    """Four hundred words of the law that networks are trained on, by length: tokens (n, length) each."""
    words, lengths = DyckWords(TRAINED_LENGTH, (1 / types,) * types, 0.5, depth).sample(400, seed)
    return [words[lengths == length, :length] for length in sorted(set(lengths.tolist()))]


def sentences(types: int, depth: int, length: int) -> Tensor:
    """Forty complete words (40, length), the same for all networks of the language."""
    return Dyck(length, (1 / types,) * types, 0.5, depth).sample(_EVALUATED, 0)
