"""Rejection sampling that never draws a rejected prefix twice (Parys et al. 2025, arXiv 2510.01902)."""

import math
from dataclasses import dataclass
from functools import reduce
from typing import Literal, NamedTuple, cast

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.objects import ObjectColumn
from trialogue.samplers.prefix.contract.sampler import (
    BoundedCount,
    Sampler,
    log_values_as_given,
)
from trialogue.samplers.prefix.masked_decoding import MaskedDecoding
from trialogue.samplers.prefix.rejection_draws import draw
from trialogue.samplers.prefix.rejection_table import (
    ACCEPTED,
    REJECTED,
    RejectionTable,
    Visit,
    merge_tables,
    update_root_table,
)
from trialogue.samplers.prefix.rejection_table_file import table_from_tensors, table_to_tensors
from trialogue.validation import validated

_FALLBACK = MaskedDecoding(mask_first=False)


class AdaptiveRejectionState(NamedTuple):
    """State of `AdaptiveRejection`: what is known about rejected prefixes, and the current attempt of each row.

    An attempt draws one sequence from the prompt until a token is rejected or the sequence is accepted.

    Attributes:
        table: Table of the rejected prefixes of each row's prompt. None before the first attempt has ended.
        visit: Last token drawn in the current attempt of each row. None at the prompt.
        attempts: Number (rows,) int64 of attempts that have ended. It is counted only if attempts are
            bounded.
    """

    table: ObjectColumn
    visit: ObjectColumn
    attempts: Tensor


class WeightedAdaptiveRejectionState(NamedTuple):
    """State of `AdaptiveRejection` with `then="mask"`, which includes importance weights.

    Attributes:
        table: Table of the rejected prefixes of each row's prompt. None before the first attempt has ended.
        visit: Last token drawn in the current attempt of each row. None at the prompt.
        attempts: Number (rows,) int64 of attempts that have ended. Rows with `max_attempts` use masked
            decoding.
        log_weight: Log-weights (rows,) float64.
    """

    table: ObjectColumn
    visit: ObjectColumn
    attempts: Tensor
    log_weight: Tensor


@validated
@dataclass(frozen=True)
class AdaptiveRejection(Sampler[AdaptiveRejectionState | WeightedAdaptiveRejectionState]):
    """Rejection sampling that never draws a rejected prefix twice.

    Sequences are drawn token by token until one is accepted. An attempt ends at the first rejected token, and
    the rejected prefix is stored in a table. Later attempts draw a token with the model's probability times
    the probability that its continuations are not yet known to be rejected.

    All samples follow exactly the model's distribution conditioned on acceptance, as with `Rejection`, and
    need far fewer model calls. Every prefix of an accepted sequence must be accepted by the verifier. With
    top-k, top-p or min-p, the model's distribution is the truncated one. A limit on model calls stops long
    sequences more often than short ones, which biases the samples. A limit on the attempts does not.

    With the fallback to masked decoding, all samples have importance weights, and weighted averages converge to
    the target. A remark states which samples come from masked decoding.

    Args:
        max_attempts: Stop a sample after this many rejected attempts (default: no limit). The sample then fails or
            continues with masked decoding, see `then`.
        share: Share rejected prefixes between the samples of a prompt, in rounds of this many samples. The
            samples of a round start from the table of all rounds before, so later samples need fewer model
            calls. A sample then depends on the random streams of these rounds, too (default: every sample
            starts with an empty table).
        then: Continue a sample with masked decoding after the last attempt, if "mask" (default: the sample
            fails). All samples then have importance weights, whose mean does not estimate the probability that
            the model obeys the constraint.

    Raises:
        InputError: If `then` is given without `max_attempts`.

    Example:
        >>> from trialogue import generate
        >>> from trialogue.data import Table
        >>> from trialogue.samplers import AdaptiveRejection
        >>> table = Table([[0.5, 0.25], [0.0, 0.25]])  # Probabilities of the sequences of two tokens
        >>> samples = generate(table, sampler=AdaptiveRejection(), verifier=lambda x: x != (0, 0), num_samples=4)
        >>> samples.completions()
        [(0, 1), (0, 1), (1, 1), (0, 1)]
    """

    max_attempts: BoundedCount | None = None
    share: BoundedCount | None = None
    then: Literal["mask"] | None = None
    uses = "verdicts"
    is_exact = True
    weights_estimate_mass = False
    failure_reason = "no sequence within the length limit is accepted with all of its prefixes"

    # The weights with then="mask" are unbiased up to a constant factor: the expectation of exp(log_weight) times the
    # indicator of the output x is C p(x), where C is the expected number of attempts and the fallback counts as one.
    # Proof: attempt k happens with a probability r_k that does not depend on x. Given the attempts before, it returns x
    # with probability p(x) / M and weight M, so it contributes r_k p(x). The fallback contributes r_k q(x) p(x) / q(x).
    # C is the sum of all r_k. It depends on the table from which a sample starts, but is the same for all its outputs.

    def __post_init__(self) -> None:
        if self.then is not None and self.max_attempts is None:
            hint = f"give the number of attempts before the fallback, which then={self.then!r} needs"
            raise InputError("max_attempts", None, hint)

    @property
    def weighted(self) -> bool:
        """Whether samples have importance weights: if `then` is given."""
        return self.then is not None

    @property
    def few_children(self) -> bool:
        """Whether a verifier without a mask is evaluated for drawn tokens only: if there is no fallback to masks."""
        return self.then is None

    @property
    def round_size(self) -> int | None:
        """Number of samples of a prompt that start from the same table, None for all."""
        return self.share

    def init(self, decoding: Decoding) -> AdaptiveRejectionState | WeightedAdaptiveRejectionState:
        """Return the initial sampler state of rows that contain only their prompts.

        Args:
            decoding: The batch of sequences (rows), each a prompt and the completion so far.

        Returns:
            Empty tables and no attempts. If `then` is given, also log-weights (rows,) float64, all zero.
        """
        none = ObjectColumn([None] * len(decoding.lengths))
        begun = AdaptiveRejectionState(none, none, torch.zeros_like(decoding.lengths))
        if self.then is None:
            return begun
        return WeightedAdaptiveRejectionState(*begun, torch.zeros(len(decoding.lengths), dtype=torch.float64))

    def merged(
        self,
        start: AdaptiveRejectionState | WeightedAdaptiveRejectionState,
        ends: AdaptiveRejectionState | WeightedAdaptiveRejectionState,
    ) -> AdaptiveRejectionState | WeightedAdaptiveRejectionState:
        """Combine the rejected prefixes found by all samples of a round, as the start of the next round.

        Args:
            start: State of one row, from which all samples of the finished round started.
            ends: Last states of these samples, one row each.

        Returns:
            The state of one row, whose table contains all rejected prefixes.
        """
        table = reduce(merge_tables, cast(tuple[RejectionTable | None, ...], ends.table.items))
        return start._replace(table=ObjectColumn([table]))

    def remarks(self, state: AdaptiveRejectionState | WeightedAdaptiveRejectionState) -> list[str | None]:
        """Describe which samples used up their attempts, and which constraints cannot be satisfied.

        Args:
            state: The state of n rows.

        Returns:
            One phrase or None for each row.
        """
        remarks = list[str | None]()
        for row, is_used_up in enumerate(self._has_used_attempts(state.attempts).tolist()):
            table = cast(RejectionTable | None, state.table.items[row])
            remark = None
            if table is not None and table.log_open == -math.inf:
                remark = self.failure_reason
            elif is_used_up:
                remark = f"no sequence accepted in max_attempts={self.max_attempts} attempts"
                if isinstance(state, WeightedAdaptiveRejectionState):
                    fails = float(state.log_weight[row]) == -math.inf
                    remark += (
                        ", and no token allowed in masked decoding" if fails else ", then masked decoding"
                    )
            remarks.append(remark)
        return remarks

    def _has_used_attempts(self, attempts: Tensor) -> Tensor:
        """Return whether each row has reached `max_attempts`, as (rows,) bool."""
        return attempts >= (math.inf if self.max_attempts is None else self.max_attempts)

    def state_tensors(
        self, state: AdaptiveRejectionState | WeightedAdaptiveRejectionState
    ) -> dict[str, Tensor]:
        """Convert the state of one row to tensors, which can be stored in a file."""
        return table_to_tensors(cast(RejectionTable | None, state.table.items[0]))

    def state_from_tensors(
        self, tensors: dict[str, Tensor], initial: AdaptiveRejectionState | WeightedAdaptiveRejectionState
    ) -> AdaptiveRejectionState | WeightedAdaptiveRejectionState:
        """Restore the state of one row from the tensors that `state_tensors` has returned."""
        return initial._replace(table=ObjectColumn([table_from_tensors(tensors)]))

    def step(
        self,
        decoding: Decoding,
        state: AdaptiveRejectionState | WeightedAdaptiveRejectionState,
        verifier: CachedVerifier,
        choose: Choose,
    ) -> tuple[Moves, AdaptiveRejectionState | WeightedAdaptiveRejectionState]:
        """Verify the last token of each row, and draw the next token for rows that are accepted so far.

        If the last token is rejected, the row returns to its prompt, and the rejected prefix is recorded in a
        table. A row is marked as done if it is complete and accepted, or if the table excludes all sequences.
        After the last allowed attempt, it is marked as done or continues with masked decoding.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            state: For each row, the table of its prompt, the last drawn token and the number of attempts.
            verifier: Masks and values of the rows. The value 0 rejects the last token.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            How each row changes (`Moves`), and the new state.
        """
        moves = Moves.stay(decoding)
        tables = cast(list[RejectionTable | None], list(state.table.items))
        visits = cast(list[Visit | None], list(state.visit.items))
        accepted = _accepts_last_token(decoding, visits, verifier)
        fallen = self._has_used_attempts(state.attempts)
        failed = (~accepted).nonzero()[:, 0].tolist()
        ends: dict[int, RejectionTable | None] = dict.fromkeys(failed, REJECTED)
        drawing = (accepted & ~decoding.complete & ~fallen).nonzero()[:, 0]
        drawing = drawing[decoding.ready(drawing)]
        if drawing.numel():
            ends |= draw(decoding, drawing, moves, tables, visits, verifier, choose)
        complete = (accepted & decoding.complete).nonzero()[:, 0]
        moves.done[complete] = True
        log_weight = torch.zeros(len(moves.done), dtype=torch.float64)
        for row in complete.tolist():
            visit, table = visits[row], tables[row]
            if visit is not None:
                log_weight[row] = 0.0 if table is None else table.log_open
                tables[row] = update_root_table(visit, ACCEPTED)
        for row, end in ends.items():
            tables[row] = update_root_table(visits[row], end)
            visits[row] = None
            moves.length[row], moves.token[row] = decoding.start[row], -1
        ended = torch.tensor(list(ends), dtype=torch.int64)
        attempts = state.attempts
        if self.max_attempts is not None:
            attempts = attempts.index_add(0, ended, torch.ones_like(ended))
        spent = self._has_used_attempts(attempts[ended]) & (self.then is None)
        none_left = [cast(RejectionTable, tables[row]).log_open == -math.inf for row in ends]
        moves.done[ended] = spent | torch.tensor(none_left, dtype=torch.bool)
        if not isinstance(state, WeightedAdaptiveRejectionState):
            return moves, AdaptiveRejectionState(ObjectColumn(tables), ObjectColumn(visits), attempts)
        log_weight += state.log_weight
        log_weight[ended[moves.done[ended]]] = -math.inf
        log_weight[log_values_as_given(decoding, verifier.log_values) == -math.inf] = -math.inf
        falling = (fallen & ~decoding.complete).nonzero()[:, 0]
        if falling.numel():
            _FALLBACK.append(decoding, falling, moves, log_weight, verifier, choose)
        return moves, WeightedAdaptiveRejectionState(
            ObjectColumn(tables), ObjectColumn(visits), attempts, log_weight
        )


def _accepts_last_token(decoding: Decoding, visits: list[Visit | None], verifier: CachedVerifier) -> Tensor:
    """Return whether the verifier accepts the last drawn token of each row, as (rows,) bool. True at the prompt."""
    accepted = torch.ones_like(decoding.complete)
    unknown = [row for row, visit in enumerate(visits) if visit is not None and visit.is_allowed is None]
    if unknown:
        rows = torch.tensor(unknown)
        accepted[rows] = verifier.values(rows) > 0
    return accepted
