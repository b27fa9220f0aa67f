"""Samplers whose step is a sequence of stages, such as a pass of another sampler and what follows it."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from torch import Tensor

from trialogue.oracles import StateT
from trialogue.randomness import Choose
from trialogue.samplers.unmasking.contract import AnyState, Unmasking, choose_for, put, select

Stage = Callable[[Any, Tensor, Choose], Any]
"""Function with the arguments and the result of `Unmasking.step`."""


class Staged(Unmasking[StateT]):
    """Base class of samplers whose step is a sequence of stages.

    `exact_distribution` merges equal states after each stage, so that later stages are enumerated once for all steps
    that lead to the same state.
    """

    @abstractmethod
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages of a step. Stages after the first one may only read the shape of the conditionals."""

    def step(self, state: StateT, conditionals: Tensor, choose: Choose) -> StateT:
        """Apply all stages.

        Args:
            state: State before the pass.
            conditionals: Log-probabilities (rows, length, vocab) of the model.
            choose: Source of randomness.

        Returns:
            The state after the pass.
        """
        for stage in self.stages():
            state = stage(state, conditionals, choose)
        return state


def stages_of(sampler: Unmasking[Any]) -> tuple[Stage, ...]:
    """Return the stages of a sampler's step, which is a single stage unless the sampler is `Staged`."""
    if isinstance(sampler, Staged) and type(sampler).step is Staged.step:
        return sampler.stages()
    return (sampler.step,)


@dataclass(frozen=True)
class WrappedStage:
    """A stage of a wrapped sampler, whose state is the field `inner` of the state of the wrapping sampler.

    Attributes:
        stage: The stage of the wrapped sampler.
        applies: Function that returns the rows (rows,) bool of a state in which the stage takes place (default: all).
        otherwise: Stage for the other rows (default: they do not change).
    """

    stage: Stage
    applies: Callable[[Any], Tensor] | None = None
    otherwise: Stage | None = None

    def __call__(self, state: Any, conditionals: Tensor, choose: Choose) -> Any:
        """Apply the stage.

        Args:
            state: State of the wrapping sampler.
            conditionals: Log-probabilities (rows, length, vocab) of the model.
            choose: Source of randomness.

        Returns:
            The state after the stage.
        """
        if self.applies is None:
            return with_inner(state, self.stage(state.inner, conditionals, choose))
        chosen = self.applies(state)
        rows, rest = chosen.nonzero()[:, 0], (~chosen).nonzero()[:, 0]
        if len(rows):
            part = select(state, rows)
            inner = self.stage(part.inner, conditionals[rows], choose_for(rows, choose))
            state = put(state, rows, with_inner(part, inner))
        if len(rest) and self.otherwise:
            after = self.otherwise(select(state, rest), conditionals[rest], choose_for(rest, choose))
            state = put(state, rest, after)
        return state


def with_inner(state: AnyState, inner: Any) -> AnyState:
    """Return the state of a wrapping sampler with the state `inner` of the wrapped one, and its canvas."""
    changed: Any = state
    return cast(AnyState, changed._replace(inner=inner, tokens=inner.tokens, masked=inner.masked))
