"""How the last layer of a decoder attends at positions side by side, and whether otherwise where it repeats a token.

Tables 4.4 and 4.5 of the thesis: hypothesis 1 is that a decoder stutters where positions attend to each other more,
hypothesis 2 that it does where they attend to the source alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
import torch
from annotated_types import Ge
from numpy.typing import NDArray
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.encoder_decoder.network import EncoderDecoder, ended, source_rows
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.samplers.chains.refinement import Refinement
from trialogue.samplers.translation.refining import LengthBeam
from trialogue.validation import validated

Array = NDArray[np.float64]
_AT_ONCE = 256


class AdjacentAttention(NamedTuple):
    """Of each pair of adjacent target positions, by heads; every array has one row per pair."""

    stutter: NDArray[np.bool_]
    """(pairs,): both have the same token"""
    own: Array
    """(pairs, 2 * heads): how much each of the two attends to the other"""
    own_overlap: Array
    """(pairs, 2), k = 1 and 2: the share of heads and directions where the other one is among the k most attended"""
    variation: Array
    """(pairs, heads): total variation between the two laws of attention to the source"""
    cosine: Array
    """(pairs, heads): 1 less the cosine of the angle between the two"""
    source_overlap: Array
    """(pairs, 2), k = 1 and 2: the share of heads whose k most attended source positions of both have one in common"""
    target: NDArray[np.int64]
    """(pairs,): the place of the target that the pair is in"""

    def where(self, chosen: NDArray[np.bool_]) -> AdjacentAttention:
        """The pairs that are `chosen` (pairs,)."""
        return AdjacentAttention._make(part[chosen] for part in self)


@validated
def refined_attention(
    refiner: Refiner, sources: Sequence[Sequence[int]], passes: Annotated[int, Ge(2)], seed: int = 0
) -> AdjacentAttention:
    """What the decoder does in the last of so many `passes` of refinement, by argmax from random tokens.

    It reads what the pass before wrote, which is what it reads again where no pass changes it any more; pairs stutter
    where it writes the same token twice. The likeliest length is refined, and repeats are neither kept back nor
    dropped. Random tokens are those of the place of a source under `seed`. Raises `InputError` for fewer than two
    passes, for sources too long for the model, and where no target has two tokens.
    """
    read, written = (_translated(refiner, sources, passes - before, seed) for before in (1, 0))
    return adjacent_attention(refiner.model, sources, read, written)


def _translated(
    refiner: Refiner, sources: Sequence[Sequence[int]], passes: int, seed: int
) -> list[list[int]]:
    beam = LengthBeam(steps=passes, hypotheses=1, chain=Refinement(keep="nothing"), drop_repeats=False)
    return [
        found.best
        for start in range(0, len(sources), _AT_ONCE)
        for found in beam.translate(
            refiner,
            sources[start : start + _AT_ONCE],
            seed=seed,
            numbers=range(start, min(start + _AT_ONCE, len(sources))),
        )
    ]


def adjacent_attention(
    model: EncoderDecoder,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    written: Sequence[Sequence[int]] | None = None,
) -> AdjacentAttention:
    """What the last layer of `model` does at all adjacent positions of `targets`, tokens without EOS, that it reads.

    Whether a pair stutters is said by the tokens there of `written`, what came of the targets in that pass, by default
    by the targets. Pairs are in order. Raises `InputError` for a causal model, for unequal numbers or lengths, and
    where no target has two tokens.
    """
    if model.config.causal:
        raise InputError("model", "a causal decoder", "give one that reads a whole target")
    if len(sources) != len(targets):
        counts = f"{len(sources)} sources and {len(targets)} targets"
        raise InputError("targets", counts, "give one target for each source")
    said = targets if written is None else written
    if list(map(len, said)) != list(map(len, targets)):
        raise InputError("written", len(said), "give as many tokens as there are in each target")
    kept = [place for place, target in enumerate(targets) if len(target) > 1 and len(sources[place])]
    if not kept:
        raise InputError("targets", len(targets), "give one with at least two tokens")
    parts = []
    for start in range(0, len(kept), _AT_ONCE):
        places = kept[start : start + _AT_ONCE]
        read = source_rows(
            [sources[place] for place in places], model.config.max_length, model.config.vocab_size
        )
        tokens, written_there = (ended([rows[place] for place in places]) for rows in (targets, said))
        parts.append(_pairs(model, read, tokens, written_there, np.array(places)))
    return AdjacentAttention(*(np.concatenate(part) for part in zip(*parts, strict=True)))


@torch.no_grad()
def _pairs(
    model: EncoderDecoder, sources: Tensor, tokens: Tensor, written: Tensor, places: NDArray[np.int64]
) -> AdjacentAttention:
    device = model.head.weight.device
    own, source = model.last_attention(tokens.to(device), model.encode(sources.to(device)))
    own, source, tokens = own.double().cpu(), source.double().cpu(), tokens.cpu()
    lengths = (tokens != 0).sum(1) - 1  # EOS is no word
    row, left = (torch.arange(tokens.shape[1] - 1) < lengths[:, None] - 1).nonzero().unbind(1)
    right = left + 1
    laws = own[row, :, left], own[row, :, right]
    others = torch.stack(
        (laws[0].gather(2, _per_head(right, own)), laws[1].gather(2, _per_head(left, own))), 2
    )
    first, second = source[row, :, left], source[row, :, right]
    cosine = 1 - torch.nn.functional.cosine_similarity(first, second, dim=-1)
    return AdjacentAttention(
        (written[row, left] == written[row, right]).numpy(),
        others.flatten(1).numpy(),
        torch.stack([_among(laws, (right, left), k) for k in (1, 2)], 1).numpy(),
        ((first - second).abs().sum(-1) / 2).numpy(),
        cosine.numpy(),
        torch.stack([_in_common(first, second, k) for k in (1, 2)], 1).numpy(),
        places[row.numpy()],
    )


def _per_head(positions: Tensor, weights: Tensor) -> Tensor:
    return positions[:, None, None].expand(-1, weights.shape[1], 1)


def _among(laws: tuple[Tensor, Tensor], others: tuple[Tensor, Tensor], k: int) -> Tensor:
    """The share of heads and directions (pairs,) where `others` are among the k likeliest of `laws`."""
    found = [
        (law.topk(min(k, law.shape[-1]), -1).indices == other[:, None, None]).any(-1)
        for law, other in zip(laws, others, strict=True)
    ]
    return torch.stack(found, 2).double().mean((1, 2))


def _in_common(first: Tensor, second: Tensor, k: int) -> Tensor:
    """The share of heads (pairs,) where the k likeliest of both have one in common."""
    left, right = (law.topk(min(k, law.shape[-1]), -1).indices for law in (first, second))
    return (left[..., :, None] == right[..., None, :]).any(-1).any(-1).double().mean(1)
