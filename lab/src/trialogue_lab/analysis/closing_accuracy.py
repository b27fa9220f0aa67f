"""How often a network closes the right bracket: the accuracy that the thesis states, and that of its program."""

from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.data.dyck.states import innermost_types
from trialogue_lab.models.dyck_transformer.network import DyckTransformer

CONFIDENT = 0.8
"""The probability among closing brackets that the program asks of the right one."""


class ClosingAccuracy(NamedTuple):
    """Shares of positions; of those counted."""

    likeliest: float  # of closing brackets of the text: the likeliest closing one before them is theirs
    confident: (
        float  # of positions with an open bracket: more than 0.8 of the closing mass is on the right one
    )


@torch.no_grad()
def closing_accuracy(network: DyckTransformer, tokens: Tensor, first: int = 0) -> ClosingAccuracy:
    """Both accuracies on Dyck prefixes `tokens` (n, width), where at least `first` of them are read."""
    types = network.config.types
    closing = network(tokens.to(network.table.device))[:, first:-1, 1 : 2 * types : 2].float()
    right, following = innermost_types(tokens)[:, max(0, first - 1) : -1], tokens[:, first:]
    if not first:
        right = torch.cat((right.new_full((len(right), 1), -1), right), 1)
    right, following = right.to(closing.device), following.to(closing.device)
    asked, can_close = following % 2 == 1, right >= 0
    likeliest = closing.argmax(-1)[asked] == following[asked] // 2
    mass = closing.softmax(-1).gather(-1, right.clamp_min(0)[..., None])[..., 0]
    return ClosingAccuracy(
        float(likeliest.double().mean()), float((mass > CONFIDENT)[can_close].double().mean())
    )
