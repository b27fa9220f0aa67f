"""Grammar-aligned decoding: sampling with masks and estimates of future acceptance, as a baseline."""

import math
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, cast

import torch

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.judge import Judge
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.objects import Objects
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.samplers.prefix.rejection_table import ACCEPTED, RejectionTable, Visit, learned, merged


class SuccessRates(NamedTuple):
    """State of `GrammarAligned`.

    Attributes:
        table: Success rates of the visited prefixes of each row, as the open masses of a table. None if no prefix was
            visited.
        visit: Last visit of each row, None at the prompt.
    """

    table: Objects
    visit: Objects


@dataclass(frozen=True)
class GrammarAligned(Sampler[SuccessRates]):
    """Draw allowed tokens only, with the model's probabilities times estimated success rates of their continuations.

    The success rate of a prefix estimates the probability that the model continues it to an allowed output. It is 1
    until a sample has visited the prefix, and then the sum over allowed tokens of their probability times success rate.
    Samples follow one another and share the estimates. No sample is rejected. The first sample is therefore a sample of
    masked decoding, and later ones approach the restricted distribution.

    References:
        Park et al., "Grammar-aligned decoding", arXiv 2405.21047. Code: ebmoon/transformers-GAD.
    """

    uses = "verdicts"
    round_size = 1

    def init(self, decoding: Decoding) -> SuccessRates:
        """Return the state of rows at their prompts, with no visited prefix."""
        none = Objects([None] * len(decoding.lengths))
        return SuccessRates(none, none)

    def merged(self, start: SuccessRates, ends: SuccessRates) -> SuccessRates:
        """Return the state from which the next sample starts."""
        table = reduce(merged, cast(tuple[RejectionTable | None, ...], ends.table.items))
        return start._replace(table=Objects([table]))

    def step(
        self, decoding: Decoding, state: SuccessRates, verifier: Judge, choose: Choose
    ) -> tuple[Moves, SuccessRates]:
        """Append an allowed token to each row, and update the success rates of rows that are complete.

        Args:
            decoding: The rows of the batch and the model's next-token distributions.
            state: Success rates and visits of the rows.
            verifier: Masks of the rows.
            choose: Source of randomness.

        Returns:
            The move of each row, and the new state.
        """
        moves = Moves.stay(decoding)
        tables = cast(list[RejectionTable | None], list(state.table.items))
        visits = cast(list[Visit | None], list(state.visit.items))
        for row in decoding.complete.nonzero()[:, 0].tolist():
            moves.done[row] = True
            tables[row] = learned(visits[row], ACCEPTED)
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
        return moves, SuccessRates(Objects(tables), Objects(visits))
