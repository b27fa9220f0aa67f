"""Heat bath of many chains on a many-body distribution: sites in order, each drawn from its exact conditional."""

import torch
from torch import Tensor

from trialogue.data import ManyBody
from trialogue.data.site_tables import checked_start
from trialogue.errors import InputError
from trialogue.randomness import Streams, seed_of
from trialogue.validation import Count, Natural, validated


class ManyBodyHeatBath:
    """`chains` independent chains on a many-body distribution, each with a stream of its own, moved by compiled sweeps.

    A chain draws what `run_chain` with systematic Gibbs would draw from the same stream, up to the rounding of sums.
    Chains start at independent uniform tokens, or at `tokens` (chains, N). Raises `InputError` for another model.
    """

    @validated
    def __init__(self, model: ManyBody, chains: Count, seed: Natural, tokens: Tensor | None = None) -> None:
        if not isinstance(model, ManyBody):
            raise InputError("method", "many-body", 'needs a ManyBody distribution: use "heat-bath"')
        self._kernel = model.kernel
        self._streams = Streams(seed_of(seed, "many-body"), torch.arange(chains))
        if tokens is None:
            every = torch.arange(chains)
            uniform = [self._streams.uniform(every) for _ in range(model.sites)]
            self._tokens = (torch.stack(uniform, 1) * model.vocab_size).long()
        else:
            self._tokens = checked_start("tokens", tokens, model.sites, model.vocab_size, chains).clone()

    @validated
    def advance(self, sweeps: Natural) -> None:
        """Update every site of every chain so many times, in the order of the sites."""
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
