"""Ising models on any graph, with exact conditionals, samples and partition functions.

Token 0 is spin -1 and token 1 is spin +1. The distribution is p(x) ∝ exp(sum over i < j of J_ij x_i x_j + sum
over i of h_i x_i). The sum is over unordered pairs, as in equation (4.5) of the thesis and in its proofs.
Equation (4.6) of the thesis sums over i != j, which counts each pair twice. A model uses that convention with
`pairs="ordered"`.
"""

import math
from functools import cached_property
from typing import Annotated, Literal, Self

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from trialogue.arrays import Reals, parse_device, real_tensor, require_bools
from trialogue.data.enumerable import Enumerable
from trialogue.data.ising.block_table import block_table, table_marginals
from trialogue.data.ising.couplings import Clique, make_couplings, validate_coupling, validate_field
from trialogue.data.ising.neighbourhoods import ising_tables
from trialogue.data.site_tables import SiteTables
from trialogue.errors import InputError
from trialogue.indices import first_outside, site_indices
from trialogue.oracles import Joint, Masked, enumerate_sequences
from trialogue.randomness import Choose, Streams, derive_seed
from trialogue.validation import Count, Finite, Natural, validated

Pairs = Literal["unordered", "ordered"]
"""Whether the sum over pairs counts each pair once ("unordered") or twice ("ordered")."""

TABLE_SITES = 16
"""Maximum number of sites of a block that is sampled from a table of its states."""
COUNTED_SITES = 10
"""Number of sites above which a block of a clique model is sampled through its magnetization."""


class Ising(Masked, Enumerable, Joint):
    """Ising model: a distribution of spins (+1 or -1) with pair couplings and external fields.

        p(x) ∝ exp(sum_{i<j} J_ij x_i x_j + sum_i h_i x_i)

    Couplings J and fields h are already divided by the temperature. In all methods, token 0 is spin -1 and
    token 1 is spin +1. If the nonzero couplings are equal and form one clique (all pairs of a subset of the
    sites), models of any size can be sampled exactly. Otherwise, joint samples have at most `TABLE_SITES`
    sites, and exact statistics are limited to small models.

    Args:
        coupling: Symmetric couplings J (N, N) with a zero diagonal. Converted to float64.
        field: Field h (N,). Converted to float64.
        pairs: "unordered" (default), or "ordered" if the first sum runs over all i != j and counts each pair
            twice. The argument `coupling`, the `parameters` and the `features` use this convention. The
            property `coupling` always counts each pair once.

    Raises:
        InputError: If the couplings are not symmetric, a value is not finite, or a shape is wrong.
    """

    vocab_size = 2
    sites: int
    device: torch.device
    """Device of the model and of the tokens passed to its methods."""
    pairs: Pairs
    """Convention of `parameters` and `features`."""

    @validated
    def __init__(self, coupling: Tensor, field: Tensor, *, pairs: Pairs = "unordered") -> None:
        self.pairs = pairs
        matrix = self._pair_factor * validate_coupling(coupling)
        self.sites = len(matrix)
        self.field = validate_field(field, self.sites, matrix.device)
        self.device = self.field.device
        if not bool(torch.isfinite(matrix.abs().sum() + self.field.abs().sum())):
            hint = "give couplings and fields whose absolute values have a finite sum"
            raise InputError("coupling", float(matrix.abs().max()), hint)
        self._couplings = make_couplings(matrix, self.field)

    @classmethod
    @validated
    def clique(
        cls,
        n: Count,
        clique: Natural,
        coupling: Finite,
        field: Tensor | float = 0.0,
        *,
        pairs: Pairs = "unordered",
    ) -> Self:
        """Create a model whose first `clique` spins are all coupled to each other, as in equation (4.6) of the thesis.

        No array of size n^2 is allocated until the property `coupling` is used.

        Args:
            n: Number N of spins.
            clique: Number of coupled spins.
            coupling: Coupling J of each pair of coupled spins.
            field: Field (n,), or one number for all spins (default: 0).
            pairs: Whether the energy counts each pair once, "unordered" (default), or twice, "ordered".

        Raises:
            InputError: If the clique is larger than `n` or a value is not finite.
        """
        if clique > n:
            raise InputError("clique", clique, f"use at most n={n}")
        model = cls.__new__(cls)
        model.pairs, model.sites = pairs, n
        strength = model._pair_factor * coupling
        if not math.isfinite(strength * clique**2):
            raise InputError("coupling", coupling, "use a coupling whose sum over all pairs is finite")
        model.field = validate_field(field, n, one_for_all=True)
        model.device = model.field.device
        members = torch.arange(n, device=model.device) < (clique if strength and clique > 1 else 0)
        model._couplings = Clique(members, strength, model.field)
        return model

    def to(self, device: torch.device | str) -> Self:
        """Return the model on another device, for example "cuda"."""
        device = parse_device(device)
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
        """Create a model from a vector of couplings and fields, the inverse of the property `parameters`.

        Args:
            parameters: Couplings of the pairs i < j in lexicographic order, then fields, as (N(N-1)/2 + N,).
            sites: Number N of spins.
            pairs: Whether the energy counts each pair once, "unordered" (default), or twice, "ordered".

        Raises:
            InputError: If the number of parameters does not match `sites`, or a value is not finite.
        """
        n_pairs = sites * (sites - 1) // 2
        if parameters.shape != (n_pairs + sites,):
            hint = f"give {n_pairs} couplings and {sites} fields for {sites} sites"
            raise InputError("parameters", tuple(parameters.shape), hint)
        matrix = torch.zeros(sites, sites, dtype=torch.float64, device=parameters.device)
        upper = torch.triu_indices(sites, sites, 1, device=parameters.device)
        matrix[upper[0], upper[1]] = parameters[:n_pairs].double()
        return cls(matrix + matrix.T, parameters[n_pairs:], pairs=pairs)

    @cached_property
    def coupling(self) -> Tensor:
        """Symmetric couplings J (N, N) float64, where the energy counts each pair once."""
        return self._couplings.matrix()

    @property
    def _pair_factor(self) -> int:
        """How often the sum over pairs counts each pair (1 or 2)."""
        return 2 if self.pairs == "ordered" else 1

    @property
    def members(self) -> Tensor | None:
        """Mask (N,) bool of the clique, or None if the nonzero couplings are not one clique of equal couplings."""
        return self._couplings.members if isinstance(self._couplings, Clique) else None

    @property
    def parameters(self) -> Tensor:
        """Couplings of the pairs i < j in lexicographic order, then fields, as (N(N-1)/2 + N,) float64.

        If `pairs` is "ordered", the couplings are half of the property `coupling`.
        """
        return torch.cat((self._upper_entries(self.coupling) / self._pair_factor, self.field))

    def _upper_entries(self, matrix: Tensor) -> Tensor:
        """Return the entries i < j of `matrix` (N, N) in lexicographic order."""
        upper = torch.triu_indices(self.sites, self.sites, 1, device=self.device)
        return matrix[upper[0], upper[1]]

    def _spins(self, tokens: Tensor) -> Tensor:
        """Return the spins (rows, N) float64 of `tokens` (rows, N), after a check of shape, device and values."""
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
            raise InputError("tokens", wrong, "use token 0 for spin -1 and token 1 for spin +1")
        return _signs(tokens)

    def features(self, tokens: Tensor) -> Tensor:
        """Compute the sufficient statistics of each state, whose product with `parameters` is -E(x).

        Args:
            tokens: States (rows, N), 0 for spin -1 and 1 for spin +1.

        Returns:
            Features (rows, N(N-1)/2 + N) float64. For each pair i < j in lexicographic order there is x_i x_j, or
            2 x_i x_j if `pairs` is "ordered". The spins x_i follow.
        """
        spins = self._spins(tokens)
        upper = torch.triu_indices(self.sites, self.sites, 1, device=self.device)
        return torch.cat((self._pair_factor * spins[:, upper[0]] * spins[:, upper[1]], spins), 1)

    def energy(self, tokens: Tensor) -> Tensor:
        """Return the energy E(x) of each state, where p(x) ∝ exp(-E(x)).

        Args:
            tokens: States (rows, N), 0 for spin -1 and 1 for spin +1.

        Returns:
            Energies (rows,) float64.
        """
        spins = self._spins(tokens)
        return -(self._couplings.interaction(spins) + spins @ self.field)

    def log_partition(self) -> float:
        """Return log Z, the log of the sum of exp(-E(x)) over all states.

        If the couplings are one clique, the model can have any size. Otherwise all states are listed.

        Raises:
            InputError: If the couplings are not a clique and there are too many states to list.
        """
        if not isinstance(self._couplings, Clique):
            return super().log_partition()
        fields_outside = self.field[~self._couplings.members].abs()
        spins = self.field.new_zeros(1, self.sites)
        all_sites = torch.ones_like(spins, dtype=torch.bool)
        clique = self._couplings.count_log_weights(spins, all_sites).logsumexp(1)
        return float(clique + (fields_outside + torch.log1p(torch.exp(-2 * fields_outside))).sum())

    def moments(self) -> Tensor:
        """Return the exact expected values of the `features`, computed from a list of all states.

        Returns:
            Expected values (N(N-1)/2 + N,) float64 of the pair products, then of the spins.

        Raises:
            InputError: If there are too many states to list.
        """
        spins, distribution = _signs(self.states()), self.probabilities()
        products = self._upper_entries(spins.T @ (distribution[:, None] * spins))
        return torch.cat((self._pair_factor * products, distribution @ spins))

    def site_tables(self) -> SiteTables:
        """Return the conditional distribution of each site given its neighbors, as tables for compiled Gibbs sweeps.

        Raises:
            InputError: If the tables would be too large.
        """
        return ising_tables(self.coupling, self.field)

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """Return log p(x_i | all other sites) for one site i per row.

        Args:
            tokens: States (rows, N) int64. The token at the given site is ignored.
            sites: Index i (rows,) int64 of the site of each row.

        Returns:
            Log-probabilities (rows, 2) float64 of the tokens 0 and 1.

        Raises:
            InputError: If a token or site is out of range, or a shape is wrong.
        """
        spins = self._spins(tokens)
        sites = site_indices(sites, len(spins), self.sites)
        local = self._couplings.local_at(spins, sites) + self.field[sites]
        return _log_probs(2 * local)

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """Return log p(x_i | all other sites) for every site i.

        Args:
            tokens: States (rows, N), 0 for spin -1 and 1 for spin +1.

        Returns:
            Log-probabilities (rows, N, 2) float64 of the tokens 0 and 1.
        """
        return _log_probs(2 * (self._couplings.local(self._spins(tokens)) + self.field))

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return the marginal log-probabilities of every masked site given the spins outside the mask.

        Args:
            tokens: States (rows, N) int64. Tokens at masked sites are ignored.
            masked: Mask (rows, N) bool, with any number of sites per row.

        Returns:
            Log-probabilities (rows, N, 2) float64. At sites outside the mask, the log-probability is 0 for the given
            token and -inf for the other one.

        Raises:
            InputError: If a token is out of range, or the shape or type of the mask is wrong. Also if a mask has more
                than `TABLE_SITES` sites and the couplings are not a clique.
        """
        spins, tokens = self._spins(tokens), torch.as_tensor(tokens).long()
        require_bools("masked", masked, tuple(tokens.shape), "give one bool for each token")
        if isinstance(self._couplings, Clique):
            odds = torch.where(
                self._couplings.members, self._couplings.log_odds(spins, masked), 2 * self.field
            )
            log_probs = _log_probs(odds)
        else:
            log_probs = spins.new_zeros(*tokens.shape, 2)
            weights, order, is_padding = block_table(self._couplings, self.field, spins, masked, TABLE_SITES)
            marginals = table_marginals(weights, is_padding)
            rows = torch.arange(len(tokens), device=self.device)[:, None].expand_as(order)
            log_probs[rows[~is_padding], order[~is_padding]] = marginals[~is_padding]
        given = torch.nn.functional.one_hot(tokens, 2).double().log()
        return torch.where(masked[:, :, None], log_probs, given)

    def draw_block(self, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
        """Sample a block of sites jointly given all other sites.

        Args:
            tokens: States (rows, N) int64.
            block: Mask (rows, N) bool of the sites to sample, with any number of sites per row.
            choose: Function that samples one value per row. It receives log-weights (k, values) and row
                indices (k,).

        Returns:
            A copy of `tokens` with new values at the sites of the block.

        Raises:
            InputError: If a block has more than `TABLE_SITES` sites and the couplings are not a clique.
        """
        sampled, size = tokens.clone(), block.sum(1)
        # The method is selected for each row, so the sample of a row does not depend on the other rows.
        large = (size > COUNTED_SITES) & isinstance(self._couplings, Clique)
        rows = large.nonzero()[:, 0]
        if isinstance(self._couplings, Clique) and len(rows):
            sampled[rows] = self._draw_by_magnetization(
                self._couplings, tokens[rows], block[rows], rows, choose
            )
        rows = ((size > 0) & ~large).nonzero()[:, 0]
        if len(rows):
            spins, couplings = _signs(tokens[rows]), self._couplings
            weights, order, is_padding = block_table(couplings, self.field, spins, block[rows], TABLE_SITES)
            values = enumerate_sequences(2, order.shape[1], self.device)[choose(weights, rows)]
            values = torch.where(is_padding, sampled[rows].gather(1, order), values)
            sampled[rows] = sampled[rows].scatter(1, order, values)
        return sampled

    @validated
    def sample(self, n: Natural, seed: Natural = 0) -> Tensor:
        """Sample independent states exactly.

        Args:
            n: Number of states.
            seed: Random seed (default: 0). Sample i depends on the seed and on i only.

        Returns:
            Tokens (n, N) int64, 0 for spin -1 and 1 for spin +1.

        Raises:
            InputError: If there are too many states to list and the couplings are not a clique.
        """
        rows = torch.arange(n, device=self.device)
        streams = Streams(derive_seed(seed, "ising"), rows)
        if isinstance(self._couplings, Clique) and self.sites > COUNTED_SITES:
            down = rows.new_zeros(n, self.sites)
            all_sites = torch.ones_like(down, dtype=torch.bool)
            return self._draw_by_magnetization(self._couplings, down, all_sites, rows, streams.choose)
        cumulative = self.probabilities().cumsum(0)
        index = torch.searchsorted(cumulative, streams.uniform(rows) * cumulative[-1], right=True)
        return self.states()[index.clamp_max(len(cumulative) - 1)]

    def _draw_by_magnetization(
        self, clique: Clique, tokens: Tensor, block: Tensor, rows: Tensor, choose: Choose
    ) -> Tensor:
        tokens = clique.draw(tokens, block, rows, choose)
        for site in (~clique.members & block.any(0)).nonzero()[:, 0].tolist():
            selected = block[:, site].nonzero()[:, 0]
            log_probs = _log_probs(2 * self.field[site]).expand(len(selected), 2)
            tokens[selected, site] = choose(log_probs, rows[selected])
        return tokens


def _signs(tokens: Tensor) -> Tensor:
    return 2.0 * tokens.double() - 1


def _log_probs(odds: Tensor) -> Tensor:
    """Return log P(-1) and log P(+1) (..., 2) from the log-odds (...) of +1."""
    return torch.stack((logsigmoid(-odds), logsigmoid(odds)), -1)
