"""Calls of `model.generate(custom_generate=...)` for tests."""

from typing import Any

from torch import Tensor

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from trialogue.generation.custom_generate import decoding

MODEL = tiny_model(3)
PROMPTS = ["the cat sat on the mat, and", "a", "a dog ran"]
_DECODING_OPTIONS = ("sampler", "verifier", "seed", "stop", "batch_size", "rejected", "max_queries")


def inputs(texts: list[str], side: str = "left") -> dict[str, Tensor]:
    encoded = tiny_tokenizer()(texts, padding=True, padding_side=side, return_tensors="pt")
    return {"input_ids": encoded["input_ids"], "attention_mask": encoded["attention_mask"]}


def draw(prompts: list[str] = PROMPTS, **settings: Any) -> Any:
    """Return the result of `generate`, with the settings of `decoding` passed to it."""
    options = {name: settings.pop(name) for name in _DECODING_OPTIONS if name in settings}
    custom = decoding(**{"seed": 0, "tokenizer": tiny_tokenizer()} | options)
    return MODEL.generate(
        custom_generate=custom, **{**inputs(prompts), "max_new_tokens": 12, "do_sample": True} | settings
    )


class Reader:
    """A streamer that records the received tokens."""

    def __init__(self) -> None:
        self.received: list[list[int]] = []
        self.ended = 0

    def put(self, tokens: Tensor) -> None:
        self.received.append(tokens.flatten().tolist())

    def tokens(self) -> list[int]:
        return [token for tokens in self.received for token in tokens]

    def end(self) -> None:
        self.ended += 1
