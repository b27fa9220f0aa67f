"""Ising models: spins on any graph, with everything about them exact as long as their states can be listed.

Token 0 is spin -1 and token 1 is spin +1. p(x) ∝ exp(sum over i < j of J_ij x_i x_j + sum over i of h_i x_i): unordered
pairs, as in equation (4.5) of the thesis and in its proofs. Its equation (4.6) writes i != j, where every pair counts
twice; a model takes that reading with `pairs="ordered"`, and is then the one of 2 J.
"""

import math
from functools import cached_property
from typing import Annotated, Literal, Self

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from trialogue.arrays import Reals, checked_device, real_tensor, require_bools
from trialogue.data.enumerable import Enumerable
from trialogue.data.ising.block_table import block_table, table_marginals
from trialogue.data.ising.couplings import Clique, checked_field, checked_matrix, couplings_of
from trialogue.data.ising.neighbourhoods import ising_tables
from trialogue.data.site_tables import SiteTables
from trialogue.errors import InputError
from trialogue.indices import first_outside, site_indices
from trialogue.oracles import Joint, Masked, whole_sequences
from trialogue.randomness import Choose, Streams, seed_of
from trialogue.validation import Count, Finite, Natural, validated

Pairs = Literal["unordered", "ordered"]
"""Whether a sum over i != j takes every pair once or twice."""

TABLE_SITES = 16
"""A block of more sites is not drawn from a table of its states."""
COUNTED_SITES = 10
"""A block of more sites of a clique model is drawn by the magnetisation, and not from a table."""


class Ising(Masked, Enumerable, Joint):
    """Spins x in {-1, +1}^N with p(x) ∝ exp(sum_{i<j} J_ij x_i x_j + sum_i h_i x_i).

    `coupling` (N, N) is symmetric with a zero diagonal, `field` (N,); both become float64. A model whose couplings
    are one clique of equal couplings is recognised: then blocks and samples of any size are drawn exactly, by the
    magnetisation. It is a masked oracle, an energy, and draws blocks jointly.

    With `pairs="ordered"` the given couplings are those of a sum over i != j, which takes every pair twice: p(x) ∝
    exp(sum_{i != j} J_ij x_i x_j + sum_i h_i x_i). `parameters` and `features` are then of that reading, and
    `coupling`, which all samplers read, is 2 J.

    Raises `InputError` for couplings that are not symmetric and finite with a zero diagonal, for fields that are
    not N finite numbers, and for an unknown reading of the pairs.
    """

    vocab_size = 2
    sites: int
    device: torch.device
    """Where the model lies, and the tokens that it is asked about."""
    pairs: Pairs
    """How `parameters` and `features` count pairs."""

    @validated
    def __init__(self, coupling: Tensor, field: Tensor, *, pairs: Pairs = "unordered") -> None:
        self.pairs = pairs
        matrix = self._times * checked_matrix(coupling)
        self.sites = len(matrix)
        self.field = checked_field(field, self.sites, matrix.device)
        self.device = self.field.device
        if not bool(torch.isfinite(matrix.abs().sum() + self.field.abs().sum())):
            hint = "give couplings and fields whose sum is finite: it bounds the energy"
            raise InputError("coupling", float(matrix.abs().max()), hint)
        self._couplings = couplings_of(matrix, self.field)

    @classmethod
    @validated
    def clique(
        cls, n: Count, clique: Natural, coupling: Finite, field: Tensor | float, *, pairs: Pairs = "unordered"
    ) -> Self:
        """N = `n` spins, the first `clique` of them all coupled to each other with J = `coupling`.

        `field` is one number for all, or (n,). Nothing of size n^2 is made until `coupling` is asked for. Equation
        (4.6) of the thesis, by default with its pairs read as unordered. Raises `InputError` for a clique larger than
        n, for numbers that are not finite, and for an unknown reading of the pairs.
        """
        if clique > n:
            raise InputError("clique", clique, f"use at most n={n}")
        model = cls.__new__(cls)
        model.pairs, model.sites = pairs, n
        strength = model._times * coupling
        if not math.isfinite(strength * clique**2):
            raise InputError("coupling", coupling, "use a coupling whose sum over all pairs is finite")
        model.field = checked_field(field, n, one_for_all=True)
        model.device = model.field.device
        members = torch.arange(n, device=model.device) < (clique if strength and clique > 1 else 0)
        model._couplings = Clique(members, strength, model.field)
        return model

    def to(self, device: torch.device | str) -> Self:
        """The same model on another device, such as "cuda"."""
        device = checked_device(device)
        model = type(self).__new__(type(self))
        model.sites, model.field, model.pairs = self.sites, self.field.to(device), self.pairs
        model.device = model.field.device
        model._couplings = self._couplings.to(device)
        return model

    @classmethod
    @validated
    def from_parameters(
        cls,
        parameters: Annotated[Tensor, Reals("n")],
        sites: Count,
        *,
        pairs: Pairs = "unordered",
    ) -> Self:
        """The model whose `parameters` (N(N-1)/2 + N,) these are, by that reading of the pairs."""
        number = sites * (sites - 1) // 2
        if parameters.shape != (number + sites,):
            raise InputError(
                "parameters", tuple(parameters.shape), f"{sites} sites have {number} pairs and {sites} fields"
            )
        matrix = torch.zeros(sites, sites, dtype=torch.float64, device=parameters.device)
        upper = torch.triu_indices(sites, sites, 1, device=parameters.device)
        matrix[upper[0], upper[1]] = parameters[:number].double()
        return cls(matrix + matrix.T, parameters[number:], pairs=pairs)

    @cached_property
    def coupling(self) -> Tensor:
        """J (N, N) float64 of the unordered sum: twice the given couplings where these are of ordered pairs."""
        return self._couplings.matrix()

    @property
    def _times(self) -> int:
        """How often the sum that the parameters belong to takes every pair."""
        return 2 if self.pairs == "ordered" else 1

    @property
    def members(self) -> Tensor | None:
        """Which sites (N,) bool are the clique, where the couplings are one clique of equal couplings; else None."""
        return self._couplings.members if isinstance(self._couplings, Clique) else None

    @property
    def parameters(self) -> Tensor:
        """J_ij of the pairs i < j in lexicographic order, then h_i: (N(N-1)/2 + N,) float64."""
        return torch.cat((self._pairs(self.coupling) / self._times, self.field))

    def _pairs(self, matrix: Tensor) -> Tensor:
        """Entries i < j of `matrix` (N, N), in lexicographic order."""
        upper = torch.triu_indices(self.sites, self.sites, 1, device=self.device)
        return matrix[upper[0], upper[1]]

    def _spins(self, tokens: Tensor) -> Tensor:
        """Spins (rows, N) float64 of `tokens` (rows, N); raises `InputError` where these are no states of the model."""
        is_tensor = isinstance(tokens, Tensor) and not tokens.is_complex()
        if not is_tensor or tokens.shape[1:] != (self.sites,) or tokens.device != self.device:
            hint = f"give tokens of shape (rows, {self.sites}) on the model's device, {self.device}"
            tokens = real_tensor("tokens", tokens, hint)
            if tokens.shape[1:] != (self.sites,) or tokens.device != self.device:
                raise InputError("tokens", (*tokens.shape, str(tokens.device)), hint)
        if tokens.dtype == torch.int64:
            wrong: float | None = first_outside(tokens, 2)
        else:
            others = tokens[(tokens != 0) & (tokens != 1)]
            wrong = others[0].item() if len(others) else None
        if wrong is not None:
            raise InputError("tokens", wrong, "token 0 is spin -1 and token 1 is spin +1: give these")
        return _signs(tokens)

    def features(self, tokens: Tensor) -> Tensor:
        """What the `parameters` multiply: x_i x_j of the pairs, or twice it, and x_i; (rows, N(N-1)/2 + N) float64."""
        spins = self._spins(tokens)
        upper = torch.triu_indices(self.sites, self.sites, 1, device=self.device)
        return torch.cat((self._times * spins[:, upper[0]] * spins[:, upper[1]], spins), 1)

    def energy(self, tokens: Tensor) -> Tensor:
        """E(x) (rows,) float64 of `tokens` (rows, N), with p(x) ∝ exp(-E(x))."""
        spins = self._spins(tokens)
        return -(self._couplings.interaction(spins) + spins @ self.field)

    def log_partition(self) -> float:
        """log Z: from the magnetisation for clique models of any size, else from all states."""
        if not isinstance(self._couplings, Clique):
            return super().log_partition()
        apart = self.field[~self._couplings.members].abs()
        nothing = self.field.new_zeros(1, self.sites)
        everything = torch.ones_like(nothing, dtype=torch.bool)
        clique = self._couplings.count_log_weights(nothing, everything).logsumexp(1)
        return float(clique + (apart + torch.log1p(torch.exp(-2 * apart))).sum())

    def moments(self) -> Tensor:
        """Expectations of the `features` (N(N-1)/2 + N,) float64, from all states."""
        spins, distribution = _signs(self.states()), self.probabilities()
        return torch.cat(
            (self._times * self._pairs(spins.T @ (distribution[:, None] * spins)), distribution @ spins)
        )

    def site_tables(self) -> SiteTables:
        """The conditional distributions of all sites, for compiled sweeps; raises `InputError` where they would
        not fit.
        """
        return ising_tables(self.coupling, self.field)

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """log p(x_i | all others) (rows, 2) float64 of one site i = `sites` (rows,) of each row.

        Raises `InputError` for tokens that are no states of the model, and unless there is one site for each.
        """
        spins = self._spins(tokens)
        sites = site_indices(sites, len(spins), self.sites)
        local = self._couplings.local_at(spins, sites) + self.field[sites]
        return _log_probs(2 * local)

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """log p(x_i | all others) (rows, N, 2) float64 of every site i."""
        return _log_probs(2 * (self._couplings.local(self._spins(tokens)) + self.field))

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p(x_i | x outside the mask) (rows, N, 2) float64 of each masked site; others are as they are.

        `masked` (rows, N) bool. Raises `InputError` for other masks, and unless the couplings are a clique, for those
        of more than `TABLE_SITES` sites.
        """
        spins, tokens = self._spins(tokens), torch.as_tensor(tokens).long()
        require_bools("masked", masked, tuple(tokens.shape), "give one bool for each token")
        if isinstance(self._couplings, Clique):
            odds = torch.where(
                self._couplings.members, self._couplings.log_odds(spins, masked), 2 * self.field
            )
            answer = _log_probs(odds)
        else:
            answer = spins.new_zeros(*tokens.shape, 2)
            weights, order, held = block_table(self._couplings, self.field, spins, masked, TABLE_SITES)
            site = table_marginals(weights, held)
            rows = torch.arange(len(tokens), device=self.device)[:, None].expand_as(order)
            answer[rows[~held], order[~held]] = site[~held]
        given = torch.nn.functional.one_hot(tokens, 2).double().log()
        return torch.where(masked[:, :, None], answer, given)

    def draw_block(self, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
        """Tokens (rows, N) with x_block drawn jointly given the rest; `block` (rows, N) bool, its size may differ.

        From a table of their states, up to `TABLE_SITES` of them; of clique models beyond `COUNTED_SITES`, the sites
        apart from the clique one by one and the clique by its magnetisation. Raises `InputError` for other blocks.
        """
        drawn, size = tokens.clone(), block.sum(1)
        # What a row draws, and from how many numbers, is a matter of its own block.
        large = (size > COUNTED_SITES) & isinstance(self._couplings, Clique)
        rows = large.nonzero()[:, 0]
        if isinstance(self._couplings, Clique) and len(rows):
            drawn[rows] = self._drawn_by_structure(self._couplings, tokens[rows], block[rows], rows, choose)
        rows = ((size > 0) & ~large).nonzero()[:, 0]
        if len(rows):
            spins = _signs(tokens[rows])
            weights, order, held = block_table(self._couplings, self.field, spins, block[rows], TABLE_SITES)
            values = whole_sequences(2, order.shape[1], self.device)[choose(weights, rows)]
            drawn[rows] = drawn[rows].scatter(
                1, order, torch.where(held, drawn[rows].gather(1, order), values)
            )
        return drawn

    @validated
    def sample(self, n: Natural, seed: Natural = 0) -> Tensor:
        """Draw `n` independent states (n, N) int64 exactly; sample i depends on `seed` and i alone.

        Raises `InputError` for models too large to enumerate, unless their couplings are a clique.
        """
        rows = torch.arange(n, device=self.device)
        streams = Streams(seed_of(seed, "ising"), rows)
        if isinstance(self._couplings, Clique) and self.sites > COUNTED_SITES:
            down = rows.new_zeros(n, self.sites)
            everything = torch.ones_like(down, dtype=torch.bool)
            return self._drawn_by_structure(self._couplings, down, everything, rows, streams.choose)
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


def _signs(tokens: Tensor) -> Tensor:
    return 2.0 * tokens.double() - 1


def _log_probs(odds: Tensor) -> Tensor:
    """log P(-1), log P(+1) (..., 2) from the log of their ratio (...)."""
    return torch.stack((logsigmoid(-odds), logsigmoid(odds)), -1)
