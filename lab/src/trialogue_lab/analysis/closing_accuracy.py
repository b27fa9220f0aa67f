"""Accuracy of a network on closing brackets, as defined in the thesis and in its program."""

from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.data.dyck.states import innermost_types
from trialogue_lab.models.dyck_transformer.network import DyckTransformer

CONFIDENT = 0.8
"""Probability among closing brackets above which the program counts a prediction as correct."""


class ClosingAccuracy(NamedTuple):
    """Accuracies on closing brackets.

    Attributes:
        likeliest: Share of the closing brackets of the text that are the most likely closing brackets at their
            positions (thesis).
        confident: Share of the positions with an open bracket at which the correct type has more than 0.8 of the
            probability of all closing brackets (program).
    """

    likeliest: float
    confident: float


@torch.no_grad()
def closing_accuracy(network: DyckTransformer, tokens: Tensor, first: int = 0) -> ClosingAccuracy:
    """Return both accuracies of a network on Dyck prefixes.

    Args:
        network: The network.
        tokens: Dyck prefixes (n, width).
        first: Number of tokens at the start of each prefix that are read but not predicted (default: 0).
    """
    tokens = tokens.to(network.table.device)
    closing = network(tokens)[:, first:-1, 1 : 2 * network.config.types : 2].float()
    # Types of the innermost open brackets before each token, -1 if none is open.
    expected = torch.nn.functional.pad(innermost_types(tokens), (1, 0), value=-1)[:, first:-1]
    following = tokens[:, first:]
    is_closing, can_close = following % 2 == 1, expected >= 0
    correct = closing.argmax(-1)[is_closing] == following[is_closing] // 2
    mass = closing.softmax(-1).gather(-1, expected.clamp_min(0)[..., None])[..., 0]
    return ClosingAccuracy(
        float(correct.double().mean()), float((mass > CONFIDENT)[can_close].double().mean())
    )
