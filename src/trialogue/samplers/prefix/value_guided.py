"""VGB, value-guided sampling with stochastic backtracking (thesis Algorithm 2).

The samplers append and remove tokens at random, as a walk on the tree of completions. The edge from a prefix
y to the prefix ya has the weight p(ya) V(ya), where p is the model and V the verifier.

`candidates` and `nucleus` restrict the next tokens to those that top-k and top-p keep among the tokens of
positive value, without renormalising their weights. The target is then p(x) V(x) on the sequences of such
tokens, up to a constant. By contrast, `truncated(oracle, top_k=k)` renormalises, so its target divides p(x)
V(x) by the mass that was kept at every prefix of x.
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
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import BoundedCount, NoState, Sampler
from trialogue.samplers.prefix.guidance import weigh_children
from trialogue.validation import Share, validated

Steps = Annotated[int, Interval(ge=1, le=1 << 24)]
"""Number of steps of a walk. One weight is stored per step."""


class ValueGuidedState(NamedTuple):
    """State of `ValueGuided` with momentum: the direction of the last move of each walk.

    Attributes:
        up: Whether the last move of each row (rows,) bool removed a token. False before the first move.
    """

    up: Tensor


class StationaryValueGuidedState(NamedTuple):
    """State of `StationaryValueGuided`: direction, remaining steps and remaining tries of each walk.

    Attributes:
        up: Whether the last move of each row (rows,) bool removed a token. It is used with momentum only.
        steps: Number (rows,) int64 of steps left in the current walk from the prompt (try), or -1 if it has
            not begun.
        tries: Number (rows,) int64 of tries left, including the current one. 0 means that tries are not
            bounded.
    """

    up: Tensor
    steps: Tensor
    tries: Tensor


@dataclass(frozen=True, kw_only=True)
class _Walk(Sampler[StateT]):
    """Base class of random walks on prefixes, which append tokens and remove them again.

    Args:
        lazy: Wait with probability 1/2 before each move, which makes the walk aperiodic (default: True).
        momentum: Reduce the weight of turning back by this share, from 0 to 1 (default: 0).
        candidates: Restrict children to this many most probable tokens of positive value (default: all). A
            `Target` does not count, because it is evaluated for the candidates only.
        nucleus: Restrict children to the most probable tokens of positive value that reach this share of
            their probability (default: 1, all).
    """

    lazy: bool = True
    momentum: Share = 0.0
    candidates: BoundedCount | None = None
    nucleus: TopP = 1.0
    uses = "weights"

    @property
    def few_children(self) -> bool:
        """Whether `candidates` or `nucleus` restrict the next tokens that the walk considers."""
        return not Cut(self.candidates, self.nucleus).keeps_all

    @property
    def failure_reason(self) -> str:
        """Why a sample fails: no token after the prompt has a positive value, so the walk cannot leave the prompt."""
        among = "among the candidates " if self.few_children else ""
        return f"no first token {among}has a value above 0"

    def _draw_moves(
        self,
        decoding: Decoding,
        moves: Moves,
        rows: Tensor,
        up: Tensor,
        verifier: CachedVerifier,
        choose: Choose,
    ) -> tuple[Tensor, Tensor]:
        """Draw the next move of each walk: wait, remove the last token, or append a token.

        Args:
            decoding: The batch of sequences (rows), each a prompt and the completion so far.
            moves: The moves of all rows. Modified in place.
            rows: Indices (n,) int64 of the rows that move.
            up: Whether the last move of each row (rows,) of the batch removed a token.
            verifier: Values V of the rows and of their one-token continuations.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            `up` after the move, and the indices (m,) of rows that have no neighbour of positive weight.
        """
        if self.lazy and len(rows):
            rows = rows[choose(torch.zeros(len(rows), 2, dtype=torch.float64), rows) == 1]
        parent = torch.full((len(rows), 1), -math.inf, dtype=torch.float64)
        inner = (decoding.lengths[rows] > decoding.start[rows]).nonzero()[:, 0]
        if len(inner):
            parent[inner, 0] = verifier.log_values(rows[inner])
        growing = (~decoding.complete[rows]).nonzero()[:, 0]
        tokens = torch.zeros(len(rows), 0, dtype=torch.int64)
        children = torch.zeros(len(rows), 0, dtype=torch.float64)
        if len(growing):
            cut = Cut(self.candidates, self.nucleus)
            found = weigh_children(decoding, rows[growing], verifier, cut)
            if len(growing) == len(rows):
                tokens, children = found
            else:
                tokens = found.tokens.new_zeros(len(rows), found.tokens.shape[1])
                children = torch.full(tokens.shape, -math.inf, dtype=torch.float64)
                tokens[growing], children[growing] = found
        if self.momentum:
            parent, children = self._apply_momentum(parent, children, up[rows])
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

    def _apply_momentum(self, parent: Tensor, children: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
        """Reduce the weight of moves that reverse the direction of a walk, by momentum * min(parent, all children).

        Rows whose last move removed a token (`up`) append tokens less often, and others remove tokens less
        often. The stationary distribution does not change. Returns the log-weights of the parent (n, 1) and
        the children (n, k).
        """
        forward = (
            children.logsumexp(1, keepdim=True) if children.shape[1] else torch.full_like(parent, -math.inf)
        )
        # log(1 - m min(1, other / back)) for reversing either direction.
        ratio = (forward - parent).nan_to_num(nan=0.0)
        loss_up = torch.log1p(-self.momentum * ratio.clamp_max(0).exp())
        loss_down = torch.log1p(-self.momentum * (-ratio).clamp_max(0).exp())
        up = up[:, None]
        return torch.where(up, parent, parent + loss_up), torch.where(up, children + loss_down, children)


@validated
@dataclass(frozen=True, kw_only=True)
class ValueGuided(_Walk[NoState | ValueGuidedState]):
    """Append and remove tokens at random, guided by the verifier's values, until a sequence is complete (VGB).

    From the prefix y, the walk removes the last token with weight V(y), or appends the token a with weight
    p(a|y) V(ya). Here p is the model and V the verifier. With `lazy` (default), it waits with probability 1/2
    before each move. A row fails if all weights are zero.

    The target is proportional to p(x) V(x) for complete sequences x. By default the walk stops at the first
    complete sequence, as in the experiments of the thesis. It has the target distribution if all complete
    sequences have the same length and V(y) is the mean value of the completions that the model draws after y.

    With `stop_at_leaf=False`, the walk returns its last sequence after the number of moves given by
    `generate(max_steps=...)`. If it is complete, its distribution converges to the target for any positive
    values of prefixes. `StationaryValueGuided` returns such a sequence.

    With `candidates` or `nucleus`, sequences with other tokens are excluded from the target. Candidates are
    chosen before a `Target` is evaluated.

    With `momentum` m, the walk tends to keep its direction (lifting, Hayes and Sinclair). The weight of
    turning back is reduced by m min(V(y), S(y)), where S(y) is the sum of p(a|y) V(ya). The stationary
    distribution does not change. With exact values and momentum 1 the walk never turns back: it needs one
    move per token, and its first complete sequence has exactly the target distribution, whatever its length.

    Args:
        stop_at_leaf: Stop at the first complete sequence (default: True).

    Example:
        >>> from trialogue import generate
        >>> from trialogue.data import Table
        >>> from trialogue.samplers import ValueGuided
        >>> table = Table([[0.5, 0.25], [0.0, 0.25]])  # Probabilities of the sequences of two tokens
        >>> samples = generate(table, sampler=ValueGuided(), verifier=lambda x: x != (0, 0), num_samples=4)
        >>> samples.completions()
        [(0, 1), (0, 1), (1, 1), (1, 1)]
    """

    stop_at_leaf: bool = True
    is_final_when_complete = True

    def init(self, decoding: Decoding) -> NoState | ValueGuidedState:
        """Return the initial sampler state of rows that contain only their prompts.

        Args:
            decoding: The batch of sequences (rows), each a prompt and the completion so far.

        Returns:
            A `ValueGuidedState` with `up` False for all rows, or an empty state without momentum.
        """
        return ValueGuidedState(torch.zeros_like(decoding.complete)) if self.momentum else NoState()

    def step(
        self, decoding: Decoding, state: NoState | ValueGuidedState, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, NoState | ValueGuidedState]:
        """Move each row by one step of the walk: wait, remove the last token, or append a token.

        Removing the last token has the verifier's value of the current prefix as its weight. Appending a
        token has its model probability times the value of the longer prefix. With `stop_at_leaf`, complete
        rows are marked as done. So are rows without a move of positive weight, which fail if they are
        incomplete.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            state: Whether the last move of each row removed a token, needed for momentum. Otherwise an empty
                state.
            verifier: Values V of the rows and of their children.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            How each row changes (`Moves`), and the state with the new directions.
        """
        moves = Moves.stay(decoding)
        if self.stop_at_leaf:
            moves.done.copy_(decoding.complete)
        rows = (~moves.done).nonzero()[:, 0]
        up = state.up if isinstance(state, ValueGuidedState) else moves.done
        up, unable = self._draw_moves(decoding, moves, rows, up, verifier, choose)
        moves.done[unable] = True
        return moves, ValueGuidedState(up) if isinstance(state, ValueGuidedState) else state


@validated
@dataclass(frozen=True, kw_only=True)
class StationaryValueGuided(_Walk[StationaryValueGuidedState]):
    """Run a random walk on prefixes for a random number of steps, and repeat until it ends at a complete sequence.

    Each walk (a try) starts at the prompt and moves as in `ValueGuided`. Its number of moves is drawn
    uniformly from 1 to T. If the last sequence is complete, it is the sample. The thesis analyses this
    variant (footnote 13).

    The target is proportional to p(x) V(x) for complete sequences x, where p is the model and V the verifier.
    The distribution of the samples converges to it as T grows, for any positive values of prefixes.

    With exact values and completions of H tokens, about one of 2H tries ends at a complete sequence if T is
    large. Without `lazy`, a walk alternates between even and odd numbers of completion tokens. With
    `node="last"`, it can then end only at complete sequences whose number of completion tokens has the parity
    of T.

    Args:
        node: Number of moves of a try: uniformly random from 1 to T, as in the theory (uniform), or always T
            (last) (default: uniform).
        steps: Maximum number of moves T per try (default: 4 H^2 for completions of at most H tokens).
        tries: Fail after this many tries without a complete sequence (default: no bound).
    """

    node: Literal["uniform", "last"] = "uniform"
    steps: Steps | None = None
    tries: BoundedCount | None = None

    @property
    def failure_reason(self) -> str:
        """Why a sample fails: the walk cannot leave the prompt, or no try ended at a complete sequence."""
        if self.tries is None:
            return super().failure_reason
        return f"{super().failure_reason}, or no leaf was reached in {self.tries} tries"

    def init(self, decoding: Decoding) -> StationaryValueGuidedState:
        """Return the state of rows at their prompts before their first try.

        Args:
            decoding: The batch of sequences (rows), each a prompt and the completion so far.

        Returns:
            A `StationaryValueGuidedState` with `up` False, `steps` -1, and `tries` equal to the largest number of tries
            (0 if not bounded).
        """
        left = torch.full_like(decoding.lengths, -1)
        return StationaryValueGuidedState(
            torch.zeros_like(decoding.complete), left, left + (self.tries or 0) + 1
        )

    def step(
        self, decoding: Decoding, state: StationaryValueGuidedState, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, StationaryValueGuidedState]:
        """Move each row by one step of its current walk, or end the walk.

        The number of steps of a walk from the prompt (a try) is drawn when it begins. While steps are left,
        the row waits, removes its last token or appends a token. Then a complete row is marked as done, and
        an incomplete row begins the next try at its prompt. After the last try, its sample fails.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            state: For each row, whether the last move removed a token, and the numbers of steps and tries
                left.
            verifier: Values V of the rows and of their children.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            How each row changes (`Moves`), and the new state.
        """
        moves, (up, steps, tries) = Moves.stay(decoding), state
        given = decoding.complete & (decoding.lengths == decoding.start)
        begins = ((steps < 0) & ~given).nonzero()[:, 0]
        if len(begins):
            steps = steps.index_copy(0, begins, self._draw_num_steps(decoding, begins, choose))
        ended = steps == 0
        again = ended & ~decoding.complete
        moves.done.copy_(given | (ended & (decoding.complete | (tries == 1))))
        again &= ~moves.done
        moves.length.copy_(torch.where(again, decoding.start, moves.length))
        rows = (~moves.done & ~ended).nonzero()[:, 0]
        up, unable = self._draw_moves(decoding, moves, rows, up, verifier, choose)
        moves.done[unable] = True
        steps = torch.where(ended | given, torch.where(again, -1, steps), steps - 1)
        return moves, StationaryValueGuidedState(up & ~again, steps, tries - (again & (tries > 0)).long())

    def _draw_num_steps(self, decoding: Decoding, rows: Tensor, choose: Choose) -> Tensor:
        """Draw the number of steps (n,) of the random walk that each row is about to start at its prompt."""
        horizon = decoding.limit[rows] - decoding.start[rows]
        most = 4 * horizon**2 if self.steps is None else torch.full_like(horizon, self.steps)
        if self.node == "last":
            return most
        number = torch.arange(1, int(most.max()) + 1)
        weights = torch.zeros(len(rows), len(number), dtype=torch.float64)
        return 1 + choose(weights.masked_fill(number > most[:, None], -math.inf), rows)
