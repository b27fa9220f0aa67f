"""A network of this project and its tokenizer in a folder, opened by name like a pretrained model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from trialogue.errors import InputError
from trialogue.models.hub.opening import Pretrained, TextModel
from trialogue.models.networks.saved import TOKENIZER, WEIGHTS, holds_network, load_model, save_model
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Autoregressive
from trialogue.storage import atomic_write, make_folder

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def save_text_network(model: nn.Module, tokenizer: Tokenizer, folder: str | PathLike[str], end: str) -> Path:
    """Write `model`, whose class is registered, and `tokenizer`, whose token `end` ends a text, into `folder`.

    The folder then is a name for `open_pretrained` and `trialogue generate --model`, and its file of weights one for
    `load_model`. Raises `InputError` where it cannot be written, and
    for a folder that holds anything else.
    """
    from transformers import PreTrainedTokenizerFast

    where = make_folder(Path(folder))
    if not holds_network(where):
        taken = [path.name for path in where.iterdir()]
        if taken:
            hint = f"it holds {taken[0]!r}, which is none of a saved network: give another folder"
            raise InputError("out", str(folder), hint)
    named = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end)
    atomic_write(where / TOKENIZER, named.backend_tokenizer.to_str())
    described = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end}
    atomic_write(where / "tokenizer_config.json", json.dumps(described))
    save_model(model, where / WEIGHTS)
    return where


class TextNetwork(Pretrained):
    """The network in the folder `name`, as `save_text_network` wrote it; it answers in the type of its weights."""

    def __init__(
        self,
        name: str | Path,
        *,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype = "float32",
        **settings: Any,
    ) -> None:
        del settings  # no code of a repository is run
        if dtype not in ("float32", torch.float32, "auto"):
            raise InputError(
                "dtype", str(dtype), "the network computes in the type of its weights: leave it out"
            )
        if not holds_network(name):
            hint = "it holds no network with its tokenizer: write it with `save_text_network`"
            raise InputError("model", str(name), hint)
        from transformers import PreTrainedTokenizerFast

        self._folder, self._device = Path(name), torch.device("cpu" if device is None else device)
        self.tokenization = Tokenization(PreTrainedTokenizerFast.from_pretrained(str(name)))

    @property
    def empty_prompt(self) -> Sequence[int]:
        """No tokens: networks of this project put a BOS of their own before every prefix."""
        return ()

    def load(self, *, recompute: bool = False, weights: str = "float32") -> TextModel:
        """Read the weights."""
        del recompute
        if weights != "float32":
            raise InputError("weights", weights, "the network has its weights in one format: leave it out")
        network: Any = load_model(self._folder / WEIGHTS, device=self._device)
        if not isinstance(network, Autoregressive):
            hint = f"it holds a {type(network).__name__}, which is no oracle of the next token: give another model"
            raise InputError("model", str(self._folder), hint)
        if network.vocab_size != self.tokenization.vocab_size:
            hint = (
                f"its network has {network.vocab_size} tokens and its tokenizer {self.tokenization.vocab_size}: "
                "give the folder as it was written"
            )
            raise InputError("model", str(self._folder), hint)
        network.tokenization, network.eos = self.tokenization, self.tokenization.eos
        return cast(TextModel, network)
