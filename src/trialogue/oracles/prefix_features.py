"""Features of many prefixes of given sequences, from as few evaluated positions as possible."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles.autoregressive import Autoregressive, Context
from trialogue.oracles.prefixes import as_context
from trialogue.oracles.sequences import pad_sequences


class PrefixFeatures(NamedTuple):
    """Features of some prefixes of several sequences.

    Attributes:
        prefixes: For each of n prefixes, the index of its sequence and its index among the prefixes of the sequence.
        positions: Number of positions that are completed by this part. A position that several sequences share counts
            once per sequence.
        features: Features (n, features).
        context: Context that computed the features, which converts them to distributions and hidden states.
    """

    prefixes: list[tuple[int, int]]
    positions: int
    features: Tensor
    context: Context


def prefix_features(
    oracle: Autoregressive,
    sequences: Sequence[Sequence[int]],
    lengths: Sequence[Sequence[int]],
    layers: Sequence[int] = (),
    batch_size: int = 16,
) -> Iterator[PrefixFeatures]:
    """Compute the features of several prefixes per sequence, in parts.

    Each position is evaluated once for all prefixes, and long prefixes that sequences share are evaluated
    once for all of them. Call this in `torch.inference_mode()` unless gradients are needed.

    Args:
        oracle: The model.
        sequences: Token ids of each sequence.
        lengths: Lengths of the prefixes of each sequence, in increasing order.
        layers: Blocks whose hidden states are part of the features (default: none).
        batch_size: Maximum number of sequences per batch.

    Yields:
        Parts that together contain each prefix once.

    Raises:
        InputError: If a prefix is empty and the model cannot evaluate it.
    """
    cut = {index: sequences[index][: cuts[-1]] for index, cuts in enumerate(lengths) if len(cuts)}
    for batch, shared in _batches(cut, {index: lengths[index][0] - 1 for index in cut}, batch_size):
        tokens, _ = pad_sequences([cut[index] for index in batch])
        of_batch = [lengths[index] for index in batch]
        context = as_context(oracle.open(len(batch), tokens.shape[1], layers))
        if min(own[0] for own in of_batch) < context.first:
            hint = "the model has no state before the first token; use larger lengths"
            raise InputError("lengths", 0, hint)
        for part, positions, features in _features_of_batch(context, tokens, of_batch, shared):
            yield PrefixFeatures([(batch[row], turn) for row, turn in part], positions, features, context)


def _batches(
    sequences: Mapping[int, Sequence[int]], max_shared: Mapping[int, int], size: int
) -> Iterator[tuple[list[int], int]]:
    """Yield batches of sequences that are evaluated together, and the length of the prefix that they share.

    A batch is a list of keys of `sequences`. Sequences that share at least half of the longest one are batched first.
    The other sequences are batched by length and share nothing. `max_shared` limits the shared length of each sequence.
    """
    order = sorted(sequences, key=lambda key: tuple(sequences[key]))
    unshared: list[int] = []
    begin = 0
    while begin < len(order):
        batch, shared = [order[begin]], max_shared[order[begin]]
        longest = len(sequences[order[begin]])
        for key in order[begin + 1 : begin + size]:
            common = _common_prefix_length(sequences[batch[0]], sequences[key], min(shared, max_shared[key]))
            longest = max(longest, len(sequences[key]))
            # Adding a sequence must not reduce the total number of positions that are saved.
            if 2 * common < longest or common * len(batch) < shared * (len(batch) - 1):
                break
            batch.append(key)
            shared = common
        begin += len(batch)
        if len(batch) > 1:
            yield batch, shared
        else:
            unshared += batch
    unshared.sort(key=lambda key: len(sequences[key]), reverse=True)
    for place in range(0, len(unshared), size):
        yield unshared[place : place + size], 0


def _common_prefix_length(first: Sequence[int], second: Sequence[int], limit: int) -> int:
    """Return the length of the common prefix, up to `limit`."""
    pairs = zip(islice(first, max(0, limit)), second, strict=False)
    return next(
        (place for place, (left, right) in enumerate(pairs) if left != right), min(limit, len(second))
    )


@runtime_checkable
class _SinglePassContext(Protocol):
    """Protocol of contexts that compute the features of all prefixes of a sequence in one forward pass."""

    def prefix_features(self, tokens: Tensor, start: int, lengths: Sequence[Sequence[int]]) -> Tensor:
        """Return the features (n, features) of the prefixes, row by row. See `PretrainedContext`."""
        ...


def _features_of_batch(
    context: Context, tokens: Tensor, lengths: Sequence[Sequence[int]], shared: int
) -> Iterator[tuple[list[tuple[int, int]], int, Tensor]]:
    """Yield the features (pairs, features) of prefixes, with their rows and prefix indices, and the positions done."""
    start = 0
    # The first `shared` tokens are equal in all rows, so they are evaluated once and copied.
    if shared and not context.recomputes:
        start = shared + 1
        one, others = torch.zeros(1, dtype=torch.int64), torch.arange(1, len(tokens))
        context.features(tokens[:1], one, one + shared, one)
        context.copy(torch.zeros_like(others), others, 0, shared)
    if isinstance(context, _SinglePassContext):
        part = [(row, turn) for row, cuts in enumerate(lengths) for turn in range(len(cuts))]
        yield part, sum(cuts[-1] + 1 for cuts in lengths), context.prefix_features(tokens, start, lengths)
        return
    done = torch.full((len(tokens),), start)
    for turn in range(max(map(len, lengths))):
        part = [(row, turn) for row, cuts in enumerate(lengths) if turn < len(cuts)]
        rows = torch.tensor([row for row, _ in part])
        stop = torch.tensor([lengths[row][turn] for row, _ in part])
        features = context.features(tokens[rows], done[rows], stop, rows)
        positions = int((stop + 1 - (done[rows] if turn else 0)).sum())
        yield part, positions, features
        done[rows] = stop + 1
