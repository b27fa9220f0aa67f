"""What a run is asked for, and which prompts of it have samples left to draw."""

from collections import Counter
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.samplers.prefix.batch.tree import Root


class Request(NamedTuple):
    """The samples that a run is asked for, n of them.

    `prompt` (n,) is the index of each one's prompt, `tokens` (n, width) the prompt itself and `lengths` (n,) its
    length, `limit` (n,) the length at which the sample is complete, `ids` (n,) what keys its random stream, `rule` (n,)
    which of the run's rules it is under.
    """

    prompt: Tensor
    tokens: Tensor
    lengths: Tensor
    limit: Tensor
    ids: Tensor
    rule: Tensor

    @classmethod
    def repeated(
        cls, tokens: Tensor, lengths: Tensor, limit: Tensor, ids: Tensor, rule: Tensor | None = None
    ) -> "Request":
        """As many samples of each prompt as there are `ids` for; `rule` is that of each prompt, by default 0."""
        samples = len(ids) // len(lengths)
        prompt = torch.arange(len(lengths)).repeat_interleave(samples)
        rules = torch.zeros_like(lengths) if rule is None else rule
        return cls(prompt, tokens[prompt], lengths[prompt], limit[prompt], ids, rules[prompt])

    @property
    def capacity(self) -> int:
        """The longest that a sample may become."""
        return int(self.limit.max())

    def prompts(self, samples: Tensor, capacity: int) -> tuple[Tensor, Tensor]:
        """Prompts of `samples` (n,) as tokens (n, capacity), padded with zeros, and lengths (n,)."""
        tokens = torch.zeros(len(samples), capacity, dtype=torch.int64)
        width = min(self.tokens.shape[1], capacity)
        tokens[:, :width] = self.tokens[samples, :width]
        lengths = self.lengths[samples]
        tokens *= torch.arange(capacity) < lengths[:, None]
        return tokens, lengths


class SamplesLeft:
    """How many samples of each prompt are not filed yet: samples of one prompt share what is known of it."""

    def __init__(self, request: Request) -> None:
        self._prompt = request.prompt
        places = {index: place for place, index in enumerate(request.prompt.tolist())}
        self._roots = {
            index: Root(
                tuple(request.tokens[place, : request.lengths[place]].tolist()), int(request.rule[place])
            )
            for index, place in places.items()
        }
        self._left = Counter(self._roots[index] for index in request.prompt.tolist())

    def __len__(self) -> int:
        return self._left.total()

    def __contains__(self, root: object) -> bool:
        return root in self._left

    @property
    def roots(self) -> set[Root]:
        """The prompts, under their rules, that have samples left."""
        return set(self._left)

    def file(self, samples: Tensor) -> set[Root]:
        """Count `samples` (n,) as filed; return the prompts, under their rules, that they were the last of."""
        roots = [self._roots[index] for index in self._prompt[samples].tolist()]
        self._left.subtract(roots)
        over = {root for root in roots if not self._left[root]}
        for root in over:
            del self._left[root]
        return over
