"""Steps of a chain, by its `step` method or by a compiled kernel."""

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


def advancing(chain: Chain[Any], model: SequenceModel) -> Advance:
    """Return a function that takes several steps of a chain, compiled if the chain and the model support it.

    Args:
        chain: The chain.
        model: The model whose distribution the chain samples.

    Returns:
        A function of the state, the random streams of the rows and the number of steps. It returns the new state, and
        the sum (rows,) float64 over the steps of the share of accepted proposals. The sum is None if the chain does not
        report this share.
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
