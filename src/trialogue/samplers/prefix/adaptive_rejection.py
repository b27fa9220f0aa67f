"""Rejection sampling that never draws a rejected prefix twice (Parys et al. 2025, arXiv 2510.01902)."""

import math
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, cast

import torch
from torch import Tensor

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.judge import Judge
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.objects import Objects
from trialogue.samplers.prefix.contract.sampler import BoundedCount, Sampler, require_support
from trialogue.samplers.prefix.rejection_table import (
    ACCEPTED,
    REJECTED,
    RejectionTable,
    Visit,
    learned,
    merged,
)
from trialogue.samplers.prefix.rejection_table_file import table_of, tensors_of
from trialogue.validation import validated


class Attempts(NamedTuple):
    """State of `AdaptiveRejection`.

    Attributes:
        table: Table of each row's prompt, the root of its tree of tables. None before the first attempt has ended.
        visit: Last visit of the current attempt of each row, None at the prompt.
        attempts: Number (rows,) int64 of attempts that have ended. It is counted only if attempts are bounded.
    """

    table: Objects
    visit: Objects
    attempts: Tensor


@validated
@dataclass(frozen=True)
class AdaptiveRejection(Sampler[Attempts]):
    """Draw complete sequences until one is accepted, and exclude prefixes that earlier attempts found to be rejected.

    The samples follow exactly the model's distribution conditioned on acceptance, as those of `Rejection`, with far
    fewer model calls. A table holds, for each visited prefix, the probability that remains possible after the known
    rejections (the open mass). An attempt draws each token with the model's probability times the open mass of the
    prefix that ends with it. It ends at the first rejected token. The table changes between attempts only: a change
    within an attempt would bias the samples. If the verifier has a token mask, an attempt records the mask of
    each prefix that it visits for the first time. These masks apply from the next attempt on. In the current attempt, a
    masked token can still be drawn there, and then ends the attempt.

    An attempt returns the accepted sequence x with probability p(x) / M, where p is the model and M the open mass of
    the prompt. The factor 1 / M is the same for all x, whatever the table contains. All samples therefore have the same
    distribution and are independent; a table changes the number of model calls only.

    Every prefix of an accepted sequence must be accepted. Top-k, top-p and min-p truncate the model's distribution
    before tokens are excluded, and p is the truncated distribution. A bound on model calls (`max_queries`) stops long
    sequences more often than short ones, which biases the samples. Bound the attempts instead.

    Args:
        max_attempts: A row fails after this many rejected attempts (default: no bound).
        share: Number of samples of a prompt per round. The samples of a round start from the table of all rounds
            before, so later samples need fewer model calls. A sample then depends on the random streams of these
            rounds, too (default: every sample starts with an empty table).
    """

    max_attempts: BoundedCount | None = None
    share: BoundedCount | None = None
    uses = "verdicts"
    failure_reason = "no sequence satisfies the constraint, or the attempts are used up"

    @property
    def round_size(self) -> int | None:
        """Number of samples of a prompt that start from the same table, None for all."""
        return self.share

    def init(self, decoding: Decoding) -> Attempts:
        """Return the state of rows at their prompts.

        Args:
            decoding: The rows of the batch.

        Returns:
            Empty tables, and no attempts.
        """
        none = Objects([None] * len(decoding.lengths))
        return Attempts(none, none, torch.zeros_like(decoding.lengths))

    def merged(self, start: Attempts, ends: Attempts) -> Attempts:
        """Return the state from which the samples of the next round start.

        Args:
            start: State of one row from which the samples of the finished round started.
            ends: Last states of these samples.

        Returns:
            The state of one row, whose table contains all prefixes of the tables in `ends`.
        """
        table = reduce(merged, cast(tuple[RejectionTable | None, ...], ends.table.items))
        return start._replace(table=Objects([table]))

    def state_tensors(self, state: Attempts) -> dict[str, Tensor]:
        """Return the table in the state of one row as tensors."""
        return tensors_of(cast(RejectionTable | None, state.table.items[0]))

    def state_from_tensors(self, tensors: dict[str, Tensor], initial: Attempts) -> Attempts:
        """Return the initial state of one row with the table of `state_tensors`."""
        return initial._replace(table=Objects([table_of(tensors)]))

    def step(
        self, decoding: Decoding, state: Attempts, verifier: Judge, choose: Choose
    ) -> tuple[Moves, Attempts]:
        """Verify the last token of each row, and draw a token for the rows that are accepted so far.

        A rejected row returns to its prompt without a new token and updates its table. A row is done if it is complete
        and accepted, if no sequence satisfies the constraint, or if its attempts are used up.

        Args:
            decoding: The rows of the batch and the model's next-token distributions.
            state: Tables and visits of the rows.
            verifier: Masks and values of the rows. The value 0 rejects the last token.
            choose: Source of randomness.

        Returns:
            The move of each row, and the new state.
        """
        moves = Moves.stay(decoding)
        tables = cast(list[RejectionTable | None], list(state.table.items))
        visits = cast(list[Visit | None], list(state.visit.items))
        accepted = _last_accepted(decoding, visits, verifier)
        failed = (~accepted).nonzero()[:, 0].tolist()
        ends: dict[int, RejectionTable | None] = dict.fromkeys(failed, REJECTED)
        drawing = (accepted & ~decoding.complete).nonzero()[:, 0]
        if drawing.numel():
            ends |= _draw(decoding, drawing, moves, tables, visits, verifier, choose)
        attempts = state.attempts.clone()
        for row, end in ends.items():
            tables[row] = learned(visits[row], end)
            visits[row] = None
            moves.length[row], moves.token[row] = decoding.start[row], -1
            spent = self.max_attempts is not None and int(attempts[row]) + 1 >= self.max_attempts
            attempts[row] += self.max_attempts is not None
            moves.done[row] = spent or cast(RejectionTable, tables[row]).log_open == -math.inf
        for row in (accepted & decoding.complete).nonzero()[:, 0].tolist():
            moves.done[row] = True
            if visits[row] is not None:
                tables[row] = learned(visits[row], ACCEPTED)
        return moves, Attempts(Objects(tables), Objects(visits), attempts)


def _last_accepted(decoding: Decoding, visits: list[Visit | None], verifier: Judge) -> Tensor:
    """Return whether the last drawn token of each row (rows,) bool is accepted. Prompts count as accepted."""
    accepted = torch.ones_like(decoding.complete)
    unknown = [row for row, visit in enumerate(visits) if visit is not None and visit.is_allowed is None]
    if unknown:
        rows = torch.tensor(unknown)
        accepted[rows] = verifier.values(rows) > 0
    return accepted


def _draw(
    decoding: Decoding,
    rows: Tensor,
    moves: Moves,
    tables: list[RejectionTable | None],
    visits: list[Visit | None],
    verifier: Judge,
    choose: Choose,
) -> dict[int, RejectionTable | None]:
    """Draw a token for each of `rows` (n,), and store it in `moves` and `visits`.

    Returns:
        A dict from each row whose attempt has ended to what was learned at its end: `REJECTED` if no token can follow
        the current prefix, or None if the mask excludes the drawn token, which then needs no table.
    """
    log_probs = decoding.log_probs(rows)
    require_support(log_probs)
    allowed, decisive = verifier.masks(rows, log_probs > -math.inf)
    known = [_table(tables[row], visits[row]) for row in rows.tolist()]
    weights = log_probs.to(torch.float64, copy=True)
    open_ = weights.masked_fill(~allowed, -math.inf)
    for place, table in enumerate(known):
        if table is not None:
            weights[place] = open_[place]
            weights[place, table.tokens] += table.log_open_masses
    ended = dict[int, RejectionTable | None]()
    stuck = weights.amax(1) == -math.inf
    for row in rows[stuck].tolist():
        ended[row] = REJECTED
    places = (~stuck).nonzero()[:, 0]
    if not places.numel():
        return ended
    tokens = choose(weights[places].log_softmax(1), rows[places])
    drawn_log_probs = log_probs[places, tokens].double().tolist()
    is_allowed = allowed[places, tokens].tolist()
    for place, table in enumerate(known):
        if table is not None:
            open_[place, table.tokens] = -math.inf
    open_[places, tokens] = -math.inf
    log_unvisited = open_[places].logsumexp(1).tolist()
    for number, (place, token) in enumerate(zip(places.tolist(), tokens.tolist(), strict=True)):
        row = int(rows[place])
        verdict = None if is_allowed[number] and not bool(decisive[place]) else is_allowed[number]
        visits[row] = Visit(
            visits[row], known[place], token, drawn_log_probs[number], log_unvisited[number], verdict
        )
        if verdict is False:
            ended[row] = None
        else:
            moves.token[row] = token
    return ended


def _table(prompt: RejectionTable | None, visit: Visit | None) -> RejectionTable | None:
    """Return the table of the current prefix, None if no earlier attempt has visited it."""
    if visit is None:
        return prompt
    return None if visit.table is None else visit.table.child(visit.token)
