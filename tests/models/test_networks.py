import subprocess
import sys
from dataclasses import dataclass

import pytest
from torch import nn

from trialogue.errors import InputError
from trialogue.models import Transformer, TransformerConfig, register_network
from trialogue.models.networks import registry
from trialogue.models.networks.registry import registered, registration_of
from trialogue.registry import Registry


@dataclass(frozen=True)
class LoneConfig:
    width: int = 2


def test_a_class_is_found_by_its_name_and_a_name_by_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        registry, "MODELS", Registry("trialogue.models", "network", {"transformer": Transformer})
    )

    @register_network("lone", LoneConfig)
    class Lone(nn.Module): ...

    assert registered("lone") == ("lone", Lone, LoneConfig) == registration_of(Lone)

    class Heir(Lone): ...

    with pytest.raises(InputError, match="@register_network"):
        registration_of(Heir)
    with pytest.raises(InputError, match=r"Transformer is registered"):
        register_network("transformer", LoneConfig)(Heir)
    with pytest.raises(InputError, match=r"Lone is registered"):
        register_network("lone", LoneConfig)(Heir)
    with pytest.raises(InputError, match=r"nobody.*transformer, lone"):
        registered("nobody")


def test_built_in_networks_are_imported_when_they_are_asked_for() -> None:
    assert registered("transformer") == ("transformer", Transformer, TransformerConfig)
    code = "from trialogue.models.networks.registry import registered; assert registered('transformer')"
    subprocess.run([sys.executable, "-c", code], check=True)
