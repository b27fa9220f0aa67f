"""Pretrained models by name, before their weights are read: those of Hugging Face, and what other packages register.

A package adds a kind of pretrained model by an entry point of the group `trialogue.models` whose value is a subclass of
`Pretrained`. Where that is called KIND, the model's name is `KIND:` and what the kind calls it, such as its file.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from trialogue.errors import InputError
from trialogue.models.networks.registry import MODELS
from trialogue.models.networks.saved import holds_network
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Autoregressive


class TextModel(Autoregressive):
    """An oracle of the next token of a text."""

    tokenization: Tokenization


class Pretrained(ABC):
    """A pretrained model before its weights are read: what its files tell of texts and of positions.

    Raises `InputError` for a model that cannot be had, and for a setting that its kind does not have.
    """

    tokenization: Tokenization
    max_length: int | None = None
    """How many positions the model knows, where it says so"""

    @abstractmethod
    def __init__(
        self,
        name: str | Path,
        *,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype = "float32",
        remote_code: bool = False,
    ) -> None:
        """Find the model that its kind calls `name`; the settings are those of `trialogue.load_pretrained`."""

    @property
    def empty_prompt(self) -> Sequence[int] | None:
        """As `Autoregressive.empty_prompt` of the model: by default the BOS of its tokenizer, if it has one."""
        bos = self.tokenization.bos
        return None if bos is None else (bos,)

    @abstractmethod
    def load(self, *, recompute: bool = False, weights: str = "float32") -> TextModel:
        """Read the weights; the settings are those of `trialogue.load_pretrained`."""


def open_pretrained(name: str | Path, **settings: Any) -> Pretrained:
    """The model `name`: `KIND:NAME`, a folder of `save_text_network`, or one of Hugging Face.

    `settings` are those of `Pretrained`. Raises `InputError` where there is no such model, or no such kind.
    """
    kind, colon, own = str(name).partition(":")
    if not colon or Path(name).exists():
        kind, own = ("text-network" if holds_network(name) else "hugging-face"), str(name)
    opened = MODELS.find(kind)
    if not issubclass(opened, Pretrained):
        hint = f"{kind} is a network, whose weights are read from the file of a training: it opens no model by name"
        raise InputError("model", str(name), hint)
    return opened(own, **settings)
