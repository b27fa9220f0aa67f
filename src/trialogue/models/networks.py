"""Networks by name, as files of weights name them: those of the package, and those that installed packages register.

A package adds one by an entry point of the group `trialogue.models`, whose name is that of the network and whose value
is its class.
"""

from torch import nn

from trialogue.registry import Registry

NETWORKS: Registry[type[nn.Module]] = Registry(
    "trialogue.models", "network", {"transformer": "trialogue.models.transformer:Transformer"}
)
"""Every network by its name."""
