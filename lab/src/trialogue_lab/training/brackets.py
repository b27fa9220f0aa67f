"""Training on brackets: batches of Dyck strings, the loss on closing brackets, and what regularises towards balance."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from trialogue.data.dyck.language import Dyck
from trialogue.data.dyck.words import DyckWords
from trialogue.randomness import generator, seed_of
from trialogue.training.config import TrainingConfig
from trialogue.validation import Count, Natural, validated
from trialogue_lab.models.dyck_transformer.network import DyckTransformer

Strings = Literal["words", "prefixes"]
Contrast = Literal["none", "nested", "released"]

_IGNORED = -100


@validated
def bracket_batches(
    step: Natural,
    *,
    seed: Natural,
    batch_size: Count = 100,
    types: Count = 2,
    depth: int = 4,
    longest: int = 28,
    strings: Strings = "words",
    contrast: Contrast = "none",
) -> tuple[Tensor, ...]:
    """The batch of a step: tokens (batch_size, longest) and lengths (batch_size,), q = 1/2, types equally likely.

    "words" are complete and of any length up to `longest`, "prefixes" all of that length. With a `contrast` comes the
    balanced string (batch_size, width) to put before each of them: "nested" pairs of random types, 1 to `depth` of
    them, the same number for all (2.58), or those "released" by the authors: `depth` nested pairs of one type, then
    as many of another, and one pair more at a random place in them.
    """
    law = (1 / types,) * types
    of_step = seed_of(seed, "brackets", step)
    if strings == "words":
        batch = DyckWords(longest, law, 0.5, depth).sample(batch_size, of_step)
    else:
        batch = (
            Dyck(longest, law, 0.5, depth, complete=False).sample(batch_size, of_step),
            torch.full((batch_size,), longest),
        )
    if contrast == "none":
        return batch
    draw = generator(of_step, "contrast")
    if contrast == "nested":
        pairs = int(torch.randint(1, depth + 1, (), generator=draw))
        kinds = torch.randint(types, (batch_size, pairs), generator=draw)
        return *batch, torch.cat((2 * kinds, 2 * kinds.flip(1) + 1), 1)
    kinds = torch.randint(types, (batch_size, 3), generator=draw)
    nested = torch.cat(
        [kinds[:, i : i + 1] * 2 + side for i in (0, 1) for side in (0, 1) for _ in range(depth)], 1
    )
    # Behind 0 to D - 1 brackets open in either half, so that the pair is no deeper than D.
    place = torch.randint(2, (batch_size,), generator=draw) * 2 * depth
    place += torch.randint(depth, (batch_size,), generator=draw)
    index = torch.arange(4 * depth + 2)
    moved = nested.gather(
        1, torch.where(index < place[:, None], index, (index - 2).clamp_min(0)).clamp_max(4 * depth - 1)
    )
    for side in (0, 1):
        moved = torch.where(index == place[:, None] + side, kinds[:, 2:] * 2 + side, moved)
    return *batch, moved


def bracket_training(steps: int, learning_rate: float, seed: int) -> TrainingConfig:
    """Return how networks learn brackets: AdamW without weight decay, on batches of 100 strings."""
    return TrainingConfig(
        steps=steps,
        batch_size=100,
        learning_rate=learning_rate,
        weight_decay=0.0,
        beta_2=0.999,
        warmup_steps=20,
        seed=seed,
    )


def closing_loss(model: DyckTransformer, tokens: Tensor, lengths: Tensor, decay: float = 0.0) -> Tensor:
    """Mean cross-entropy, in nats, of the closing brackets among the first `lengths` (n,) of `tokens` (n, width).

    Plus `decay` times |theta|^2 / 2, over all parameters: equation 2.41.
    """
    loss = _closing_loss(model(tokens, lengths), tokens, lengths)
    if not decay:
        return loss
    return loss + decay / 2 * torch.stack([each.square().sum() for each in model.parameters()]).sum()


def contrastive_loss(
    model: DyckTransformer, tokens: Tensor, lengths: Tensor, prefixes: Tensor, weight: float = 0.3
) -> Tensor:
    """`closing_loss`, plus `weight` times the mean square of how far logits move with `prefixes` (n, p) put before.

    Equation 2.58 with a mean over positions and tokens in place of the sum: the weight does not depend on lengths.
    """
    before = prefixes.shape[1]
    logits = model(tokens, lengths)
    moved = model(torch.cat((prefixes, tokens), 1), lengths + before)[:, before:]
    counted = torch.arange(logits.shape[1], device=tokens.device) <= lengths[:, None]
    apart = (moved - logits)[counted].square().mean()
    return _closing_loss(logits, tokens, lengths) + weight * apart


def _closing_loss(logits: Tensor, tokens: Tensor, lengths: Tensor) -> Tensor:
    asked = (tokens % 2 == 1) & (torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None])
    targets = tokens.where(asked, _IGNORED)
    return F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), targets.flatten(), ignore_index=_IGNORED)


def copying_loss(model: DyckTransformer, tokens: Tensor, lengths: Tensor) -> Tensor:
    """Mean cross-entropy, in nats, of saying at each of the first `lengths` (n,) of `tokens` (n, width) which it is."""
    targets = tokens.masked_fill(
        torch.arange(tokens.shape[1], device=tokens.device) >= lengths[:, None], _IGNORED
    )
    logits = model(tokens, lengths)[:, 1:].flatten(0, 1)
    return F.cross_entropy(logits.float(), targets.flatten(), ignore_index=_IGNORED)
