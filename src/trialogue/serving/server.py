"""The server: a model, its worker and its address."""

import ipaddress
import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

import uvicorn

from trialogue.errors import InputError
from trialogue.generation.settings import MachineSettings
from trialogue.generation.verifiers.specs import Rule
from trialogue.models.hub.opening import TextModel, open_pretrained
from trialogue.samplers.prefix.batch import DEFAULT_MEMORY
from trialogue.serving.app import Application
from trialogue.serving.settings import Address, Serving
from trialogue.serving.verifiers import VerifierCache
from trialogue.serving.worker import Worker

_KEY = "TRIALOGUE_API_KEY"
ROWS = 16


def application(
    model: TextModel,
    serving: Serving,
    machine: MachineSettings,
    api_key: str | None = None,
    hosts: Sequence[str] = ("*",),
) -> Application:
    """The application that answers with `model`; raises `InputError` for rules that do not fit it."""
    whole, timeout = serving.verifier_whole, serving.verifier_timeout
    rules = VerifierCache(
        model, serving.rules, Rule(verifier_whole=whole, verifier_timeout=timeout), serving.requests
    )
    known = [serving.context] if model.max_length is None else [serving.context, model.max_length]
    worker = Worker(
        model,
        rows=min(ROWS, model.batch_size) if machine.batch_size is None else machine.batch_size,
        context=min(known),
        most=serving.requests,
        samplers=serving.samplers,
        layers=rules.layers,
        memory=DEFAULT_MEMORY if machine.memory is None else machine.memory,
    )
    return Application(worker, rules, serving, api_key, hosts)


def serve(serving: Serving, address: Address, machine: MachineSettings, say: Callable[[str], None]) -> None:
    """Serve until the process is told to stop; `say` is told what is done, and where the server is found."""
    api_key = os.environ.get(_KEY) or None if address.api_key is None else address.api_key
    with listening(address) as bound:
        say(f"loading {serving.model}")
        checkpoint = open_pretrained(
            str(serving.model),
            device=machine.device,
            dtype=machine.dtype,
            remote_code=machine.trust_remote_code,
        )
        model = checkpoint.load(recompute=machine.recompute, weights=machine.weights)
        host, port = bound.getsockname()[:2]
        served = application(model, serving, machine, api_key, hosts_of(address, host))
        if api_key is None and not ipaddress.ip_address(host).is_loopback:
            say(f"whoever reaches {host} may ask: --api-key KEY asks for a key")
        say(f"serving {serving.called} at http://{_in_url(host)}:{port}/v1")
        running(served.app, address.grace).run(sockets=[bound])


def hosts_of(address: Address, host: str) -> tuple[str, ...]:
    """The names that clients may call a server by which listens at `host`, the `address` in numbers.

    At a loopback address these are its own and those that are allowed: a page elsewhere may have given a name of its
    own this machine's address, and browsers would let it read the answers. How others reach another address is not
    known, and any name will do unless some are allowed.
    """
    loopback = ("localhost", "127.0.0.1", "[::1]")
    if ipaddress.ip_address(host).is_loopback or address.allowed_host:
        return *loopback, _in_url(host), _in_url(address.host), *address.allowed_host
    return ("*",)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def running(app: Any, grace: float) -> uvicorn.Server:
    """A server of the application `app` that is to run; requests may take `grace` seconds when it is stopped."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        ws="none",
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=max(1, round(grace)),
    )
    return uvicorn.Server(config)


def listening(address: Address) -> socket.socket:
    """A socket at the `address`; raises `InputError` where there is none."""
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((address.host, address.port), family=family, backlog=512)
    except socket.gaierror as error:
        raise InputError("host", address.host, f"it is no address: {error.strerror}") from None
    except OSError as error:
        hint = f"cannot listen at {address.host}: {error.strerror or error}: choose another"
        raise InputError("port", address.port, hint) from None
