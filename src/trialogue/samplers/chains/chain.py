"""How chains are run: by their own steps, or by compiled ones."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from trialogue.oracles import Chain, SequenceModel
from trialogue.randomness import Streams

Advance = Callable[[Any, Streams, int], tuple[Any, Tensor | None]]
"""`advance(state, streams, steps) -> state, accepted`: take several steps of a chain; row i draws from stream i.

`accepted` (rows,) float64 sums `StepInfo.accepted` over the steps. It is None if the chain does not report it.
"""

KERNELS: dict[tuple[type, type], Callable[[Any, Any], Advance | None]] = {}
"""Compiled steps by the exact types of chain and model: `KERNELS[type(chain), type(model)](chain, model)`.

A kernel draws the same numbers from the streams as `step` does and uses them alike, so that results are the same; it
advances `streams.counters`. It may decline (None) what it does not cover.
"""


def advancing(chain: Chain[Any], model: SequenceModel) -> Advance:
    """How to run steps of `chain` on `model`: compiled where there is a kernel for the two, else by `step`."""
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
