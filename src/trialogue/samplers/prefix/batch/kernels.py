"""Compiled loops over the sequences (rows) of a batch, which replace many small tensor operations.

Prefixes form a tree, in which each has an integer id (node). A hash table maps `parent * vocab + token` to
the id of the prefix `parent` followed by `token`.
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
    """Return the id stored for `key` in a hash table. If it is missing, store the id `size`."""
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
    """Copy all entries of a hash table into a larger empty hash table.

    Args:
        keys: Keys of the table, -1 for free places.
        ids: Value of each key.
        wider_keys: Keys of the larger table. Modified in place.
        wider_ids: Values of the larger table. Modified in place.
    """
    for place in range(len(keys)):
        if keys[place] != _EMPTY:
            _child(wider_keys, wider_ids, keys[place], ids[place])


@compiled
def mark_below(keys: Ints, ids: Ints, vocab: int, marked: Flags) -> None:
    """Mark all continuations of marked prefixes in a tree of prefixes.

    Args:
        keys: Keys `parent * vocab + token` of the hash table, -1 for free places.
        ids: Id of the prefix of each key, which is larger than `parent`.
        vocab: Number of tokens.
        marked: Whether each prefix (nodes,) is marked. Modified in place.
    """
    parent = np.full(len(marked), _EMPTY)
    for place in range(len(keys)):
        if keys[place] != _EMPTY:
            parent[ids[place]] = keys[place] // vocab
    for node in range(len(marked)):
        if parent[node] != _EMPTY and marked[parent[node]]:
            marked[node] = True


@compiled
def heights(keys: Ints, ids: Ints, vocab: int, size: int) -> Ints:
    """Return the height of each node of a tree of prefixes: the number of edges to its deepest descendant.

    Args:
        keys: Keys `parent * vocab + token` of the hash table, -1 for free places.
        ids: Id of the prefix of each key, which is larger than `parent`.
        vocab: Number of tokens.
        size: Number of nodes.

    Returns:
        Heights (size,), 0 for leaves.
    """
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
    """Copy a hash table of prefixes into an empty one, with new ids and without removed prefixes.

    Args:
        keys: Keys `parent * vocab + token` of the table, -1 for free places.
        ids: Id of the prefix of each key.
        vocab: Number of tokens.
        new: New id (nodes,) of each prefix, -1 for removed prefixes.
        own_keys: Keys of the empty table. Modified in place.
        own_ids: Ids of the empty table. Modified in place.
    """
    for place in range(len(keys)):
        if keys[place] != _EMPTY and new[ids[place]] >= 0:
            key = new[keys[place] // vocab] * vocab + keys[place] % vocab
            _child(own_keys, own_ids, key, new[ids[place]])


@compiled
def descend(keys: Ints, ids: Ints, vocab: int, size: int, tokens: Ints, lengths: Ints, path: Ints) -> int:
    """Find the ids of all prefixes of each row. New prefixes get the next ids.

    Args:
        keys: Keys `parent * vocab + token` of the hash table, -1 for free places. Modified in place.
        ids: Id of the prefix of each key. Modified in place.
        vocab: Number of tokens.
        size: Number of ids so far.
        tokens: Token ids (n, capacity).
        lengths: Lengths (n,).
        path: Output: id (n, capacity + 1) of every prefix of each row. The first column is an input, the ids
            of the prompts.

    Returns:
        The new number of ids.
    """
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
    prompt_node: Ints,
    held: Ints,
    kept: Ints,
    appended: Ints,
    lengths: Ints,
    complete: Flags,
) -> tuple[int, int]:
    """Shorten sequences, append at most one token to each, and determine which sequences are complete.

    A row is complete if it has the length `limit` or ends with the token `eos`.

    Args:
        keys: Keys `parent * vocab + token` of the hash table of prefixes. Modified in place.
        ids: Id of the prefix of each key. Modified in place.
        vocab: Number of tokens.
        size: Number of ids so far.
        tokens: Token ids (rows, capacity). Modified in place.
        path: Id of every prefix (rows, capacity + 1) of each row. Modified in place.
        limit: Lengths (rows,) at which rows are complete.
        eos: The end-of-sequence token, -1 for none.
        prompt_node: Id (rows,) of a prompt that is continued although it ends with `eos`, -1 for none.
        held: Current lengths (rows,).
        kept: Number (rows,) of tokens to keep.
        appended: Token (rows,) to append, -1 for none.
        lengths: Output: new lengths (rows,).
        complete: Output: whether each row (rows,) is complete.

    Returns:
        The new number of ids and the number of complete rows. If a row would become invalid, -1 and the first
        such row.
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
        ended = length > 0 and tokens[row, length - 1] == eos and path[row, length] != prompt_node[row]
        complete[row] = length >= limit[row] or ended
        completed += complete[row]
    return size, completed


@compiled
def first_misplaced(rows: Ints, lengths: Ints, held: Ints) -> int:
    """Return the index of the first requested row that does not exist or is too short, or -1 if there is none.

    Args:
        rows: Row indices (n,).
        lengths: Required lengths (n,).
        held: Lengths of all rows of the batch.
    """
    for index in range(len(rows)):
        if not 0 <= rows[index] < len(held) or not 0 <= lengths[index] <= held[rows[index]]:
            return index
    return -1


@compiled
def locate_rows(
    path: Ints,
    evaluated: Ints,
    slots: Ints,
    place_of: Ints,
    remembered: Ints,
    leaders: Ints,
    owners: Ints,
    queried: Flags,
    queries: Ints,
    distinct: Ints,
    counting: bool,
    rows: Ints,
    lengths: Ints,
    nodes: Ints,
    found: Flags,
    start: Ints,
) -> tuple[int, int]:
    """Find the rows whose feature vectors are cached, and where the evaluation of the others must begin.

    Each row is cut to a given length before. Features are the results of the model from which next-token
    distributions are computed. The key-value cache is separate: positions at which it already holds the keys
    of the row's prefix are not evaluated again. With `counting`, one query per row is counted.

    Args:
        path: Id of every prefix (rows, capacity + 1) of each row.
        evaluated: Id of the prefix whose keys each slot of the key-value cache holds (slots, capacity + 1).
        slots: Slot (rows,) of each row in the key-value cache.
        place_of: Place (nodes,) of each prefix in the cache of features, -1 for none.
        remembered: Prefix (places,) at each place of the cache of features.
        leaders: First row (nodes,) with each prefix. Modified in place.
        owners: Row (rows,) of the counters that each row adds to.
        queried: Whether each prefix (nodes,) was queried before. Modified in place.
        queries: Counter of queries. Modified in place.
        distinct: Counter of queries of new prefixes. Modified in place.
        counting: Whether to count queries.
        rows: Row indices (n,).
        lengths: Lengths (n,) to which the rows are cut.
        nodes: Output: id (n,) of the prefix of each row.
        found: Output: whether the features of each row (n,) are cached.
        start: Output: first position (n,) to evaluate. Not set for rows with cached features.

    Returns:
        The number of cached rows, and the number of other rows with the same prefix as an earlier row.
    """
    known, repeated = 0, 0
    for index in range(len(rows)):
        row, length, position = rows[index], lengths[index], 0
        node = path[row, length]
        nodes[index] = node
        if counting:
            queries[owners[row]] += 1
            if not queried[node]:
                queried[node] = True
                distinct[owners[row]] += 1
        place = place_of[node]
        found[index] = place >= 0 and remembered[place] == node
        if found[index]:
            known += 1
            continue
        # The table of leaders may hold entries of earlier calls, which belong to other nodes.
        leader = leaders[node]
        if 0 <= leader < index and nodes[leader] == node:
            repeated += 1
        else:
            leaders[node] = index
        while position < length and evaluated[slots[row], position] == path[row, position]:
            position += 1
        start[index] = position
    return known, repeated


@compiled
def record_evaluations(
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
    """Record which prefixes have been evaluated, count the cost, and reserve cache places for their features.

    Features are the results of the model from which next-token distributions are computed. The cache has a
    fixed number of places, which are overwritten in turn.

    Args:
        path: Id of every prefix (rows, capacity + 1) of each row.
        evaluated: Id of the prefix whose keys each slot of the key-value cache holds (slots, capacity + 1).
            Modified in place.
        place_of: Place (nodes,) of each prefix in the cache of features, -1 for none. Modified in place.
        remembered: Prefix (places,) at each place. Modified in place.
        free: The place that is assigned next.
        owners: Row (rows,) of the counters that each row adds to.
        passes: Counter of evaluations. Modified in place.
        positions: Counter of evaluated positions. Modified in place.
        first: First position that is an input of the model. Positions before it are not counted.
        rows: Row indices (n,).
        slots: Slot (n,) of each row in the key-value cache.
        start: First evaluated position (n,).
        stop: Last evaluated position (n,).
        places: Output: place (n,) of the features of each row, or -1 if another row of this call has taken
            it.

    Returns:
        The number of rows whose features have a place, and the next free place.
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
def mask(log_probs: NDArray[np.floating[Any]], allowed: Flags, out: NDArray[np.floating[Any]]) -> None:
    """Copy log-probabilities, and set those of tokens that are not allowed to -inf. Much faster than `torch.where`.

    Args:
        log_probs: Log-probabilities (n, vocab).
        allowed: Whether each token is allowed, (n, vocab) bool.
        out: Output (n, vocab).
    """
    for row in range(log_probs.shape[0]):
        for token in range(log_probs.shape[1]):
            out[row, token] = log_probs[row, token] if allowed[row, token] else -np.inf


@compiled
def count(counts: Ints, owners: Ints, rows: Ints) -> None:
    """Add 1 to the counter of each row.

    Args:
        counts: The counters. Modified in place.
        owners: Counter (rows,) that each row adds to.
        rows: Row indices (n,).
    """
    for row in rows:
        counts[owners[row]] += 1


@compiled
def mark_unscored(scores: NDArray[np.float64], kept: Ints, token: Ints) -> None:
    """Set the accumulated log-probability after each appended token to NaN until it is computed.

    Args:
        scores: Accumulated log-probabilities (rows, capacity + 1). Modified in place.
        kept: Number (rows,) of tokens before the appended token.
        token: Appended token (rows,), -1 for none.
    """
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
    log_probs: NDArray[np.floating[Any]],
) -> None:
    """Accumulate the log-probabilities of appended tokens whose distribution was computed in this step.

    Args:
        scores: Accumulated log-probabilities (rows, capacity + 1), already copied from the sources. Modified in place.
        source: Source (rows,) of each row.
        kept: Number (rows,) of tokens kept from the source.
        token: Appended token (rows,), -1 for none.
        rows: Rows (n,) whose distributions were computed.
        lengths: Lengths (n,) to which these rows were cut.
        log_probs: Log-probabilities (n, vocab) of their next tokens.
    """
    index_of_row = np.full(len(token), -1)
    for index in range(len(rows)):
        index_of_row[rows[index]] = index
    for row in range(len(token)):
        index = index_of_row[source[row]]
        if token[row] >= 0 and index >= 0 and lengths[index] == kept[row]:
            scores[row, kept[row] + 1] = scores[row, kept[row]] + log_probs[index, token[row]]
