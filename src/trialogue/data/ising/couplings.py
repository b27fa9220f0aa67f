"""Couplings of an Ising model, as a symmetric matrix or as one clique of equal couplings.

In a clique, all pairs of a subset of the sites have equal couplings, and there are no other couplings. The energy of a
clique depends only on its magnetization, the sum of its spins. Joint samples and marginals therefore do not require a
list of its states. Spins are arrays (rows, N) float64 with values ±1.
"""

import math
from typing import Annotated

import torch
from torch import Tensor

from trialogue.arrays import Reals, real_tensor
from trialogue.errors import InputError
from trialogue.randomness import Choose
from trialogue.validation import validated


class Dense:
    """Couplings of an Ising model given by a symmetric matrix.

    Args:
        matrix: Couplings (N, N) float64 with a zero diagonal.
    """

    def __init__(self, matrix: Tensor) -> None:
        self._matrix = matrix

    def to(self, device: torch.device | str) -> "Dense":
        """Return the couplings on another device."""
        return Dense(self._matrix.to(device))

    def matrix(self) -> Tensor:
        """Return the coupling matrix (N, N)."""
        return self._matrix

    def interaction(self, spins: Tensor) -> Tensor:
        """Return the interaction energy of spins: the sum of J_ij x_i x_j over unordered pairs of sites.

        Args:
            spins: Spins x (rows, N) of ±1.

        Returns:
            Sums (rows,).
        """
        return ((spins @ self._matrix) * spins).sum(1) / 2

    def local(self, spins: Tensor) -> Tensor:
        """Return the local field of every site i, the sum over j of J_ij x_j.

        Args:
            spins: Spins x (rows, N) of ±1.

        Returns:
            Local fields (rows, N).
        """
        return spins @ self._matrix

    def local_at(self, spins: Tensor, sites: Tensor) -> Tensor:
        """Return the local field at one site i per row, the sum over j of J_ij x_j.

        Args:
            spins: Spins x (rows, N) of ±1.
            sites: Index i (rows,) of the site of each row.

        Returns:
            Local fields (rows,).
        """
        return (self._matrix[sites] * spins).sum(1)

    def submatrix(self, sites: Tensor) -> Tensor:
        """Return the couplings between some sites of each row.

        Args:
            sites: Indices (rows, k) of the sites.

        Returns:
            Couplings (rows, k, k).
        """
        return self._matrix[sites[:, :, None], sites[:, None, :]]


class Clique:
    """Couplings of an Ising model in which all pairs of a subset of the sites have the same coupling.

    Args:
        members: Mask (N,) bool of the coupled sites.
        strength: Coupling J of each pair of members.
        field: Field (N,) on the spins.
    """

    def __init__(self, members: Tensor, strength: float, field: Tensor) -> None:
        self.members, self.strength, self._all_fields = members, strength, field
        self._sites = members.nonzero()[:, 0]
        self._field = field[self._sites]
        self._is_uniform = bool((self._field == self._field[:1]).all())

    def to(self, device: torch.device | str) -> "Clique":
        """Return the couplings on another device."""
        return Clique(self.members.to(device), self.strength, self._all_fields.to(device))

    def matrix(self) -> Tensor:
        """Return the coupling matrix (N, N)."""
        both = self.members[:, None] & self.members[None, :]
        return (both.double() * self.strength).fill_diagonal_(0.0)

    def _magnetization(self, spins: Tensor) -> Tensor:
        return spins[:, self._sites].sum(1)

    def interaction(self, spins: Tensor) -> Tensor:
        """Return the interaction energy of spins: the sum of J_ij x_i x_j over unordered pairs of sites.

        Args:
            spins: Spins x (rows, N) of ±1.

        Returns:
            Sums (rows,).
        """
        return self.strength * (self._magnetization(spins).square() - len(self._sites)) / 2

    def local(self, spins: Tensor) -> Tensor:
        """Return the local field of every site i, the sum over j of J_ij x_j.

        Args:
            spins: Spins x (rows, N) of ±1.

        Returns:
            Local fields (rows, N).
        """
        return self.strength * (self._magnetization(spins)[:, None] - spins) * self.members

    def local_at(self, spins: Tensor, sites: Tensor) -> Tensor:
        """Return the local field at one site i per row, the sum over j of J_ij x_j.

        Args:
            spins: Spins x (rows, N) of ±1.
            sites: Index i (rows,) of the site of each row.

        Returns:
            Local fields (rows,).
        """
        spin = spins.gather(1, sites[:, None])[:, 0]
        return self.strength * (self._magnetization(spins) - spin) * self.members[sites]

    def submatrix(self, sites: Tensor) -> Tensor:
        """Return the couplings between some sites of each row.

        Args:
            sites: Indices (rows, k) of the sites.

        Returns:
            Couplings (rows, k, k).
        """
        inside = self.members[sites]
        both = inside[:, :, None] & inside[:, None, :] & (sites[:, :, None] != sites[:, None, :])
        return both.double() * self.strength

    def count_log_weights(self, spins: Tensor, block: Tensor) -> Tensor:
        """Return the log-weight of each number of up spins (+1) in a block of the clique.

        It sums over all states of the clique's members in the block with this number of up spins. Other spins
        are fixed.

        Args:
            spins: Spins (rows, N) of ±1. Spins in the block are ignored.
            block: Mask (rows, N) bool of the block. Sites outside the clique are ignored.

        Returns:
            Log-weights (rows, members + 1) of 0, 1, ... up spins. Impossible numbers have log-weight -inf.
        """
        free = block[:, self._sites]
        size = free.sum(1).double()[:, None]
        outside = (spins[:, self._sites] * ~free).sum(1)[:, None]
        magnetization = 2.0 * torch.arange(len(self._sites) + 1, device=size.device) - size
        pairs = self.strength * (magnetization.square() - size) / 2
        return pairs + self.strength * outside * magnetization + self._log_sums(free)[0]

    def draw(self, tokens: Tensor, block: Tensor, rows: Tensor, choose: Choose) -> Tensor:
        """Sample the members of the clique in `block` jointly given all other spins.

        Args:
            tokens: Tokens (n, N) int64, 0 for spin -1 and 1 for spin +1.
            block: Mask (n, N) bool of the sites to sample. Sites outside the clique are ignored.
            rows: Index (n,) of the random stream of each row.
            choose: Function that samples one value per row. It receives log-weights (k, values) and the
                indices (k,) of the random streams.

        Returns:
            A copy of `tokens` with new values at the members in the block.
        """
        result, free = tokens.clone(), block[:, self._sites]
        size = free.sum(1)
        ups = torch.zeros_like(size)
        nonempty = (size > 0).nonzero()[:, 0]
        if not len(nonempty):
            return result
        spins = 2.0 * tokens[nonempty].double() - 1
        ups[nonempty] = choose(self.count_log_weights(spins, block[nonempty]), rows[nonempty])
        sums = None if self._is_uniform else self._log_sums(free)
        for member, site in enumerate(self._sites.tolist()):
            selected = free[:, member].nonzero()[:, 0]
            if not len(selected):
                continue
            count = ups[selected]
            if sums is None:
                weights = torch.stack((size[selected] - count, count), 1).double().log()
            else:
                minus = sums[member + 1, selected, count] - self._field[member]
                plus = sums[member + 1, selected, (count - 1).clamp_min(0)] + self._field[member]
                weights = torch.stack((minus, torch.where(count > 0, plus, -math.inf)), 1)
            up = choose(weights, rows[selected])
            ups[selected] -= up
            size[selected] -= 1
            result[selected, site] = up
        return result

    def log_odds(self, spins: Tensor, block: Tensor) -> Tensor:
        """Return the log-odds of spin +1 for each member of the clique in `block`, given the spins outside the block.

        Args:
            spins: Spins (rows, N) of ±1. Spins in the block are ignored.
            block: Mask (rows, N) bool of the block.

        Returns:
            Log-odds (rows, N) of the marginal distribution of each spin. Values at sites outside the block or
            outside the clique are undefined.
        """
        free = block[:, self._sites]
        weights = self.count_log_weights(spins, block) - self._log_sums(free)[0]
        # Counts greater than the size of the block give -inf - (-inf).
        weights = torch.where(torch.isnan(weights), -math.inf, weights)
        odds = torch.zeros_like(spins)
        if self._is_uniform and len(self._sites):
            # All free members have the same odds. `argmax` finds the first.
            first = free.byte().argmax(1, keepdim=True)
            odds[:, self._sites] = self._member_odds(first, free, weights)[:, None].expand(
                -1, len(self._sites)
            )
            return odds
        for member, site in enumerate(self._sites.tolist()):
            column = torch.full_like(free[:, :1], member, dtype=torch.int64)
            odds[:, site] = self._member_odds(column, free, weights)
        return odds

    def _member_odds(self, member: Tensor, free: Tensor, weights: Tensor) -> Tensor:
        """Return the log-odds (rows,) that the only masked member (rows, 1) of the clique is +1."""
        rest = self._log_sums(free.scatter(1, member, False))[0]
        field = self._field[member[:, 0]]
        plus = (weights[:, 1:] + rest[:, :-1]).logsumexp(1) + field
        minus = (weights + rest).logsumexp(1) - field
        return torch.where(free.gather(1, member)[:, 0], plus - minus, 0.0)

    def _log_sums(self, free: Tensor) -> Tensor:
        """Return the log-sums (k, rows, members + 1) of exp(field * spins) by number of up spins.

        Entry p sums over the `free` (rows, members) members with index p or higher.
        """
        members = len(self._sites)
        if self._is_uniform:
            size, count = (
                free.sum(1).double()[:, None],
                torch.arange(members + 1, device=free.device).double(),
            )
            ways = torch.lgamma(size + 1) - torch.lgamma(count + 1)
            ways = ways - torch.lgamma((size - count).clamp_min(0) + 1)
            field = float(self._field[0]) if members else 0.0
            return torch.where(count <= size, ways + field * (2 * count - size), -math.inf)[None]
        shape = (members + 1, len(free), members + 1)
        sums = torch.full(shape, -math.inf, dtype=torch.float64, device=free.device)
        sums[members, :, 0] = 0.0
        for member in reversed(range(members)):
            after = sums[member + 1]
            shifted = torch.cat((torch.full_like(after[:, :1], -math.inf), after[:, :-1]), 1)
            both = torch.logaddexp(after - self._field[member], shifted + self._field[member])
            sums[member] = torch.where(free[:, member, None], both, after)
        return sums


def make_couplings(matrix: Tensor, field: Tensor) -> Dense | Clique:
    """Return couplings as a `Clique` if possible, which allows exact sampling of large models, otherwise as `Dense`.

    Args:
        matrix: Symmetric couplings (N, N) with a zero diagonal.
        field: Field (N,) on the spins.
    """
    strength = float(matrix.flatten()[matrix.flatten().abs().argmax()])
    clique = Clique(matrix.any(1), strength, field)
    return clique if torch.equal(clique.matrix(), matrix) else Dense(matrix)


@validated
def validate_coupling(coupling: Annotated[Tensor, Reals("sites sites")]) -> Tensor:
    """Convert a coupling matrix to float64, and raise `InputError` if it is not valid.

    Args:
        coupling: Couplings (N, N), symmetric and finite with a zero diagonal.

    Returns:
        Couplings (N, N) float64.

    Raises:
        InputError: If the matrix is not square, symmetric and finite, or its diagonal is not zero.
    """
    matrix = coupling.double()
    if bool(matrix.diagonal().any()):
        raise InputError("coupling", float(matrix.diagonal().abs().max()), "leave the diagonal zero")
    if not torch.equal(matrix, matrix.T):
        i, j = (matrix != matrix.T).nonzero()[0].tolist()
        values = (float(matrix[i, j]), float(matrix[j, i]))
        raise InputError("coupling", values, f"make it symmetric: entries ({i}, {j}) and ({j}, {i}) differ")
    return matrix


def validate_field(
    field: Tensor | float, sites: int, device: torch.device | None = None, one_for_all: bool = False
) -> Tensor:
    """Convert the field of an Ising model to float64, and raise `InputError` if it is not valid.

    Args:
        field: Field (N,), or one number for all sites if `one_for_all` is True.
        sites: Number N of sites.
        device: Device of the result (default: the device of `field`).
        one_for_all: Whether a single number is accepted.

    Returns:
        Field (N,) float64.

    Raises:
        InputError: If the shape is wrong or a value is not finite.
    """
    hint = f"give one number for each of the {sites} sites"
    field = real_tensor("field", field, hint, device)
    if one_for_all and field.ndim == 0:
        field = field.expand(sites)
    if field.shape != (sites,):
        raise InputError("field", tuple(field.shape), hint)
    field = field.clone()
    if not bool(torch.isfinite(field).all()):
        raise InputError("field", float(field[~torch.isfinite(field)][0]), "give finite fields")
    return field
