"""VGB, value-guided sampling with stochastic backtracking (thesis Algorithm 2).

Both walk on the tree of completions, whose node y holds the value V(y): the verifier's answer, at a complete
sequence its outcome. An edge from y to its child ya conducts c(ya) = p(ya) V(ya), with p the oracle's distribution.

`candidates` and `nucleus` limit the children of a node to those that top-k and top-p keep of the oracle's distribution
on the tokens of positive value. Their weights are those of the oracle and not renormalised, so that on the tree of
candidates every conductance is what it is on the whole tree: the distribution of a leaf, given that it is one, is
proportional to p(x) V(x) on the sequences all of whose tokens are candidates. (Renormalised weights, which
`truncated(oracle, top_k=k)` leads to, have another distribution: p(x) V(x) divided by the mass that was kept at every
prefix of x.)
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import torch
from annotated_types import Interval
from torch import Tensor

from trialogue.oracles import Decoding, StateT
from trialogue.randomness import Choose
from trialogue.samplers.cut import Cut, TopP
from trialogue.samplers.prefix.guidance import weighed_children
from trialogue.samplers.prefix.judge import Judge
from trialogue.samplers.prefix.moves import Moves
from trialogue.samplers.prefix.sampler import BoundedCount, NoState, Sampler
from trialogue.validation import Share, validated

Steps = Annotated[int, Interval(ge=1, le=1 << 24)]
"""Number of steps of a walk: one weight is stored for each."""


class Heading(NamedTuple):
    """Whether each row (rows,) came to its node from a child: it is heading up."""

    up: Tensor


class Course(NamedTuple):
    """Per row (rows,): whether it is heading up, the steps left of this try, -1 before it, and the tries left."""

    up: Tensor
    steps: Tensor
    tries: Tensor


@dataclass(frozen=True, kw_only=True)
class _Walk(Sampler[StateT]):
    """A walk on the tree of completions that may go up.

    Args:
        lazy: Wait with probability 1/2 before each move, which makes the walk aperiodic (default: True).
        momentum: Reduce the weight of turning back by this share, from 0 to 1 (default: 0).
        candidates: Restrict children to this many most probable tokens of positive value (default: all).
        nucleus: Restrict children to the most probable tokens of positive value that reach this share of their
            probability (default: 1, all).
    """

    lazy: bool = True
    momentum: Share = 0.0
    candidates: BoundedCount | None = None
    nucleus: TopP = 1.0
    uses = "weights"

    @property
    def few_children(self) -> bool:
        """Whether candidates or a nucleus restrict the children."""
        return not Cut(self.candidates, self.nucleus).nothing

    @property
    def failure_reason(self) -> str:
        """Below the first token there is always a way back."""
        return "no first token has a value above 0"

    def _walk(
        self, decoding: Decoding, moves: Moves, rows: Tensor, up: Tensor, verifier: Judge, choose: Choose
    ) -> tuple[Tensor, Tensor]:
        """Let `rows` (n,) wait, go to the parent, or append a child, in `moves`.

        `up` (rows,) says which rows are heading up. Returns it after the move, and the rows (m,) none of whose
        neighbours has weight.
        """
        if self.lazy and len(rows):
            rows = rows[choose(torch.zeros(len(rows), 2, dtype=torch.float64), rows) == 1]
        parent = torch.full((len(rows), 1), -math.inf, dtype=torch.float64)
        inner = (decoding.lengths[rows] > decoding.start[rows]).nonzero()[:, 0]
        if len(inner):
            parent[inner, 0] = verifier.values(rows[inner]).log()
        growing = (~decoding.complete[rows]).nonzero()[:, 0]
        tokens = torch.zeros(len(rows), 0, dtype=torch.int64)
        children = torch.zeros(len(rows), 0, dtype=torch.float64)
        if len(growing):
            cut = Cut(self.candidates, self.nucleus)
            found = weighed_children(decoding, rows[growing], verifier, cut)
            if len(growing) == len(rows):
                tokens, children = found
            else:
                tokens = found.tokens.new_zeros(len(rows), found.tokens.shape[1])
                children = torch.full(tokens.shape, -math.inf, dtype=torch.float64)
                tokens[growing], children[growing] = found
        if self.momentum:
            parent, children = self._lifted(parent, children, up[rows])
        weights = torch.cat((parent, children), 1)
        stuck = weights.amax(1) == -math.inf
        unable = rows[stuck]
        if len(unable):
            rows, weights, tokens = rows[~stuck], weights[~stuck], tokens[~stuck]
        if len(rows):
            index = choose(weights, rows)
            moves.length[rows] -= (index == 0).long()
            down = (index > 0).nonzero()[:, 0]
            moves.token[rows[down]] = tokens[down, index[down] - 1]
            if self.momentum:
                up = up.index_copy(0, rows, index == 0)
        return up, unable

    def _lifted(self, parent: Tensor, children: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
        """Weights of `parent` (n, 1) and `children` (n, k) for rows that are heading `up` (n,) or down.

        With B the weight of the parent and F that of all children, turning back weighs less by m min(B, F), m the
        momentum. Arriving from above has then the stationary mass c(y) and arriving from below that of the children's
        edges, as without momentum.
        """
        forward = (
            children.logsumexp(1, keepdim=True) if children.shape[1] else torch.full_like(parent, -math.inf)
        )
        # log(1 - m min(1, other / back)) for going back by either way.
        ratio = (forward - parent).nan_to_num(nan=0.0)
        loss_up = torch.log1p(-self.momentum * ratio.clamp_max(0).exp())
        loss_down = torch.log1p(-self.momentum * (-ratio).clamp_max(0).exp())
        up = up[:, None]
        return torch.where(up, parent, parent + loss_up), torch.where(up, children + loss_down, children)


@validated
@dataclass(frozen=True, kw_only=True)
class ValueGuided(_Walk[NoState | Heading]):
    """Walk on the tree of completions: up with weight V(y), down to a with weight p(a|y) V(ya); return the first leaf.

    By default the walk stops at the first leaf, as in the experiments of the thesis. With `stop_at_leaf=False` it goes
    on, and a run of `max_steps=T` returns y^(T), whose distribution given that it is a leaf tends to the restricted
    distribution for any positive values inside the tree (`StationaryValueGuided` returns such a leaf). Without momentum
    the first leaf has the restricted distribution only if the values inside are exact and all leaves are equally deep.
    A row none of whose neighbours has weight fails.

    With `candidates` or `nucleus` the target is p(x) V(x) on the sequences of the remaining tokens. With `momentum` m
    the walk keeps its direction (Hayes and Sinclair's lifting): turning back weighs m min(V(y), S(y)) less, where S(y)
    is the weight of all children. The stationary distribution of nodes is the same. If the values are exact, a walk of
    momentum 1 never turns, and reaches a leaf of the restricted distribution in as many moves as that has tokens. If
    V(y) is at least S(y) everywhere, as for 0/1 values that are never wrong about a prefix, the walk turns with the
    missing mass and goes all the way up: its first leaf has exactly the restricted distribution, however deep leaves
    are.

    Args:
        stop_at_leaf: Stop at the first leaf (default: True).
    """

    stop_at_leaf: bool = True

    def init(self, decoding: Decoding) -> NoState | Heading:
        """No row has come from below."""
        return Heading(torch.zeros_like(decoding.complete)) if self.momentum else NoState()

    def step(
        self, decoding: Decoding, state: NoState | Heading, verifier: Judge, choose: Choose
    ) -> tuple[Moves, NoState | Heading]:
        """Wait, go to the parent, or append a child."""
        moves = Moves.stay(decoding)
        if self.stop_at_leaf:
            moves.done.copy_(decoding.complete)
        rows = (~moves.done).nonzero()[:, 0]
        up = state.up if isinstance(state, Heading) else moves.done
        up, unable = self._walk(decoding, moves, rows, up, verifier, choose)
        moves.done[unable] = True
        return moves, Heading(up) if isinstance(state, Heading) else state


@validated
@dataclass(frozen=True, kw_only=True)
class StationaryValueGuided(_Walk[Course]):
    """Walk T steps from the root as in the analysis of the thesis, and return a node of the path.

    If the node is no leaf, the walk begins again (footnote 13). A leaf comes up in a share of tries that tends to
    E_H / (2 sum over h of E_h) as T grows, with E_h the mean of V at depth h: 1/(2H) for exact values and H tokens. Its
    distribution tends to p(x) V(x), normalised, for any positive values inside the tree and any depths of leaves.
    Without `lazy` the walk has period 2: the last of T steps is then a leaf only if T is as odd as the leaf is deep.
    `candidates`, `nucleus` and `momentum` are those of `ValueGuided`.

    Args:
        node: The node to return: uniform is y^(i) with i uniform on 1..T, as in the theory, last is y^(T) (default:
            uniform).
        steps: Number of steps T of a try (default: 4 H^2 for completions of at most H tokens).
        tries: Fail after this many tries without a leaf (default: no bound).
    """

    node: Literal["uniform", "last"] = "uniform"
    steps: Steps | None = None
    tries: BoundedCount | None = None

    @property
    def failure_reason(self) -> str:
        """A bounded number of tries may also end without a leaf."""
        if self.tries is None:
            return super().failure_reason
        return f"{super().failure_reason}, or no leaf was met in {self.tries} tries"

    def init(self, decoding: Decoding) -> Course:
        """No try has begun."""
        left = torch.full_like(decoding.lengths, -1)
        return Course(torch.zeros_like(decoding.complete), left, left + (self.tries or 0) + 1)

    def step(
        self, decoding: Decoding, state: Course, verifier: Judge, choose: Choose
    ) -> tuple[Moves, Course]:
        """Begin a try, walk on, or end it: with a leaf, or at the prompt for another one."""
        moves, (up, steps, tries) = Moves.stay(decoding), state
        given = decoding.complete & (decoding.lengths == decoding.start)
        begins = ((steps < 0) & ~given).nonzero()[:, 0]
        if len(begins):
            steps = steps.index_copy(0, begins, self._drawn(decoding, begins, choose))
        ended = steps == 0
        again = ended & ~decoding.complete
        moves.done.copy_(given | (ended & (decoding.complete | (tries == 1))))
        again &= ~moves.done
        moves.length.copy_(torch.where(again, decoding.start, moves.length))
        rows = (~moves.done & ~ended).nonzero()[:, 0]
        up, unable = self._walk(decoding, moves, rows, up, verifier, choose)
        moves.done[unable] = True
        steps = torch.where(ended | given, torch.where(again, -1, steps), steps - 1)
        return moves, Course(up & ~again, steps, tries - (again & (tries > 0)).long())

    def _drawn(self, decoding: Decoding, rows: Tensor, choose: Choose) -> Tensor:
        """How many steps (n,) a try of `rows` (n,) takes."""
        horizon = decoding.limit[rows] - decoding.start[rows]
        most = 4 * horizon**2 if self.steps is None else torch.full_like(horizon, self.steps)
        if self.node == "last":
            return most
        number = torch.arange(1, int(most.max()) + 1)
        weights = torch.zeros(len(rows), len(number), dtype=torch.float64)
        return 1 + choose(weights.masked_fill(number > most[:, None], -math.inf), rows)
