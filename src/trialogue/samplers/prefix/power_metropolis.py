"""Metropolis-Hastings sampling from a power of the model's distribution (Karan and Du 2025, arXiv 2510.14901)."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from torch import Tensor

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import BoundedCount, Sampler, Uses, require_support
from trialogue.validation import Positive, validated


class PowerMetropolisState(NamedTuple):
    """State of `PowerMetropolis`: rows 2i and 2i + 1 hold the current text and the proposed text of sample i.

    Attributes:
        log_p: Log-probability (rows, capacity) float64 of each token under the model, 0 for the prompt.
        log_q: Log-probability (rows, capacity) float64 of each token under the proposal distribution.
        end: Length (rows,) int64, including the prompt, to which the text grows in the current block.
        proposals: Number (rows,) int64 of finished proposals. The first of each block only lengthens the
            text.
    """

    log_p: Tensor
    log_q: Tensor
    end: Tensor
    proposals: Tensor


@validated
@dataclass(frozen=True)
class PowerMetropolis(Sampler[PowerMetropolisState]):
    """Sample from a power of the model's distribution by Metropolis-Hastings steps that redraw the end of the text.

    The target is proportional to p(x)^alpha, where p(x) is the probability of the complete output x under the
    model, including temperature, top-k, top-p and min-p. With a verifier it is p(x)^alpha V(x), where V is
    the verifier's value. It differs from sampling each token at temperature 1 / alpha. The distribution of
    the samples approaches the target as `num_steps` increases.

    Each step keeps the first c of the t completion tokens of the current text x, where c is uniform in 0,
    ..., t - 1. The rest is redrawn from the model at temperature `proposal_temperature` (the proposal
    distribution q). The new text y, with s completion tokens, replaces x with the probability

        min(1, (p(y) / p(x))^alpha · q(x) / q(y) · t / s).

    With a verifier, the ratio is multiplied by V(y) / V(x), unless both values are 0.

    With several blocks, the text grows in `num_blocks` stages of equal length, each with `num_steps` steps.
    The verifier is used in the last one. With one block, a sample needs about 1 + `num_steps` / 2 model calls
    per token. If this is more than 1000, increase the limit `max_steps` of the run.

    Args:
        alpha: Power of the probability of an output (default: 4, as in the paper).
        num_steps: Number of Metropolis-Hastings steps per block (default: 10).
        num_blocks: Number of blocks in which the text grows (default: 1). The paper uses 16.
        proposal_temperature: Temperature of the proposal distribution (default: 1 / alpha).
        follows_released_code: Follow the code published with the paper, whose samples do not approach the
            target if texts end at different lengths. `released` lists the differences.

    References:
        Karan, Du, "Reasoning with sampling: your base model is smarter than you think", arXiv 2510.14901,
        Algorithm 1.
    """

    alpha: Positive = 4.0
    num_steps: BoundedCount = 10
    num_blocks: BoundedCount = 1
    proposal_temperature: Positive | None = None
    follows_released_code: bool = False
    judges = "outputs"
    needs_verifier = False
    rows_per_sample = 2

    @classmethod
    def released(
        cls,
        alpha: float = 4.0,
        num_steps: int = 10,
        num_blocks: int = 16,
        proposal_temperature: float | None = None,
    ) -> Self:
        """Return the sampler as implemented in the code published with the paper.

        It differs from the default in five ways. The factor t / s of the acceptance probability is missing
        (the numbers of completion tokens of the current and of the proposed text). A proposal is at most as
        long as the current text. If it is shorter, only as many tokens of the current text enter the ratio.
        The sample ends after the first block whose text ends with the end-of-sequence token. The verifier is
        not used.

        A sample fails if its text has become shorter than the maximum length and lost its end-of-sequence
        token. The published code returns such a text.

        Args:
            alpha: Power of the probability of an output (default: 4).
            num_steps: Number of Metropolis-Hastings steps per block (default: 10).
            num_blocks: Number of blocks (default: 16).
            proposal_temperature: Temperature of the proposal distribution (default: 1 / alpha).

        References:
            Function `mcmc_power_samp` in `llm_experiments/power_samp_utils.py` of
            github.com/aakaran/reasoning-with-sampling, commit 6107354.
        """
        return cls(alpha, num_steps, num_blocks, proposal_temperature, follows_released_code=True)

    @property
    def uses(self) -> Uses:
        """How `step` uses the values of the verifier: as factors of the target, or not at all in the released code."""
        return "nothing" if self.follows_released_code else "weights"

    @property
    def failure_reason(self) -> str:
        """Why a sample fails. This happens only if `follows_released_code` is set."""
        return "the text became shorter and lost its end-of-sequence token"

    def init(self, decoding: Decoding) -> PowerMetropolisState:
        """Return the initial sampler state of rows that contain only their prompts.

        Args:
            decoding: The batch of sequences (rows), each a prompt and the completion so far.

        Returns:
            Log-probabilities of zero, the lengths at which the first block ends, and no proposals.
        """
        zeros = torch.zeros(decoding.tokens.shape, dtype=torch.float64)
        end = (decoding.start + self._block_lengths(decoding)).minimum(decoding.limit)
        return PowerMetropolisState(zeros, zeros.clone(), end, torch.zeros_like(decoding.lengths))

    def step(
        self, decoding: Decoding, state: PowerMetropolisState, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, PowerMetropolisState]:
        """Append one token to each unfinished proposal, and accept or reject each finished one.

        The first row of each sample holds the current text, and the second the proposed text, which grows by
        one token per step. When the proposal is complete or has reached the length of the current block, both
        rows become the proposed text (if it is accepted) or the current text. The next proposal begins with a
        random prefix of this text. After the last step of a block, it begins with the whole text, which the
        next block lengthens. After the last block, the sample is marked as done.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            state: For each row, the log-probabilities of its tokens, the length at which the block ends, and
                the number of finished proposals.
            verifier: Values of the complete rows, or None.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            How each row changes (`Moves`), and the new state.
        """
        moves, state = Moves.stay(decoding), PowerMetropolisState(*(field.clone() for field in state))
        rows = torch.arange(len(decoding.lengths))[1::2]
        is_drawn = decoding.complete[rows] | (decoding.lengths[rows] >= self._ends(decoding, state)[rows])
        self._draw(decoding, rows[~is_drawn], moves, state, choose)
        is_given = decoding.complete & (decoding.lengths == decoding.start)
        moves.done.copy_(is_given)
        decided = rows[is_drawn & ~is_given[rows]]
        if decided.numel():
            self._decide(decoding, decided, moves, state, verifier, choose)
        return moves, state

    def _draw(
        self, decoding: Decoding, rows: Tensor, moves: Moves, state: PowerMetropolisState, choose: Choose
    ) -> None:
        """Draw the next token of the proposals in `rows` (n,)."""
        if not rows.numel():
            return
        log_p = decoding.log_probs(rows).double()
        require_support(log_p)
        tau = self.proposal_temperature
        power = self.alpha if tau is None else 1 / tau
        log_q = (power * (log_p - log_p.amax(1, keepdim=True))).log_softmax(1)
        tokens = moves.token[rows] = choose(log_q, rows)
        place = rows, decoding.lengths[rows]
        state.log_p[place] = log_p.gather(1, tokens[:, None])[:, 0]
        state.log_q[place] = log_q.gather(1, tokens[:, None])[:, 0]

    def _decide(
        self,
        decoding: Decoding,
        rows: Tensor,
        moves: Moves,
        state: PowerMetropolisState,
        verifier: CachedVerifier,
        choose: Choose,
    ) -> None:
        """Accept or reject the complete proposals in `rows` (n,), and begin the next ones."""
        position = torch.arange(state.log_p.shape[1])
        # Entries beyond the proposal belong to the text from which it was cut.
        beyond = position >= decoding.lengths[rows, None]
        for field in (state.log_p, state.log_q):
            field[rows] = field[rows].masked_fill(beyond, 0.0)
        log_ratio = self._log_ratios(decoding, rows, state, verifier)
        log_ratio = log_ratio.masked_fill(self._lengthens(state)[rows], 0.0).clamp_max(0.0)
        is_accepted = choose(torch.stack(((-log_ratio.expm1()).log(), log_ratio), 1), rows) == 1
        source = torch.where(is_accepted, rows, rows - 1)
        proposals, length = state.proposals[rows] + 1, decoding.lengths[source]
        is_last = proposals % (self.num_steps + 1) == 0
        if self.follows_released_code:
            ended = decoding.complete[source] | (proposals == self.num_blocks * (self.num_steps + 1))
        else:
            ended = state.end[rows] >= decoding.limit[rows]
        before = length if self.follows_released_code else state.end[rows]
        end = (before + self._block_lengths(decoding)[rows]).minimum(decoding.limit[rows])
        for own in (rows - 1, rows):
            moves.source[own], moves.length[own], moves.done[own] = source, length, is_last & ended
            state.proposals[own], state.end[own] = proposals, torch.where(is_last, end, state.end[own])
        cut = rows[~is_last]
        if cut.numel():
            start = decoding.start[cut]
            options = torch.arange(state.log_p.shape[1]) >= (moves.length[cut] - start)[:, None]
            log_weights = torch.zeros(options.shape, dtype=torch.float64).masked_fill(options, -torch.inf)
            moves.length[cut] = start + choose(log_weights, cut)

    def _log_ratios(
        self, decoding: Decoding, rows: Tensor, state: PowerMetropolisState, verifier: CachedVerifier
    ) -> Tensor:
        """Return the logarithm (n,) of the Metropolis-Hastings ratio for the complete proposals in `rows` (n,)."""
        current, length = rows - 1, decoding.lengths[rows, None]
        if self.follows_released_code:
            compared = torch.arange(state.log_p.shape[1]) < length
            old_log_p, old_log_q = (field[current] * compared for field in (state.log_p, state.log_q))
        else:
            old_log_p, old_log_q = state.log_p[current], state.log_q[current]
        # The tokens of the common prefix have differences of exactly zero.
        differences = self.alpha * (state.log_p[rows] - old_log_p) - (state.log_q[rows] - old_log_q)
        log_ratio = differences.sum(1)
        if self.follows_released_code:
            return log_ratio
        new, old = ((decoding.lengths - decoding.start)[which].double() for which in (rows, current))
        # The first text of the first block replaces an empty text, and its ratio is not used.
        log_ratio += old.log() - new.log()
        judged = (~self._lengthens(state)[rows] & (state.end[rows] >= decoding.limit[rows])).nonzero()[:, 0]
        if verifier is not None and judged.numel():
            new_value, old_value = (verifier.log_values(which[judged]) for which in (rows, current))
            log_ratio[judged] += torch.where(new_value == old_value, 0.0, new_value - old_value)
        return log_ratio

    def _ends(self, decoding: Decoding, state: PowerMetropolisState) -> Tensor:
        """Return the length (rows,) int64 at which each proposal ends. Even entries are unused."""
        if not self.follows_released_code:
            return state.end
        return torch.where(self._lengthens(state), state.end, decoding.lengths.roll(1))

    def _lengthens(self, state: PowerMetropolisState) -> Tensor:
        """Return whether the current proposal of each row (rows,) only lengthens the text.

        This is the case for the first proposal of each block.
        """
        return state.proposals % (self.num_steps + 1) == 0

    def _block_lengths(self, decoding: Decoding) -> Tensor:
        """Return the block length (rows,) int64: the largest completion length / `num_blocks`, rounded up."""
        return (decoding.limit - decoding.start + self.num_blocks - 1) // self.num_blocks
