"""Exact and fast sampling of many sequences of a Potts chain.

A window is W consecutive tokens, each one of V values. The distribution of a token given the previous W - 1 tokens
depends only on the number of windows that follow, through a backward message. Sites whose backward messages are bitwise
equal therefore share an alias table. Tokens are sampled from left to right, in blocks of `LANES` sequences. Token t of
sequence k uses number t of the random stream of sequence k.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.compilation import compiled, run_over_rows
from trialogue.data.alias import alias_table
from trialogue.data.potts.messages import Messages
from trialogue.randomness import GAMMA, Streams, derive_seed, mix

LANES = 64
"""Number of sequences per block. They share a table while it is in the L1 cache."""
_SITES = 64
_MAX_ENTRIES = 2**24
_MAX_BATCH_ENTRIES = 2**20
_32, _LOWER, _64, _1 = np.uint64(32), np.uint64(2**32 - 1), np.uint64(64), np.uint64(1)


def split_entry_bits(vocab: int) -> tuple[int, int]:
    """Return how many bits of an alias table entry store the threshold, and how many store the alias.

    An entry has 62 bits. See `alias_table` for its two parts.

    Args:
        vocab: Number V of tokens. An alias is a token, so it needs enough bits for V - 1.

    Returns:
        Number of bits of the threshold, and number of bits of the alias.
    """
    alias = (vocab - 1).bit_length()
    return 62 - alias, alias


class Tables(NamedTuple):
    """Alias tables of consecutive sites, with one table per distinct distribution.

    Attributes:
        first: First site.
        offsets: Index in `entries` (sites,) of the first entry of each site. Equal sites share their entries.
        entries: Concatenated entries of all tables.
    """

    first: int
    offsets: NDArray[np.uint64]
    entries: NDArray[np.uint64]


def token_distributions(messages: Messages, indices: Tensor) -> Tensor:
    """Return the distributions of a token given the previous W - 1 tokens, its context.

    Args:
        messages: Messages of the chain.
        indices: Row (n,) of `messages.backward_table()` with the backward message after the token.

    Returns:
        Probabilities (n, V^(W-1), V). The second axis is the context as a base-V number.
    """
    weights = messages.log_weights.view(messages.vocab, messages.states)
    after = messages.backward_table()[indices]
    return (weights + after[:, None, :]).view(-1, messages.states, messages.vocab).softmax(2)


def initial_distributions(messages: Messages, windows: int) -> list[Tensor]:
    """Return the distribution of each of the first W - 1 tokens given all previous tokens.

    Args:
        messages: Messages of the chain.
        windows: Number of windows of the chain.

    Returns:
        Probabilities (V^t, V) of token t, for t = 0, ..., W - 2. The first axis is the previous tokens as a base-V
        number.
    """
    state, vocab = messages.backward(windows)[0], messages.vocab
    return [
        state.view(vocab ** (site + 1), -1).logsumexp(1).view(-1, vocab).softmax(1)
        for site in range(messages.window - 1)
    ]


def _message_indices(messages: Messages, windows: int) -> tuple[Tensor, int]:
    """Return which backward message (windows,) belongs to each site, and how many tables fit into memory."""
    indices = messages.backward_indices(torch.arange(windows - 1, -1, -1))
    return indices, max(1, _MAX_ENTRIES // (messages.states * messages.vocab))


def tables_fit_in_memory(messages: Messages, windows: int) -> bool:
    """Return whether the alias tables of all sites fit into memory at once.

    Args:
        messages: Messages of the chain.
        windows: Number of windows of the chain.
    """
    indices, capacity = _message_indices(messages, windows)
    return len(torch.unique(indices)) <= capacity


def alias_tables(messages: Messages, windows: int) -> Iterator[Tables]:
    """Generate the alias tables of all sites of a chain in groups that fit into memory.

    Args:
        messages: Messages of the chain.
        windows: Number of windows of the chain.

    Yields:
        Tables of consecutive sites, from left to right. The first W - 1 sites come first, if W > 1.
    """
    vocab, size = messages.vocab, messages.states * messages.vocab
    bits, reach = split_entry_bits(vocab), messages.window - 1
    initial = [
        alias_table(distribution.numpy(), *bits).ravel()
        for distribution in initial_distributions(messages, windows)
    ]
    if initial:
        offsets = np.cumsum([0, *map(len, initial[:-1])], dtype=np.uint64)
        yield Tables(0, offsets, np.concatenate(initial))
    indices, capacity = _message_indices(messages, windows)
    sites_per_part = windows if tables_fit_in_memory(messages, windows) else capacity
    batch_size = max(1, _MAX_BATCH_ENTRIES // size)
    first = reach
    for part in indices.split(sites_per_part):
        distinct, inverse = torch.unique(part, return_inverse=True)
        entries = [
            alias_table(token_distributions(messages, batch).flatten(0, 1).numpy(), *bits).ravel()
            for batch in distinct.split(batch_size)
        ]
        yield Tables(first, (inverse * size).numpy().astype(np.uint64), np.concatenate(entries))
        first += len(part)


@compiled
def draw_tokens(
    first: int,
    last: int,
    tokens: NDArray[np.int64],
    contexts: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    begin: int,
    offsets: NDArray[np.uint64],
    entries: NDArray[np.uint64],
    vocab: np.uint64,
    states: np.uint64,
    window: int,
    coin_bits: np.uint64,
    alias_bits: np.uint64,
) -> None:
    """Sample consecutive sites of blocks `first` to `last` - 1 of `LANES` rows of `tokens` in place.

    Each token is sampled from an alias table with V columns, given the W - 1 tokens before it.

    Args:
        first: First block of `LANES` rows.
        last: End of the blocks, exclusive.
        tokens: Sequences (rows, L), modified in place.
        contexts: The W - 1 previous tokens of each row as base-V numbers (rows,), updated in place.
        keys: Keys (rows,) of the random streams.
        begin: First site to sample.
        offsets: Index in `entries` of the table of each site.
        entries: Entries of the alias tables.
        vocab: Number V of tokens.
        states: Number V^(W-1) of contexts.
        window: Number W of tokens in a window.
        coin_bits: Number of bits of the random number that is compared with a threshold.
        alias_bits: Number of bits of an alias.
    """
    reach = window - 1
    lower, shift = (_1 << alias_bits) - _1, _64 - coin_bits
    sampled = np.zeros((reach + _SITES, LANES), np.uint64)
    key, context = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    column, coins = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    index, entry = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    for top in range(first * LANES, min(last * LANES, len(tokens)), LANES):
        lanes = min(LANES, len(tokens) - top)
        for lane in range(lanes):
            key[lane], context[lane] = keys[top + lane], contexts[top + lane]
            for step in range(reach):
                site = begin - reach + step
                sampled[step, lane] = np.uint64(tokens[top + lane, site] if site >= 0 else 0)
        for start in range(0, len(offsets), _SITES):
            sites = min(_SITES, len(offsets) - start)
            for step in range(sites):
                row, leaving = sampled[reach + step], sampled[step]
                offset, count = offsets[start + step], np.uint64(begin + start + step + 1) * GAMMA
                # The compiler vectorizes these loops because each has only arithmetic or only look-ups, and none
                # writes to an array that it reads.
                for lane in range(lanes):
                    bits = mix(key[lane] + count)
                    column[lane] = ((bits >> _32) * vocab + (((bits & _LOWER) * vocab) >> _32)) >> _32
                    index[lane] = offset + context[lane] * vocab + column[lane]
                    coins[lane] = (bits * vocab) >> shift
                for lane in range(lanes):
                    entry[lane] = entries[index[lane]]
                for lane in range(lanes):
                    other = entry[lane] & lower
                    row[lane] = column[lane] if coins[lane] < entry[lane] >> alias_bits else other
                for lane in range(lanes):
                    context[lane] = context[lane] * vocab + row[lane] - leaving[lane] * states
            for lane in range(lanes):
                for step in range(sites):
                    tokens[top + lane, begin + start + step] = np.int64(sampled[reach + step, lane])
            for step in range(reach):
                for lane in range(lanes):
                    sampled[step, lane] = sampled[sites + step, lane]
        for lane in range(lanes):
            contexts[top + lane] = context[lane]


def draw_sequences(
    messages: Messages, tables: Iterator[Tables] | list[Tables], n: int, length: int, seed: int
) -> Tensor:
    """Sample independent sequences of a chain from its alias tables.

    The result does not depend on the number of threads, `torch.get_num_threads()`.

    Args:
        messages: Messages of the chain.
        tables: Result of `alias_tables`.
        n: Number of sequences.
        length: Number L of tokens of a sequence.
        seed: Random seed. Sequence k depends on the seed and on k only.

    Returns:
        Token ids (n, L) int64.
    """
    # NumPy allocates large arrays in huge pages. With torch, page faults would take as long as the sampling.
    tokens = np.empty((n, length), np.int64)
    contexts = np.zeros(n, np.uint64)
    keys = Streams(derive_seed(seed, "potts"), torch.arange(n)).keys.numpy().view(np.uint64)
    numbers = (np.uint64(messages.vocab), np.uint64(messages.states), messages.window)
    bits = map(np.uint64, split_entry_bits(messages.vocab))
    setting = (*numbers, *bits)
    for table in tables:
        arguments = (tokens, contexts, keys, *table, *setting)
        run_over_rows(draw_tokens, -(-n // LANES), LANES * len(table.offsets), *arguments)
    return torch.from_numpy(tokens)
