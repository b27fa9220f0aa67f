"""What a run is asked for, and which prompts of it have samples left to draw."""

from collections import Counter
from typing import NamedTuple

import torch
from torch import Tensor


class Request(NamedTuple):
    """The samples that a run is asked for, n of them.

    `prompt` (n,) is the index of each one's prompt, `tokens` (n, width) the prompt itself and `lengths` (n,) its
    length, `limit` (n,) the length at which the sample is complete, `ids` (n,) what keys its random stream.
    """

    prompt: Tensor
    tokens: Tensor
    lengths: Tensor
    limit: Tensor
    ids: Tensor

    @classmethod
    def repeated(cls, tokens: Tensor, lengths: Tensor, limit: Tensor, ids: Tensor) -> "Request":
        """As many samples of each prompt as there are `ids` for."""
        samples = len(ids) // len(lengths)
        prompt = torch.arange(len(lengths)).repeat_interleave(samples)
        return cls(prompt, tokens[prompt], lengths[prompt], limit[prompt], ids)

    @property
    def capacity(self) -> int:
        """The longest that a sample may become."""
        return int(self.limit.max())

    def prompts(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        """Prompts of `samples` (n,) as tokens (n, capacity), padded with zeros, and lengths (n,)."""
        tokens = torch.zeros(len(samples), self.capacity, dtype=torch.int64)
        width = min(self.tokens.shape[1], tokens.shape[1])
        tokens[:, :width] = self.tokens[samples, :width]
        lengths = self.lengths[samples]
        tokens *= torch.arange(tokens.shape[1]) < lengths[:, None]
        return tokens, lengths


class SamplesLeft:
    """How many samples of each prompt are not filed yet: samples of one prompt share what is known of it."""

    def __init__(self, request: Request) -> None:
        self._prompt = request.prompt
        places = {index: place for place, index in enumerate(request.prompt.tolist())}
        self._texts = {
            index: tuple(request.tokens[place, : request.lengths[place]].tolist())
            for index, place in places.items()
        }
        self._left = Counter(self._texts[index] for index in request.prompt.tolist())

    def file(self, samples: Tensor) -> set[tuple[int, ...]]:
        """Count `samples` (n,) as filed; return the prompts that they were the last of."""
        texts = [self._texts[index] for index in self._prompt[samples].tolist()]
        self._left.subtract(texts)
        return {text for text in texts if not self._left[text]}
