"""The distribution of a chain of windows of one length, with all that samplers ask of it answered by transfer
matrices.
"""

import math
from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import max_pool1d, one_hot

from trialogue.arrays import require_bools
from trialogue.data.enumerable import Enumerable
from trialogue.data.potts.messages import Messages, checked_tokens, window_numbers
from trialogue.data.potts.sampling import Tables, alias_tables, all_fit, draw_sequences
from trialogue.data.potts.window_tables import window_tables
from trialogue.data.site_tables import SiteTables
from trialogue.indices import site_indices
from trialogue.oracles import Joint, Masked, sites_of
from trialogue.randomness import Choose
from trialogue.validation import Natural, validated

_AT_ONCE = 2**22


class PottsDistribution(Masked, Enumerable, Joint):
    """p(x) ∝ exp(sum over i of log_weights[x_i, ..., x_(i+W-1)]) on sequences x of N = `sites` tokens, open ends.

    It is an energy, a masked oracle whose conditionals are exact for any mask, and draws blocks of any size jointly, in
    time that grows with the block. `messages` are those of the log-weights; `PottsChain.at` makes them.
    """

    sites: int
    device = torch.device("cpu")

    def __init__(self, messages: Messages, sites: int) -> None:
        self.messages = messages
        self.vocab_size, self.window, self.sites = messages.vocab, messages.window, sites

    @property
    def energies(self) -> Tensor:
        """What a window (V, ..., V) of W axes adds to the energy: that of the chain over its temperature."""
        return -self.messages.log_weights.view([self.vocab_size] * self.window)

    def energy(self, tokens: Tensor) -> Tensor:
        """E(x) (rows,) float64 of `tokens` (rows, N), with p(x) ∝ exp(-E(x))."""
        tokens = self._checked(tokens)
        return -self.messages.log_weights[window_numbers(tokens, self.vocab_size, self.window)].sum(1)

    def log_partition(self) -> float:
        """log of the sum of exp(-E(x))."""
        return self.messages.log_partition(self.sites - self.window + 1)

    def site_tables(self) -> SiteTables:
        """The conditional distributions of all sites, for compiled sweeps; raises `InputError` where they would
        not fit.
        """
        return window_tables(self.energies, self.sites)

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """log p(x_i | all others) (rows, V) float64 of one site i = `sites` (rows,) of each row, up to a constant.

        Raises `InputError` for tokens that are no sequences of the distribution, and unless there is one site for each.
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
        """log p(x_i | all others) (rows, N, V) float64 of every site i."""
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
        """log p(x_i | x outside the mask) (rows, N, V) float64 of each masked site; others are as they are.

        `masked` (rows, N) bool, of any size. Raises `InputError` for other tokens or masks.
        """
        tokens = self._checked(tokens)
        require_bools("masked", masked, tuple(tokens.shape), "give one bool for each token")
        answer = one_hot(tokens, self.vocab_size).double().log()
        for rows in self._chunks(masked):
            near = _Neighbourhood(self, tokens[rows], masked[rows])
            for column, distribution in enumerate(near.marginals()):
                sites, drawn = near.sites[:, column], near.drawn[:, column]
                answer[rows[drawn], sites[drawn]] = distribution[drawn]
        return answer

    def draw_block(self, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
        """Tokens (rows, N) with x_block drawn jointly given the rest; `block` (rows, N) bool, its size may differ.

        Backward messages given the sites outside, then the sites of a block in order, one choice each.
        """
        drawn = tokens.clone()
        for rows in self._chunks(block):
            near = _Neighbourhood(self, tokens[rows], block[rows])
            values = near.draw(rows, choose)
            row, column = near.drawn.nonzero().unbind(1)
            drawn[rows[row], near.sites[row, column]] = values[row, column]
        return drawn

    @validated
    def sample(self, n: Natural, seed: Natural = 0) -> Tensor:
        """Draw `n` independent sequences (n, N) int64 exactly; sequence i depends on `seed` and i alone."""
        return draw_sequences(self.messages, self._tables or self._made(), n, self.sites, seed)

    @cached_property
    def _tables(self) -> list[Tables]:
        """The tables of all sites; none where they would not fit at once."""
        return list(self._made()) if all_fit(self.messages, self.sites - self.window + 1) else []

    def _made(self) -> Iterator[Tables]:
        return alias_tables(self.messages, self.sites - self.window + 1)

    def _checked(self, tokens: Tensor) -> Tensor:
        return checked_tokens(tokens, self.vocab_size, self.sites, self.sites)

    def _chunks(self, block: Tensor) -> list[Tensor]:
        """Rows (n,) with anything in their block, so many at once that their messages fit."""
        rows = block.any(1).nonzero()[:, 0]
        if not len(rows):
            return []
        most = min(self.sites, int(block.sum(1).max()) * (2 * self.window - 1))
        return list(rows.split(max(1, _AT_ONCE // (self.messages.states * (most + self.vocab_size)))))


class _Neighbourhood:
    """Rows cut down to the sites that share a window with a site of their block, and padded.

    Whole windows of tokens that stay as they are multiply the distribution by a constant. `sites` (rows, M) are in
    order, the padding first, together with W - 1 columns that make the first window whole; `drawn` (rows, M) bool are
    those of the block.
    """

    def __init__(self, distribution: PottsDistribution, tokens: Tensor, block: Tensor) -> None:
        self._messages, reach = distribution.messages, distribution.window - 1
        near = max_pool1d(block.double()[:, None], 2 * reach + 1, 1, reach)[:, 0] > 0
        sites, held = sites_of(near)
        before = torch.zeros(len(tokens), reach, dtype=torch.int64)
        self._reach = reach
        self.sites = torch.cat((before, sites), 1)
        held = torch.cat((before == 0, held), 1)
        self.drawn = block.gather(1, self.sites) & ~held
        self._tokens = tokens.gather(1, self.sites)
        columns = sites.shape[1]
        # Sites ascend behind the padding: W of them span W - 1 steps only where they are successive.
        self._exists = (self.sites[:, reach:] - self.sites[:, :columns] == reach) & ~held[:, :columns]
        self._columns, self._rows = columns, len(tokens)

    def _weights(self, column: int, *shape: int) -> Tensor:
        """Log-weights (rows, *shape) of the window whose last site is in `column`, given what is known of it."""
        messages = self._messages
        weights = torch.where(self._exists[:, column, None], messages.log_weights, 0.0)
        values = torch.arange(messages.vocab)
        last = self.sites.shape[1] - self._columns + column
        known = ~self.drawn[:, last, None] & (values != self._tokens[:, last, None])
        weights = weights.view(self._rows, messages.states, messages.vocab)
        return weights.masked_fill(known[:, None, :], -math.inf).view(self._rows, *shape)

    def _backward(self) -> list[Tensor]:
        """Messages (rows, states) behind each column's window, and before the first."""
        states, vocab = self._messages.states, self._messages.vocab
        messages = [torch.zeros(self._rows, states, dtype=torch.float64)]
        for column in range(self._columns - 1, 0, -1):
            weights = self._weights(column, vocab, states) + messages[-1][:, None, :]
            messages.append(weights.view(self._rows, states, vocab).logsumexp(2))
        return messages[::-1]

    def marginals(self) -> list[Tensor]:
        """log p (rows, V) of every column's site."""
        states, vocab = self._messages.states, self._messages.vocab
        answer = [torch.zeros(self._rows, vocab, dtype=torch.float64)] * self._reach
        forward = torch.full((self._rows, states), -math.inf, dtype=torch.float64)
        first = window_numbers(self._tokens[:, : self._reach], vocab, self._reach)
        forward.scatter_(1, first[:, :1], 0.0)
        for column, backward in enumerate(self._backward()):
            weights = forward[:, :, None] + self._weights(column, states, vocab)
            weights = weights.view(self._rows, vocab, states)
            joint = (weights + backward[:, None, :]).view(self._rows, states, vocab)
            answer.append(joint.logsumexp(1).log_softmax(1))
            forward = weights.logsumexp(1)
        return answer

    def draw(self, rows: Tensor, choose: Choose) -> Tensor:
        """The tokens (rows, M) of `sites` after a joint draw; row i chooses as `rows[i]`."""
        states, vocab = self._messages.states, self._messages.vocab
        tokens, each, values = self._tokens.clone(), torch.arange(self._rows), torch.arange(vocab)
        for column, backward in enumerate(self._backward()):
            (some,) = (drawn := self.drawn[:, self._reach + column]).nonzero().unbind(1)
            if not len(some):
                continue
            context = window_numbers(tokens[drawn, column : column + self._reach], vocab, self._reach)[:, :1]
            window = context * vocab + values
            weights = self._messages.log_weights[window] * self._exists[some, column, None]
            weights = weights + backward[each[some, None], window % states]
            tokens[some, self._reach + column] = choose(weights, rows[some])
        return tokens
