"""Chains whose state can be saved after any step and resumed exactly."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Chain, SequenceModel, as_chain
from trialogue.randomness import Streams
from trialogue.samplers.chains.chain import make_advance_function
from trialogue.validation import Natural, validated

_FIELD, _COUNTERS, _STEPS = "state/", "counters", "steps"


class RunningChains:
    """Independent copies of a Markov chain that can be saved after any step and resumed exactly.

    The random streams are the same as in `run_chain`. Ergodicity is not checked.

    Args:
        chain: The chain.
        model: The model.
        start: Start (chains, N) int64 of each copy.
        seed: Seed of the random streams (default: 0).

    Attributes:
        steps: Number of steps taken.
    """

    @validated
    def __init__(self, chain: Chain[Any], model: SequenceModel, start: Tensor, seed: Natural = 0) -> None:
        self._chain, self._model = as_chain(chain), model
        self._advance = make_advance_function(chain, model)
        self._streams = Streams(seed, torch.arange(len(start), device=start.device))
        with torch.no_grad():
            self._state = self._chain.init(model, start)
        self.steps = 0

    @property
    def tokens(self) -> Tensor:
        """Current tokens (chains, N) int64."""
        tokens: Tensor = self._state.tokens
        return tokens

    @property
    def energies(self) -> Tensor | None:
        """Current energies (chains,) float64, or None if the chain does not store them."""
        return self._chain.energies(self._state)

    def advance(self, steps: int) -> None:
        """Take `steps` steps with all copies of the chain."""
        with torch.no_grad():
            self._state, _ = self._advance(self._state, self._streams, steps)
        self.steps += steps

    def saved(self) -> dict[str, Tensor]:
        """Return everything that is needed to resume the chains, as tensors by name.

        The names are "state/" followed by a field of the chain's state, "counters" (positions of the random streams),
        and "steps".
        """
        fields = {f"{_FIELD}{name}": value for name, value in self._state._asdict().items()}
        return {**fields, _COUNTERS: self._streams.counters, _STEPS: torch.tensor(self.steps)}

    def resume(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from a state returned by `saved`.

        Args:
            saved: Tensors by name.

        Raises:
            InputError: If a tensor is missing or has another shape, because the state belongs to other chains.
        """
        fields = {name: f"{_FIELD}{name}" for name in self._state._fields}
        wanted = {name: value.shape for name, value in self.saved().items()}
        if {name: saved[name].shape for name in wanted if name in saved} != wanted:
            raise InputError(
                "saved", sorted(saved), "start the chains again, because this is the state of other chains"
            )
        device = self.tokens.device
        self._state = type(self._state)(**{name: saved[at].to(device) for name, at in fields.items()})
        self._streams.counters = saved[_COUNTERS].to(device)
        self.steps = int(saved[_STEPS])
