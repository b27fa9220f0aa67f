"""Ising models: spins on any graph, with everything about them exact as long as their states can be listed.

Token 0 is spin -1 and token 1 is spin +1. One convention for pairs: p(x) ∝ exp(sum over i < j of J_ij x_i x_j +
sum over i of h_i x_i), unordered pairs, as in equation (4.5) of the thesis.
"""

import math
from functools import cached_property
from itertools import combinations
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from trialogue.data.ising_couplings import Clique, Dense
from trialogue.errors import InputError, whole_number
from trialogue.oracles import sites_of, whole_sequences
from trialogue.randomness import Choose, Streams, seed_of

ENUMERABLE_SITES = 20
"""A model of more sites is not listed: 2^20 states of 20 spins take 160 MB."""
TABLE_SITES = 10
"""A block of more sites is not drawn from a table of its states."""


class Ising:
    """Spins x in {-1, +1}^N with p(x) ∝ exp(sum_{i<j} J_ij x_i x_j + sum_i h_i x_i).

    `coupling` (N, N) is symmetric with a zero diagonal, `field` (N,); both become float64. A model whose couplings
    are one clique of equal couplings is recognised: then blocks and samples of any size are drawn exactly, by the
    magnetisation. It is a masked oracle, an energy, and draws blocks jointly.

    Raises `InputError` for couplings that are not symmetric and finite with a zero diagonal, and for fields that are
    not N finite numbers.
    """

    vocab_size = 2

    def __init__(self, coupling: Tensor, field: Tensor) -> None:
        matrix = torch.as_tensor(coupling, dtype=torch.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
            raise InputError("coupling", tuple(matrix.shape), "give a square matrix (N, N) with N at least 1")
        if not bool(torch.isfinite(matrix).all()):
            raise InputError("coupling", float(matrix[~torch.isfinite(matrix)][0]), "give finite couplings")
        if bool(matrix.diagonal().any()):
            raise InputError("coupling", float(matrix.diagonal().abs().max()), "leave the diagonal zero")
        if not torch.equal(matrix, matrix.T):
            i, j = (matrix != matrix.T).nonzero()[0].tolist()
            values = (float(matrix[i, j]), float(matrix[j, i]))
            raise InputError(
                "coupling", values, f"make it symmetric: entries ({i}, {j}) and ({j}, {i}) differ"
            )
        self.sites = len(matrix)
        self.field = _field(field, self.sites)
        self._couplings: Dense | Clique = _as_clique(matrix, self.field) or Dense(matrix)

    @classmethod
    def clique(cls, n: int, clique: int, coupling: float, field: Tensor | float) -> Self:
        """N = `n` spins, the first `clique` of them all coupled to each other with J = `coupling`.

        `field` is one number for all, or (n,). Nothing of size n^2 is made until `coupling` is asked for. Equation
        (4.6) of the thesis with its pairs read as unordered. Raises `InputError` for a clique larger than n and for
        numbers that are not finite.
        """
        sites = whole_number("n", n, 1)
        if whole_number("clique", clique, 0) > sites:
            raise InputError("clique", clique, f"use at most n={sites}")
        if not math.isfinite(coupling):
            raise InputError("coupling", coupling, "give a finite coupling")
        model = cls.__new__(cls)
        model.sites = sites
        model.field = _field(torch.as_tensor(field, dtype=torch.float64), sites, one_for_all=True)
        members = torch.arange(sites) < (clique if coupling and clique > 1 else 0)
        model._couplings = Clique(members, float(coupling), model.field)
        return model

    @classmethod
    def from_parameters(cls, parameters: Tensor, sites: int) -> Self:
        """The model whose `parameters` (N(N-1)/2 + N,) these are."""
        parameters = torch.as_tensor(parameters, dtype=torch.float64)
        pairs = whole_number("sites", sites, 1) * (sites - 1) // 2
        if parameters.shape != (pairs + sites,):
            raise InputError(
                "parameters", tuple(parameters.shape), f"{sites} sites have {pairs} pairs and {sites} fields"
            )
        matrix = torch.zeros(sites, sites, dtype=torch.float64)
        upper = torch.triu_indices(sites, sites, 1)
        matrix[upper[0], upper[1]] = parameters[:pairs]
        return cls(matrix + matrix.T, parameters[pairs:])

    @cached_property
    def coupling(self) -> Tensor:
        """J (N, N) float64."""
        return self._couplings.matrix()

    @property
    def members(self) -> Tensor | None:
        """Which sites (N,) bool are the clique, where the couplings are one clique of equal couplings; else None."""
        return self._couplings.members if isinstance(self._couplings, Clique) else None

    @property
    def parameters(self) -> Tensor:
        """J_ij of the pairs i < j in lexicographic order, then h_i: (N(N-1)/2 + N,) float64."""
        upper = torch.triu_indices(self.sites, self.sites, 1)
        return torch.cat((self.coupling[upper[0], upper[1]], self.field))

    def features(self, tokens: Tensor) -> Tensor:
        """What the `parameters` multiply: x_i x_j of the pairs, then x_i; (rows, N(N-1)/2 + N) float64."""
        spins = _spins(tokens)
        upper = torch.triu_indices(self.sites, self.sites, 1)
        return torch.cat((spins[:, upper[0]] * spins[:, upper[1]], spins), 1)

    def energy(self, tokens: Tensor) -> Tensor:
        """E(x) (rows,) float64 of `tokens` (rows, N), with p(x) ∝ exp(-E(x))."""
        spins = _spins(tokens)
        return -(self._couplings.interaction(spins) + spins @ self.field)

    def states(self) -> Tensor:
        """All states (2^N, N) int64 in the order of `itertools.product`.

        Raises `InputError` where there are too many: `ENUMERABLE_SITES` is the largest N.
        """
        if self.sites > ENUMERABLE_SITES:
            raise InputError(
                "sites",
                self.sites,
                f"2^{self.sites} states are too many to list (at most 2^{ENUMERABLE_SITES}): draw from the model, "
                "with `sample` or `run_chain(Gibbs(), model, ...)`",
            )
        return whole_sequences(2, self.sites)

    @cached_property
    def _log_weights(self) -> Tensor:
        return -self.energy(self.states())

    def log_partition(self) -> float:
        """log Z: from the magnetisation for clique models of any size, else from all states."""
        if isinstance(self._couplings, Clique):
            apart = self.field[~self._couplings.members].abs()
            nothing = torch.zeros(1, self.sites, dtype=torch.float64)
            everything = torch.ones(1, self.sites, dtype=torch.bool)
            clique = self._couplings.count_log_weights(nothing, everything).logsumexp(1)
            return float(clique + (apart + torch.log1p(torch.exp(-2 * apart))).sum())
        return float(self._log_weights.logsumexp(0))

    def probabilities(self) -> Tensor:
        """p(x) (2^N,) float64 of `states`."""
        return self._log_weights.softmax(0)

    def moments(self) -> Tensor:
        """Expectations of the `features` (N(N-1)/2 + N,) float64, from all states."""
        return self.probabilities() @ self.features(self.states())

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """log p(x_i | all others) (rows, 2) float64 of one site i = `sites` (rows,) of each row."""
        local = self._couplings.local_at(_spins(tokens), sites) + self.field[sites]
        return _log_probs(2 * local)

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """log p(x_i | all others) (rows, N, 2) float64 of every site i."""
        return _log_probs(2 * (self._couplings.local(_spins(tokens)) + self.field))

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p(x_i | x outside the mask) (rows, N, 2) float64 of each masked site; others are as they are.

        `masked` (rows, N) bool. Raises `InputError` for masks of more than `TABLE_SITES` sites, unless the couplings
        are a clique.
        """
        spins = _spins(tokens)
        if isinstance(self._couplings, Clique):
            odds = torch.where(
                self._couplings.members, self._couplings.log_odds(spins, masked), 2 * self.field
            )
            answer = _log_probs(odds)
        else:
            answer = torch.zeros(*tokens.shape, 2, dtype=torch.float64)
            weights, order, held = self._table(spins, masked)
            law = weights.softmax(1)
            up = whole_sequences(2, order.shape[1]).double()
            site = torch.stack((law @ (1 - up), law @ up), 2).log()
            rows = torch.arange(len(tokens))[:, None].expand_as(order)
            answer[rows[~held], order[~held]] = site[~held]
        given = torch.nn.functional.one_hot(tokens, 2).double().log()
        return torch.where(masked[:, :, None], answer, given)

    def block_log_probs(self, tokens: Tensor, block: Tensor) -> Tensor:
        """Joint law (rows, 2^k) of the k sites of `block` (N,) bool given the rest, in `itertools.product` order.

        Raises `InputError` where 2^k states are too many to list.
        """
        if block.shape != (self.sites,):
            raise InputError("block", tuple(block.shape), f"give one bool for each of the {self.sites} sites")
        weights, _, _ = self._table(_spins(tokens), block.expand(len(tokens), -1), ENUMERABLE_SITES)
        return weights.log_softmax(1)

    def draw_block(self, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
        """Tokens (rows, N) with x_block drawn jointly given the rest; `block` (rows, N) bool, its size may differ.

        Up to `TABLE_SITES` sites from a table of their states; beyond, for clique models, the sites apart from the
        clique one by one and the clique by its magnetisation. Raises `InputError` for larger blocks otherwise.
        """
        drawn, size = tokens.clone(), block.sum(1)
        # What a row draws, and from how many numbers, is a matter of its own block.
        large = (size > TABLE_SITES) & isinstance(self._couplings, Clique)
        rows = large.nonzero()[:, 0]
        if isinstance(self._couplings, Clique) and len(rows):
            drawn[rows] = self._drawn_by_structure(self._couplings, tokens[rows], block[rows], rows, choose)
        rows = ((size > 0) & ~large).nonzero()[:, 0]
        if len(rows):
            weights, order, held = self._table(_spins(tokens[rows]), block[rows])
            values = whole_sequences(2, order.shape[1])[choose(weights, rows)]
            drawn[rows] = drawn[rows].scatter(
                1, order, torch.where(held, drawn[rows].gather(1, order), values)
            )
        return drawn

    def sample(self, n: int, seed: int) -> Tensor:
        """Draw `n` independent states (n, N) int64 exactly; sample i depends on `seed` and i alone.

        Raises `InputError` for models too large to enumerate, unless their couplings are a clique.
        """
        streams = Streams(seed_of(seed, "ising"), torch.arange(whole_number("n", n, 0)))
        rows = torch.arange(n)
        if isinstance(self._couplings, Clique) and self.sites > TABLE_SITES:
            everything = torch.ones(n, self.sites, dtype=torch.bool)
            down = torch.zeros(n, self.sites, dtype=torch.int64)
            return self._drawn_by_structure(self._couplings, down, everything, rows, streams.choose)
        if self.sites > ENUMERABLE_SITES:
            raise InputError(
                "sites",
                self.sites,
                f"2^{self.sites} states are too many for an exact sample (at most 2^{ENUMERABLE_SITES}): use "
                "`run_chain(Gibbs(), model, ...)`",
            )
        below = self.probabilities().cumsum(0)
        index = torch.searchsorted(below, streams.uniform(rows) * below[-1], right=True)
        return self.states()[index.clamp_max(len(below) - 1)]

    def _drawn_by_structure(
        self, clique: Clique, tokens: Tensor, block: Tensor, rows: Tensor, choose: Choose
    ) -> Tensor:
        tokens = clique.draw(tokens, block, rows, choose)
        for site in (~clique.members & block.any(0)).nonzero()[:, 0].tolist():
            drawn = block[:, site].nonzero()[:, 0]
            tokens[drawn, site] = choose(_log_probs(2 * self.field[site]).expand(len(drawn), 2), rows[drawn])
        return tokens

    def _table(self, spins: Tensor, block: Tensor, most: int = TABLE_SITES) -> tuple[Tensor, Tensor, Tensor]:
        """Log-weights (rows, 2^k) of the states of each row's block, its sites (rows, k), and which of them pad it.

        k is the largest block's size. Padding comes first, with its token 0 alone allowed, so that neither the order
        of a block's states nor their sums depend on the other rows.
        """
        size = int(block.sum(1).max()) if len(block) else 0
        if size > most:
            raise InputError(
                "block",
                size,
                f"the joint law of the block would list 2^{size} states (at most 2^{most}): use smaller blocks, or "
                "draw site after site with `ChainRule`",
            )
        order, held = sites_of(block)
        local = self._couplings.local(spins * ~block) + self.field
        up = whole_sequences(2, size)
        values = _spins(up)
        i, j = torch.tensor(list(combinations(range(size), 2)), dtype=torch.int64).view(-1, 2).unbind(1)
        among = self._couplings.among(order)[:, i, j]
        among = among * ~(held[:, i] | held[:, j])
        weights = (local.gather(1, order) * ~held) @ values.T + among @ (values[:, i] * values[:, j]).T
        return weights.masked_fill(held.double() @ up.double().T > 0, -math.inf), order, held


def _field(field: Tensor, sites: int, one_for_all: bool = False) -> Tensor:
    field = torch.as_tensor(field, dtype=torch.float64)
    if one_for_all and field.ndim == 0:
        field = field.expand(sites)
    if field.shape != (sites,):
        raise InputError("field", tuple(field.shape), f"give one number for each of the {sites} sites")
    field = field.clone()
    if not bool(torch.isfinite(field).all()):
        raise InputError("field", float(field[~torch.isfinite(field)][0]), "give finite fields")
    return field


def _as_clique(matrix: Tensor, field: Tensor) -> Clique | None:
    """The couplings as one clique of equal couplings, where they are."""
    members = matrix.any(1)
    strength = float(matrix.flatten()[matrix.flatten().abs().argmax()])
    clique = Clique(members, strength, field)
    return clique if torch.equal(clique.matrix(), matrix) else None


def _spins(tokens: Tensor) -> Tensor:
    return 2.0 * tokens.double() - 1


def _log_probs(odds: Tensor) -> Tensor:
    """log P(-1), log P(+1) (..., 2) from the log of their ratio (...)."""
    return torch.stack((logsigmoid(-odds), logsigmoid(odds)), -1)
