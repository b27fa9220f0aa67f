"""Choice between the `step` method of a Markov chain and a compiled implementation of it."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from trialogue.oracles import Chain, SequenceModel
from trialogue.randomness import Streams

Advance = Callable[[Any, Streams, int], tuple[Any, Tensor | None]]
"""`advance(state, streams, steps) -> state, accepted` takes several steps of a chain. Row i draws from stream i.

`accepted` (rows,) float64 is the sum of `StepInfo.accepted` over the steps, or None if the chain does not report it.
"""

KERNELS: dict[tuple[type, type], Callable[[Any, Any], Advance | None]] = {}
"""Compiled steps by the exact types of chain and model: `KERNELS[type(chain), type(model)](chain, model)`.

A kernel draws the same numbers from the streams as `step`, so the results are equal, and advances `streams.counters`.
The function returns None if it does not support the chain and the model.
"""


def make_advance_function(chain: Chain[Any], model: SequenceModel) -> Advance:
    """Return a function that advances a batch of Markov chains by several steps.

    The function is compiled if a compiled version exists for the chain and the model. Otherwise it calls `chain.step`
    in a loop.

    Args:
        chain: The chain.
        model: The model whose distribution the chain samples.

    Returns:
        A function `(state, streams, steps) -> (new_state, accepted)`, where `streams` are the random streams of the
        rows. `accepted` (rows,) float64 sums the share of accepted proposals over the steps. It is None if the chain
        does not report this share.
    """
    kernel = KERNELS.get((type(chain), type(model)))
    compiled = None if kernel is None else kernel(chain, model)

    def by_step(state: Any, streams: Streams, steps: int) -> tuple[Any, Tensor | None]:
        accepted: Tensor | None = None
        for _ in range(steps):
            state, info = chain.step(model, state, streams.choose)
            if info.accepted is not None:
                accepted = info.accepted if accepted is None else accepted + info.accepted
        return state, accepted

    return by_step if compiled is None else compiled
