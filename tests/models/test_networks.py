import subprocess
import sys
from dataclasses import dataclass

import pytest
from torch import nn

from refusals import expect_error
from trialogue.errors import InputError
from trialogue.models import Transformer, TransformerConfig, register_network
from trialogue.models.networks import registry
from trialogue.models.networks.registry import registered, registration_of
from trialogue.registry import Registry


@dataclass(frozen=True)
class ExampleConfig:
    width: int = 2


def test_registrations_are_found_by_name_and_by_class(monkeypatch):
    monkeypatch.setattr(
        registry, "MODELS", Registry("trialogue.models", "network", {"transformer": Transformer})
    )

    @register_network("example", ExampleConfig)
    class ExampleNetwork(nn.Module): ...

    assert (
        registered("example") == ("example", ExampleNetwork, ExampleConfig) == registration_of(ExampleNetwork)
    )

    class Subclass(ExampleNetwork): ...

    expect_error("@register_network", registration_of, Subclass)
    with pytest.raises(InputError, match=r"Transformer is already registered"):
        register_network("transformer", ExampleConfig)(Subclass)
    with pytest.raises(InputError, match=r"ExampleNetwork is already registered"):
        register_network("example", ExampleConfig)(Subclass)
    expect_error(r"unknown.*transformer, example", registered, "unknown")


def test_built_in_networks_are_imported_on_demand():
    assert registered("transformer") == ("transformer", Transformer, TransformerConfig)
    code = "from trialogue.models.networks.registry import registered; assert registered('transformer')"
    subprocess.run([sys.executable, "-c", code], check=True)
