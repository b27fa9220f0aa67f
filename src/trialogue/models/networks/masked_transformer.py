"""Bidirectional transformer as a masked language model."""

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.networks.masked import MaskedNetwork
from trialogue.models.networks.transformer import Transformer
from trialogue.validation import Count, InstanceOf, validated


class MaskedTransformer(MaskedNetwork):
    """Masked language model that uses a bidirectional transformer trained on masked tokens.

    Sequences have data tokens only, without BOS and EOS, and at most `config.max_length` tokens if positions are
    learned. Samples without a prompt have `config.max_length` tokens.

    Args:
        model: Bidirectional transformer.
        batch_size: Number of sequences per forward pass.

    Raises:
        InputError: If the model is causal.
    """

    @validated
    def __init__(self, model: InstanceOf[Transformer], batch_size: Count = 256) -> None:
        if model.mask is None:
            raise InputError(
                "causal", True, "a causal model has no mask token; use a model with causal=False"
            )
        self.model = model.eval()
        self.mask = model.mask
        self.vocab_size = model.config.vocab_size
        self.default_length = model.config.max_length
        self.batch_size = batch_size
        self._device = model.head.weight.device
        self.dtype = torch.promote_types(model.head.weight.dtype, torch.float32)

    def logits_at(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Compute the logits (q, vocab_size) at given positions (sites). See `MaskedNetwork.logits_at`."""
        on_device = (part.to(self._device) for part in (inputs, rows, sites))
        return self.model.masked_logits(*on_device)
