"""Copies of a chain that can be put down after any step and taken up again, as if nothing had happened."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Chain, SequenceModel, as_chain
from trialogue.randomness import Streams
from trialogue.samplers.chains.chain import advancing
from trialogue.validation import Natural, validated

_FIELD, _COUNTERS, _STEPS = "state/", "counters", "steps"


class RunningChains:
    """One copy of `chain` on `model` from each row of `start` (chains, N), with the streams that `run_chain` has.

    `saved` is all that `resumed` needs in order to go on, exactly. Whether the chain is ergodic is not asked.
    """

    @validated
    def __init__(self, chain: Chain[Any], model: SequenceModel, start: Tensor, seed: Natural = 0) -> None:
        self._chain, self._model = as_chain(chain), model
        self._advance = advancing(chain, model)
        self._streams = Streams(seed, torch.arange(len(start), device=start.device))
        with torch.no_grad():
            self._state = self._chain.init(model, start)
        self.steps = 0

    @property
    def tokens(self) -> Tensor:
        """Where the chains stand (chains, N) int64."""
        tokens: Tensor = self._state.tokens
        return tokens

    @property
    def energies(self) -> Tensor | None:
        """Their energies (chains,) float64, where the chain keeps them."""
        return self._chain.energies(self._state)

    def advance(self, steps: int) -> None:
        """Take so many steps."""
        with torch.no_grad():
            self._state, _ = self._advance(self._state, self._streams, steps)
        self.steps += steps

    def saved(self) -> dict[str, Tensor]:
        """Where everything stands, as tensors by name."""
        fields = {f"{_FIELD}{name}": value for name, value in self._state._asdict().items()}
        return {**fields, _COUNTERS: self._streams.counters, _STEPS: torch.tensor(self.steps)}

    def resume(self, saved: Mapping[str, Tensor]) -> None:
        """Go on from what `saved` gave; raises `InputError` where it is of other chains."""
        fields = {name: f"{_FIELD}{name}" for name in self._state._fields}
        wanted = {name: value.shape for name, value in self.saved().items()}
        if {name: saved[name].shape for name in wanted if name in saved} != wanted:
            raise InputError("saved", sorted(saved), "it is the state of other chains: start them anew")
        device = self.tokens.device
        self._state = type(self._state)(**{name: saved[at].to(device) for name, at in fields.items()})
        self._streams.counters = saved[_COUNTERS].to(device)
        self.steps = int(saved[_STEPS])
