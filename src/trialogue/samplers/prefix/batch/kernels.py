"""Compiled bookkeeping of the engine: which nodes rows stand on, what is evaluated, what is remembered.

One pass over the rows each; for a handful of rows the same steps as tensor operations cost several times what a
small model's forward pass does.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trialogue.compilation import compiled

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_EMPTY = -1
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(24)


@compiled
def _child(keys: Ints, ids: Ints, key: int, size: int) -> int:
    """Id of `key` in an open-addressing table; a key that is not there gets the id `size`."""
    mask = np.uint64(len(keys) - 1)
    place = ((np.uint64(key) * _SPREAD) >> _SHIFT) & mask
    while keys[place] != _EMPTY and keys[place] != key:
        place = (place + np.uint64(1)) & mask
    if keys[place] == _EMPTY:
        keys[place] = key
        ids[place] = size
    return ids[place]


@compiled
def rehash(keys: Ints, ids: Ints, wider_keys: Ints, wider_ids: Ints) -> None:
    """Move every entry of a table into a wider, empty one."""
    for place in range(len(keys)):
        if keys[place] != _EMPTY:
            _child(wider_keys, wider_ids, keys[place], ids[place])


@compiled
def mark_below(keys: Ints, ids: Ints, vocab: int, marked: Flags) -> None:
    """Mark every node (nodes,) that lies below a marked one; a parent has a smaller id than its children."""
    parent = np.full(len(marked), _EMPTY)
    for place in range(len(keys)):
        if keys[place] != _EMPTY:
            parent[ids[place]] = keys[place] // vocab
    for node in range(len(marked)):
        if parent[node] != _EMPTY and marked[parent[node]]:
            marked[node] = True


@compiled
def heights(keys: Ints, ids: Ints, vocab: int, size: int) -> Ints:
    """How many generations (nodes,) each of `size` nodes has below it; a parent has a smaller id than its children."""
    parent = np.full(size, _EMPTY)
    for place in range(len(keys)):
        if keys[place] != _EMPTY:
            parent[ids[place]] = keys[place] // vocab
    below = np.zeros(size, dtype=np.int64)
    for node in range(size - 1, -1, -1):
        if parent[node] != _EMPTY:
            below[parent[node]] = max(below[parent[node]], below[node] + 1)
    return below


@compiled
def rehash_renumbered(keys: Ints, ids: Ints, vocab: int, new: Ints, own_keys: Ints, own_ids: Ints) -> None:
    """Move the entries of nodes that have a `new` id (nodes,), which is not -1, into an empty table."""
    for place in range(len(keys)):
        if keys[place] != _EMPTY and new[ids[place]] >= 0:
            key = new[keys[place] // vocab] * vocab + keys[place] % vocab
            _child(own_keys, own_ids, key, new[ids[place]])


@compiled
def descend(keys: Ints, ids: Ints, vocab: int, size: int, tokens: Ints, lengths: Ints, path: Ints) -> int:
    """Nodes of every prefix of each row into `path`, whose first column holds the roots; returns the new number."""
    for row in range(len(lengths)):
        for position in range(lengths[row]):
            node = _child(keys, ids, path[row, position] * vocab + tokens[row, position], size)
            size = max(size, node + 1)
            path[row, position + 1] = node
    return size


@compiled
def advance(
    keys: Ints,
    ids: Ints,
    vocab: int,
    size: int,
    tokens: Ints,
    path: Ints,
    limit: Ints,
    eos: int,
    going_on: Ints,
    held: Ints,
    kept: Ints,
    appended: Ints,
    lengths: Ints,
    complete: Flags,
) -> tuple[int, int]:
    """Cut each row, which holds `held` tokens, to `kept` and append `appended` (-1: none).

    A row whose last token is `eos` is complete unless it stands at its node `going_on` (rows,).

    Returns the new number of nodes, and how many rows are complete; or -1 and the first row for which that cannot be
    done: more kept than held, or a token outside of the vocabulary or beyond the capacity.
    """
    completed = 0
    for row in range(len(kept)):
        length, token = kept[row], appended[row]
        beyond = length < 0 or length > held[row] or length + (token >= 0) > tokens.shape[1]
        if beyond or token < -1 or token >= vocab:
            return -1, row
        if token >= 0:
            node = _child(keys, ids, path[row, length] * vocab + token, size)
            size = max(size, node + 1)
            tokens[row, length] = token
            length += 1
            path[row, length] = node
        lengths[row] = length
        ended = length > 0 and tokens[row, length - 1] == eos and path[row, length] != going_on[row]
        complete[row] = length >= limit[row] or ended
        completed += complete[row]
    return size, completed


@compiled
def first_misplaced(rows: Ints, lengths: Ints, held: Ints) -> int:
    """Return the first place where the row does not exist or holds fewer than `lengths` (n,) tokens, or -1."""
    for index in range(len(rows)):
        if not 0 <= rows[index] < len(held) or not 0 <= lengths[index] <= held[rows[index]]:
            return index
    return -1


@compiled
def survey(
    path: Ints,
    evaluated: Ints,
    slots: Ints,
    place_of: Ints,
    remembered: Ints,
    leaders: Ints,
    owners: Ints,
    asked: Flags,
    queries: Ints,
    distinct: Ints,
    counting: bool,
    rows: Ints,
    lengths: Ints,
    nodes: Ints,
    found: Flags,
    start: Ints,
) -> tuple[int, int, int]:
    """Where `rows`, cut to `lengths`, stand: their nodes, which are remembered, and where to evaluate from.

    `start` is the first position whose keys are not those of the row's prefix, at most its length. If `counting`, each
    is a query of its owner, and a distinct one at a node never asked about before. Nodes have a `place_of` their own,
    `remembered` says which node a place holds, `leaders` of each node who was the first there. Returns how many are
    remembered, of the others how many have more than their last position to evaluate, and how many stand where one
    before them does.
    """
    known, several, repeated = 0, 0, 0
    for index in range(len(rows)):
        row, length, position = rows[index], lengths[index], 0
        node = path[row, length]
        nodes[index] = node
        if counting:
            queries[owners[row]] += 1
            if not asked[node]:
                asked[node] = True
                distinct[owners[row]] += 1
        place = place_of[node]
        found[index] = place >= 0 and remembered[place] == node
        if found[index]:
            known += 1
            continue
        # What an earlier survey left among the leaders is told apart by the node that stands there now.
        leader = leaders[node]
        if 0 <= leader < index and nodes[leader] == node:
            repeated += 1
        else:
            leaders[node] = index
        while position < length and evaluated[slots[row], position] == path[row, position]:
            position += 1
        start[index] = position
        several += position < length
    return known, several, repeated


@compiled
def settle(
    path: Ints,
    evaluated: Ints,
    place_of: Ints,
    remembered: Ints,
    free: int,
    owners: Ints,
    passes: Ints,
    positions: Ints,
    first: int,
    rows: Ints,
    slots: Ints,
    start: Ints,
    stop: Ints,
    places: Ints,
) -> tuple[int, int]:
    """Note that positions `start..stop` of each row are evaluated, and that its node at `stop` is remembered.

    Counts one of `passes` and the `positions` for the owner of each row; those below `first` are no input of the
    oracle. A node takes the place `free` from whoever was there, and then the next one is free. `places` are those of
    the nodes, -1 where another one of these nodes took it. Returns how many nodes kept their place, and the free one.
    """
    kept = 0
    for index in range(len(rows)):
        for position in range(start[index], stop[index] + 1):
            evaluated[slots[index], position] = path[rows[index], position]
        owner = owners[rows[index]]
        passes[owner] += 1
        positions[owner] += stop[index] + 1 - max(start[index], first)
        node = path[rows[index], stop[index]]
        if place_of[node] < 0 or remembered[place_of[node]] != node:
            place_of[node] = free
            remembered[free] = node
            free = (free + 1) % len(remembered)
    for index in range(len(rows)):
        node = path[rows[index], stop[index]]
        place = place_of[node]
        holds = remembered[place] == node
        places[index] = place if holds else -1
        kept += holds
    return kept, free


@compiled
def mask(log_laws: NDArray[np.floating[Any]], allowed: Flags, out: NDArray[np.floating[Any]]) -> None:
    """`log_laws` (n, vocab) where `allowed`, -inf elsewhere: `torch.where` takes twenty times as long."""
    for row in range(log_laws.shape[0]):
        for token in range(log_laws.shape[1]):
            out[row, token] = log_laws[row, token] if allowed[row, token] else -np.inf


@compiled
def unscored(scores: NDArray[np.float64], kept: Ints, token: Ints) -> None:
    """NaN for every `token` (rows,) that is appended behind `kept` tokens, -1 for none, until it is scored."""
    for row in range(len(token)):
        if token[row] >= 0:
            scores[row, kept[row] + 1] = np.nan


@compiled
def score(
    scores: NDArray[np.float64],
    source: Ints,
    kept: Ints,
    token: Ints,
    rows: Ints,
    lengths: Ints,
    answers: NDArray[np.floating[Any]],
) -> None:
    """Log-probabilities of rows that append `token` behind `kept` tokens of `source`, as far as they were just asked.

    `answers` (n, vocab) are those for `rows` cut to `lengths`. `scores` (rows, capacity + 1) accumulates them along
    each row, which has been copied from its source already.
    """
    asked = np.full(len(token), -1)
    for index in range(len(rows)):
        asked[rows[index]] = index
    for row in range(len(token)):
        index = asked[source[row]]
        if token[row] >= 0 and index >= 0 and lengths[index] == kept[row]:
            scores[row, kept[row] + 1] = scores[row, kept[row]] + answers[index, token[row]]
