"""Base class of energy models that are small enough to list all their sequences."""

import math
from functools import cached_property

from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Energy, enumerate_sequences

ENUMERABLE_STATES = 2**20
"""Maximum number of listed sequences. A list of 2^20 states of 20 spins takes 160 MiB."""


class Enumerable(Energy):
    """Base class of energy models with exact statistics, which are computed from a list of all sequences.

    The probability p(x) of a sequence x is proportional to exp(-E(x)), where E is the method `energy`. A sequence has N
    = `sites` tokens.
    """

    sites: int

    def states(self) -> Tensor:
        """Return all sequences in the order of `itertools.product`.

        Returns:
            Tokens (V^N, N) int64, where V is the vocabulary size.

        Raises:
            InputError: If there are more than `ENUMERABLE_STATES` sequences.
        """
        if self.sites * math.log(self.vocab_size) > math.log(ENUMERABLE_STATES) + 1e-9:
            reason = (
                f"{self.vocab_size}^{self.sites} states are too many to list (at most {ENUMERABLE_STATES})"
            )
            hint = f"run a chain, for example `run_chain(Gibbs(), model, ...)`, because {reason}"
            raise InputError("sites", self.sites, hint)
        return enumerate_sequences(self.vocab_size, self.sites, self.device or "cpu")

    @cached_property
    def _log_weights(self) -> Tensor:
        return -self.energy(self.states())

    def log_partition(self) -> float:
        """Return the log of the sum of exp(-E(x)) over all sequences x."""
        return float(self._log_weights.logsumexp(0))

    def probabilities(self) -> Tensor:
        """Return the probability p(x) of each sequence of `states`, in the same order.

        Returns:
            Probabilities (V^N,) float64, where V is the vocabulary size.
        """
        return self._log_weights.softmax(0)
