"""Base classes and types for extensions.

A subclass overrides what differs from the defaults. Register it by an entry point (`trialogue.registry`) to use it by
name, and check it with `trialogue.testing`.
"""

from trialogue.data.site_tables import SiteTables, Tabulated
from trialogue.models.hub.opening import Pretrained, TextModel
from trialogue.oracles import (
    Autoregressive,
    Chain,
    Context,
    Decoding,
    Energy,
    Joint,
    Masked,
    PrefixOracle,
    Sequences,
    StateT,
    StepInfo,
    Target,
    Verifier,
)
from trialogue.randomness import Choose
from trialogue.registry import Registry
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.samplers.unmasking.contract import Canvas, Unmasking

__all__ = [
    "Autoregressive",
    "Canvas",
    "Chain",
    "Choose",
    "Context",
    "Decoding",
    "Energy",
    "Joint",
    "Masked",
    "Moves",
    "PrefixOracle",
    "Pretrained",
    "Registry",
    "Sampler",
    "Sequences",
    "SiteTables",
    "StateT",
    "StepInfo",
    "Tabulated",
    "Target",
    "TextModel",
    "Unmasking",
    "Verifier",
]
