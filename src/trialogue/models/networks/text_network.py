"""Folders with a network and its tokenizer, which are opened by name like pretrained models."""

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
from trialogue.models.networks.saved import TOKENIZER, WEIGHTS, contains_network, load_model, save_model
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Autoregressive
from trialogue.storage import atomic_write, make_folder

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def save_text_network(model: nn.Module, tokenizer: Tokenizer, folder: str | PathLike[str], end: str) -> Path:
    """Write a network and its tokenizer to a folder.

    The folder can be passed to `open_pretrained` and `trialogue generate --model`, and its file of weights to
    `load_model`.

    Args:
        model: Network of a registered class.
        tokenizer: Tokenizer of the network.
        folder: Folder to write, which must be empty or contain a saved network.
        end: End-of-sequence token.

    Returns:
        Path of the folder.

    Raises:
        InputError: If the folder contains other files or cannot be written.
    """
    from transformers import PreTrainedTokenizerFast

    where = make_folder(Path(folder))
    if not contains_network(where):
        taken = [path.name for path in where.iterdir()]
        if taken:
            hint = f"it contains {taken[0]!r}, which is not part of a saved network; use another folder"
            raise InputError("out", str(folder), hint)
    named = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end)
    atomic_write(where / TOKENIZER, named.backend_tokenizer.to_str())
    tokenizer_config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end}
    atomic_write(where / "tokenizer_config.json", json.dumps(tokenizer_config))
    save_model(model, where / WEIGHTS)
    return where


class TextNetwork(Pretrained):
    """Network in a folder written by `save_text_network`. It computes in the dtype of its weights.

    Args:
        name: Path of the folder.
        device: Device of the network, the CPU by default.
        dtype: Must be float32 or "auto".
        settings: Ignored.

    Raises:
        InputError: If the folder does not contain a network with its tokenizer, or if `dtype` is not supported.
    """

    def __init__(
        self,
        name: str | Path,
        *,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype = "float32",
        **settings: Any,
    ) -> None:
        del settings
        if dtype not in ("float32", torch.float32, "auto"):
            raise InputError(
                "dtype", str(dtype), "the network computes in the dtype of its weights; leave dtype out"
            )
        if not contains_network(name):
            hint = "it does not contain a network with its tokenizer; write it with `save_text_network`"
            raise InputError("model", str(name), hint)
        from transformers import PreTrainedTokenizerFast

        self._folder, self._device = Path(name), torch.device("cpu" if device is None else device)
        self.tokenization = Tokenization(PreTrainedTokenizerFast.from_pretrained(str(name)))

    @property
    def empty_prompt(self) -> Sequence[int]:
        """Empty, because these networks add BOS internally."""
        return ()

    def load(self, *, recompute: bool = False, weights: str = "float32") -> TextModel:
        """Load the network.

        Args:
            recompute: Ignored.
            weights: Must be "float32".

        Raises:
            InputError: If the weights cannot be used, or if network and tokenizer do not match.
        """
        del recompute
        if weights != "float32":
            raise InputError("weights", weights, "the network has only float32 weights; leave weights out")
        network: Any = load_model(self._folder / WEIGHTS, device=self._device)
        if not isinstance(network, Autoregressive):
            hint = f"a {type(network).__name__} does not predict the next token; use another model"
            raise InputError("model", str(self._folder), hint)
        if network.vocab_size != self.tokenization.vocab_size:
            hint = (
                f"its network has {network.vocab_size} tokens and its tokenizer {self.tokenization.vocab_size}; "
                "use a folder written by `save_text_network`"
            )
            raise InputError("model", str(self._folder), hint)
        network.tokenization, network.eos = self.tokenization, self.tokenization.eos
        return cast(TextModel, network)
