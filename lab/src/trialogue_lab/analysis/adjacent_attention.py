"""Attention of a decoder's last layer at adjacent positions, with and without repeated tokens.

Stuttering is the repetition of a token at the next position. Tables 4.4 and 4.5 of the thesis test two hypotheses about
it. Hypothesis 1: stuttering positions attend more to each other. Hypothesis 2: they attend to the source sentence more
similarly.
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
from trialogue.models.encoder_decoder.network import EncoderDecoder, append_eos, pad_sources
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.samplers.chains.refinement import Refinement
from trialogue.samplers.translation.refining import LengthBeam
from trialogue.validation import validated

Array = NDArray[np.float64]
_BATCH = 256


class AdjacentAttention(NamedTuple):
    """Attention of a decoder at pairs of adjacent positions. Every array has one row per pair."""

    stutter: NDArray[np.bool_]
    """Whether both positions have the same token (pairs,)."""
    own: Array
    """Attention of each position to the other one (pairs, 2 * heads)."""
    own_overlap: Array
    """Share of heads and directions in which the other position is among the k most attended ones, for k = 1 and 2
    (pairs, 2)."""
    variation: Array
    """Total variation distance between the attention of both positions to the source (pairs, heads)."""
    cosine: Array
    """One minus the cosine similarity between the attention of both positions to the source (pairs, heads)."""
    source_overlap: Array
    """Share of heads in which the k most attended source positions of both overlap, for k = 1 and 2 (pairs, 2)."""
    target: NDArray[np.int64]
    """Index of the target that contains the pair (pairs,)."""

    def where(self, chosen: NDArray[np.bool_]) -> AdjacentAttention:
        """Select a subset of the pairs.

        Args:
            chosen: Mask (pairs,), true for the pairs to keep.
        """
        return AdjacentAttention._make(part[chosen] for part in self)


@validated
def refined_attention(
    refiner: Refiner, sources: Sequence[Sequence[int]], passes: Annotated[int, Ge(2)], seed: int = 0
) -> AdjacentAttention:
    """Return the attention of a decoder in the last pass of iterative refinement, at adjacent positions.

    Refinement starts from random tokens. Each pass replaces all tokens by the most likely ones, given the output of the
    previous pass. A pair of positions stutters if the last pass writes the same token at both. Only the most likely
    length is refined. Repeated tokens are neither suppressed nor dropped.

    Args:
        refiner: The refinement model.
        sources: Source sentences, as token ids.
        passes: Number of passes, at least 2.
        seed: Seed of the random tokens, which also depend on the index of the source (default: 0).

    Raises:
        InputError: If a source is too long for the model, or if no target has two tokens.
    """
    read, written = (_refine_translations(refiner, sources, passes - before, seed) for before in (1, 0))
    return adjacent_attention(refiner.model, sources, read, written)


def _refine_translations(
    refiner: Refiner, sources: Sequence[Sequence[int]], passes: int, seed: int
) -> list[list[int]]:
    beam = LengthBeam(steps=passes, hypotheses=1, chain=Refinement(keep="nothing"), drop_repeats=False)
    found = []
    for start in range(0, len(sources), _BATCH):
        batch = sources[start : start + _BATCH]
        numbers = range(start, start + len(batch))
        found += beam.translate(refiner, batch, seed=seed, numbers=numbers)
    return [each.best for each in found]


def adjacent_attention(
    model: EncoderDecoder,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    written: Sequence[Sequence[int]] | None = None,
) -> AdjacentAttention:
    """Return the attention of a decoder's last layer at all adjacent positions of its input.

    Args:
        model: The encoder-decoder network. Its decoder must not be causal.
        sources: Source sentences, as token ids.
        targets: Inputs of the decoder, as token ids without end-of-sequence token.
        written: Outputs of the decoder, of the same lengths. A pair of positions stutters if both outputs are equal.
            None to use `targets`.

    Raises:
        InputError: If the model is causal, if the numbers or lengths of the sentences differ, or if no target has two
            tokens.
    """
    if model.config.causal:
        raise InputError("model", "a causal decoder", "use a model that reads a whole target")
    if len(sources) != len(targets):
        counts = f"{len(sources)} sources and {len(targets)} targets"
        raise InputError("targets", counts, "use one target per source")
    written = targets if written is None else written
    if list(map(len, written)) != list(map(len, targets)):
        raise InputError("written", len(written), "use as many tokens as in each target")
    kept = [place for place, target in enumerate(targets) if len(target) > 1 and len(sources[place])]
    if not kept:
        raise InputError("targets", len(targets), "use at least one target with at least two tokens")
    parts = []
    for start in range(0, len(kept), _BATCH):
        places = kept[start : start + _BATCH]
        source, read, output = ([rows[place] for place in places] for rows in (sources, targets, written))
        encoded = pad_sources(source, model.config.max_length, model.config.vocab_size)
        parts.append(_measure_pairs(model, encoded, append_eos(read), append_eos(output), np.array(places)))
    return AdjacentAttention(*(np.concatenate(part) for part in zip(*parts, strict=True)))


@torch.no_grad()
def _measure_pairs(
    model: EncoderDecoder, sources: Tensor, tokens: Tensor, written: Tensor, places: NDArray[np.int64]
) -> AdjacentAttention:
    device = model.head.weight.device
    own, source = model.last_attention(tokens.to(device), model.encode(sources.to(device)))
    own, source, tokens = own.double().cpu(), source.double().cpu(), tokens.cpu()
    lengths = (tokens != 0).sum(1) - 1  # without EOS
    row, left = (torch.arange(tokens.shape[1] - 1) < lengths[:, None] - 1).nonzero().unbind(1)
    right = left + 1
    attention = torch.stack((own[row, :, left], own[row, :, right]), 1)
    partner = torch.stack((right, left), 1)[..., None, None]
    first, second = source[row, :, left], source[row, :, right]
    own_overlap, source_overlap = [], []
    for k in (1, 2):
        own_overlap.append((_select_most_attended(attention, k) == partner).any(-1).double().mean((1, 2)))
        pairs = (
            _select_most_attended(first, k)[..., :, None] == _select_most_attended(second, k)[..., None, :]
        )
        source_overlap.append(pairs.any(-1).any(-1).double().mean(1))
    cosine = 1 - torch.nn.functional.cosine_similarity(first, second, dim=-1)
    return AdjacentAttention(
        (written[row, left] == written[row, right]).numpy(),
        torch.stack((own[row, :, left, right], own[row, :, right, left]), 2).flatten(1).numpy(),
        torch.stack(own_overlap, 1).numpy(),
        ((first - second).abs().sum(-1) / 2).numpy(),
        cosine.numpy(),
        torch.stack(source_overlap, 1).numpy(),
        places[row.numpy()],
    )


def _select_most_attended(weights: Tensor, k: int) -> Tensor:
    return weights.topk(min(k, weights.shape[-1]), -1).indices
