"""Ancestral sampling."""

from dataclasses import dataclass

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import NoState, Sampler


@dataclass(frozen=True)
class Ancestral(Sampler[NoState]):
    """Draw tokens from the model until the sequence is complete, without using the verifier.

    If there is a verifier, it only decides which complete sequences count as accepted. It does not change the tokens.
    """

    judges = "outputs"
    goes_back = False

    def step(
        self, decoding: Decoding, state: NoState, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, NoState]:
        """Append one token, drawn from the model's next-token distribution, to each row that is not complete.

        A row is one sequence of the batch (prompt and completion so far). Complete rows are marked as done.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            state: The empty state (this sampler stores nothing between steps).
            verifier: Not used.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            How each row changes (`Moves`), and the empty state.
        """
        del verifier
        moves = Moves.stay(decoding)
        growing = decoding.growing
        if growing.numel():
            moves.token.index_copy_(0, growing, choose(decoding.log_probs(growing), growing))
        return moves._replace(done=decoding.complete), state
