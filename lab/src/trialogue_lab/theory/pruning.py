"""Pruning of random networks so that they compute a given function (thesis, section 2.2.4).

Pruning sets weights to zero and changes no other weight. Each weight of the given network is approximated by the sum of
a subset of products of random weights. A meet-in-the-middle search finds the best subset, because integer programs stop
at tolerances of 1e-6 and more.
"""

from typing import Annotated, NamedTuple

import torch
from pydantic import BeforeValidator
from torch import Tensor

from trialogue.arrays import Reals
from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue.validation import Count, Finite, Natural, as_tuple, check, integer_range, validated

Matrix = Annotated[Tensor, Reals("rows columns")]
"""A matrix of finite numbers."""
Weights = Annotated[Tensor, Reals("rows columns", least=-1, most=1)]
"""A matrix of numbers from -1 to 1."""
Numbers = Annotated[Tensor, Reals("numbers", empty=True)]
"""A vector of finite numbers, which may be empty."""
MOST_NUMBERS = 36
"""Largest set whose subsets are searched. Each half has 2^18 subset sums, which are sorted."""


@validated
def closest_subset(numbers: Numbers, target: Finite) -> tuple[Tensor, float]:
    """Find the subset of `numbers` whose sum is closest to `target`.

    Args:
        numbers: At most 36 numbers, shape (n,).
        target: Sum to approximate.

    Returns:
        Mask of the subset (n,) bool, and the absolute difference between its sum and the target.

    Raises:
        InputError: If there are more than 36 numbers.
    """
    count = len(numbers)
    if count > MOST_NUMBERS:
        raise InputError(
            "numbers", count, f"give at most {MOST_NUMBERS} numbers, because all subsets are compared"
        )
    numbers = numbers.double()
    halves = numbers[: count // 2], numbers[count // 2 :]
    left, right = (_compute_subset_sums(half) for half in halves)
    ordered, order = right.sort()
    above = torch.searchsorted(ordered, target - left).clamp_max(len(ordered) - 1)
    below = (above - 1).clamp_min(0)
    either = torch.stack((ordered[above], ordered[below])) + left - target
    best = int(either.abs().argmin())
    side, first = divmod(best, len(left))
    second = int(order[(above, below)[side][first]])
    bits = [first >> i & 1 for i in range(len(halves[0]))] + [second >> i & 1 for i in range(len(halves[1]))]
    chosen = torch.tensor(bits, dtype=torch.bool)
    return chosen, float((numbers[chosen].sum() - target).abs())


def _compute_subset_sums(numbers: Tensor) -> Tensor:
    """Return the sums of all subsets, shape (2^n,). Bit i of the index selects number i."""
    sums = numbers.new_zeros(1)
    for number in numbers:
        sums = torch.cat((sums, sums + number))
    return sums


class PrunedLinear(NamedTuple):
    """Two-layer ReLU network without biases, pruned to approximate a linear map x -> W x.

    Attributes:
        first: Weights (h, m) of the first layer, zero where pruned.
        second: Weights (m', h) of the second layer, zero where pruned.
        error: Bound on the error. The output differs from W x by at most `error` |x|.
    """

    first: Tensor
    second: Tensor
    error: float

    def __call__(self, x: Tensor) -> Tensor:
        """Return the outputs (n, m') of the network for inputs `x` (n, m)."""
        return (x.double() @ self.first.T).relu() @ self.second.T


class PrunedScores(NamedTuple):
    """Random key and query weights, pruned so that key.T @ query approximates a matrix W.

    The attention scores are then approximately x^T W y.

    Attributes:
        key: Key weights (r, m), zero where pruned.
        query: Query weights (r, m), zero where pruned.
        error: Frobenius norm of key.T @ query - W.
    """

    key: Tensor
    query: Tensor
    error: float


@validated
def uniform_weights(rows: Natural, columns: Natural, seed: Natural, name: str) -> Tensor:
    """Return random weights (rows, columns) float64, uniformly distributed on (-1, 1).

    Args:
        rows: Number of rows.
        columns: Number of columns.
        seed: Seed of the network.
        name: Name of the matrix, which selects its random stream.
    """
    drawn = torch.empty(rows, columns, dtype=torch.float64)
    return drawn.uniform_(-1, 1, generator=generator(seed, "pruning", name))


@validated
def prune_linear(target: Weights, width: int, seed: Natural = 0, name: str = "") -> PrunedLinear:
    """Prune a random two-layer ReLU network to the linear map x -> W x (Lemma 2.2.2).

    Pruning sets weights to zero. Each hidden unit keeps the weight of a single input. For each entry of W,
    the second layer keeps the subset of these units whose products of weights have the sum closest to this
    entry. Positive and negative inputs have separate units.

    Args:
        target: Matrix W (m', m) with entries from -1 to 1.
        width: Number of hidden units, at least 2 m.
        seed: Seed of the random network.
        name: Prefix of the names of the random matrices.

    Raises:
        InputError: If an entry of W is outside [-1, 1] or the width is below 2 m.
    """
    inputs = target.shape[1]
    width = check("width", width, integer_range(2 * inputs))
    return prune_weight_matrices(
        target,
        uniform_weights(width, inputs, seed, f"{name}first"),
        uniform_weights(len(target), width, seed, f"{name}second"),
    )


@validated
def prune_weight_matrices(
    target: Weights, first: Matrix, second: Matrix, most: Count = MOST_NUMBERS
) -> PrunedLinear:
    """Prune two given weight matrices to the linear map x -> W x.

    Pruning sets weights to zero, so that a two-layer ReLU network with these matrices approximates the map. The method
    is described in `prune_linear`, which uses random matrices.

    Args:
        target: Matrix W (m', m) with entries from -1 to 1.
        first: Weights (h, m) of the first layer.
        second: Weights (m', h) of the second layer.
        most: Largest number of hidden units from which the subset for one entry of W is chosen.

    Raises:
        InputError: If the shapes do not match.
    """
    inputs = target.shape[1]
    _require_shape("first", first, len(first), inputs)
    _require_shape("second", second, len(target), len(first))
    target = target.double()
    unit = torch.arange(len(first))
    first = first * (unit[:, None] % inputs == torch.arange(inputs))
    kept = torch.zeros_like(second, dtype=torch.bool)
    errors = torch.zeros(2, *target.shape, dtype=torch.float64)
    for j in range(inputs):
        own = first[:, j]
        for half, units in enumerate(((own > 0).nonzero()[:most, 0], (own < 0).nonzero()[:most, 0])):
            for i in range(len(target)):
                chosen, missed = closest_subset(second[i, units] * own[units], float(target[i, j]))
                kept[i, units[chosen]] = True
                errors[half, i, j] = missed
    return PrunedLinear(first, second * kept, float(errors.max(0).values.norm()))


@validated
def prune_scores(target: Weights, width: int, seed: Natural = 0) -> PrunedScores:
    """Prune random key and query weights to the attention scores x^T W y (Lemma 2.2.7).

    Each of the `width` dimensions of keys and queries is assigned to one entry (i, j) of W. It keeps the key
    weight of input i and the query weight of input j, or neither.

    Args:
        target: Matrix W (m, m) with entries from -1 to 1.
        width: Number of dimensions of keys and queries, at least the number of entries of W.
        seed: Seed of the random weights.

    Raises:
        InputError: If an entry of W is outside [-1, 1] or the width is too small.
    """
    rows, columns = target.shape
    width = check("width", width, integer_range(rows * columns))
    key, query = (
        uniform_weights(width, size, seed, name) for size, name in ((rows, "key"), (columns, "query"))
    )
    return prune_keys_and_queries(target, key, query)


@validated
def prune_keys_and_queries(
    target: Weights, key: Matrix, query: Matrix, most: Count = MOST_NUMBERS
) -> PrunedScores:
    """Prune given key and query weights to attention scores x^T W y.

    Pruning sets weights to zero, so that key.T @ query approximates W. The method is described in `prune_scores`, which
    uses random weights.

    Args:
        target: Matrix W (rows, columns) with entries from -1 to 1.
        key: Key weights (r, rows).
        query: Query weights (r, columns).
        most: Largest number of dimensions from which the subset for one entry of W is chosen.

    Raises:
        InputError: If the shapes do not match.
    """
    rows, columns = target.shape
    _require_shape("key", key, len(key), rows)
    _require_shape("query", query, len(key), columns)
    target = target.double()
    kept_key, kept_query = torch.zeros_like(key), torch.zeros_like(query)
    errors = torch.zeros_like(target)
    for place in range(rows * columns):
        i, j = divmod(place, columns)
        own = torch.arange(place, len(key), rows * columns)[:most]
        chosen, errors[i, j] = closest_subset(key[own, i] * query[own, j], float(target[i, j]))
        kept_key[own[chosen], i], kept_query[own[chosen], j] = key[own[chosen], i], query[own[chosen], j]
    return PrunedScores(kept_key, kept_query, float(errors.norm()))


class PrunedNetwork(NamedTuple):
    """Four-layer ReLU network, pruned to approximate a two-layer target x -> W_2 relu(W_1 x) (Lemma 2.2.6).

    Attributes:
        inner: First two layers, which approximate W_1.
        outer: Last two layers, which approximate W_2.
        error: Bound on the error. The output differs from the target by at most `error` |x|.
    """

    inner: PrunedLinear
    outer: PrunedLinear
    error: float

    def __call__(self, x: Tensor) -> Tensor:
        """Return the outputs (n, m'') of the network for inputs `x` (n, m)."""
        return self.outer(self.inner(x).relu())


@validated
def prune_network(
    first: Weights,
    second: Weights,
    widths: Annotated[tuple[Count, Count], BeforeValidator(as_tuple)],
    seed: Natural = 0,
) -> PrunedNetwork:
    """Prune a random four-layer ReLU network to a two-layer target x -> W_2 relu(W_1 x).

    The error bound is |W_1| eps_2 + |W_2| eps_1 + eps_1 eps_2 with spectral norms |W_i| and the errors eps_i
    of the two pruned linear maps. It is Lemma 2.2.5 as corrected.

    Args:
        first: Weights W_1 (m', m) of the target, with entries from -1 to 1.
        second: Weights W_2 (m'', m') of the target, with entries from -1 to 1.
        widths: Numbers of hidden units that approximate W_1 and W_2.
        seed: Seed of the random network.

    Raises:
        InputError: If the shapes do not match, or `prune_linear` rejects an argument.
    """
    _require_shape("second", second, len(second), len(first))
    inner = prune_linear(first, widths[0], seed, name="inner ")
    outer = prune_linear(second, widths[1], seed, name="outer ")
    norms = [float(torch.linalg.matrix_norm(each.double(), 2)) for each in (first, second)]
    error = norms[0] * outer.error + norms[1] * inner.error + inner.error * outer.error
    return PrunedNetwork(inner, outer, error)


def _require_shape(field: str, matrix: Tensor, rows: int, columns: int) -> None:
    if matrix.shape != (rows, columns):
        raise InputError(field, tuple(matrix.shape), f"use the shape ({rows}, {columns}) to match the target")
