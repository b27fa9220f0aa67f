"""Registry of network classes, by which saved networks are loaded by name.

A network is a module with a config, which is a dataclass of numbers, strings and tuples of these. The module stores its
config as `config`, and takes a seed for its initial weights. A class is registered with a decorator:

    @register_network("transformer", TransformerConfig)
    class Transformer(nn.Module):
        def __init__(self, config: TransformerConfig, seed: int = 0) -> None: ...
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from torch import nn

from trialogue.errors import InputError
from trialogue.registry import Registry, import_path

NetworkT = TypeVar("NetworkT", bound=nn.Module)


class NetworkRegistration(NamedTuple):
    """Name, class and config class of a network."""

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
        "openvino": "trialogue.models.openvino.pretrained:OpenVinoCheckpoint",
    },
)
"""Network classes and kinds of pretrained models by name.

Installed packages register classes through entry points. A network class uses the decorator `register_network`. A kind
of pretrained model is a subclass of `models.hub.opening.Pretrained`.
"""

_REGISTRATIONS: dict[type[nn.Module], NetworkRegistration] = {}


def register_network(name: str, config: type[Any]) -> Callable[[type[NetworkT]], type[NetworkT]]:
    """Return a decorator that registers a network class.

    Args:
        name: Name of the network in files.
        config: Dataclass of the configs.

    Raises:
        InputError: If another class is registered under this name.
    """

    def register(network: type[NetworkT]) -> type[NetworkT]:
        taken = MODELS.place(name)
        if taken not in (None, import_path(network)):
            raise InputError(
                "name", name, f"{taken} is already registered under this name; choose another name"
            )
        MODELS[name], _REGISTRATIONS[network] = network, NetworkRegistration(name, network, config)
        return network

    return register


def get_registration(name: str) -> NetworkRegistration:
    """Return the registration of the network `name`, or raise `InputError` if there is none."""
    return get_class_registration(MODELS.find(name))


def get_class_registration(network: type[nn.Module]) -> NetworkRegistration:
    """Return the registration of a network class, or raise `InputError` if it is not registered."""
    if network not in _REGISTRATIONS:
        hint = "decorate the class with @register_network(name, config)"
        raise InputError("network", import_path(network), hint)
    return _REGISTRATIONS[network]
