"""Masked decoding."""

import math
from dataclasses import dataclass

from torch import Tensor

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.masking import mask_with_mass
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import (
    LogWeightState,
    Sampler,
    log_values_as_given,
    require_support,
    truncated_distribution,
)
from trialogue.validation import validated


@validated
@dataclass(frozen=True)
class MaskedDecoding(Sampler[LogWeightState]):
    """Draw each token from the model's distribution restricted to the tokens that the verifier accepts.

    All outputs satisfy the verifier, and the model is called once per position. The distribution differs from
    the model's distribution conditioned on acceptance; the log-weight of a sample corrects the difference. A
    row fails if no next token is accepted.

    By default the mask comes before top-k and top-p, as in constrained decoding. If it comes after them, the
    output distribution is that of `TokenwiseRejection`, and a row fails if every kept token is rejected.

    Let p(x) be the model's probability of x at the given temperature (at temperature 1, if it is 0). With the
    mask first, the mean of exp(log_weight) over all samples, counted as 0 for outputs other than x, is p(x)
    for every accepted sequence x that can be reached.

    Args:
        mask_first: Apply the mask before top-k and top-p (default: True).

    Example:
        >>> from trialogue import generate
        >>> from trialogue.data import Table
        >>> from trialogue.samplers import MaskedDecoding
        >>> table = Table([[0.5, 0.25], [0.0, 0.25]])  # Probabilities of the sequences of two tokens
        >>> samples = generate(table, sampler=MaskedDecoding(), verifier=lambda x: x != (0, 0), num_samples=4)
        >>> samples.completions()
        [(0, 1), (0, 1), (0, 1), (0, 1)]
    """

    mask_first: bool = True
    uses = "verdicts"
    weighted = True
    goes_back = False
    is_final_when_complete = True

    @property
    def masks_first(self) -> bool:
        """Whether rejected tokens are excluded before top-k and top-p, rather than after them."""
        return self.mask_first

    def init(self, decoding: Decoding) -> LogWeightState:
        """Return the initial sampler state of rows that contain only their prompts.

        Args:
            decoding: The batch of sequences (rows), each a prompt and the completion so far.

        Returns:
            Log-weights (rows,) float64, all zero.
        """
        return LogWeightState.zero(decoding)

    def step(
        self, decoding: Decoding, state: LogWeightState, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, LogWeightState]:
        """Append one token to each incomplete row, drawn from the model's distribution restricted to accepted tokens.

        The weight of the row is multiplied by the probability of the tokens that remain after the mask (and after top-k
        and top-p, if the mask comes first). A row without an accepted token is marked as done with weight zero, and
        complete rows are marked as done.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            state: Log-weights of the rows.
            verifier: Values of the one-token continuations. A token is accepted if its value is positive.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            How each row changes (`Moves`), and the new log-weights.
        """
        moves = Moves.stay(decoding)
        moves.done.copy_(decoding.complete)
        incomplete = decoding.growing
        log_weight = state.log_weight.clone()
        if incomplete.numel() < log_weight.numel():
            refused = log_values_as_given(decoding, verifier.log_values) == -math.inf
            log_weight.masked_fill_(refused, -math.inf)
        if incomplete.numel():
            self.append(decoding, incomplete, moves, log_weight, verifier, choose)
        return moves, LogWeightState(log_weight)

    def append(
        self,
        decoding: Decoding,
        rows: Tensor,
        moves: Moves,
        log_weight: Tensor,
        verifier: CachedVerifier,
        choose: Choose,
    ) -> None:
        """Draw an accepted token for each given row, and multiply its weight by the probability of all such tokens.

        A row without an accepted token is marked as done with weight zero.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            rows: Indices (n,) int64 of incomplete rows.
            moves: The moves of all rows. The entries of `rows` are modified in place.
            log_weight: Log-weights (rows,) float64 of all rows. The entries of `rows` are modified in place.
            verifier: Values of the one-token continuations.
            choose: Function that draws one index per row in proportion to given weights.
        """
        log_probs = decoding.log_probs(rows, cut=not self.mask_first)
        if self.mask_first:
            accepted = verifier.leading_children(rows, log_probs, verdicts=True).bool()
        else:
            accepted = verifier.children(rows, log_probs > -math.inf).bool()
        allowed, mass = mask_with_mass(log_probs, accepted)
        if float(mass.amin()) == -math.inf:
            open_ = mass > -math.inf
            require_support(log_probs[~open_])
            moves.done[rows[~open_]] = True
            log_weight.index_fill_(0, rows[~open_], -math.inf)
            rows, allowed, mass = rows[open_], allowed[open_], mass[open_]
        if rows.numel():
            if self.mask_first:
                allowed, mass = truncated_distribution(decoding, allowed, rows)
            moves.token.index_copy_(0, rows, choose(allowed, rows))
            log_weight.index_add_(0, rows, mass)
