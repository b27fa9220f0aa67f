"""Token embeddings and attention weights of Hugging Face models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError, first_line
from trialogue.models.hub.adapters import transformers_model
from trialogue.models.hub.checkpoint_loading import Checkpoint
from trialogue.models.hub.pretrained_masked import longest_text
from trialogue.models.hub.random_weights import with_random_weights

_EAGER = "eager"
_BATCH_SIZE = 256


def load_attention_model(
    name: str | Path, *, device: str | torch.device | None = None, dtype: str | torch.dtype = "float32"
) -> AttentionModel:
    """Load a model of Hugging Face whose token embeddings and attention weights can be read.

    Args:
        name: Hub id, folder, GGUF file, or short name of a model that was set up with `trialogue models pull`.
        device: Device of the model (default: the GPU if available, otherwise the CPU).
        dtype: Name of a torch dtype, or "auto" for the dtype of the checkpoint.

    Returns:
        The model with its tokenizer.

    Raises:
        InputError: If the model cannot be loaded, if its tokenizer is not fast, or if it does not return attention
            weights.
    """
    checkpoint = Checkpoint("Model", name, device=device, dtype=dtype)
    tokenizer = checkpoint.tokenizer
    model = checkpoint.model()
    model = model if model.get_output_embeddings() is None else model.base_model
    if hasattr(model, "set_attn_implementation"):
        model.set_attn_implementation(_EAGER)
    loaded = AttentionModel(model, tokenizer, name=str(name))
    loaded.files = checkpoint.identity
    return loaded


class AttentionModel:
    """Model of Hugging Face whose token embeddings and attention weights can be read.

    The encoder of an encoder-decoder model is used.

    Args:
        model: Model of transformers, or a `PeftModel`.
        tokenizer: Fast tokenizer of transformers.
        name: Name in messages and results (default: the name in the model's configuration).

    Attributes:
        files: Identifier of the files of the weights, or an empty string.

    Raises:
        InputError: If the tokenizer is not fast, or if the model does not return attention weights.
    """

    files: str = ""

    def __init__(self, model: Any, tokenizer: Any, *, name: str | None = None) -> None:
        model = transformers_model(model)
        self.name = name or str(getattr(model.config, "_name_or_path", "")) or type(model).__name__
        if not getattr(tokenizer, "is_fast", False):
            hint = "use a model whose tokenizer has a fast version (a tokenizer.json)"
            raise InputError("tokenizer", type(tokenizer).__name__, hint)
        self.config, self.tokenizer = model.config, tokenizer
        self._full_model = model
        is_encoder_decoder = getattr(model.config, "is_encoder_decoder", False)
        self._model = (model.get_encoder() if is_encoder_decoder else model).eval()
        self._embeddings: Tensor = model.get_input_embeddings().weight
        self.attention(torch.arange(4)[None] % len(self._embeddings), torch.tensor([4]))

    @property
    def max_length(self) -> int | None:
        """Maximum number of tokens of a text, or None if unlimited."""
        return longest_text(self._model, self.tokenizer)

    def embeddings(self, tokens: Tensor) -> Tensor:
        """Return the token embeddings (n, width) float32 of `tokens` (n,), the matrix W^E in the theory."""
        return self._embeddings.detach()[tokens.to(self._embeddings.device)].float().cpu()

    @torch.inference_mode()
    def read_embeddings(self, tokens: Tensor) -> Tensor:
        """Return the inputs of the first block (n, width) float32 for texts that consist of a single token.

        The input is the token embedding after the model has added position and type embeddings and applied a norm.

        Args:
            tokens: Token ids (n,) int64, each of which is a text.
        """
        inputs = [
            self._forward(batch[:, None], torch.ones(len(batch)), output_hidden_states=True).hidden_states[0][
                :, 0
            ]
            for batch in tokens.split(_BATCH_SIZE)
        ]
        return torch.cat(inputs).float().cpu()

    @torch.inference_mode()
    def attention(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the attention weights, averaged over layers and heads.

        Args:
            tokens: Texts (rows, N) int64, padded on the right. Padding is not attended to.
            lengths: Number of tokens (rows,) of each text.

        Returns:
            Attention weights (rows, N, N) float32, indexed by query and key.

        Raises:
            InputError: If the model does not return attention weights.
        """
        layers = self._forward(tokens, lengths, output_attentions=True).get("attentions")
        if not layers or any(layer is None for layer in layers):
            implementation = getattr(self._model.config, "_attn_implementation", None)
            if implementation == _EAGER:
                raise InputError(
                    "model", self.name, "it does not return attention weights. Use another model"
                )
            hint = f"{implementation!r} does not return attention weights. Load it with attn_implementation={_EAGER!r}"
            raise InputError("model", self.name, hint)
        total = torch.zeros(len(tokens), tokens.shape[1], tokens.shape[1], device=layers[0].device)
        for layer in layers:
            total += layer.float().mean(1)
        return (total / len(layers)).cpu()

    def with_random_weights(self, seed: int) -> AttentionModel:
        """Return a model of the same architecture with randomly initialised weights."""
        model = with_random_weights(self._full_model, seed)
        return AttentionModel(model, self.tokenizer, name=f"{self.name} with random weights")

    def _forward(self, tokens: Tensor, lengths: Tensor, **outputs: bool) -> Any:
        device = self._embeddings.device
        mask = (torch.arange(tokens.shape[1]) < lengths[:, None]).long()
        try:
            return self._model(input_ids=tokens.to(device), attention_mask=mask.to(device), **outputs)
        except (TypeError, ValueError) as error:
            missing = "attention weights" if "output_attentions" in outputs else "hidden states"
            hint = f"it does not return {missing} ({first_line(error)}). Use another model"
            raise InputError("model", self.name, hint) from error
