"""Networks by name: what a file of weights says it holds, and the class that reads it.

A network is a module that one config describes, a dataclass of numbers, strings and tuples of these, which it keeps as
`config`; a seed, by default 0, names its initial weights. It is registered where it is defined:

    @register_network("transformer", TransformerConfig)
    class Transformer(nn.Module):
        def __init__(self, config: TransformerConfig, seed: int = 0) -> None: ...
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from torch import nn

from trialogue.errors import InputError
from trialogue.registry import Registry, place_of

NetworkT = TypeVar("NetworkT", bound=nn.Module)


class NetworkRegistration(NamedTuple):
    """A network's name, its class, and the dataclass of its configs."""

    name: str
    network: type[nn.Module]
    config: type[Any]


MODELS: Registry[type[Any]] = Registry(
    "trialogue.models",
    "kind of model",
    {
        "transformer": "trialogue.models.networks.transformer:Transformer",
        "factored-attention": "trialogue.models.networks.factored:FactoredAttention",
        "attention-only": "trialogue.models.networks.attention_only:AttentionOnly",
        "text-network": "trialogue.models.networks.text_network:TextNetwork",
        "encoder-decoder": "trialogue.models.encoder_decoder.network:EncoderDecoder",
        "hugging-face": "trialogue.models.hub.pretrained:PretrainedCheckpoint",
    },
)
"""Networks and kinds of pretrained models by name; installed packages register theirs, classes, by entry points.

A network is decorated with `register_network`, a kind of pretrained model is a subclass of `models.opening.Pretrained`.
"""

_REGISTRATIONS: dict[type[nn.Module], NetworkRegistration] = {}


def register_network(name: str, config: type[Any]) -> Callable[[type[NetworkT]], type[NetworkT]]:
    """Register the decorated class under `name`; its configs are of the dataclass `config`.

    Raises `InputError` where another class has the name.
    """

    def register(network: type[NetworkT]) -> type[NetworkT]:
        taken = MODELS.place(name)
        if taken not in (None, place_of(network)):
            raise InputError("name", name, f"{taken} is registered under it: choose another")
        MODELS[name], _REGISTRATIONS[network] = network, NetworkRegistration(name, network, config)
        return network

    return register


def registered(name: str) -> NetworkRegistration:
    """The network of this name; raises `InputError` where there is none."""
    return registration_of(MODELS.find(name))


def registration_of(network: type[nn.Module]) -> NetworkRegistration:
    """How the class `network` itself is registered; raises `InputError` where it is not."""
    if network not in _REGISTRATIONS:
        hint = "decorate the class with @register_network(name, config)"
        raise InputError("network", place_of(network), hint)
    return _REGISTRATIONS[network]
