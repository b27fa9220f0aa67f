"""Batch of sequences that the engine extends, shortens and removes."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.indices import require_int64
from trialogue.oracles import Autoregressive, as_context, as_oracle
from trialogue.samplers.penalties import Penalties
from trialogue.samplers.prefix.batch import kernels
from trialogue.samplers.prefix.batch.evaluations import Evaluations
from trialogue.samplers.prefix.batch.rows import BatchRows, EndConditions, Stop, StopConditions
from trialogue.samplers.prefix.batch.scores import Scores
from trialogue.samplers.prefix.batch.shared_results import CostAccount, Meter, SharedResults
from trialogue.samplers.prefix.batch.tree import Root
from trialogue.samplers.prefix.batch.view import View
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.truncation import Truncated

DEFAULT_MEMORY = 1 << 16
# The tree holds at most 16 prefixes for each cached prefix, and at least 65,536.
_NODES_PER_CACHED_NODE, _MIN_NODE_LIMIT = 16, 1 << 16


class Batch(View):
    """A batch of growing sequences (rows), each a prompt and the completion so far, with cached model evaluations.

    Each row has a `settings_id`, an integer that identifies its settings, such as verifier and truncation.

    Args:
        oracle: The model to sample from.
        slots: Maximum number of rows. Each row uses one storage row of the model's key-value cache.
        capacity: Maximum number of tokens of a row.
        layers: Blocks after which hidden states are stored (default: none).
        memory: Number of prefixes whose features (vectors from which distributions are computed) are cached.
        stop: Stop condition, or a mapping from `settings_id` to a stop condition (default: none).
        scored: Accumulate the log-probability of each completion before truncation (default: False).
        truncations: Truncation of the next-token distributions by `settings_id`, if it differs between rows.
        penalties: Changes of the model's distribution by `settings_id`. Requires `truncations` (default: none).
        stores_distributions: Cache distributions by prefix. This costs time and memory, and is useful if rows return
            to earlier prefixes (default: True).
    """

    def __init__(
        self,
        oracle: Autoregressive,
        slots: int,
        capacity: int,
        *,
        layers: tuple[int, ...] = (),
        memory: int = DEFAULT_MEMORY,
        stop: Stop | Mapping[int, Stop] | None = None,
        scored: bool = False,
        truncations: Mapping[int, Truncated] | None = None,
        penalties: Mapping[int, Penalties] | None = None,
        stores_distributions: bool = True,
    ) -> None:
        oracle = as_oracle(oracle)
        self._max_nodes = max(_MIN_NODE_LIMIT, _NODES_PER_CACHED_NODE * memory)
        shared = SharedResults(oracle.vocab_size, memory, stores_distributions)
        account = CostAccount(Meter(0), torch.arange(0))
        stopping = None if stop is None else StopConditions(stop, shared.tree)
        rows = BatchRows(shared.tree, capacity, EndConditions(oracle.eos, oracle.prompts_go_on, stopping))
        context = as_context(oracle.open(slots, capacity, layers))
        evaluated = torch.full((slots, capacity + 1), -1)
        evaluations = Evaluations(lambda: context, evaluated, rows.lengths, rows, shared, account)
        scores = Scores(capacity) if scored else None
        scratch_rows = max(slots, oracle.batch_size)
        super().__init__(
            oracle.vocab_size,
            rows,
            evaluations,
            shared,
            account,
            scratch_rows,
            scores,
            truncations,
            penalties,
        )

    @property
    def log_prob(self) -> Tensor:
        """Log-probabilities (rows,) float64 of the completions under the model, before truncation.

        NaN if a token was appended without its distribution.
        """
        assert self._scores is not None, "create the batch with scored=True"
        return self._scores.values.gather(1, self._rows.lengths[:, None])[:, 0]

    def token_log_probs(self, rows: Tensor) -> Tensor:
        """Return the log-probability under the model of each completion token, before truncation.

        Args:
            rows: Row indices (n,) int64.

        Returns:
            Log-probabilities (n, capacity) float64, 0 at positions outside of the completion.
        """
        assert self._scores is not None, "create the batch with scored=True"
        scores = self._scores.values[rows].diff(dim=1)
        places = torch.arange(scores.shape[1])
        within = (places >= self.start[rows, None]) & (places < self.lengths[rows, None])
        return torch.where(within, scores, 0.0)

    def add(
        self, tokens: Tensor, lengths: Tensor, start: Tensor, limit: Tensor, settings_id: Tensor | None = None
    ) -> None:
        """Add new sequences to the batch, below the existing rows.

        Args:
            tokens: Token ids (n, capacity) of n sequences, each a prompt and possibly a completion, padded on the
                right.
            lengths: Number (n,) of tokens of each sequence.
            start: Number (n,) of these tokens that belong to the prompt.
            limit: Length (n,) at which each sequence is complete.
            settings_id: Identifier (n,) of the settings of each sequence, such as its verifier (default: 0).
        """
        self._rows.add(tokens, lengths, start, limit, settings_id)
        self._evaluations.add(len(tokens))
        if self._scores is not None:
            self._scores.add(len(tokens))
        self.meter.extend(len(tokens))
        if self.waited is not None:
            self.waited = torch.cat((self.waited, torch.zeros_like(lengths)))
        self._account.owner = self._rows.all_rows

    def select(self, rows: Tensor) -> None:
        """Keep only the rows with indices `rows` (n,), in this order, and free the storage of all others."""
        self._rows.select(rows)
        self._evaluations.select(rows)
        if self._scores is not None:
            self._scores.select(rows)
        self.meter.select(rows)
        if self.waited is not None:
            self.waited = self.waited[rows]
        self._account.owner = self._rows.all_rows

    def forget(self, roots: Iterable[Root]) -> None:
        """Free the cached results of prompts that are not used again.

        Args:
            roots: Pairs of a prompt and its settings_id, with which no current or future row of the batch
                begins.
        """
        self._renumber(self.shared.tree.forget(roots))

    def shrink(self) -> None:
        """If too many prefixes are cached, remove some that are in no row."""
        if self.shared.tree.size > self._max_nodes:
            path = self._rows.path
            held = torch.arange(path.shape[1]) <= self._rows.lengths[:, None]
            self._renumber(self.shared.tree.shrink(self._max_nodes, path[held]))

    def _renumber(self, new: Tensor | None) -> None:
        """Update all stored ids of prefixes after some have been removed.

        Id i becomes `new[i]`, or is removed if that is -1. None means that nothing has changed.
        """
        if new is not None:
            for cache in self.shared.distributions.values():
                cache.renumber(new)
            for part in (self.shared.memory, self.shared.children, self._rows, self._evaluations):
                part.renumber(new)

    def apply(self, moves: Moves) -> None:
        """Change all rows by the moves of one sampler step.

        Each row becomes a copy of the first tokens of its source row (often itself), followed by at most one new token.

        Args:
            moves: Source row, number of tokens to keep, and appended token of each row.

        Raises:
            InputError: If a source is not a row of the batch, or a token is outside of the vocabulary or does not fit.
        """
        source, held = moves.source, self._rows.lengths
        for field in ("source", "length", "token"):
            hint = f"give one int64 number for each of the {len(held)} rows"
            require_int64(f"moves.{field}", getattr(moves, field), (len(held),), hint)
        if not torch.equal(source, self._rows.all_rows):
            place = kernels.first_misplaced(source.numpy(), moves.length.numpy(), held.numpy())
            if place >= 0:
                wrong = (int(source[place]), int(moves.length[place]))
                hint = f"choose a source in the batch for row {place}, and at most the length of this source"
                raise InputError("moves", wrong, hint)
            moved, held = (source != self._rows.all_rows).nonzero()[:, 0], held[source]
            self._continue_from(source[moved], moved, moves.length[moved])
        self._rows.advance(held, moves.length, moves.token)
        if self._scores is not None:
            self._scores.apply(moves)

    def _continue_from(self, source: Tensor, rows: Tensor, lengths: Tensor) -> None:
        self._rows.continue_from(source, rows)
        if self._scores is not None:
            self._scores.continue_from(source, rows)
        self._evaluations.continue_from(source, rows, lengths)
