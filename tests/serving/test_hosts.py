"""Allowed host names, which protect a local server against DNS rebinding."""

from unittest.mock import Mock

import pytest
from starlette.testclient import TestClient

from refusals import expect_error
from trialogue.serving.app import Application
from trialogue.serving.server import allowed_hosts
from trialogue.serving.settings import Address, Serving


def is_accepted(address: Address, bound: str, name: str) -> bool:
    worker = Mock(context=8, alive=True, closing=False, unfinished=0)
    served = Application(worker, Mock(), Serving(model="tiny"), hosts=allowed_hosts(address, bound))
    client = TestClient(served.app, base_url="http://localhost:8000")
    statuses = [client.get(path, headers={"host": name}).status_code for path in ("/health", "/v1/models")]
    assert statuses in ([200, 200], [400, 400])
    return statuses == [200, 200]


@pytest.mark.parametrize(
    ("host", "bound"), [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("::1", "::1")]
)
def test_a_loopback_address_accepts_no_other_name(host, bound):
    address = Address(host=host)
    for name in ("localhost", "127.0.0.1", "[::1]", "LOCALHOST"):
        assert is_accepted(address, bound, name)
        assert is_accepted(address, bound, f"{name}:8000")
    for name in ("evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", ""):
        assert not is_accepted(address, bound, name)


def test_another_loopback_address_accepts_only_itself():
    address = Address(host="127.0.0.2")
    assert is_accepted(address, "127.0.0.2", "127.0.0.2:80")
    assert not is_accepted(address, "127.0.0.2", "127.0.0.3")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_an_external_address_accepts_the_names_that_are_given(host):
    assert is_accepted(Address(host=host), host, "host.example")
    address = Address(host=host, allowed_host=("host.example", "*.lab.example"))
    for name in ("host.example:8000", "one.lab.example", "localhost", f"[{host}]" if ":" in host else host):
        assert is_accepted(address, host, name)
    assert not is_accepted(address, host, "other.example")


def test_names_may_be_added():
    assert is_accepted(Address(allowed_host=("box.example",)), "127.0.0.1", "box.example")
    assert is_accepted(Address(allowed_host=("*",)), "127.0.0.1", "any.example")


@pytest.mark.parametrize("name", ["", "http://a.example", "a.example:80", "a*", "**", "a b", "[::1]:80"])
def test_invalid_names_are_rejected(name):
    assert expect_error("", Address, allowed_host=(name,)).field == "allowed_host"
