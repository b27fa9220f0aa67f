"""Compiled Gibbs sampling of many chains on a many-body distribution."""

import torch
from torch import Tensor

from trialogue.data import ManyBody
from trialogue.data.site_tables import validate_start
from trialogue.errors import InputError
from trialogue.randomness import Streams, derive_seed
from trialogue.validation import Count, Natural, validated


class ManyBodyHeatBath:
    """Many independent Gibbs chains on a many-body distribution, run by compiled code.

    A sweep visits every site (position) once in order. A chain draws the same tokens as `run_chain` with
    `Gibbs(order="sweep")` from the same stream, up to the rounding of sums.

    Args:
        model: The distribution.
        chains: Number of chains.
        seed: Seed of the random streams.
        tokens: Start (chains, N) of each chain (default: independent uniform tokens).

    Raises:
        InputError: If the model is not a `ManyBody` distribution.
    """

    @validated
    def __init__(self, model: ManyBody, chains: Count, seed: Natural, tokens: Tensor | None = None) -> None:
        if not isinstance(model, ManyBody):
            raise InputError("method", "many-body", 'use "heat-bath" for models other than ManyBody')
        self._kernel = model.kernel
        self._streams = Streams(derive_seed(seed, "many-body"), torch.arange(chains))
        if tokens is None:
            every = torch.arange(chains)
            uniform = [self._streams.uniform(every) for _ in range(model.sites)]
            self._tokens = (torch.stack(uniform, 1) * model.vocab_size).long()
        else:
            self._tokens = validate_start("tokens", tokens, model.sites, model.vocab_size, chains).clone()

    @validated
    def advance(self, sweeps: Natural) -> None:
        """Update every site of every chain `sweeps` times, in the order of the sites."""
        streams = self._streams
        self._kernel.sweep(
            self._tokens.numpy(),
            streams.keys.numpy(),
            streams.counters.numpy(),
            sweeps,
        )

    @property
    def tokens(self) -> Tensor:
        """Tokens (chains, N) int64."""
        return self._tokens.clone()
