"""Models that answer with conditionals: networks, trained here or elsewhere."""

from trialogue.models.cropped import Cropped, Endless
from trialogue.models.masked_transformer import MaskedTransformer
from trialogue.models.networks import register_network
from trialogue.models.transformer import Transformer, TransformerConfig

__all__ = [
    "Cropped",
    "Endless",
    "MaskedTransformer",
    "Transformer",
    "TransformerConfig",
    "register_network",
]
