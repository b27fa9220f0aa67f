"""Grammar-aligned decoding, a baseline that masks tokens and estimates the probability of allowed continuations."""

import math
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, cast

import torch

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.objects import ObjectColumn
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.samplers.prefix.rejection_table import (
    ACCEPTED,
    RejectionTable,
    Visit,
    merge_tables,
    update_root_table,
)


class SuccessRateState(NamedTuple):
    """State of `GrammarAligned`: estimated probabilities that prefixes lead to an allowed output.

    Attributes:
        table: For each row of the batch, the estimates for all visited prefixes. None if no prefix was
            visited.
        visit: For each row, the record of its last token. None at the prompt.
    """

    table: ObjectColumn
    visit: ObjectColumn


@dataclass(frozen=True)
class GrammarAligned(Sampler[SuccessRateState]):
    """Masked decoding that learns from earlier samples which prefixes rarely lead to an allowed output.

        p(token) = constant * p_model(token) * rate(prefix + token)

    The rate estimates the probability that the model continues a prefix to an allowed output. It is 1 for
    prefixes that no sample has visited. For visited prefixes, it is the sum of p_model(token) * rate(prefix +
    token) over allowed next tokens. The first sample therefore has the distribution of masked decoding. Later
    samples approach the model's distribution given the constraint.

    References:
        Park et al., "Grammar-aligned decoding", arXiv 2405.21047. Code: ebmoon/transformers-GAD.
    """

    uses = "verdicts"
    round_size = 1

    def init(self, decoding: Decoding) -> SuccessRateState:
        """Return the initial state, in which no prefix was visited."""
        none = ObjectColumn([None] * len(decoding.lengths))
        return SuccessRateState(none, none)

    def merged(self, start: SuccessRateState, ends: SuccessRateState) -> SuccessRateState:
        """Return the state from which the next sample starts.

        The state contains the success rates that were estimated from all samples so far. The success rate of a prefix
        is the probability that the model continues it to an allowed output.

        Args:
            start: State from which the current samples started.
            ends: States at the end of these samples.
        """
        table = reduce(merge_tables, cast(tuple[RejectionTable | None, ...], ends.table.items))
        return start._replace(table=ObjectColumn([table]))

    def step(
        self, decoding: Decoding, state: SuccessRateState, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, SuccessRateState]:
        """Append an allowed token to each row, and update the success rates of complete rows.

        Args:
            decoding: The rows of the batch, with the model's next-token distributions.
            state: Success rates and visited prefixes of the rows.
            verifier: Returns which next tokens the constraint allows.
            choose: Source of randomness.

        Returns:
            The move of each row, and the new state.
        """
        moves = Moves.stay(decoding)
        tables = cast(list[RejectionTable | None], list(state.table.items))
        visits = cast(list[Visit | None], list(state.visit.items))
        for row in decoding.complete.nonzero()[:, 0].tolist():
            moves.done[row] = True
            tables[row] = update_root_table(visits[row], ACCEPTED)
        rows = (~decoding.complete).nonzero()[:, 0]
        if rows.numel():
            log_probs = decoding.log_probs(rows)
            allowed = verifier.children(rows, log_probs > -math.inf) > 0
            masked = log_probs.double().masked_fill(~allowed, -math.inf)
            known = [
                tables[row] if visit is None else visit.table and visit.table.child(visit.token)
                for row, visit in ((row, visits[row]) for row in rows.tolist())
            ]
            weights, unvisited = masked.clone(), masked.clone()
            for place, table in enumerate(known):
                if table is not None:
                    success_rates = [child.table.log_open for child in table.children.values()]
                    weights[place, table.tokens] += torch.tensor(success_rates, dtype=torch.float64)
                    unvisited[place, table.tokens] = -math.inf
            tokens = choose(weights.log_softmax(1), rows)
            places = torch.arange(len(rows))
            unvisited[places, tokens] = -math.inf
            for place, (row, token) in enumerate(zip(rows.tolist(), tokens.tolist(), strict=True)):
                moves.token[row] = token
                log_unvisited = float(unvisited[place].logsumexp(0))
                visits[row] = Visit(
                    visits[row], known[place], token, float(masked[place, token]), log_unvisited, True
                )
        return moves, SuccessRateState(ObjectColumn(tables), ObjectColumn(visits))
