"""Passes that reveal a random number of positions, for the exact distributions of unmasking samplers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
import torch
from scipy.sparse import coo_array, csr_array, vstack
from torch import Tensor

from trialogue.enumeration import enumerate_outcomes
from trialogue.randomness import Choose
from trialogue.samplers.exact.moves import Moves, Outcomes, one_each
from trialogue.samplers.exact.row_numbers import RowNumbers, as_rows
from trialogue.samplers.unmasking.contract import Canvas, map_fields, select
from trialogue.samplers.unmasking.ordered import DrawThenSelect, Ordered, current_block
from trialogue.samplers.unmasking.sizes import Block, RandomSizes, Size

_STORED_ENTRIES = 1 << 24
"""Number of stored probabilities from which no further ones are stored."""
_OUTCOMES_AT_ONCE = 1 << 20


class _Prescribed(Size):
    """Reveal as many positions as the field `passes` of the canvas."""

    counts_passes: ClassVar[bool] = True

    def count(self, block: Block, choose: Choose) -> Tensor:
        """Return the number of positions (rows,) for a `block`. The random `choose` is not used."""
        del choose
        return block.passes


class RandomSizePasses:
    """Outcomes of the passes of a sampler with `RandomSizes`.

    The number of passes affects only how many positions are revealed. The canvases after a pass are therefore
    enumerated once for each canvas and each number of revealed positions, and stored for all numbers of passes.

    Args:
        sampler: The sampler.
        enumerate_pass: The method of `Exploration` that enumerates the outcomes of a stage.
    """

    def __init__(self, sampler: Ordered | DrawThenSelect, enumerate_pass: Callable[..., Outcomes]) -> None:
        self._sampler, self._enumerate_pass = sampler, enumerate_pass
        self._prescribed = replace(sampler, size=_Prescribed())
        # Canvases before and after a pass. The field `passes` is the number of positions to be revealed before it, and
        # afterwards 1 if the block has further masked positions, otherwise 0.
        self._before, self._after = RowNumbers(), RowNumbers()
        self._canvases: Canvas | None = None
        # Probability of each canvas after a pass (columns) for each canvas before it (rows).
        self._distributions = csr_array((0, 0))

    @staticmethod
    def applies(sampler: object) -> bool:
        """Return whether the sampler selects random numbers of positions, in an order other than a random one."""
        known = isinstance(sampler, DrawThenSelect) or (
            isinstance(sampler, Ordered) and not sampler.selects_independently
        )
        return known and type(cast(Any, sampler).size) is RandomSizes

    @property
    def is_full(self) -> bool:
        """Whether too many probabilities are stored for further ones."""
        return self._distributions.nnz > _STORED_ENTRIES

    def outcomes(self, state: Canvas, conditionals: Tensor, factors: Any, contexts: Any) -> Outcomes:
        """Enumerate the outcomes of a pass.

        Args:
            state: States before the pass.
            conditionals: Log-probabilities (rows, length, vocab) of the model.
            factors: Factor (rows,) of the probabilities of each row, if moves from different rows to the same state may
                be merged. None if they may not.
            contexts: Rows with equal contexts (rows,) lead to the same states.
        """
        rows, weights, before = self._count(state)
        sources, numbers = rows.numpy(), self._numbers(before, conditionals[rows])
        labels, first = RowNumbers().number(np.column_stack((contexts, state.passes.cpu().numpy())))
        if factors is not None:
            entries, shape = (labels[sources], numbers), (len(first), self._before.count)
            found = (csr_array((weights * factors[sources], entries), shape) @ self._distributions).tocoo()
            origins = first[found.row]
            yield one_each(origins, found.data, self._states(state, origins, found.col))
            return
        counts = np.diff(self._distributions.indptr)[numbers].cumsum()
        for part in np.split(
            np.arange(len(counts)), np.flatnonzero(np.diff(counts // _OUTCOMES_AT_ONCE)) + 1
        ):
            found = self._distributions[numbers[part]].tocoo()
            pairs = part[found.row]
            places, new = RowNumbers().number(np.column_stack((labels[sources[pairs]], found.col)))
            origins = sources[pairs[new]]
            states = self._states(state, origins, found.col[new])
            yield Moves(sources[pairs], weights[pairs] * found.data, states, origins, places)

    def _count(self, state: Canvas) -> tuple[Tensor, Any, Canvas]:
        """Return rows (n,), probabilities (n,) and canvases with each possible number of positions to be revealed."""
        block = current_block(state, self._sampler.blocks)
        masked = state.masked & block
        labels, first = RowNumbers().number(as_rows([masked.sum(1), state.passes]))
        blocks = Block(torch.zeros_like(masked), masked, block.sum(1), state.passes)
        blocks = select(blocks, torch.from_numpy(first))
        outcomes = enumerate_outcomes(
            lambda rows, choose: self._sampler.size.count(select(blocks, rows), choose), len(first)
        )
        rows, weights, counts = (torch.cat(column).numpy() for column in zip(*outcomes, strict=True))
        table = coo_array((weights, (rows, counts))).tocsr()
        found = table[labels].tocoo()
        source, count = torch.from_numpy(found.row).long(), torch.from_numpy(found.col).long()
        return source, found.data, select(state, source)._replace(passes=count)

    def _numbers(self, before: Canvas, conditionals: Tensor) -> Any:
        """Return the row (n,) of `self._distributions` for each canvas. New ones are computed first."""
        numbers, new = self._before.number(as_rows(list(before)))
        if len(new):
            rows = torch.from_numpy(new)
            stage = cast(Any, self._prescribed).step
            same = np.zeros(len(new), np.int64)
            found = [
                (moves.rows, moves.weights, self._store(moves.states)[moves.places])
                for moves in self._enumerate_pass(stage, select(before, rows), conditionals[rows], None, same)
            ]
            source, weights, after = (np.concatenate(column) for column in zip(*found, strict=True))
            shape = (len(new), self._after.count)
            self._distributions.resize((self._distributions.shape[0], self._after.count))
            more = coo_array((weights, (source, after)), shape=shape).tocsr()
            self._distributions = vstack((self._distributions, more), format="csr")
        return numbers

    def _store(self, after: Canvas) -> Any:
        """Return the column (n,) of `self._distributions` for each canvas after a pass."""
        after = after._replace(passes=after.passes.clamp(max=1))
        numbers, new = self._after.number(as_rows(list(after)))
        found = select(after, torch.from_numpy(new))
        known = found if self._canvases is None else self._canvases
        if known is not found:
            known = map_fields(lambda *parts: torch.cat(parts), known, found)
        self._canvases = known
        return numbers

    def _states(self, state: Canvas, rows: Any, after: Any) -> Canvas:
        """Return the canvases with given numbers (n,) after a pass from the given rows (n,) of `state`."""
        canvas = select(cast(Canvas, self._canvases), torch.from_numpy(after).long())
        return canvas._replace(passes=canvas.passes * (state.passes[torch.from_numpy(rows)] + 1))
