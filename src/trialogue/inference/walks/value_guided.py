"""VGB, value-guided sampling with stochastic backtracking (thesis Algorithm 2)."""

import math
from dataclasses import dataclass

import torch

from trialogue.errors import truth_value
from trialogue.inference.walks.judge import Judge
from trialogue.inference.walks.moves import Moves
from trialogue.inference.walks.walk import NoState, Walk, require_support
from trialogue.oracles import Decoding
from trialogue.randomness import Choose


@dataclass(frozen=True)
class ValueGuided(Walk[NoState]):
    """Walk on the tree of completions: up with weight V(y), down to a with weight p(a|y) V(ya).

    `lazy` waits with probability 1/2 before each move, which makes the walk aperiodic. By default the walk stops at the
    first leaf, as in the experiments; with `stop_at_leaf=False` it walks on, and a run of `max_steps=T` returns
    y^(T), whose law given that it is a leaf tends to the restricted law whatever the positive values inside the tree.
    The first leaf has the restricted law only where the values inside are exact and all leaves are equally deep.
    A row none of whose neighbours has weight fails.
    """

    lazy: bool = True
    stop_at_leaf: bool = True
    uses = "weights"

    def __post_init__(self) -> None:
        truth_value("lazy", self.lazy)
        truth_value("stop_at_leaf", self.stop_at_leaf)

    def step(
        self, decoding: Decoding, state: NoState, verifier: Judge, choose: Choose
    ) -> tuple[Moves, NoState]:
        """Wait, go to the parent, or append a child."""
        moves = Moves.stay(decoding)
        if self.stop_at_leaf:
            moves.done.copy_(decoding.complete)
        rows = (~moves.done).nonzero()[:, 0]
        if self.lazy and len(rows):
            rows = rows[choose(torch.zeros(len(rows), 2, dtype=torch.float64), rows) == 1]
        weights = torch.full((len(rows), 1 + decoding.vocab_size), -math.inf, dtype=torch.float64)
        inner = (decoding.lengths[rows] > decoding.start[rows]).nonzero()[:, 0]
        if len(inner):
            weights[inner, 0] = verifier.values(rows[inner]).log()
        growing = (~decoding.complete[rows]).nonzero()[:, 0]
        if len(growing):
            log_probs = decoding.log_probs(rows[growing]).double()
            require_support(log_probs)
            children = verifier.children(rows[growing], log_probs > -math.inf)
            weights[growing, 1:] = log_probs + children.log()
        stuck = (weights == -math.inf).all(1)
        moves.done[rows[stuck]] = True
        rows, weights = rows[~stuck], weights[~stuck]
        if len(rows):
            index = choose(weights, rows)
            moves.length[rows] -= (index == 0).long()
            moves.token[rows] = index - 1
        return moves, state
