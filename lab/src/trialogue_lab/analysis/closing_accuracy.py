"""Accuracy of a network in predicting closing brackets, by two definitions."""

from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.data.dyck.states import innermost_types
from trialogue_lab.models.dyck_transformer.network import DyckTransformer

CONFIDENT = 0.8
"""Share of the closing brackets' probability above which a prediction counts as correct in the authors' program."""


class ClosingAccuracy(NamedTuple):
    """Accuracies of a network in predicting closing brackets, by two definitions.

    Attributes:
        likeliest: Fraction of the closing brackets whose type has the largest predicted probability at their position
            (definition of the thesis).
        confident: Fraction of the positions with an open bracket at which the correct type has more than 0.8 of the
            predicted probability of all closing brackets (definition of the authors' program).
    """

    likeliest: float
    confident: float


@torch.no_grad()
def closing_accuracy(network: DyckTransformer, tokens: Tensor, first: int = 0) -> ClosingAccuracy:
    """Measure the accuracy of a network in predicting closing brackets, by two definitions.

    Args:
        network: The network.
        tokens: Prefixes of balanced bracket strings (n, width), as token ids.
        first: Number of tokens at the start of each string that are read but not predicted (default: 0).
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
