"""Read-only view of a batch of sequences for samplers and verifiers."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.indices import first_outside, require_int64
from trialogue.oracles import Decoding
from trialogue.oracles.output_checks import require_log_probs
from trialogue.samplers.penalties import Penalties
from trialogue.samplers.prefix.batch import kernels
from trialogue.samplers.prefix.batch.distribution_cache import Distributions
from trialogue.samplers.prefix.batch.evaluations import Evaluations
from trialogue.samplers.prefix.batch.rows import BatchRows
from trialogue.samplers.prefix.batch.scores import Scores
from trialogue.samplers.prefix.batch.shared_results import CostAccount, Meter, SharedResults
from trialogue.samplers.truncation import Truncated

_MAX_WAIT = 64
"""Number of consecutive steps that a row may wait for others before its prefix is evaluated."""


class View(Decoding):
    """Read-only batch of sequences (rows) that samplers and verifiers receive. Also computes next-token distributions.

    Args:
        vocab_size: Number of tokens.
        rows: The sequences.
        evaluations: Evaluations of the sequences by the model.
        shared: Results that all rows of the run share.
        account: Counters of the rows.
        scratch_rows: Recommended number of children (rows followed by one token) to evaluate at once.
        scores: Accumulated log-probabilities, which receive each computed distribution (default: none).
        truncations: Truncation of the next-token distributions by `settings_id`, if it differs between rows.
        penalties: Changes of the model's distribution by `settings_id` (default: none).

    Attributes:
        waited: Number (rows,) int64 of consecutive steps in which each row has waited for others to join a
            forward pass. None outside of a run.
    """

    def __init__(
        self,
        vocab_size: int,
        rows: BatchRows,
        evaluations: Evaluations,
        shared: SharedResults,
        account: CostAccount,
        scratch_rows: int,
        scores: Scores | None = None,
        truncations: Mapping[int, Truncated] | None = None,
        penalties: Mapping[int, Penalties] | None = None,
    ) -> None:
        self._truncations, self._penalties = truncations, penalties
        self.vocab_size, self.eos, self.scratch_rows = vocab_size, rows.ends.eos, scratch_rows
        self._rows, self._evaluations, self._scores = rows, evaluations, scores
        self.shared, self._account = shared, account
        self.waited: Tensor | None = None

    @property
    def tokens(self) -> Tensor:
        """Token ids (rows, capacity) int64 of prompts and completions."""
        return self._rows.tokens

    @property
    def lengths(self) -> Tensor:
        """Lengths (rows,) int64 of prompts and completions."""
        return self._rows.lengths

    @property
    def start(self) -> Tensor:
        """Lengths (rows,) int64 of the prompts."""
        return self._rows.start

    @property
    def limit(self) -> Tensor:
        """Lengths (rows,) int64 at which rows are complete."""
        return self._rows.limit

    @property
    def settings_id(self) -> Tensor:
        """Integer (rows,) int64 that identifies the settings of each row, such as its verifier and stop condition."""
        return self._rows.settings_id

    @property
    def complete(self) -> Tensor:
        """Whether each row (rows,) is complete."""
        return self._rows.complete

    @property
    def node(self) -> Tensor:
        """Node ids (rows,) int64 of the sequences. Equal ids mean equal prefixes of the same prompt."""
        return self._rows.node

    def nodes(self, rows: Tensor) -> Tensor:
        """Return the node ids (n,) of `rows` (n,). Equal ids mean equal prefixes of the same prompt."""
        return self._rows.path[rows, self._rows.lengths[rows]]

    @property
    def growing(self) -> Tensor:
        """Indices (n,) of the rows that are not complete."""
        return self._rows.growing

    @property
    def meter(self) -> Meter:
        """Costs of the rows of the run."""
        return self._account.meter

    def log_probs(self, rows: Tensor, lengths: Tensor | None = None, cut: bool = True) -> Tensor:
        """Return the next-token log-probabilities of each row. This counts one query per row.

        Args:
            rows: Row indices (n,) int64.
            lengths: Lengths (n,) to which the rows are cut (default: their lengths).
            cut: Apply top-k and top-p (default: True).

        Returns:
            Log-probabilities (n, vocab).

        Raises:
            InputError: If a row does not exist, or a length exceeds the length of its row.
        """
        lengths = self._validate_lengths(rows, lengths)
        distributions = self._next_token(rows, lengths, cut, counting=True)
        if self._scores is not None:
            self._scores.add_distributions(rows, lengths, distributions[-1])
        return distributions[0]

    def _next_token(self, rows: Tensor, lengths: Tensor, cut: bool, *, counting: bool) -> Distributions:
        """Return the next-token distributions after the first `lengths` (n,) tokens of `rows` (n,)."""
        features = self._evaluations.features(rows, lengths, counting=counting)
        if features.shape[1] < self.vocab_size and self.shared.distributions:
            nodes = self._rows.take(self._rows.path, rows).gather(1, lengths[:, None])[:, 0]
            return self.shared.distributions[cut].get(
                nodes, lambda selected: self._distributions(features[selected], cut, rows, lengths, selected)
            )
        # A small output head, or none, is computed as fast as its cached outputs are copied. The cache may also be off.
        return self._distributions(features, cut, rows, lengths)

    def ready(self, rows: Tensor) -> Tensor:
        """Return which of `rows` (n,) should request their distribution in this step, as (n,) bool.

        If the distributions of some rows are cached, only these are ready. The others wait, so that later
        more rows share a forward pass.
        """
        ready = torch.ones(len(rows), dtype=torch.bool)
        if self.waited is None:
            return ready
        is_cached = self.shared.memory.contains(self.nodes(rows))
        if bool(is_cached.any()) and bool((self.waited[rows] < _MAX_WAIT)[~is_cached].all()):
            ready = is_cached
        self.waited[rows] = torch.where(ready, 0, self.waited[rows] + 1)
        return ready

    def completion_log_probs(self, rows: Tensor) -> Tensor:
        """Return the log-probability (n,) float64 of each completion so far, with temperature and truncation.

        Args:
            rows: Row indices (n,) int64.
        """
        lengths, start, place = self._validate_lengths(rows), self.start[rows], torch.arange(len(rows))
        path, tokens = self._rows.path[rows], self.tokens[rows]
        table = self.shared.log_prob.values
        table[path[place, start]] = 0.0
        unknown = table[path].isnan() & (torch.arange(path.shape[1]) <= lengths[:, None])
        first = int(start.min()) if len(rows) else 0
        for length in unknown.any(0).nonzero()[:, 0].tolist():
            new = (unknown[:, length] & (start < length)).nonzero()[:, 0] if length > first else place[:0]
            if len(new):
                before = torch.full_like(new, length - 1)
                distributions = self._normalised(rows[new], before)
                added = distributions[torch.arange(len(new)), tokens[new, length - 1]]
                table[path[new, length]] = table[path[new, length - 1]] + added
        return table[path[place, lengths]]

    def continuation_log_probs(self, rows: Tensor) -> Tensor:
        """Return the log-probability (n, vocab) float64 of each completion followed by each token.

        Args:
            rows: Indices (n,) int64 of rows that are not complete.
        """
        return self.completion_log_probs(rows)[:, None] + self._normalised(rows, self._validate_lengths(rows))

    def _normalised(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """Return the next-token log-probabilities (n, vocab) float64 of prefixes, without counting model calls."""
        return self._next_token(rows, lengths, True, counting=False)[0].double().log_softmax(1)

    def cut(self, log_probs: Tensor, rows: Tensor | None = None) -> Tensor:
        """Apply the run's top-k and top-p to given log-probabilities, and normalise.

        Args:
            log_probs: Log-probabilities (n, vocab), not necessarily normalised.
            rows: Indices (n,) int64 of the rows to which they belong. Needed only if top-k or top-p differ
                between rows.

        Returns:
            Log-probabilities (n, vocab).

        Raises:
            InputError: If `rows` is None and the truncation differs between rows.
        """
        if self._truncations is None:
            return self._evaluations.context.cut(log_probs)
        if rows is None:
            different = set(self._truncations.values())
            if len(different) != 1:
                hint = "give the rows of the distributions, because their truncations differ"
                raise InputError("rows", None, hint)
            return different.pop().cut(log_probs)
        return self._apply_by_truncation(log_probs, rows, Truncated.cut)

    def _distributions(
        self, features: Tensor, cut: bool, rows: Tensor, lengths: Tensor, selected: Tensor | None = None
    ) -> Distributions:
        """Compute next-token distributions from `features` (m, features) of `rows` (n,), or of `rows[selected]`.

        The rows are shortened to `lengths` (n,).
        """
        truncated, untruncated = self._evaluations.context.distributions(features, cut)
        if not self.shared.checked:
            shape = (len(features), self.vocab_size)
            require_log_probs("oracle", untruncated, shape)
            if truncated is not untruncated:
                require_log_probs("oracle", truncated, shape)
            self.shared.checked = True
        if self._truncations is not None:
            own = _as_float32(untruncated).to(self._rows.tokens.device)
            if selected is not None:
                rows, lengths = rows[selected], lengths[selected]
            changed = self._penalised(own, features, rows, lengths) if self._penalties else own
            return self._apply_by_truncation(
                changed, rows, Truncated.truncate if cut else Truncated.temper
            ), own
        different = (truncated,) if untruncated is truncated else (truncated, untruncated)
        # Sampling and verifier values need at least single precision.
        return tuple(_as_float32(distributions).to(self._rows.tokens.device) for distributions in different)

    def _penalised(self, own: Tensor, features: Tensor, rows: Tensor, lengths: Tensor) -> Tensor:
        """Apply the penalties of each of `rows` (n,) to the log-probabilities `own` (n, vocab) of the model."""
        assert self._penalties is not None
        places: dict[Penalties, list[int]] = {}
        for place, settings_id in enumerate(self._rows.settings_id[rows].tolist()):
            if settings_id in self._penalties:
                places.setdefault(self._penalties[settings_id], []).append(place)
        changed = own.clone() if places else own
        for penalties, chosen in places.items():
            those = rows[chosen]
            changed[chosen] = penalties.log_probs(
                self._evaluations.context,
                features[chosen],
                own[chosen],
                self._rows.tokens[those],
                lengths[chosen],
                self._rows.start[those],
            )
        return changed

    def _apply_by_truncation(
        self, log_probs: Tensor, rows: Tensor, alter: Callable[[Truncated, Tensor], Tensor]
    ) -> Tensor:
        """Apply `alter` to `log_probs` (n, vocab), in one call for each group of rows with the same truncation."""
        assert self._truncations is not None
        places: dict[Truncated, list[int]] = {}
        for place, settings_id in enumerate(self._rows.settings_id[rows].tolist()):
            places.setdefault(self._truncations[settings_id], []).append(place)
        if len(places) == 1:
            return alter(next(iter(places)), log_probs)
        altered = torch.empty_like(log_probs)
        for truncation, own in places.items():
            altered[own] = alter(truncation, log_probs[own])
        return altered

    def hidden(self, layer: int, rows: Tensor) -> Tensor:
        """Return hidden states of the model at the last position of rows.

        Args:
            layer: Number of blocks after which the state is read.
            rows: Row indices (n,) int64.

        Returns:
            Hidden states (n, width).
        """
        features = self._evaluations.features(rows, self._validate_lengths(rows))
        return self._evaluations.context.hidden(features, layer)

    def _validate_lengths(self, rows: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Validate `lengths` (n,) to which `rows` (n,) are shortened, and default to the full lengths."""
        held = self._rows.lengths
        if rows is not self._rows.all_rows:
            self._require_rows(rows)
            if lengths is None:
                return held[rows]
        elif lengths is None:
            return held
        require_int64("lengths", lengths, (len(rows),), "give one length in int64 for each row")
        place = kernels.first_misplaced(rows.numpy(), lengths.numpy(), held.numpy())
        if place >= 0:
            wrong = (int(rows[place]), int(lengths[place]))
            hint = "give rows of the batch, and lengths up to the lengths of these rows"
            raise InputError("rows, lengths", wrong, hint)
        return lengths

    def _require_rows(self, rows: Tensor) -> None:
        """Raise `InputError` unless all of `rows` (n,) int64 are rows of the batch."""
        require_int64("rows", rows, (None,), "give row indices (n,) in int64")
        index = first_outside(rows, len(self._rows))
        if index is not None:
            raise InputError(
                "rows", index, f"give indices below {len(self._rows)}, the number of rows of the batch"
            )

    def count_verifier_calls(self, rows: Tensor) -> None:
        """Count one verifier call for each row in `rows` (n,)."""
        kernels.count(self.meter.verifier_calls.numpy(), self._account.owner.numpy(), rows.numpy())

    def peek(self, tokens: Tensor, rows: Tensor) -> "View":
        """Return a temporary batch, in which each row is a row of this batch followed by one token.

        Its costs are added to the counters of the rows that it continues.

        Args:
            tokens: One token (n,) for each new row.
            rows: Row (n,) that each new row continues.

        Returns:
            A view of n rows.

        Raises:
            InputError: If a row or a token does not exist.
        """
        self._require_rows(rows)
        require_int64("tokens", tokens, (len(rows),), "give one token in int64 for each row")
        token = first_outside(tokens, self.vocab_size)
        if token is not None:
            raise InputError("tokens", token, f"use tokens below {self.vocab_size}")
        children, account = self._rows.children(tokens, rows), self._account.for_children(rows)
        evaluations = self._evaluations.children(rows, children, account)
        return View(
            self.vocab_size,
            children,
            evaluations,
            self.shared,
            account,
            self.scratch_rows,
            truncations=self._truncations,
            penalties=self._penalties,
        )


def _as_float32(log_probs: Tensor) -> Tensor:
    """Return half-precision log-probabilities as float32, and others unchanged."""
    return log_probs.float() if log_probs.dtype in (torch.float16, torch.bfloat16) else log_probs
