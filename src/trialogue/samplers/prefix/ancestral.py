"""Ancestral sampling."""

from dataclasses import dataclass

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.judge import Judge
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import NoState, Sampler


@dataclass(frozen=True)
class Ancestral(Sampler[NoState]):
    """Draw tokens from the oracle until the sequence is complete. A verifier only judges complete outputs."""

    judges = "outputs"
    goes_back = False

    def step(
        self, decoding: Decoding, state: NoState, verifier: Judge, choose: Choose
    ) -> tuple[Moves, NoState]:
        """Append one token to every incomplete row."""
        del verifier
        moves = Moves.stay(decoding)
        growing = decoding.growing
        if growing.numel():
            moves.token.index_copy_(0, growing, choose(decoding.log_probs(growing), growing))
        return moves._replace(done=decoding.complete), state
