"""By which names a server may be called: a page elsewhere may have given a name of its own this machine's address."""

from unittest.mock import Mock

import pytest
from starlette.testclient import TestClient

from trialogue.errors import InputError
from trialogue.serving.app import Application
from trialogue.serving.server import hosts_of
from trialogue.serving.settings import Address, Serving


def answered(address: Address, bound: str, name: str) -> bool:
    worker = Mock(context=8, alive=True, closing=False, unfinished=0)
    served = Application(worker, Mock(), Serving(model="tiny"), hosts=hosts_of(address, bound))
    client = TestClient(served.app, base_url="http://localhost:8000")
    statuses = [client.get(path, headers={"host": name}).status_code for path in ("/health", "/v1/models")]
    assert statuses in ([200, 200], [400, 400])
    return statuses == [200, 200]


@pytest.mark.parametrize(
    ("host", "bound"), [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("::1", "::1")]
)
def test_at_a_loopback_address_it_has_no_other_name(host: str, bound: str) -> None:
    address = Address(host=host)
    for name in ("localhost", "127.0.0.1", "[::1]", "LOCALHOST"):
        assert answered(address, bound, name)
        assert answered(address, bound, f"{name}:8000")
    for name in ("evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", ""):
        assert not answered(address, bound, name)


def test_another_loopback_address_is_a_name_of_its_own() -> None:
    address = Address(host="127.0.0.2")
    assert answered(address, "127.0.0.2", "127.0.0.2:80")
    assert not answered(address, "127.0.0.2", "127.0.0.3")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_how_others_reach_an_address_is_not_known_until_it_is_said(host: str) -> None:
    assert answered(Address(host=host), host, "host.example")
    named = Address(host=host, allowed_host=("host.example", "*.lab.example"))
    for name in ("host.example:8000", "one.lab.example", "localhost", f"[{host}]" if ":" in host else host):
        assert answered(named, host, name)
    assert not answered(named, host, "other.example")


def test_names_may_be_added() -> None:
    assert answered(Address(allowed_host=("box.example",)), "127.0.0.1", "box.example")
    assert answered(Address(allowed_host=("*",)), "127.0.0.1", "any.example")


@pytest.mark.parametrize("name", ["", "http://a.example", "a.example:80", "a*", "**", "a b", "[::1]:80"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InputError) as error:
        Address(allowed_host=(name,))
    assert error.value.field == "allowed_host"
