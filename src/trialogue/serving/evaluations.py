"""Queue of evaluations of given texts, which the worker advances between the steps of its samplers."""

from collections.abc import Callable, Collection, Generator
from typing import Any, NamedTuple

import torch

Parts = Generator[None, None, Any]
"""Generator that yields after each forward pass and returns the result."""


class _Evaluation(NamedTuple):
    parts: Parts
    done: Callable[[Any], None]
    failed: Callable[[Exception], None]


class EvaluationQueue:
    """Evaluations in the order of their arrival."""

    def __init__(self) -> None:
        self._waiting: dict[object, _Evaluation] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def owners(self) -> Collection[object]:
        """Objects for which something is being evaluated, oldest first."""
        return self._waiting.keys()

    def add(
        self, owner: object, parts: Parts, done: Callable[[Any], None], failed: Callable[[Exception], None]
    ) -> None:
        """Add an evaluation.

        Args:
            owner: Object that identifies the evaluation.
            parts: Generator that yields after each forward pass and returns the result.
            done: Function called with the result.
            failed: Function called with an error.
        """
        self._waiting[owner] = _Evaluation(parts, done, failed)

    def remove(self, owner: object) -> None:
        """Cancel an evaluation, if it is in the queue.

        Args:
            owner: Object that identifies the evaluation.
        """
        self._waiting.pop(owner, None)

    def fail(self, error: Exception) -> None:
        """Cancel all evaluations and report an error.

        Args:
            error: The error.
        """
        while self._waiting:
            self._waiting.pop(next(iter(self._waiting))).failed(error)

    def advance(self) -> None:
        """Take the next forward pass of the oldest evaluation."""
        owner, evaluation = next(iter(self._waiting.items()))
        try:
            with torch.inference_mode():
                next(evaluation.parts)
        except StopIteration as stopped:
            del self._waiting[owner]
            evaluation.done(stopped.value)
        except Exception as error:
            del self._waiting[owner]
            evaluation.failed(error)
