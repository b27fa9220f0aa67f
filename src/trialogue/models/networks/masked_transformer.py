"""A bidirectional transformer as a masked oracle."""

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.networks.masked import MaskedNetwork
from trialogue.models.networks.transformer import Transformer
from trialogue.validation import Count, InstanceOf, validated


class MaskedTransformer(MaskedNetwork):
    """The bidirectional `model`, trained on masked tokens, as a `trialogue.oracles.Masked`.

    It answers for the tokens of the data: no BOS, EOS or mask. Sequences are whole, without BOS, and at most
    `config.max_length` long where positions are learned. Raises `InputError` for a causal model.
    """

    @validated
    def __init__(self, model: InstanceOf[Transformer], batch_size: Count = 256) -> None:
        if model.mask is None:
            raise InputError("causal", True, "a causal model reads no masks: use one with causal=False")
        self.model = model.eval()
        self.mask = model.mask
        self.vocab_size = model.config.vocab_size
        self.batch_size = batch_size
        self._device = model.head.weight.device
        self.dtype = torch.promote_types(model.head.weight.dtype, torch.float32)

    def answers(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Logits (q, vocab) at `sites` (q,) of `rows` (q,) of `inputs` (n, N)."""
        on_device = (part.to(self._device) for part in (inputs, rows, sites))
        return self.model.masked_logits(*on_device)
