"""Ancestral sampling: append a token drawn from the oracle until the sequence is complete."""

from dataclasses import dataclass

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.judge import Judge
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import NoState, Sampler


@dataclass(frozen=True)
class Ancestral(Sampler[NoState]):
    """Sample from the oracle as it is; a verifier, if given, only judges the result."""

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
