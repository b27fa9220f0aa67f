"""Small ReLU networks with two layers that compute given functions exactly (thesis, section 2.2.5.7).

The thesis builds the network of Theorem 2.2.1 from these. Two printed formulas are wrong, and the argument `printed`
selects them. Lemma 2.2.18 adds a constant. Lemma 2.2.19 shifts its units by too little and adds all biases.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError


def interpolate(x: Tensor, points: Tensor, values: Tensor, direction: Tensor) -> Tensor:
    """Evaluate the ReLU network that takes given values at given points (Lemma 2.2.15).

    Args:
        x: Inputs (..., d).
        points: Points (n, d).
        values: Value (n,) at each point.
        direction: Vector (d,) whose inner products with the points all differ.

    Raises:
        InputError: If two points have the same inner product with `direction`.
    """
    places, order = (points @ direction).sort()
    if len(places) > 1 and not bool((places.diff() > 0).all()):
        raise InputError("direction", direction.tolist(), "two points have the same inner product with it")
    margin = float(places.diff().min()) / 2 if len(places) > 1 else 1.0
    weights: list[float] = []
    for value in values[order].tolist():
        weights.append(value / margin - 2 * sum(weights))
    apart = (x @ direction)[..., None] - places
    units = (apart + margin).relu() - (apart - margin).relu()
    return units @ torch.tensor(weights, dtype=x.dtype)


def separating_basis(vectors: Tensor, direction: Tensor) -> Tensor:
    """Return n - 2 orthonormal vectors that sum to zero and whose projection changes every given vector (Lemma 2.2.16).

    Args:
        vectors: Vectors (count, n).
        direction: Vector (n,) that is orthogonal to none of `vectors` and not constant.

    Returns:
        Orthonormal rows (n - 2, n), orthogonal to `direction` and to the vector of ones.

    Raises:
        InputError: If `direction` is constant, or orthogonal to one of the vectors.
    """
    spanned = torch.stack((direction, torch.ones_like(direction)))
    if int(torch.linalg.matrix_rank(spanned)) < 2 or bool((vectors @ direction == 0).any()):
        raise InputError("direction", direction.tolist(), "use one that no vector is orthogonal to")
    return torch.linalg.svd(spanned).Vh[2:]


def entry_by_index(x: Tensor, index: Tensor, largest: float) -> Tensor:
    """Evaluate the ReLU network that returns the entry of a vector with a given index (Lemma 2.2.17).

    Args:
        x: Vectors (..., n) with entries from 0 to `largest`.
        index: Index (...,) from 1 to n.
        largest: Upper bound M on the entries.
    """
    steps = index[..., None] - torch.arange(1, x.shape[-1] + 1)
    units = (x + largest * steps).relu() - (x + largest * (steps - 1)).relu()
    return units.sum(-1) - largest * (index - 1)


def index_of_entry(x: Tensor, least: float, printed: bool = False) -> Tensor:
    """Evaluate the ReLU network that returns the index of the only entry that is not zero (Lemma 2.2.18).

    Args:
        x: Vectors (..., n) with one entry above `least`. All others are zero.
        least: Lower bound M on this entry.
        printed: Use the printed formula, which adds M to each unit.

    Returns:
        Index (...,) from 1 to n.
    """
    units = x.relu() - (x - least).relu() + (least if printed else 0.0)
    return (units / least) @ torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)


def linear_map(weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weights of a ReLU network with two layers that computes W x (Lemma 2.2.20).

    The network is [W, -W] ReLU([I; -I] x). Its matrices have the spectral norms sqrt(2) and sqrt(2) |W|.

    Args:
        weights: Matrix W (m, n).

    Returns:
        First weights (2n, n) and second weights (m, 2n).
    """
    identity = torch.eye(weights.shape[1], dtype=weights.dtype)
    return torch.cat((identity, -identity)), torch.cat((weights, -weights), 1)


class ReluNetworks(NamedTuple):
    """K ReLU networks with two layers and m units each, x -> sum_i a_i ReLU(w_i x + b_i) + c.

    Attributes:
        weights: First weights w (K, m, n).
        biases: First biases b (K, m).
        outer: Second weights a (K, m).
        constants: Second biases c (K,).
    """

    weights: Tensor
    biases: Tensor
    outer: Tensor
    constants: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Evaluate all networks at inputs (rows, n). The result has shape (rows, K)."""
        return (self.inner(x).relu() * self.outer).sum(-1) + self.constants

    def inner(self, x: Tensor) -> Tensor:
        """Return the inputs of the units (rows, K, m) at inputs (rows, n)."""
        return torch.einsum("rn,kmn->rkm", x, self.weights) + self.biases


def network_by_index(
    networks: ReluNetworks, x: Tensor, index: Tensor, largest: float, printed: bool = False
) -> Tensor:
    """Evaluate one ReLU network that returns the output of the network with a given index (Lemma 2.2.19).

    Args:
        networks: The K networks.
        x: Inputs (rows, n).
        index: Index (rows,) of a network, from 1 to K.
        largest: Upper bound M on the absolute inputs of all units. The lemma bounds the entries of x instead.
        printed: Use the printed formula, whose biases are those of all networks.

    Returns:
        Outputs (rows,).
    """
    steps = index[:, None] - torch.arange(1, len(networks.outer) + 1, dtype=x.dtype)
    inner = networks.inner(x)
    if printed:
        rise = largest * steps[..., None]
        units = (inner + rise).relu() - (inner + rise - largest).relu()
        selected = (units * networks.outer).sum((1, 2)) + networks.constants.sum()
        return selected - (_printed_slopes(networks.outer, largest) * (steps + 1).relu()).sum(1)
    # A bias is the output of a unit whose input is 1.
    inner = torch.cat((inner, torch.ones_like(inner[..., :1])), 2)
    outer = torch.cat((networks.outer, networks.constants[:, None]), 1)
    rise = 2 * largest * steps[..., None]
    units = (inner + rise).relu() - (inner + rise - largest).relu()
    passed = steps.relu() - (steps - 1).relu()
    return (units * outer).sum((1, 2)) - largest * (passed * outer.sum(1)).sum(1)


def _printed_slopes(outer: Tensor, largest: float) -> Tensor:
    """Return c_k with sum_{k <= j} c_k (j + 1 - k) = M sum_{k < j} sum_i a_ki for all j, as the proof demands."""
    wanted = largest * torch.cat((torch.zeros(1, dtype=outer.dtype), outer.sum(1).cumsum(0)[:-1]))
    count = len(outer)
    steps = torch.arange(count)[:, None] + 1 - torch.arange(count)
    slopes: Tensor = torch.linalg.solve(steps.clamp_min(0).to(outer.dtype), wanted)
    return slopes
