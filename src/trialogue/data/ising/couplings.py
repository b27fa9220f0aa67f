"""The two forms that the couplings of an Ising model come in: any symmetric matrix, or one clique of equal couplings.

Spins are (rows, N) float64 of ±1. A clique interacts through its magnetisation alone, so that nothing here grows
faster than its number of sites, whatever the number of its states.
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
    """Couplings given as a symmetric matrix (N, N) with a zero diagonal."""

    def __init__(self, matrix: Tensor) -> None:
        self._matrix = matrix

    def to(self, device: torch.device | str) -> "Dense":
        """The same couplings on another device."""
        return Dense(self._matrix.to(device))

    def matrix(self) -> Tensor:
        """The matrix (N, N)."""
        return self._matrix

    def interaction(self, spins: Tensor) -> Tensor:
        """Sum (rows,) of J_ij x_i x_j over unordered pairs."""
        return ((spins @ self._matrix) * spins).sum(1) / 2

    def local(self, spins: Tensor) -> Tensor:
        """Sum (rows, N) over j of J_ij x_j."""
        return spins @ self._matrix

    def local_at(self, spins: Tensor, sites: Tensor) -> Tensor:
        """The same (rows,), at one site of each row, `sites` (rows,)."""
        return (self._matrix[sites] * spins).sum(1)

    def among(self, sites: Tensor) -> Tensor:
        """Couplings (rows, k, k) among the `sites` (rows, k) of each row."""
        return self._matrix[sites[:, :, None], sites[:, None, :]]


class Clique:
    """Equal couplings `strength` between every two of the sites where `members` (N,) is True; no others.

    `field` (N,) acts on the spins; where it is the same on all members, so are they, and counting suffices.
    """

    def __init__(self, members: Tensor, strength: float, field: Tensor) -> None:
        self.members, self.strength, self._every_field = members, strength, field
        self._sites = members.nonzero()[:, 0]
        self._field = field[self._sites]
        self._alike = bool((self._field == self._field[:1]).all())

    def to(self, device: torch.device | str) -> "Clique":
        """The same couplings on another device."""
        return Clique(self.members.to(device), self.strength, self._every_field.to(device))

    def matrix(self) -> Tensor:
        """The matrix (N, N)."""
        both = self.members[:, None] & self.members[None, :]
        return (both.double() * self.strength).fill_diagonal_(0.0)

    def _magnetisation(self, spins: Tensor) -> Tensor:
        return spins[:, self._sites].sum(1)

    def interaction(self, spins: Tensor) -> Tensor:
        """Sum (rows,) of J_ij x_i x_j over unordered pairs."""
        return self.strength * (self._magnetisation(spins).square() - len(self._sites)) / 2

    def local(self, spins: Tensor) -> Tensor:
        """Sum (rows, N) over j of J_ij x_j."""
        return self.strength * (self._magnetisation(spins)[:, None] - spins) * self.members

    def local_at(self, spins: Tensor, sites: Tensor) -> Tensor:
        """The same (rows,), at one site of each row, `sites` (rows,)."""
        spin = spins.gather(1, sites[:, None])[:, 0]
        return self.strength * (self._magnetisation(spins) - spin) * self.members[sites]

    def among(self, sites: Tensor) -> Tensor:
        """Couplings (rows, k, k) among the `sites` (rows, k) of each row."""
        inside = self.members[sites]
        both = inside[:, :, None] & inside[:, None, :] & (sites[:, :, None] != sites[:, None, :])
        return both.double() * self.strength

    def count_log_weights(self, spins: Tensor, block: Tensor) -> Tensor:
        """Log-weights (rows, members + 1) of how many members in `block` (rows, N) are +1, given all other spins.

        Counts beyond the number of members in the block weigh nothing (-inf).
        """
        free = block[:, self._sites]
        size = free.sum(1).double()[:, None]
        outside = (spins[:, self._sites] * ~free).sum(1)[:, None]
        magnetisation = 2.0 * torch.arange(len(self._sites) + 1, device=size.device) - size
        pairs = self.strength * (magnetisation.square() - size) / 2
        return pairs + self.strength * outside * magnetisation + self._log_sums(free)[0]

    def draw(self, tokens: Tensor, block: Tensor, rows: Tensor, choose: Choose) -> Tensor:
        """Tokens (n, N) with the members in `block` (n, N) drawn jointly, given all other spins.

        Row i chooses as row `rows[i]`: first how many are +1, then which, member by member, given how many are still
        to come.
        """
        result, free = tokens.clone(), block[:, self._sites]
        size = free.sum(1)
        ups = torch.zeros_like(size)
        some = (size > 0).nonzero()[:, 0]
        if not len(some):
            return result
        spins = 2.0 * tokens[some].double() - 1
        ups[some] = choose(self.count_log_weights(spins, block[some]), rows[some])
        sums = None if self._alike else self._log_sums(free)
        for place, site in enumerate(self._sites.tolist()):
            drawn = free[:, place].nonzero()[:, 0]
            if not len(drawn):
                continue
            count = ups[drawn]
            if sums is None:
                weights = torch.stack((size[drawn] - count, count), 1).double().log()
            else:
                minus = sums[place + 1, drawn, count] - self._field[place]
                plus = sums[place + 1, drawn, (count - 1).clamp_min(0)] + self._field[place]
                weights = torch.stack((minus, torch.where(count > 0, plus, -math.inf)), 1)
            up = choose(weights, rows[drawn])
            ups[drawn] -= up
            size[drawn] -= 1
            result[drawn, site] = up
        return result

    def log_odds(self, spins: Tensor, block: Tensor) -> Tensor:
        """Log of P(+1) over P(-1) (rows, N) for each member in `block` (rows, N) given the spins outside of it.

        What stands at other sites means nothing.
        """
        free = block[:, self._sites]
        weights = self.count_log_weights(spins, block) - self._log_sums(free)[0]
        weights = torch.where(torch.isnan(weights), -math.inf, weights)  # counts beyond the block's
        odds = torch.zeros_like(spins)
        if self._alike and len(self._sites):
            # Any free member stands for all; argmax finds the first.
            first = free.byte().argmax(1, keepdim=True)
            odds[:, self._sites] = self._odds_of(first, free, weights)[:, None].expand(-1, len(self._sites))
            return odds
        for place, site in enumerate(self._sites.tolist()):
            odds[:, site] = self._odds_of(
                torch.full_like(free[:, :1], place, dtype=torch.int64), free, weights
            )
        return odds

    def _odds_of(self, place: Tensor, free: Tensor, weights: Tensor) -> Tensor:
        """Log of P(+1) over P(-1) (rows,) of one free member, `place` (rows, 1), from the `weights` of all counts."""
        rest = self._log_sums(free.scatter(1, place, False))[0]
        field = self._field[place[:, 0]]
        plus = (weights[:, 1:] + rest[:, :-1]).logsumexp(1) + field
        minus = (weights + rest).logsumexp(1) - field
        return torch.where(free.gather(1, place)[:, 0], plus - minus, 0.0)

    def _log_sums(self, free: Tensor) -> Tensor:
        """Log of the sum of exp(field * spins) over the `free` (rows, members) of the last members, by count of +1.

        Returns (places, rows, members + 1): entry p for the members from place p on; only p = 0 where all are alike.
        """
        members = len(self._sites)
        if self._alike:
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
        for place in reversed(range(members)):
            after = sums[place + 1]
            plus = (
                torch.cat((torch.full_like(after[:, :1], -math.inf), after[:, :-1]), 1) + self._field[place]
            )
            both = torch.logaddexp(after - self._field[place], plus)
            sums[place] = torch.where(free[:, place, None], both, after)
        return sums


def couplings_of(matrix: Tensor, field: Tensor) -> Dense | Clique:
    """The couplings of `matrix` (N, N): as one clique of equal couplings, where they are."""
    strength = float(matrix.flatten()[matrix.flatten().abs().argmax()])
    clique = Clique(matrix.any(1), strength, field)
    return clique if torch.equal(clique.matrix(), matrix) else Dense(matrix)


@validated
def checked_matrix(coupling: Annotated[Tensor, Reals("sites sites")]) -> Tensor:
    """`coupling` (N, N) as float64; raises `InputError` unless it is symmetric and finite with a zero diagonal."""
    matrix = coupling.double()
    if bool(matrix.diagonal().any()):
        raise InputError("coupling", float(matrix.diagonal().abs().max()), "leave the diagonal zero")
    if not torch.equal(matrix, matrix.T):
        i, j = (matrix != matrix.T).nonzero()[0].tolist()
        values = (float(matrix[i, j]), float(matrix[j, i]))
        raise InputError("coupling", values, f"make it symmetric: entries ({i}, {j}) and ({j}, {i}) differ")
    return matrix


def checked_field(
    field: Tensor | float, sites: int, device: torch.device | None = None, one_for_all: bool = False
) -> Tensor:
    """`field` (N,) as float64, N = `sites`; raises `InputError` unless it is finite and of that shape.

    A number is one for all, where there may be `one_for_all`.
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
