"""What chains are made of: their state, what they assume, and the seam for compiled steps."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from torch import Tensor

from trialogue.errors import InputError
from trialogue.inference.chains.conditionals import Model
from trialogue.oracles import Chain
from trialogue.randomness import Streams


class Tokens(NamedTuple):
    """The state of a chain that keeps nothing but its sequences."""

    tokens: Tensor


class Memoryless:
    """A chain whose state is its sequences.

    A `heat_bath` may give any site any value of positive conditional probability, and covers all sites: where all
    conditionals are positive it is ergodic, which then needs no check.
    """

    heat_bath: ClassVar[bool] = False

    def init(self, model: Model, tokens: Tensor) -> Tokens:
        """Nothing more to keep."""
        del model
        return Tokens(tokens)


Advance = Callable[[Any, Streams, int], Any]
"""`advance(state, streams, steps) -> state`: so many steps of a chain, with row i drawing from stream i."""

KERNELS: dict[tuple[type, type], Callable[[Any, Any], Advance | None]] = {}
"""Compiled steps by the exact types of chain and model: `KERNELS[type(chain), type(model)](chain, model)`.

A kernel draws the same numbers from the streams as `step` does and uses them alike, so that results are the same; it
advances `streams.counters`. It may decline (None) what it does not cover.
"""


def require_chain(chain: object) -> None:
    """Raise `InputError` for what is no chain, a class in place of one included."""
    if isinstance(chain, type):
        raise InputError("chain", chain.__name__, f"give an instance: {chain.__name__}()")
    if not isinstance(chain, Chain):
        raise InputError("chain", chain, "give a chain, such as Gibbs(): something with init and step")


def advancing(chain: Chain[Any], model: Model) -> Advance:
    """How to run steps of `chain` on `model`: compiled where there is a kernel for the two, else by `step`."""
    kernel = KERNELS.get((type(chain), type(model)))
    compiled = None if kernel is None else kernel(chain, model)

    def by_step(state: Any, streams: Streams, steps: int) -> Any:
        for _ in range(steps):
            state = chain.step(model, state, streams.choose)
        return state

    return by_step if compiled is None else compiled
