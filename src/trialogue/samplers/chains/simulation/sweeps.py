"""Function `run_sweeps`, which runs many independent Gibbs chains on a model."""

from collections.abc import Callable
from functools import partial
from typing import Literal, Protocol

import torch
from torch import Tensor

from trialogue.arrays import parse_device
from trialogue.data import ManyBody
from trialogue.data.site_tables import Tabulated, require_tabulated, validate_start
from trialogue.errors import InputError
from trialogue.samplers.chains.simulation.chromatic import Chromatic
from trialogue.samplers.chains.simulation.heat_bath import HeatBath
from trialogue.samplers.chains.simulation.many_body import ManyBodyHeatBath
from trialogue.samplers.chains.simulation.multispin import Multispin
from trialogue.validation import Count, Natural, validated


class Simulation(Protocol):
    """Protocol of implementations that run many Gibbs chains at once."""

    @property
    def tokens(self) -> Tensor:
        """Tokens (chains, N) int64."""
        ...

    def advance(self, sweeps: int) -> None:
        """Run `sweeps` Gibbs sweeps, each of which redraws every site (position) given all other sites."""
        ...


METHODS: dict[str, Callable[..., Simulation]] = {
    "heat-bath": HeatBath,
    "multispin": Multispin,
    "chromatic": Chromatic,
    "many-body": ManyBodyHeatBath,
}
"""Implementations of sweeps by name, with arguments `(model, chains, seed, tokens)`."""


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
    """Run independent Markov chains by Gibbs sweeps, and return their final tokens.

    A sweep visits every site (position) once and redraws its token from the distribution given all other
    sites. The result of chain c is determined by `seed`, c and its start. It does not depend on the number of
    chains or threads. Use `run_chain` for other kinds of chains.

    Args:
        model: A model with tables of its conditional distributions (`Tabulated`), such as `Ising` and
            `PottsChain.at(length, temperature)`, or a `ManyBody` distribution.
        sweeps: Number of sweeps.
        chains: Number of chains, which start at independent uniform tokens.
        start: Start (chains, N) of each chain, instead of `chains`.
        seed: Seed of the random streams (default: 0).
        method: Implementation (default: the fastest general one for the model and device). "heat-bath" is
            compiled for the CPU. "multispin" computes 4096 chains at a time by bit operations. It is faster
            for many chains on Ising models in which all couplings of a site are equal. "chromatic" updates
            all sites of a colour at once, on any device, where neighbors have different colours. "many-body"
            is compiled for `ManyBody`.
        device: Device of the chains (default: the device of the start, or of the model).

    Returns:
        Tokens (chains, N) int64.

    Raises:
        InputError: If an argument is out of range, a start is outside of the model, or the method does not
            support the model or device.

    Example:
        >>> from trialogue import run_sweeps
        >>> from trialogue.data import Ising
        >>> run_sweeps(Ising.clique(4, 3, 0.4, 0.0), sweeps=100, chains=2)
        tensor([[0, 1, 0, 0],
                [1, 1, 1, 0]])
    """
    many_body = isinstance(model, ManyBody)
    if many_body and method is None:
        method = "many-body"
    sites, vocab = (model if many_body else require_tabulated(model)).sites, model.vocab_size
    if (start is None) == (chains is None):
        hint = "give either a number of chains, or a start with one row per chain"
        raise InputError("chains", chains, hint)
    if start is not None:
        start = validate_start("start", start, sites, vocab)
    if device is None:
        device = (model.device or "cpu") if start is None else start.device
    device = parse_device(device)
    if method is None:
        method = "heat-bath" if device.type == "cpu" else "chromatic"
    if method != "chromatic" and device.type != "cpu":
        raise InputError(
            "method", method, f'use "chromatic" on {device}, because this method runs on the CPU only'
        )
    number = chains if start is None else len(start)
    start = None if start is None else start.to(device)
    make = partial(METHODS[method], device=device) if method == "chromatic" else METHODS[method]
    simulation = make(model, number, seed, start)
    simulation.advance(sweeps)
    return simulation.tokens
