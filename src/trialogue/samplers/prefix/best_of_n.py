"""Best-of-n sampling."""

from dataclasses import dataclass

import torch
from torch import Tensor

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import GroupSize, NoState, Sampler
from trialogue.validation import validated


@validated
@dataclass(frozen=True)
class BestOfN(Sampler[NoState]):
    """Draw several completions of each prompt and return the one with the largest value, the first in case of ties.

    Args:
        candidates: Number of completions to draw (default: 4).

    Example:
        >>> from trialogue import generate
        >>> from trialogue.data import Table
        >>> from trialogue.samplers import BestOfN
        >>> table = Table([[0.5, 0.25], [0.0, 0.25]])  # Probabilities of the sequences of two tokens
        >>> samples = generate(table, sampler=BestOfN(), verifier=lambda x: x != (0, 0), num_samples=4)
        >>> samples.completions()
        [(0, 1), (1, 1), (0, 1), (0, 0)]
    """

    candidates: GroupSize = 4
    uses = "ranks"
    judges = "outputs"

    @property
    def rows_per_sample(self) -> int:
        """Number of rows of the batch that form one sample: one for each candidate."""
        return self.candidates

    def step(
        self, decoding: Decoding, state: NoState, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, NoState]:
        """Append one token, drawn from the model, to each incomplete row, and select the best of finished candidates.

        The candidates of one sample are neighboring rows of the batch. When all of them are complete, each
        becomes a copy of the one with the largest verifier value, and they are marked as done.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            state: The empty state (this sampler stores nothing between steps).
            verifier: Values of the complete rows.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            How each row changes (`Moves`), and the empty state.
        """
        n, moves = self.candidates, Moves.stay(decoding)
        moves.append(decoding, decoding.growing, choose)
        finished = decoding.complete.view(-1, n).all(1).nonzero()[:, 0]
        if finished.numel():
            moves.done[keep_best(decoding, moves, finished, n, verifier)] = True
        return moves, state


def keep_best(decoding: Decoding, moves: Moves, groups: Tensor, n: int, verifier: CachedVerifier) -> Tensor:
    """Replace all rows of a sample by the row with the largest verifier value, the first of equal ones.

    Args:
        decoding: The batch of sequences (rows), each a prompt and the completion so far.
        moves: The moves of all rows. The sources and lengths of these samples' rows are overwritten.
        groups: Indices (k,) int64 of the samples in the batch.
        n: Number of neighboring rows of each sample.
        verifier: Values of the rows.

    Returns:
        Indices (k, n) int64 of the rows of these samples.
    """
    rows = groups[:, None] * n + torch.arange(n)
    evaluate = verifier.log_values if verifier.has_targets else verifier.values
    best = evaluate(rows.flatten()).view(-1, n).argmax(1)
    moves.source[rows] = rows.gather(1, best[:, None])
    moves.length[rows] = decoding.lengths[moves.source[rows]]
    return rows
