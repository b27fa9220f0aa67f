"""What a package of your own builds on: the base classes, and the words that their methods speak in.

A subclass states what differs; everything else has a default that is safe. Registered by an entry point
(`trialogue.registry`) it is known by name, and `trialogue.testing` holds it to the distributions of its kind.
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
    Verifier,
)
from trialogue.randomness import Choose
from trialogue.registry import Registry
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import Sampler

__all__ = [
    "Autoregressive",
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
    "TextModel",
    "Verifier",
]
