"""What can be read off any model of Hugging Face that attends: embeddings of tokens, and attention between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError, first_line
from trialogue.models.hub.adapters import unwrapped
from trialogue.models.hub.checkpoint_loading import Checkpoint
from trialogue.models.hub.pretrained_masked import longest_text
from trialogue.models.hub.random_weights import with_random_weights

_EAGER = "eager"
_AT_ONCE = 256


def load_attending(
    name: str | Path, *, device: str | torch.device | None = None, dtype: str | torch.dtype = "float32"
) -> AttendingModel:
    """Load the model `name` without its head: a hub id, a folder, a GGUF file, or a short name; encoder or decoder.

    `device` is the GPU where there is one. Raises `InputError` for a model that cannot be had, whose tokenizer is not
    fast, or that gives no attention weights.
    """
    checkpoint = Checkpoint("Model", name, device=device, dtype=dtype)
    tokenizer = checkpoint.tokenizer
    model = checkpoint.model()
    model = model if model.get_output_embeddings() is None else model.base_model
    if hasattr(model, "set_attn_implementation"):
        model.set_attn_implementation(_EAGER)
    found = AttendingModel(model, tokenizer, name=str(name))
    found.files = checkpoint.identity
    return found


class AttendingModel:
    """The transformers `model` with its fast `tokenizer`; of an encoder and a decoder in one, the encoder.

    `files` says what its weights are known by, where they were loaded. Raises `InputError` for a tokenizer that is not
    fast, and for a model that gives no attention weights, with the attention implementation that gives them.
    """

    files: str = ""

    def __init__(self, model: Any, tokenizer: Any, *, name: str | None = None) -> None:
        model = unwrapped(model)
        self.name = name or str(getattr(model.config, "_name_or_path", "")) or type(model).__name__
        if not getattr(tokenizer, "is_fast", False):
            hint = "use a model whose tokenizer has a fast version (a tokenizer.json)"
            raise InputError("tokenizer", type(tokenizer).__name__, hint)
        self.config, self.tokenizer = model.config, tokenizer
        self._whole = model
        of_two = getattr(model.config, "is_encoder_decoder", False)
        self._model = (model.get_encoder() if of_two else model).eval()
        self._table: Tensor = model.get_input_embeddings().weight
        self.attention(torch.arange(4)[None] % len(self._table), torch.tensor([4]))

    @property
    def max_length(self) -> int | None:
        """How many tokens a text may have; None where nothing limits them."""
        return longest_text(self._model, self.tokenizer)

    def embeddings(self, tokens: Tensor) -> Tensor:
        """The rows (n, width) float32 of its table of embeddings for `tokens` (n,): W^E in the theory."""
        return self._table.detach()[tokens.to(self._table.device)].float().cpu()

    @torch.inference_mode()
    def read_embeddings(self, tokens: Tensor) -> Tensor:
        """What its first block reads (n, width) float32 where a text is one token of `tokens` (n,) alone.

        This is the embedding with whatever the model adds to it: position, type, a norm.
        """
        found = [
            self._run(some[:, None], torch.ones(len(some)), output_hidden_states=True).hidden_states[0][:, 0]
            for some in tokens.split(_AT_ONCE)
        ]
        return torch.cat(found).float().cpu()

    @torch.inference_mode()
    def attention(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Attention weights (rows, N, N) float32, query by key, the mean over layers and heads.

        `tokens` (rows, N) int64 are texts of `lengths` (rows,) tokens, padded on the right; padding is not attended to.
        """
        try:
            layers = self._run(tokens, lengths, output_attentions=True).get("attentions")
        except TypeError as error:
            raise InputError(
                "model", self.name, f"it has no attention weights to read ({first_line(error)})"
            ) from error
        if not layers or any(layer is None for layer in layers):
            used = getattr(self._model.config, "_attn_implementation", None)
            if used == _EAGER:
                raise InputError("model", self.name, "it has no attention weights to read")
            hint = f"load it with attn_implementation={_EAGER!r}: {used!r} gives no attention weights"
            raise InputError("model", self.name, hint)
        total = torch.zeros(len(tokens), tokens.shape[1], tokens.shape[1], device=layers[0].device)
        for layer in layers:
            total += layer.float().mean(1)
        return (total / len(layers)).cpu()

    def with_random_weights(self, seed: int) -> AttendingModel:
        """A model of the same architecture with the weights that a training would begin with."""
        drawn = with_random_weights(self._whole, seed)
        return AttendingModel(drawn, self.tokenizer, name=f"{self.name} with random weights")

    def _run(self, tokens: Tensor, lengths: Tensor, **asked: bool) -> Any:
        device = self._table.device
        real = (torch.arange(tokens.shape[1]) < lengths[:, None]).long()
        return self._model(input_ids=tokens.to(device), attention_mask=real.to(device), **asked)
