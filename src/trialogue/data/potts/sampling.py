"""Exact samples of a chain of windows in bulk: messages backwards once, then tokens forwards from alias tables.

The distribution of a token given the W - 1 before it depends on how many windows follow, and on nothing else; so do its
alias tables, which are shared by all sites where the backward messages are equal bit for bit. Sequences go forward side
by side in blocks of `LANES`, each by its own stream of `Streams`: number t of sequence k picks its token t.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.compilation import compiled, over_rows
from trialogue.data.alias import alias_table
from trialogue.data.potts.messages import Messages
from trialogue.randomness import GAMMA, Streams, mix, seed_of

LANES = 64
"""Sequences per block: so many share a table while it is in the nearest cache."""
_SITES = 64
_MAX_ENTRIES = 2**24
_MADE_AT_ONCE = 2**20
_32, _LOWER, _64, _1 = np.uint64(32), np.uint64(2**32 - 1), np.uint64(64), np.uint64(1)


def word_bits(vocab: int) -> tuple[int, int]:
    """Bits of a coin and bits of an alias (see `alias_table`), which share 62."""
    alias = (vocab - 1).bit_length()
    return 62 - alias, alias


class Tables(NamedTuple):
    """Alias tables of successive sites from `first` on: that of site i begins at `offsets[i - first]` in `entries`."""

    first: int
    offsets: NDArray[np.uint64]
    entries: NDArray[np.uint64]


def token_laws(messages: Messages, places: Tensor) -> Tensor:
    """Distributions (n, V^(W-1), V) of a token given the W - 1 before it, by the places (n,) of the messages
    behind it.
    """
    weights = messages.log_weights.view(messages.vocab, messages.states)
    after = messages.backward_table()[places]
    return (weights + after[:, None, :]).view(-1, messages.states, messages.vocab).softmax(2)


def first_laws(messages: Messages, windows: int) -> list[Tensor]:
    """The distributions (V^t, V) of tokens t = 0, ..., W - 2 given all before them."""
    state, vocab = messages.backward(windows)[0], messages.vocab
    return [
        state.view(vocab ** (site + 1), -1).logsumexp(1).view(-1, vocab).softmax(1)
        for site in range(messages.window - 1)
    ]


def _places(messages: Messages, windows: int) -> tuple[Tensor, int]:
    """Places of the messages behind each site (windows,), and of how many different ones the tables fit at once."""
    places = messages.backward_places(torch.arange(windows - 1, -1, -1))
    return places, max(1, _MAX_ENTRIES // (messages.states * messages.vocab))


def all_fit(messages: Messages, windows: int) -> bool:
    """Whether the tables of all sites fit at once; where messages settle, all sites share a few."""
    places, fitting = _places(messages, windows)
    return len(torch.unique(places)) <= fitting


def alias_tables(messages: Messages, windows: int) -> Iterator[Tables]:
    """Tables of all sites of a chain of so many windows, at most `_MAX_ENTRIES` entries of them at once."""
    vocab, size = messages.vocab, messages.states * messages.vocab
    bits, reach = word_bits(vocab), messages.window - 1
    firsts = [
        alias_table(distribution.numpy(), *bits).ravel() for distribution in first_laws(messages, windows)
    ]
    if firsts:
        begin = np.cumsum([0, *map(len, firsts[:-1])], dtype=np.uint64)
        yield Tables(0, begin, np.concatenate(firsts))
    places, fitting = _places(messages, windows)
    step, made = windows if all_fit(messages, windows) else fitting, max(1, _MADE_AT_ONCE // size)
    first = reach
    for some in places.split(step):
        distinct, which = torch.unique(some, return_inverse=True)
        entries = [
            alias_table(token_laws(messages, few).flatten(0, 1).numpy(), *bits).ravel()
            for few in distinct.split(made)
        ]
        yield Tables(first, (which * size).numpy().astype(np.uint64), np.concatenate(entries))
        first += len(some)


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
    """Draw sites `begin`, ... of blocks first..last of `tokens` (rows, L), one for each of `offsets`.

    `contexts` (rows,) number the W - 1 tokens before. Of a random number times V, the upper 64 bits are the column and
    the leading bits of the lower 64 its coin.
    """
    reach = window - 1
    lower, shift = (_1 << alias_bits) - _1, _64 - coin_bits
    drawn = np.zeros((reach + _SITES, LANES), np.uint64)
    key, context = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    column, coins = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    where, entry = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    for top in range(first * LANES, min(last * LANES, len(tokens)), LANES):
        lanes = min(LANES, len(tokens) - top)
        for lane in range(lanes):
            key[lane], context[lane] = keys[top + lane], contexts[top + lane]
            for place in range(reach):
                site = begin - reach + place
                drawn[place, lane] = np.uint64(tokens[top + lane, site] if site >= 0 else 0)
        for left in range(0, len(offsets), _SITES):
            sites = min(_SITES, len(offsets) - left)
            for place in range(sites):
                row, leaving = drawn[reach + place], drawn[place]
                offset, count = offsets[left + place], np.uint64(begin + left + place + 1) * GAMMA
                # Vector code needs loops of one kind, arithmetic or look-ups, that write to no array they read.
                for lane in range(lanes):
                    bits = mix(key[lane] + count)
                    column[lane] = ((bits >> _32) * vocab + (((bits & _LOWER) * vocab) >> _32)) >> _32
                    where[lane] = offset + context[lane] * vocab + column[lane]
                    coins[lane] = (bits * vocab) >> shift
                for lane in range(lanes):
                    entry[lane] = entries[where[lane]]
                for lane in range(lanes):
                    other = entry[lane] & lower
                    row[lane] = column[lane] if coins[lane] < entry[lane] >> alias_bits else other
                for lane in range(lanes):
                    context[lane] = context[lane] * vocab + row[lane] - leaving[lane] * states
            for lane in range(lanes):
                for place in range(sites):
                    tokens[top + lane, begin + left + place] = np.int64(drawn[reach + place, lane])
            for place in range(reach):
                for lane in range(lanes):
                    drawn[place, lane] = drawn[sites + place, lane]
        for lane in range(lanes):
            contexts[top + lane] = context[lane]


def draw_sequences(
    messages: Messages, tables: Iterator[Tables] | list[Tables], n: int, length: int, seed: int
) -> Tensor:
    """Draw `n` independent sequences (n, L) int64 from `alias_tables`; sequence k depends on `seed` and k alone.

    Runs on `torch.get_num_threads()` threads, whose number does not matter.
    """
    # Large arrays of numpy lie in huge pages; to touch the small ones of torch takes as long as the draw.
    tokens = np.empty((n, length), np.int64)
    contexts = np.zeros(n, np.uint64)
    keys = Streams(seed_of(seed, "potts"), torch.arange(n)).keys.numpy().view(np.uint64)
    numbers = (np.uint64(messages.vocab), np.uint64(messages.states), messages.window)
    bits = map(np.uint64, word_bits(messages.vocab))
    setting = (*numbers, *bits)
    for table in tables:
        arguments = (tokens, contexts, keys, *table, *setting)
        over_rows(draw_tokens, -(-n // LANES), LANES * len(table.offsets), *arguments)
    return torch.from_numpy(tokens)
