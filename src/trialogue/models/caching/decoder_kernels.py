"""Compiled loops of `DecoderPass` for one new token per row: everything between the matrix products of a layer.

Results of matrix products are passed by address, because converting a tensor to an array takes as long as a loop. They
hold float32, or bfloat16 if `is_half`. Rows may have different lengths and need not be consecutive in the cache.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from trialogue.compilation import compiled, compiled_sums
from trialogue.exponentials import exponentiate

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


def _pointer_to(dtype: Any) -> Callable[[int], Any]:
    """Return a compiled function that converts an address to a pointer to numbers of type `dtype`."""
    pointer_type = types.CPointer(dtype)

    @intrinsic  # type: ignore[untyped-decorator] # numba has no types
    def pointer(typing_context: Any, address: Any) -> Any:
        del typing_context, address

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del signature
            return builder.inttoptr(arguments[0], context.get_value_type(pointer_type))

        return pointer_type(types.int64), generate

    found: Callable[[int], Any] = pointer
    return found


_float32_at, _bfloat16_at = _pointer_to(types.float32), _pointer_to(types.uint16)


@compiled
def _read(address: int, is_half: bool, out: Floats) -> None:
    """Copy numbers to the flat array `out`. A bfloat16 number has the first 16 bits of the equal float32 number."""
    if is_half:
        bits, wide = carray(_bfloat16_at(address), out.size), out.view(np.uint32)
        for index in range(out.size):
            wide[index] = np.uint32(bits[index]) << np.uint32(16)
    else:
        numbers = carray(_float32_at(address), out.size)
        for index in range(out.size):
            out[index] = numbers[index]


@compiled
def _write(numbers: Floats, address: int, is_half: bool) -> None:
    """Copy the flat array `numbers` to an address, rounded to the nearest bfloat16, and to even in case of a tie."""
    if is_half:
        out, wide = carray(_bfloat16_at(address), numbers.size), numbers.view(np.uint32)
        for index in range(numbers.size):
            odd = (wide[index] >> np.uint32(16)) & np.uint32(1)
            out[index] = np.uint16((wide[index] + np.uint32(0x7FFF) + odd) >> np.uint32(16))
    else:
        exact = carray(_float32_at(address), numbers.size)
        for index in range(numbers.size):
            exact[index] = numbers[index]


@compiled_sums
def _normalise(vector: Floats, weight: Floats, epsilon: float, out: Floats) -> None:
    """Apply RMS normalisation to `vector` (width,), and write the result to `out` (width,)."""
    squares = np.float32(0)
    for index in range(len(vector)):
        squares += vector[index] * vector[index]
    inverse = np.float32(1) / np.sqrt(squares / np.float32(len(vector)) + np.float32(epsilon))
    for index in range(len(vector)):
        out[index] = vector[index] * inverse * weight[index]


@compiled
def add_and_normalise(
    stream: Floats, added: int, is_half: bool, weight: Floats, epsilon: float, total: Floats, states: int
) -> None:
    """Add the output of a layer to the residual stream, and apply the RMS normalisation before the next layer.

    Args:
        stream: Residual stream (n, width).
        added: Address of the output (n, width) of a layer, or 0 for none.
        is_half: Whether layers take and return bfloat16.
        weight: Weight (width,) of the normalisation.
        epsilon: Constant that is added to the mean square.
        total: Output: the new residual stream (n, width).
        states: Output: address of the normalised stream (n, width).
    """
    rows, width = stream.shape
    normalised = np.zeros(rows * width, np.float32)
    if added:
        _read(added, is_half, normalised)
    for row in range(rows):
        own = normalised[row * width : (row + 1) * width]
        for index in range(width):
            total[row, index] = stream[row, index] + own[index]
        _normalise(total[row], weight, epsilon, own)
    _write(normalised, states, is_half)


@compiled
def _rotate(head: Floats, cosines: Floats, sines: Floats) -> None:
    """Apply the rotary embedding with `cosines` (size,) and `sines` (size,) to `head` (size,) in place."""
    half = len(head) // 2
    for index in range(half):
        first, second = head[index], head[index + half]
        head[index] = first * cosines[index] - second * sines[index]
        head[index + half] = second * cosines[index + half] + first * sines[index + half]


@compiled_sums
def _attend_group(
    queries: Floats, keys: Floats, values: Floats, scale: float, powers: NDArray[np.int32], out: Floats
) -> None:
    """Write the attention of `queries` (k, size), which share `keys` and `values` (reach, size), to `out` (k, size)."""
    heads, (reach, size) = len(queries), keys.shape
    scores = np.empty((heads, reach), np.float32)
    for position in range(reach):
        for head in range(heads):
            product = np.float32(0)
            for index in range(size):
                product += queries[head, index] * keys[position, index]
            scores[head, position] = product * np.float32(scale)
    for head in range(heads):
        own = scores[head]
        largest = own.max()
        for position in range(reach):
            own[position] -= largest
        exponentiate(own, powers[:reach])
        total = np.float32(0)
        for position in range(reach):
            total += own[position]
        for position in range(reach):
            own[position] /= total
    out[:] = np.float32(0)
    # Four positions at once, so that the output is loaded and stored less often.
    blocks = reach // 4 * 4
    for position in range(0, blocks, 4):
        for head in range(heads):
            first, second = scores[head, position], scores[head, position + 1]
            third, fourth = scores[head, position + 2], scores[head, position + 3]
            for index in range(size):
                out[head, index] += (
                    first * values[position, index]
                    + second * values[position + 1, index]
                    + third * values[position + 2, index]
                    + fourth * values[position + 3, index]
                )
    for position in range(blocks, reach):
        for head in range(heads):
            for index in range(size):
                out[head, index] += scores[head, position] * values[position, index]


@compiled
def attend(
    products: tuple[int, int, int],
    is_half: bool,
    norms: tuple[Floats, Floats],
    epsilon: float,
    cosines: Floats,
    sines: Floats,
    cache: tuple[int, int],
    shape: tuple[int, ...],
    rows: Ints,
    positions: Ints,
    scale: float,
    heads: int,
    attended: int,
) -> None:
    """Apply the rotary embedding to one token per row, store its key and value, and compute its attention.

    Args:
        products: Addresses of the queries (n, heads * size), keys and values (n, key heads * size) before rotation.
        is_half: Whether layers take and return bfloat16.
        norms: Weights (size,) of the RMS normalisation of queries and keys, or empty arrays for none.
        epsilon: Constant of these normalisations.
        cosines: Cosines (n, size) of the rotary embedding.
        sines: Sines (n, size) of the rotary embedding.
        cache: Addresses of the cached keys and values in float32, which are modified.
        shape: Shape of both: (rows, key heads, positions, size).
        rows: Row (n,) of the cache of each token.
        positions: Position (n,) of each token. It attends to this position and all earlier ones.
        scale: Factor of the attention scores.
        heads: Number of query heads.
        attended: Output: address of the attention (n, heads * size).
    """
    count, key_heads, size = len(rows), shape[1], shape[3]
    keys, values = carray(_float32_at(cache[0]), shape), carray(_float32_at(cache[1]), shape)
    queries = np.empty(count * heads * size, np.float32)
    new_keys = np.empty(count * key_heads * size, np.float32)
    new_values = np.empty_like(new_keys)
    _read(products[0], is_half, queries)
    _read(products[1], is_half, new_keys)
    _read(products[2], is_half, new_values)
    powers = np.empty(positions.max() + 1, np.int32)
    out = np.empty_like(queries)
    by_head, out_by_head = queries.reshape(count, heads, size), out.reshape(count, heads, size)
    key_by_head = new_keys.reshape(count, key_heads, size)
    value_by_head = new_values.reshape(count, key_heads, size)
    group = heads // key_heads
    for index in range(count):
        row, position = rows[index], positions[index]
        for head in range(heads):
            if len(norms[0]):
                _normalise(by_head[index, head], norms[0], epsilon, by_head[index, head])
            _rotate(by_head[index, head], cosines[index], sines[index])
        for head in range(key_heads):
            if len(norms[1]):
                _normalise(key_by_head[index, head], norms[1], epsilon, key_by_head[index, head])
            _rotate(key_by_head[index, head], cosines[index], sines[index])
            keys[row, head, position] = key_by_head[index, head]
            values[row, head, position] = value_by_head[index, head]
            _attend_group(
                by_head[index, head * group : (head + 1) * group],
                keys[row, head, : position + 1],
                values[row, head, : position + 1],
                scale,
                powers,
                out_by_head[index, head * group : (head + 1) * group],
            )
    _write(out, attended, is_half)
