"""Language models: networks trained with this package, and pretrained models of Hugging Face."""

from trialogue.models.hub.gpt2_export import save_gpt2
from trialogue.models.hub.masked_export import save_masked
from trialogue.models.networks.masked_transformer import MaskedTransformer
from trialogue.models.networks.registry import register_network
from trialogue.models.networks.transformer import Transformer, TransformerConfig
from trialogue.models.wrappers.cropped import Cropped, Endless

__all__ = [
    "Cropped",
    "Endless",
    "MaskedTransformer",
    "Transformer",
    "TransformerConfig",
    "register_network",
    "save_gpt2",
    "save_masked",
]
