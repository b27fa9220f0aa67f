"""Training on balanced brackets (Dyck strings): batches, losses and a contrastive regularizer."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from trialogue.data.dyck.language import Dyck
from trialogue.data.dyck.words import DyckWords
from trialogue.randomness import derive_seed, generator
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
    """Return the batch of balanced bracket strings (Dyck strings) for a training step.

    Args:
        step: Training step. Each step has its own random numbers.
        seed: Seed of the batches.
        batch_size: Number of strings.
        types: Number of bracket types, which are equally likely.
        depth: Largest number of open brackets.
        longest: Largest length.
        strings: "words" for complete strings of any length up to `longest`, or "prefixes" for prefixes of
            exactly that length.
        contrast: Kind of the balanced string that the contrastive loss prepends to each string: "nested" for
            1 to `depth` nested pairs of random types (equation 2.58), "released" for the strings of the
            authors' code, or "none".

    Returns:
        Tokens (batch_size, longest) and lengths (batch_size,). With a `contrast`, also the strings to prepend
        (batch_size, width).
    """
    distribution = (1 / types,) * types
    step_seed = derive_seed(seed, "brackets", step)
    if strings == "words":
        batch = DyckWords(longest, distribution, 0.5, depth).sample(batch_size, step_seed)
    else:
        prefixes = Dyck(longest, distribution, 0.5, depth, complete=False).sample(batch_size, step_seed)
        batch = (prefixes, torch.full((batch_size,), longest))
    if contrast == "none":
        return batch
    random = generator(step_seed, "contrast")
    if contrast == "nested":
        pairs = int(torch.randint(1, depth + 1, (), generator=random))
        kinds = torch.randint(types, (batch_size, pairs), generator=random)
        return *batch, torch.cat((2 * kinds, 2 * kinds.flip(1) + 1), 1)
    kinds = torch.randint(types, (batch_size, 3), generator=random)
    sides = torch.tensor([0, 1, 0, 1]).repeat_interleave(depth)
    nested = 2 * kinds[:, :2].repeat_interleave(2 * depth, 1) + sides
    # At most depth - 1 brackets are open at this place, so that the additional pair does not exceed the depth.
    place = torch.randint(2, (batch_size,), generator=random) * 2 * depth
    place += torch.randint(depth, (batch_size,), generator=random)
    pair = place[:, None] + torch.arange(2)
    index = torch.arange(4 * depth + 2)
    source = index - 2 * (index > pair[:, 1:])
    balanced = nested.gather(1, source.clamp_max(4 * depth - 1))
    return *batch, balanced.scatter(1, pair, 2 * kinds[:, 2:] + torch.arange(2))


def bracket_training(steps: int, learning_rate: float, seed: int) -> TrainingConfig:
    """Return the training settings of bracket networks: AdamW without weight decay, 100 strings per batch."""
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
    """Return the mean cross-entropy of closing brackets, in nats, with an L2 penalty (equation 2.41).

    Args:
        model: The network.
        tokens: Bracket strings (n, width).
        lengths: Lengths of the strings (n,). Later tokens are ignored.
        decay: Weight of the penalty |theta|^2 / 2 over all parameters (default: 0).
    """
    loss = _closing_loss(model(tokens, lengths), tokens, lengths)
    if not decay:
        return loss
    return loss + decay / 2 * torch.stack([each.square().sum() for each in model.parameters()]).sum()


def contrastive_loss(
    model: DyckTransformer, tokens: Tensor, lengths: Tensor, prefixes: Tensor, weight: float = 0.3
) -> Tensor:
    """Return `closing_loss` plus a penalty on how much a prepended balanced string changes the logits.

    This is equation 2.58 with a mean over positions and tokens instead of the sum, so that the weight does not depend
    on the lengths.

    Args:
        model: The network.
        tokens: Bracket strings (n, width).
        lengths: Lengths of the strings (n,).
        prefixes: Balanced strings to prepend (n, p).
        weight: Weight of the mean squared change of the logits (default: 0.3).
    """
    width = prefixes.shape[1]
    logits = model(tokens, lengths)
    moved = model(torch.cat((prefixes, tokens), 1), lengths + width)[:, width:]
    counted = torch.arange(logits.shape[1], device=tokens.device) <= lengths[:, None]
    change = (moved - logits)[counted].square().mean()
    return _closing_loss(logits, tokens, lengths) + weight * change


def copying_loss(model: DyckTransformer, tokens: Tensor, lengths: Tensor) -> Tensor:
    """Return the mean cross-entropy of predicting each token at its own position, in nats.

    Args:
        model: The network.
        tokens: Token ids (n, width).
        lengths: Lengths of the strings (n,). Later tokens do not count.
    """
    return _cross_entropy(model(tokens, lengths)[:, 1:], tokens, _mask_padding(tokens, lengths))


def _closing_loss(logits: Tensor, tokens: Tensor, lengths: Tensor) -> Tensor:
    return _cross_entropy(logits[:, :-1], tokens, (tokens % 2 == 1) & _mask_padding(tokens, lengths))


def _mask_padding(tokens: Tensor, lengths: Tensor) -> Tensor:
    return torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]


def _cross_entropy(logits: Tensor, tokens: Tensor, counted: Tensor) -> Tensor:
    targets = tokens.where(counted, _IGNORED)
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=_IGNORED)
