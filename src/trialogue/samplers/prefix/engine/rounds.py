"""Rounds of samples of one prompt, which start from what the rounds before have learned."""

from typing import Any

import torch
from torch import Tensor

from trialogue.samplers.prefix.contract.sampler import Sampler, joined, take


class Rounds:
    """Divides the samples of each prompt into rounds, and passes states from one round to the next.

    Args:
        sampler: The sampler.
        prompt: Index (n,) of each sample's prompt, in ascending order.

    Attributes:
        ready: Indices (k,) of the samples that may begin or have begun, in the order in which they begin.
    """

    def __init__(self, sampler: Sampler[Any], prompt: Tensor) -> None:
        self._sampler, self._prompt = sampler, prompt
        prompts, counts = prompt.unique_consecutive(return_counts=True)
        first = counts.cumsum(0) - counts
        size = sampler.round_size
        whole = zip(prompts.tolist(), first.tolist(), counts.tolist(), strict=True)
        # Rounds that have not begun, the last one first.
        self._rounds = {
            name: list(reversed(torch.arange(begin, begin + count).split(size or max(1, count))))
            for name, begin, count in whole
        }
        self._starts: dict[int, Any] = {}
        self._ends: dict[int, dict[int, Any]] = {name: {} for name in self._rounds}
        self._current = {name: rounds.pop() for name, rounds in self._rounds.items() if rounds}
        self.ready = torch.cat([torch.arange(0), *self._current.values()])

    def begun(self, samples: Tensor, state: Any) -> Any:
        """Return the states in which samples begin.

        Args:
            samples: Indices (n,) of the samples.
            state: Initial state of n rows.

        Returns:
            The state of n rows. For prompts with finished rounds it is the merged state of these rounds.
        """
        if self._sampler.round_size is None:
            return state
        rows = []
        for row, name in enumerate(self._prompt[samples].tolist()):
            self._starts.setdefault(name, take(state, torch.tensor([row])))
            rows.append(self._starts[name])
        return joined(rows)

    def end(self, samples: Tensor, state: Any) -> None:
        """Store the last states of samples. If their round is over, the samples of the next one become ready.

        Args:
            samples: Indices (n,) of the samples.
            state: Their last states, n rows.
        """
        if self._sampler.round_size is None:
            return
        for row, (sample, name) in enumerate(
            zip(samples.tolist(), self._prompt[samples].tolist(), strict=True)
        ):
            ends = self._ends[name]
            ends[sample] = take(state, torch.tensor([row]))
            if len(ends) < len(self._current[name]):
                continue
            if self._rounds[name]:
                ordered = [ends[place] for place in self._current[name].tolist()]
                self._starts[name] = self._sampler.merged(self._starts[name], joined(ordered))
                self._current[name] = self._rounds[name].pop()
                self.ready = torch.cat((self.ready, self._current[name]))
            ends.clear()
