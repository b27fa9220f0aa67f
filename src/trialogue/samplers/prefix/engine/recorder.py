"""Recorder of every change of a sequence during a run."""

import torch
from torch import Tensor

from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.engine.groups import Groups
from trialogue.samplers.prefix.output.samples import Trace


class TraceRecorder:
    """Records every change of a row of the batch during a run."""

    def __init__(self) -> None:
        self._steps: list[Trace] = []

    def record(self, step: int, groups: Groups, moves: Moves) -> None:
        """Store the moves of one step. It must be called before they are applied.

        Args:
            step: Index of the step.
            groups: The rows of the samples in progress.
            moves: The moves.
        """
        lengths, members = groups.batch.lengths, groups.members
        elsewhere = moves.source != torch.arange(len(lengths))
        rows = ((moves.token >= 0) | (moves.length != lengths) | elsewhere).nonzero()[:, 0]
        self._steps.append(
            Trace(
                step=torch.full_like(rows, step),
                sample=groups.sample[rows // members],
                member=rows % members,
                length=lengths[rows],
                source=moves.source[rows] % members,
                kept=moves.length[rows],
                token=moves.token[rows],
            )
        )

    def trace(self) -> Trace:
        """Return all moves, ordered by step."""
        columns: dict[str, Tensor] = {
            name: torch.cat([vars(step)[name] for step in self._steps]) for name in vars(self._steps[0])
        }
        return Trace(**columns)
