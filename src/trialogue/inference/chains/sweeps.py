"""Many chains, many sweeps: samples of a model by compiled heat bath, in bulk."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from trialogue.data import Ising
from trialogue.errors import InputError, whole_number
from trialogue.inference.chains.contexts import Contexts
from trialogue.inference.chains.heat_bath import HeatBath
from trialogue.inference.chains.multispin import Multispin


class Simulation(Protocol):
    """Chains that are advanced by sweeps."""

    @property
    def tokens(self) -> Tensor:
        """Tokens (chains, N) int64."""
        ...

    def advance(self, sweeps: int) -> None:
        """Update every site of every chain so many times."""
        ...


METHODS: dict[str, Callable[[Any, int, int, Tensor | None], Simulation]] = {
    "heat-bath": HeatBath,
    "multispin": Multispin,
}
"""Ways of running sweeps, by name; each is `METHODS[name](model, chains, seed, tokens)`."""


def run_sweeps(
    model: Ising | Contexts,
    *,
    sweeps: int,
    chains: int | None = None,
    start: Tensor | None = None,
    seed: int = 0,
    method: Literal["heat-bath", "multispin"] = "heat-bath",
) -> Tensor:
    """Tokens (chains, N) int64 of independent chains after so many sweeps of heat bath, sites in order.

    `model` is an `Ising` model, or a table of conditionals such as `window_contexts(energy, sites)`. Chains start at
    `start` (chains, N), or `chains` of them at independent uniform tokens. Chain c depends on `seed`, its start and c,
    neither on how many chains there are nor on the threads (`torch.get_num_threads()`). "multispin" packs 64 chains
    into a word and computes 4096 at a time; it is the faster one for many chains on Ising models whose sites each have
    equal couplings. To look at chains on their way, keep a `HeatBath` or `Multispin` and `advance` it; to use the
    numbers of `run_chain`, use that.

    Raises `InputError` for a field out of range, a start outside of the model, and a model the method is not for.
    """
    if method not in METHODS:
        raise InputError("method", method, f"use one of {', '.join(METHODS)}")
    if not isinstance(model, Ising | Contexts):
        raise InputError(
            "model", type(model).__name__, "give an Ising model, or a table of conditionals (Contexts)"
        )
    vocab = model.vocab if isinstance(model, Contexts) else model.vocab_size
    if (start is None) == (chains is None):
        raise InputError(
            "chains", chains, "give either a number of chains or a start, one row for each chain"
        )
    if start is not None:
        start = torch.as_tensor(start)
        if start.ndim != 2 or start.shape[1] != model.sites or not len(start) or start.is_floating_point():
            raise InputError("start", tuple(start.shape), f"give token ids of shape (chains, {model.sites})")
        wrong = start[(start < 0) | (start >= vocab)]
        if len(wrong):
            raise InputError("start", int(wrong[0]), f"use tokens below {vocab}")
    number = whole_number("chains", chains, 1) if start is None else len(start)
    simulation = METHODS[method](model, number, whole_number("seed", seed, 0), start)
    simulation.advance(whole_number("sweeps", sweeps, 1))
    return simulation.tokens
