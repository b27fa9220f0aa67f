"""Networks that predict closing brackets, their training, and the bracket strings on which they are evaluated."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.data import Dyck, DyckWords
from trialogue.training import train
from trialogue_lab.analysis.closing_accuracy import ClosingAccuracy, closing_accuracy
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.models.dyck_transformer import DyckTransformer, DyckTransformerConfig
from trialogue_lab.studies.dyck_attention.config import Config
from trialogue_lab.training import brackets

TRAINED_LENGTH = 28
LONG_LENGTHS = (400, 500)
"""Smallest and largest length of the long prefixes, at least 14 times the length in training."""
NESTED = (0,) * 4 + (1,) * 4 + (2,) * 4 + (3,) * 4
"""Prefix on which attention is compared: four nested pairs of one type, then four of the other type."""
_EVALUATED = 40

_MINIMAL = DyckTransformerConfig(norm_floor=1e-5)
STANDARD = DyckTransformerConfig(
    embedding="tokens", residual=True, norm="sum", norm_floor=1e-5, mlps=((50, 50), (50, 50))
)


class NetworkVariant(NamedTuple):
    """Architecture and training procedure of networks that predict closing brackets.

    Attributes:
        shape: Architecture of the network.
        strings: "words" to train on complete strings of matched brackets, or "prefixes" to train on their prefixes.
        contrast: Contrastive regularizer: "none", "nested" for the one in the paper, or "released" for the one in the
            released program.
        decays: Whether the loss includes weight decay.
    """

    shape: DyckTransformerConfig
    strings: brackets.Strings = "words"
    contrast: brackets.Contrast = "none"
    decays: bool = False


MINIMAL_ARMS = {
    "words": NetworkVariant(_MINIMAL),
    "words, contrast": NetworkVariant(_MINIMAL, contrast="nested"),
    "words, released contrast": NetworkVariant(_MINIMAL, contrast="released"),
    "words, decay": NetworkVariant(_MINIMAL, decays=True),
    "words, sums": NetworkVariant(replace(_MINIMAL, embedding="sums")),
    "words, angles": NetworkVariant(replace(_MINIMAL, embedding="angles")),
    "prefixes": NetworkVariant(_MINIMAL, "prefixes"),
    "prefixes, contrast": NetworkVariant(_MINIMAL, "prefixes", "nested"),
}
STANDARD_ARMS = {
    "standard": NetworkVariant(STANDARD),
    "standard, linear": NetworkVariant(replace(STANDARD, positions="linear")),
    "standard, uniform": NetworkVariant(replace(STANDARD, uniform=True)),
}


class GridSetting(NamedTuple):
    """Hyperparameters of a group of networks, which form one row of Table 2.6 of the thesis.

    Attributes:
        types: Number of bracket types.
        depth: Largest number of brackets that are open at the same time.
        layers: Number of layers of the networks.
    """

    types: int
    depth: int
    layers: int

    @property
    def arm(self) -> NetworkVariant:
        """Architecture and training procedure of the networks with these hyperparameters.

        The residual connection is added after the norm, as in equation 2.42.
        """
        return NetworkVariant(replace(STANDARD, norm="attention", mlps=((50, 50),) * self.layers))

    def __str__(self) -> str:
        return f"k = {self.types}, D = {self.depth}, {self.layers} layers"


SETTINGS = tuple(
    GridSetting(types, depth, layers) for types in (2, 3) for depth in (4, 8) for layers in (2, 3)
)


def train_network(
    config: Config, arm: NetworkVariant, seed: int, types: int, depth: int, steps: int
) -> tuple[DyckTransformer, float]:
    """Train a network to predict the closing brackets of bracket strings.

    Args:
        config: Learning rates and weights of the regularizers.
        arm: Architecture of the network, kind of strings and regularizers.
        seed: Seed of the initial weights and of the batches.
        types: Number of bracket types.
        depth: Largest number of brackets that are open at the same time.
        steps: Number of training steps.

    Returns:
        The network, and its mean loss over the last 20 steps.
    """
    network = DyckTransformer(replace(arm.shape, types=types, depth=depth), seed)
    loss: Callable[..., Tensor] = partial(brackets.closing_loss, decay=config.decay if arm.decays else 0.0)
    if arm.contrast != "none":
        loss = partial(brackets.contrastive_loss, weight=config.contrast_weight)
    size = {"types": types, "depth": depth, "longest": TRAINED_LENGTH}
    batches = partial(brackets.bracket_batches, seed=seed, strings=arm.strings, contrast=arm.contrast, **size)
    reads_tokens = arm.shape.embedding == "tokens"
    rate = config.standard_learning_rate if reads_tokens else config.learning_rate
    training = brackets.bracket_training(steps, rate, seed)
    losses = train(network, batches, training, loss=loss, progress=False).losses
    return network, float(losses[-20:].mean())


def measure_attention_patterns(network: DyckTransformer, prefix: tuple[int, ...]) -> MeasuredRows:
    """Yield the attention weights of each layer of a network on one prefix of a bracket string.

    Args:
        network: The network.
        prefix: Token ids of the prefix. Bracket type k opens with token 2k and closes with token 2k + 1.

    Yields:
        One row per layer, with the attention weights (T, T) as JSON. T counts the start token and the prefix.
    """
    for layer, (pattern,) in enumerate(network.attention_weights(torch.tensor([prefix])), 1):
        weights = [[round(weight, 4) for weight in line] for line in pattern.tolist()]
        yield {"kind": "pattern", "layer": layer, "weights": json.dumps(weights)}


def evaluate_accuracies(
    network: DyckTransformer, types: int, depth: int, seed: int
) -> tuple[ClosingAccuracy, ClosingAccuracy]:
    """Measure the accuracy of a network in predicting the closing brackets of random bracket strings.

    Args:
        network: The network.
        types: Number of bracket types.
        depth: Largest number of brackets that are open at the same time.
        seed: Seed of the strings.

    Returns:
        Accuracy on strings of the training length, and accuracy at positions 400 to 500 of longer strings.
    """
    shortest, longest = LONG_LENGTHS
    outside = closing_accuracy(network, sample_prefixes(types, depth, seed, longest), shortest)
    return closing_accuracy(network, sample_prefixes(types, depth, seed)), outside


def sample_prefixes(types: int, depth: int, seed: int, length: int = TRAINED_LENGTH) -> Tensor:
    """Sample 40 prefixes of bracket strings, with equal probabilities of all bracket types.

    Args:
        types: Number of bracket types.
        depth: Largest number of brackets that are open at the same time.
        seed: Seed of the prefixes.
        length: Length of the prefixes (default: the training length).

    Returns:
        Token ids (40, length).
    """
    distribution = (1 / types,) * types
    return Dyck(length, distribution, 0.5, depth, complete=False).sample(_EVALUATED, seed)


def sample_words(types: int, depth: int, seed: int) -> list[Tensor]:
    """Sample 400 complete bracket strings from the training distribution, grouped by length.

    Args:
        types: Number of bracket types.
        depth: Largest number of brackets that are open at the same time.
        seed: Seed of the strings.

    Returns:
        Token ids (n, length), one tensor per length. The numbers n sum to 400.
    """
    words, lengths = DyckWords(TRAINED_LENGTH, (1 / types,) * types, 0.5, depth).sample(400, seed)
    return [words[lengths == length, :length] for length in sorted(set(lengths.tolist()))]


def sample_sentences(types: int, depth: int, length: int) -> Tensor:
    """Return 40 complete bracket strings of one length. Every call returns the same strings.

    Args:
        types: Number of bracket types.
        depth: Largest number of brackets that are open at the same time.
        length: Length of the strings.

    Returns:
        Token ids (40, length).
    """
    return Dyck(length, (1 / types,) * types, 0.5, depth).sample(_EVALUATED, 0)
