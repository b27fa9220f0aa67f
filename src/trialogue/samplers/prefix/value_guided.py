"""VGB, value-guided sampling with stochastic backtracking (thesis Algorithm 2).

Both sampler on the tree of completions, whose node y holds the value V(y): the verifier's answer, at a complete
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
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from trialogue.errors import counter, one_of, probability, truth_value
from trialogue.oracles import Decoding, StateT
from trialogue.randomness import Choose
from trialogue.samplers.cut import Cut
from trialogue.samplers.prefix.guidance import weighed_children
from trialogue.samplers.prefix.judge import Judge
from trialogue.samplers.prefix.moves import Moves
from trialogue.samplers.prefix.sampler import NoState, Sampler


class Heading(NamedTuple):
    """Whether each row (rows,) came to its node from a child: it is heading up."""

    up: Tensor


class Course(NamedTuple):
    """Per row (rows,): whether it is heading up, the steps left of this try, -1 before it, and the tries left."""

    up: Tensor
    steps: Tensor
    tries: Tensor


@dataclass(frozen=True, kw_only=True)
class _Backtracking(Sampler[StateT]):
    """A sampler that goes up as well."""

    lazy: bool = True
    momentum: float = 0.0
    candidates: int | None = None
    nucleus: float = 1.0
    uses = "weights"

    def __post_init__(self) -> None:
        truth_value("lazy", self.lazy)
        if self.candidates is not None:
            counter("candidates", self.candidates, 1)
        probability("nucleus", self.nucleus, zero=False)
        probability("momentum", self.momentum)

    @property
    def few_children(self) -> bool:
        """Where there are candidates."""
        return not Cut(self.candidates, self.nucleus).nothing

    @property
    def fails_by(self) -> str:
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


@dataclass(frozen=True, kw_only=True)
class ValueGuided(_Backtracking[NoState | Heading]):
    """Sampler on the tree of completions: up with weight V(y), down to a with weight p(a|y) V(ya); return the first
    leaf.

    `lazy` waits with probability 1/2 before each move, which makes the sampler aperiodic. By default the sampler stops
    at the first leaf, as in the experiments; with `stop_at_leaf=False` it samplers on, and a run of `max_steps=T`
    returns y^(T), whose distribution given that it is a leaf tends to the restricted distribution whatever the positive
    values inside the tree (`StationaryValueGuided` returns it by itself). Without momentum the first leaf has the
    restricted distribution only where the values inside are exact and all leaves are equally deep. A row none of whose
    neighbours has weight fails.

    `candidates` limits children to the k most probable tokens of positive value, `nucleus` to the most probable ones
    that reach this share of their mass: the target is then p(x) V(x) on the sequences of such tokens. With `momentum`
    m in (0, 1] the sampler keeps its direction (Hayes and Sinclair's lifting): turning back weighs m min(V(y), S(y))
    less, where S(y) is what all children weigh. The stationary distribution of nodes is the same. Where the values are
    exact a sampler of momentum 1 never turns, and reaches a leaf of the restricted distribution in as many moves as
    that has tokens. Where V(y) is at least S(y) everywhere, as for 0/1 values that are never wrong about a prefix, it
    turns with the mass that is missing and goes all the way up: its first leaf has exactly the restricted distribution,
    however deep leaves are.
    """

    stop_at_leaf: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        truth_value("stop_at_leaf", self.stop_at_leaf)

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


@dataclass(frozen=True, kw_only=True)
class StationaryValueGuided(_Backtracking[Course]):
    """The value-guided sampler as it is analysed: T steps from the root, and a node of the path is returned.

    `node` says which: "uniform" y^(i) with i uniform on 1..T, as in the theory, "last" y^(T). Nothing is walked beyond
    the node that is returned. If it is no leaf, the sampler begins anew (footnote 13): at most `tries` times in all,
    then the sample fails; by default until a budget of the run ends it. A leaf comes up in a share of tries that is E_H
    / (2 sum over h of E_h), E_h the mean of V at depth h: 1/(2H) for exact values and H tokens, as T grows. Its
    distribution tends to p(x) V(x), normalised, whatever the positive values inside the tree, and whatever the depths
    of leaves.

    `steps` is T, by default 4 H^2 for completions of at most H tokens. Without `lazy` the sampler has period 2: the
    last of T steps is then a leaf only if T is as odd as the leaf is deep. `candidates`, `nucleus` and `momentum` are
    those of `ValueGuided`.
    """

    node: Literal["uniform", "last"] = "uniform"
    steps: int | None = None
    tries: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("node", self.node, ("uniform", "last"))
        if self.steps is not None:
            counter("steps", self.steps, 1)
        if self.tries is not None:
            counter("tries", self.tries, 1)

    @property
    def fails_by(self) -> str:
        """A bounded number of tries may also end without a leaf."""
        if self.tries is None:
            return super().fails_by
        return f"{super().fails_by}, or no leaf was met in {self.tries} tries"

    def init(self, decoding: Decoding) -> Course:
        """No try has begun."""
        left = torch.full_like(decoding.lengths, -1)
        return Course(torch.zeros_like(decoding.complete), left, left + (self.tries or 0) + 1)

    def step(
        self, decoding: Decoding, state: Course, verifier: Judge, choose: Choose
    ) -> tuple[Moves, Course]:
        """Begin a try, sampler, or end it: with a leaf, or at the prompt for another one."""
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
