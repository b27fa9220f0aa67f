"""Base class of pretrained models, and a function that opens models of registered kinds by name.

A package adds a kind of pretrained model with an entry point in the group `trialogue.models`, whose value is a subclass
of `Pretrained`. The models of an entry point KIND have names of the form `KIND:NAME`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from trialogue.errors import InputError
from trialogue.models.networks.registry import MODELS
from trialogue.models.networks.saved import contains_network
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Autoregressive


class TextModel(Autoregressive):
    """Autoregressive oracle over text tokens."""

    tokenization: Tokenization


class Pretrained(ABC):
    """Pretrained model whose weights have not been loaded, with its tokenization and size limits."""

    tokenization: Tokenization
    max_length: int | None = None
    """Maximum number of positions, or None if unlimited."""

    @abstractmethod
    def __init__(
        self,
        name: str | Path,
        *,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype = "float32",
        remote_code: bool = False,
    ) -> None:
        """Locate the model without loading its weights.

        Args:
            name: Name of the model, without the name of its kind.
            device: Device of the model (default: the GPU if available, otherwise the CPU).
            dtype: Name of a torch dtype, or "auto" for the dtype of the checkpoint.
            remote_code: Allow code from the model's repository to run.

        Raises:
            InputError: If the model does not exist, or if its kind does not support one of the settings.
        """

    @property
    def empty_prompt(self) -> Sequence[int] | None:
        """Tokens that replace an empty prompt (default: the BOS token, or None if the tokenizer has none)."""
        bos = self.tokenization.bos
        return None if bos is None else (bos,)

    @abstractmethod
    def load(self, *, recompute: bool = False, weights: str = "float32") -> TextModel:
        """Load the weights.

        Args:
            recompute: Evaluate complete prefixes at every step, without a cache.
            weights: Format in which the weights are stored, for example "float32", "bfloat16", "int8" or "int4".
                `trialogue.load_pretrained` lists all formats.
        """


def open_pretrained(name: str | Path, **settings: Any) -> Pretrained:
    """Open a pretrained model without loading its weights.

    Args:
        name: `KIND:NAME`, a folder that was written by `save_text_network`, or a Hugging Face model.
        **settings: The arguments `device`, `dtype` and `remote_code` of `Pretrained`.

    Raises:
        InputError: If the model or its kind does not exist, or if the kind is a network without pretrained weights.
    """
    kind, colon, local_name = str(name).partition(":")
    if not colon or Path(name).exists():
        kind, local_name = ("text-network" if contains_network(name) else "hugging-face"), str(name)
    model_class = MODELS.find(kind)
    if not issubclass(model_class, Pretrained):
        hint = f"{kind} is a network without pretrained weights. Use the file of a trained network"
        raise InputError("model", str(name), hint)
    return model_class(local_name, **settings)
