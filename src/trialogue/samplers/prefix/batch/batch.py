"""The batch of sequences that the engine moves."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.indices import require_int64
from trialogue.oracles import Autoregressive, as_context, as_oracle
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
    """Batch of rows (sequences) that the engine appends, changes and removes.

    Args:
        oracle: The model to sample from.
        slots: Largest number of rows, each of which has a storage row in the context of the model.
        capacity: Largest number of tokens of a row.
        layers: Blocks after which hidden states are stored (default: none).
        memory: Number of prefixes whose features (vectors from which distributions are computed) are cached.
        stop: Stop condition, or a mapping from the `rule` of a row to its stop condition (default: none). A rule is an
            integer that identifies the settings of a row.
        scored: Accumulate the log-probability of each completion before truncation (default: False).
        truncations: Truncation of the next-token distributions by the `rule` of a row, if it differs between rows.
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
    ) -> None:
        oracle = as_oracle(oracle)
        self._max_nodes = max(_MIN_NODE_LIMIT, _NODES_PER_CACHED_NODE * memory)
        shared, account = SharedResults(oracle.vocab_size, memory), CostAccount(Meter(0), torch.arange(0))
        stopping = None if stop is None else StopConditions(stop, shared.tree)
        rows = BatchRows(shared.tree, capacity, EndConditions(oracle.eos, oracle.prompts_go_on, stopping))
        context = as_context(oracle.open(slots, capacity, layers))
        evaluated = torch.full((slots, capacity + 1), -1)
        evaluations = Evaluations(lambda: context, evaluated, rows.lengths, rows, shared, account)
        scores = Scores(capacity) if scored else None
        scratch_rows = max(slots, oracle.batch_size)
        super().__init__(
            oracle.vocab_size, rows, evaluations, shared, account, scratch_rows, scores, truncations
        )

    @property
    def log_prob(self) -> Tensor:
        """Log-probabilities (rows,) float64 of the completions under the model, before truncation.

        NaN if a token was appended without computing its distribution in the same step.
        """
        assert self._scores is not None, "create the batch with scored=True"
        return self._scores.values.gather(1, self._rows.lengths[:, None])[:, 0]

    def token_log_probs(self, rows: Tensor) -> Tensor:
        """Return the log-probabilities before truncation of the tokens of some rows.

        Args:
            rows: Rows (n,) int64.

        Returns:
            Log-probabilities (n, capacity) float64, zero outside of the completions.
        """
        assert self._scores is not None, "create the batch with scored=True"
        scores = self._scores.values[rows].diff(dim=1)
        places = torch.arange(scores.shape[1])
        within = (places >= self.start[rows, None]) & (places < self.lengths[rows, None])
        return torch.where(within, scores, 0.0)

    def add(
        self, tokens: Tensor, lengths: Tensor, start: Tensor, limit: Tensor, rule: Tensor | None = None
    ) -> None:
        """Append rows.

        Args:
            tokens: Token ids (n, capacity).
            lengths: Lengths (n,) of prompt and completion.
            start: Lengths (n,) of the prompts.
            limit: Lengths (n,) at which rows are complete.
            rule: Integer (n,) that identifies the settings of each row, such as its verifier (default: 0).
        """
        self._rows.add(tokens, lengths, start, limit, rule)
        self._evaluations.add(len(tokens))
        if self._scores is not None:
            self._scores.add(len(tokens))
        self.meter.extend(len(tokens))
        if self.waited is not None:
            self.waited = torch.cat((self.waited, torch.zeros_like(lengths)))
        self._account.owner = self._rows.all_rows

    def select(self, rows: Tensor) -> None:
        """Remove all rows except `rows` (n,), which are put in this order, and free their storage."""
        self._rows.select(rows)
        self._evaluations.select(rows)
        if self._scores is not None:
            self._scores.select(rows)
        self.meter.select(rows)
        if self.waited is not None:
            self.waited = self.waited[rows]
        self._account.owner = self._rows.all_rows

    def forget(self, roots: Iterable[Root]) -> None:
        """Remove all cached results of prompts that are not used again.

        Args:
            roots: Prompts with their rules. No row of the batch may begin with them, now or later.
        """
        self._renumber(self.shared.tree.forget(roots))

    def shrink(self) -> None:
        """Remove prefixes that no row contains from the tree, leaves first, if the tree exceeds its maximum size."""
        if self.shared.tree.size > self._max_nodes:
            path = self._rows.path
            held = torch.arange(path.shape[1]) <= self._rows.lengths[:, None]
            self._renumber(self.shared.tree.shrink(self._max_nodes, path[held]))

    def _renumber(self, new: Tensor | None) -> None:
        """Replace node ids by `new` (nodes,), -1 for removed nodes. None means no change."""
        if new is not None:
            for cache in self.shared.distributions.values():
                cache.renumber(new)
            for part in (self.shared.memory, self.shared.children, self._rows, self._evaluations):
                part.renumber(new)

    def apply(self, moves: Moves) -> None:
        """Update every row: copy the first tokens of its source row, then append at most one token.

        Args:
            moves: Source, number of tokens to keep, and appended token of each row.

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
