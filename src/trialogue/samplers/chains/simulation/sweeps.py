"""Many chains, many sweeps: samples of a model by compiled heat bath, in bulk."""

from collections.abc import Callable
from functools import partial
from typing import Literal, Protocol

import torch
from torch import Tensor

from trialogue.arrays import checked_device
from trialogue.data import ManyBody
from trialogue.data.site_tables import Tabulated, checked_start, tabulated
from trialogue.errors import InputError
from trialogue.samplers.chains.simulation.chromatic import Chromatic
from trialogue.samplers.chains.simulation.heat_bath import HeatBath
from trialogue.samplers.chains.simulation.many_body import ManyBodyHeatBath
from trialogue.samplers.chains.simulation.multispin import Multispin
from trialogue.validation import Count, Natural, validated


class Simulation(Protocol):
    """Chains that are advanced by sweeps."""

    @property
    def tokens(self) -> Tensor:
        """Tokens (chains, N) int64."""
        ...

    def advance(self, sweeps: int) -> None:
        """Update every site of every chain so many times."""
        ...


METHODS: dict[str, Callable[..., Simulation]] = {
    "heat-bath": HeatBath,
    "multispin": Multispin,
    "chromatic": Chromatic,
    "many-body": ManyBodyHeatBath,
}
"""Ways of running sweeps, by name; each is `METHODS[name](model, chains, seed, tokens)`."""


@validated
def run_sweeps(
    model: Tabulated | ManyBody,
    *,
    sweeps: Count,
    chains: Count | None = None,
    start: Tensor | None = None,
    seed: Natural = 0,
    method: Literal["heat-bath", "multispin", "chromatic", "many-body"] | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """Tokens (chains, N) int64 of independent chains after so many sweeps of the heat bath, every site once in each.

    `model` is any that says its conditional distributions as tables (`Tabulated`): an `Ising` model, a Potts chain
    (`PottsChain.at(length, temperature)`), or tables such as `window_tables(energy, sites)`; or a `ManyBody`
    distribution, which has a compiled heat bath of its own, "many-body", on the CPU. Chains start at `start` (chains,
    N), or `chains` of them at independent uniform tokens. Chain c depends on `seed`, its start and c, neither on how
    many chains there are nor on the threads (`torch.get_num_threads()`).

    On the CPU, "heat-bath" is compiled and visits the sites in order, and is what runs by default; "multispin" packs 64
    chains into a word and computes 4096 at a time: the faster one for many chains on Ising models whose sites each have
    equal couplings. "chromatic" draws all sites of a colour at once by whole-tensor operations, on any `device` (by
    default that of the start, or of the model), and is what runs on others than the CPU. To look at chains on
    their way, keep a `HeatBath`, `Multispin` or `Chromatic` and `advance` it; to use the numbers of `run_chain`, use
    that.

    Raises `InputError` for a field out of range, a start outside of the model, and a model or device the method is not
    for.
    """
    many_body = isinstance(model, ManyBody)
    if many_body and method is None:
        method = "many-body"
    sites, vocab = (model if many_body else tabulated(model)).sites, model.vocab_size
    if (start is None) == (chains is None):
        raise InputError(
            "chains", chains, "give either a number of chains or a start, one row for each chain"
        )
    if start is not None:
        start = checked_start("start", start, sites, vocab)
    if device is None:
        device = (model.device or "cpu") if start is None else start.device
    device = checked_device(device)
    if method is None:
        method = "heat-bath" if device.type == "cpu" else "chromatic"
    if method != "chromatic" and device.type != "cpu":
        raise InputError("method", method, f'it runs on the CPU: on {device} use "chromatic"')
    number = chains if start is None else len(start)
    start = None if start is None else start.to(device)
    make = partial(METHODS[method], device=device) if method == "chromatic" else METHODS[method]
    simulation = make(model, number, seed, start)
    simulation.advance(sweeps)
    return simulation.tokens
