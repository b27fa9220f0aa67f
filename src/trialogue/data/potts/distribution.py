"""Distribution of a Potts chain of fixed length, with exact conditionals and samples."""

import math
from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import max_pool1d, one_hot

from trialogue.arrays import require_bools
from trialogue.data.enumerable import Enumerable
from trialogue.data.potts.messages import Messages, validate_tokens, window_numbers
from trialogue.data.potts.sampling import Tables, alias_tables, draw_sequences, tables_fit_in_memory
from trialogue.data.potts.window_tables import window_tables
from trialogue.data.site_tables import SiteTables
from trialogue.indices import site_indices
from trialogue.oracles import Joint, Masked, list_sites
from trialogue.randomness import Choose
from trialogue.validation import Natural, validated

_MAX_BATCH_ENTRIES = 2**22


class PottsDistribution(Masked, Enumerable, Joint):
    """Distribution of the sequences of a Potts chain of fixed length, with exact conditionals and samples.

    The probability p(x) of a sequence x is proportional to exp(-E(x)), where E(x) is the sum of the energies
    of its windows of W tokens, divided by the temperature. Conditionals for any mask, and joint samples of
    any set of sites, are exact. Create instances with `PottsChain.at`.

    Args:
        messages: Transfer-matrix messages of the log-weights.
        sites: Number N of tokens of a sequence.
    """

    sites: int
    device = torch.device("cpu")

    def __init__(self, messages: Messages, sites: int) -> None:
        self.messages = messages
        self.vocab_size, self.window, self.sites = messages.vocab, messages.window, sites

    @property
    def energies(self) -> Tensor:
        """Energy of each window, divided by the temperature, as a tensor (V, ..., V) with W axes."""
        return -self.messages.log_weights.view([self.vocab_size] * self.window)

    def energy(self, tokens: Tensor) -> Tensor:
        """Return the energy E(x) of each sequence, where p(x) ∝ exp(-E(x)).

        Args:
            tokens: Sequences (rows, N) int64.

        Returns:
            Energies (rows,) float64, divided by the temperature.
        """
        tokens = self._checked(tokens)
        return -self.messages.log_weights[window_numbers(tokens, self.vocab_size, self.window)].sum(1)

    def log_partition(self) -> float:
        """Return the log of the sum of exp(-E(x)) over all V^N sequences."""
        return self.messages.log_partition(self.sites - self.window + 1)

    def site_tables(self) -> SiteTables:
        """Return the conditional distribution of each site given its neighbors, as tables for compiled Gibbs sweeps.

        Raises:
            InputError: If the tables would be too large.
        """
        return window_tables(self.energies, self.sites)

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """Return log p(x_i | all other sites) for one site i per row, up to a constant per row.

        Args:
            tokens: Sequences (rows, N) int64. The token at the given site is ignored.
            sites: Index i (rows,) int64 of the site of each row.

        Returns:
            Log-weights (rows, V) float64 of all values of the site.

        Raises:
            InputError: If a token or site is out of range, or a shape is wrong.
        """
        tokens = self._checked(tokens)
        sites = site_indices(sites, len(tokens), self.sites)
        values = torch.arange(self.vocab_size)
        total = torch.zeros(len(tokens), self.vocab_size, dtype=torch.float64)
        steps = torch.arange(self.window)
        places = self.vocab_size ** steps.flip(0)
        last = self.sites - self.window
        for offset in range(self.window):
            first = sites - offset
            inside = (first >= 0) & (first <= last)
            window = tokens.gather(1, first.clamp(0, last)[:, None] + steps)
            window[:, offset] = 0
            number = (window * places).sum(1)[:, None] + values * places[offset]
            total += torch.where(inside[:, None], self.messages.log_weights[number], 0.0)
        return total

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """Return log p(x_i | all other sites) for every site i.

        Args:
            tokens: Sequences (rows, N) int64.

        Returns:
            Log-probabilities (rows, N, V) float64.
        """
        tokens = self._checked(tokens)
        numbers = window_numbers(tokens, self.vocab_size, self.window)
        windows, values = numbers.shape[1], torch.arange(self.vocab_size)
        total = torch.zeros(*tokens.shape, self.vocab_size, dtype=torch.float64)
        for offset in range(self.window):
            place = self.vocab_size ** (self.window - 1 - offset)
            others = numbers - tokens[:, offset : offset + windows] * place
            total[:, offset : offset + windows] += self.messages.log_weights[
                others[..., None] + values * place
            ]
        return total.log_softmax(2)

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return the marginal log-probabilities of every masked site given the tokens outside the mask.

        Args:
            tokens: Sequences (rows, N) int64. Tokens at masked sites are ignored.
            masked: Mask (rows, N) bool, with any number of sites per row.

        Returns:
            Log-probabilities (rows, N, V) float64. At sites outside the mask, the log-probability is 0 for the given
            token and -inf for all others.

        Raises:
            InputError: If a token is out of range, or a shape or the type of the mask is wrong.
        """
        tokens = self._checked(tokens)
        require_bools("masked", masked, tuple(tokens.shape), "give one bool for each token")
        log_probs = one_hot(tokens, self.vocab_size).double().log()
        for rows in self._chunks(masked):
            near = _Neighbourhood(self, tokens[rows], masked[rows])
            for column, distribution in enumerate(near.marginals()):
                sites, in_block = near.sites[:, column], near.in_block[:, column]
                log_probs[rows[in_block], sites[in_block]] = distribution[in_block]
        return log_probs

    def draw_block(self, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
        """Sample a block of sites jointly given all other sites.

        Args:
            tokens: Sequences (rows, N) int64.
            block: Mask (rows, N) bool of the sites to sample, with any number of sites per row.
            choose: Function that samples one value per row. It receives log-weights (k, V) and row indices
                (k,).

        Returns:
            A copy of `tokens` with new values at the sites of the block.
        """
        sampled = tokens.clone()
        for rows in self._chunks(block):
            near = _Neighbourhood(self, tokens[rows], block[rows])
            values = near.draw(rows, choose)
            row, column = near.in_block.nonzero().unbind(1)
            sampled[rows[row], near.sites[row, column]] = values[row, column]
        return sampled

    @validated
    def sample(self, n: Natural, seed: Natural = 0) -> Tensor:
        """Sample independent sequences exactly.

        Args:
            n: Number of sequences.
            seed: Random seed (default: 0). Sequence i depends on the seed and on i only.

        Returns:
            Token ids (n, N) int64.
        """
        return draw_sequences(self.messages, self._tables or self._generate_tables(), n, self.sites, seed)

    @cached_property
    def _tables(self) -> list[Tables]:
        """Alias tables of all sites, or an empty list if they do not fit into memory at once."""
        fits = tables_fit_in_memory(self.messages, self.sites - self.window + 1)
        return list(self._generate_tables()) if fits else []

    def _generate_tables(self) -> Iterator[Tables]:
        return alias_tables(self.messages, self.sites - self.window + 1)

    def _checked(self, tokens: Tensor) -> Tensor:
        return validate_tokens(tokens, self.vocab_size, self.sites, self.sites)

    def _chunks(self, block: Tensor) -> list[Tensor]:
        """Split the indices of the rows with a nonempty block into batches that limit the size of the messages."""
        rows = block.any(1).nonzero()[:, 0]
        if not len(rows):
            return []
        columns = min(self.sites, int(block.sum(1).max()) * (2 * self.window - 1))
        entries_per_row = self.messages.states * (columns + self.vocab_size)
        return list(rows.split(max(1, _MAX_BATCH_ENTRIES // entries_per_row)))


class _Neighbourhood:
    """The sites on which the resampling of a block of sites depends, in each row of a batch.

    A site belongs to the neighborhood if some window of W tokens contains both it and a site of the block. Rows are
    padded on the left to the same number M of sites.

    Attributes:
        sites: Site indices (rows, M) in ascending order, after W - 1 columns of zeros and the padding.
        in_block: Boolean mask (rows, M) of the sites that belong to the block.
    """

    def __init__(self, distribution: PottsDistribution, tokens: Tensor, block: Tensor) -> None:
        self._messages, reach = distribution.messages, distribution.window - 1
        near = max_pool1d(block.double()[:, None], 2 * reach + 1, 1, reach)[:, 0] > 0
        sites, is_padding = list_sites(near)
        before = torch.zeros(len(tokens), reach, dtype=torch.int64)
        self._reach = reach
        self.sites = torch.cat((before, sites), 1)
        is_padding = torch.cat((before == 0, is_padding), 1)
        self.in_block = block.gather(1, self.sites) & ~is_padding
        self._tokens = tokens.gather(1, self.sites)
        columns = sites.shape[1]
        # Sites after the padding ascend, so W of them are consecutive if the first and the last differ by W - 1.
        self._exists = (self.sites[:, reach:] - self.sites[:, :columns] == reach) & ~is_padding[:, :columns]
        self._columns, self._rows = columns, len(tokens)

    def _weights(self, column: int, *shape: int) -> Tensor:
        """Return the log-weights (rows, *shape) of the window that ends in `column`, given its fixed last token."""
        messages = self._messages
        weights = torch.where(self._exists[:, column, None], messages.log_weights, 0.0)
        values = torch.arange(messages.vocab)
        last = self.sites.shape[1] - self._columns + column
        excluded = ~self.in_block[:, last, None] & (values != self._tokens[:, last, None])
        weights = weights.view(self._rows, messages.states, messages.vocab)
        return weights.masked_fill(excluded[:, None, :], -math.inf).view(self._rows, *shape)

    def _backward(self) -> list[Tensor]:
        """Return the backward message (rows, states) of each column."""
        states, vocab = self._messages.states, self._messages.vocab
        messages = [torch.zeros(self._rows, states, dtype=torch.float64)]
        for column in range(self._columns - 1, 0, -1):
            weights = self._weights(column, vocab, states) + messages[-1][:, None, :]
            messages.append(weights.view(self._rows, states, vocab).logsumexp(2))
        return messages[::-1]

    def marginals(self) -> list[Tensor]:
        """Return log p (rows, V) of the site in each column."""
        states, vocab = self._messages.states, self._messages.vocab
        log_probs = [torch.zeros(self._rows, vocab, dtype=torch.float64)] * self._reach
        forward = torch.full((self._rows, states), -math.inf, dtype=torch.float64)
        first = window_numbers(self._tokens[:, : self._reach], vocab, self._reach)
        forward.scatter_(1, first[:, :1], 0.0)
        for column, backward in enumerate(self._backward()):
            weights = forward[:, :, None] + self._weights(column, states, vocab)
            weights = weights.view(self._rows, vocab, states)
            joint = (weights + backward[:, None, :]).view(self._rows, states, vocab)
            log_probs.append(joint.logsumexp(1).log_softmax(1))
            forward = weights.logsumexp(1)
        return log_probs

    def draw(self, rows: Tensor, choose: Choose) -> Tensor:
        """Sample the sites of the block jointly, and return the tokens (rows, M) of all M columns of `sites`.

        Row i uses the random stream `rows[i]`.
        """
        states, vocab = self._messages.states, self._messages.vocab
        tokens, values = self._tokens.clone(), torch.arange(vocab)
        for column, backward in enumerate(self._backward()):
            (selected,) = self.in_block[:, self._reach + column].nonzero().unbind(1)
            if not len(selected):
                continue
            previous = tokens[selected, column : column + self._reach]
            context = window_numbers(previous, vocab, self._reach)[:, :1]
            window = context * vocab + values
            weights = self._messages.log_weights[window] * self._exists[selected, column, None]
            weights = weights + backward[selected[:, None], window % states]
            tokens[selected, self._reach + column] = choose(weights, rows[selected])
        return tokens
