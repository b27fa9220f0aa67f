"""Classes with which transformers loads the masked networks that `save_masked` writes.

Importing this module registers them.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from trialogue.models.networks.saved import WEIGHTS, load_model
from trialogue.models.networks.transformer import Transformer, TransformerConfig


class MaskedConfig(transformers.PretrainedConfig):  # type: ignore[misc]
    """Configuration of a `MaskedTransformer` as a model of transformers.

    Args:
        network: Fields of its `TransformerConfig` (default: none).
        **settings: Fields of every configuration of transformers.
    """

    model_type = "trialogue-masked"

    def __init__(self, network: dict[str, Any] | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.network = network or {}


class TrialogueForMaskedLM(transformers.PreTrainedModel):  # type: ignore[misc]
    """Bidirectional `Transformer` as a model of transformers. Its initial weights depend on torch's generator.

    Args:
        config: Configuration.
    """

    config_class = MaskedConfig

    def __init__(self, config: MaskedConfig) -> None:
        super().__init__(config)
        seed = int(torch.randint(2**31, ()))
        self.network = Transformer(TransformerConfig(**config.network), seed=seed)

    @classmethod
    def from_pretrained(
        cls, folder: str | PathLike[str], *, config: MaskedConfig, dtype: Any = "auto", **_: Any
    ) -> tuple[TrialogueForMaskedLM, dict[str, Any]]:
        """Load a folder that `save_masked` wrote.

        Args:
            folder: Folder of the checkpoint.
            config: Its configuration.
            dtype: Torch dtype of the weights, or "auto" for the stored one.

        Returns:
            The model, and an empty dictionary, because no weights are missing.
        """
        model = cls(config)
        model.network = load_model(Path(folder) / WEIGHTS, Transformer)
        return (model if dtype == "auto" else model.to(dtype)).eval(), {}

    def get_output_embeddings(self) -> None:
        """Return None: the number of logits is in the configuration, because EOS has no logit."""

    def forward(self, input_ids: Tensor) -> Tensor:
        """Compute the logits (n, N, tokens) of the data tokens at all positions of `input_ids` (n, N)."""
        rows, length = input_ids.shape
        sites = torch.cartesian_prod(
            *(torch.arange(size, device=input_ids.device) for size in (rows, length))
        )
        return self.network.masked_logits(input_ids, sites[:, 0], sites[:, 1]).unflatten(0, (rows, length))


transformers.AutoConfig.register(MaskedConfig.model_type, MaskedConfig)
transformers.AutoModelForMaskedLM.register(MaskedConfig, TrialogueForMaskedLM)
