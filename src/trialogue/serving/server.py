"""Start of the HTTP server: loading of the model, network address and shutdown."""

import ipaddress
import os
import socket
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import uvicorn

from trialogue.errors import InputError
from trialogue.generation.settings import MachineSettings
from trialogue.generation.verifiers.specs import ConstraintSettings
from trialogue.models.hub.opening import TextModel, open_pretrained
from trialogue.samplers.prefix.batch import DEFAULT_MEMORY
from trialogue.serving.app import Application
from trialogue.serving.metrics import Metrics
from trialogue.serving.settings import Address, Serving
from trialogue.serving.starting import choose_context, warm_up
from trialogue.serving.tables import TableCache
from trialogue.serving.verifiers import VerifierCache
from trialogue.serving.worker import Worker

_KEY_VARIABLE = "TRIALOGUE_API_KEY"
ROWS = 16


def create_application(
    model: TextModel,
    serving: Serving,
    machine: MachineSettings,
    api_keys: Sequence[str] = (),
    hosts: Sequence[str] = ("*",),
    origins: Sequence[str] = (),
    report: Callable[[str], None] = lambda _: None,
    has_metrics: bool = False,
) -> Application:
    """Create the HTTP application for a loaded model.

    Args:
        model: Loaded model.
        serving: Name of the model, limits of requests and named verifiers.
        machine: Options on the hardware.
        api_keys: Keys, of which clients must send one (default: none is required).
        hosts: Host names that requests may use in the header `Host`. "*" allows all.
        origins: Origins of web pages that may send requests (default: none).
        report: Function called with messages (default: none are shown).
        has_metrics: Whether the server has the route /metrics, which needs prometheus_client.

    Raises:
        InputError: If a named verifier was made for another model.
    """
    whole, timeout = serving.verifier_whole, serving.verifier_timeout
    rules = VerifierCache(
        model,
        serving.rules,
        ConstraintSettings(verifier_whole=whole, verifier_timeout=timeout),
        serving.requests,
    )
    rows = min(ROWS, model.batch_size) if machine.batch_size is None else machine.batch_size
    worker = Worker(
        model,
        rows=rows,
        context=choose_context(model, serving.context, rows, report),
        most=serving.requests,
        samplers=serving.samplers,
        layers=rules.layers,
        memory=DEFAULT_MEMORY if machine.memory is None else machine.memory,
        tables=TableCache(serving.table_prefixes, report),
    )
    metrics = Metrics(worker) if has_metrics else None
    return Application(worker, rules, serving, api_keys, hosts, origins, metrics)


def serve(
    serving: Serving, address: Address, machine: MachineSettings, report: Callable[[str], None]
) -> None:
    """Load a model and serve it over HTTP until the process is stopped.

    Args:
        serving: Model, limits of requests and named verifiers.
        address: Network address, allowed hosts and API key.
        machine: Options on the hardware.
        report: Function called with progress messages and with the URL of the server.
    """
    api_keys = address.keys(os.environ.get(_KEY_VARIABLE) or None)
    with open_socket(address) as bound:
        report(f"loading {serving.model}")
        checkpoint = open_pretrained(
            str(serving.model),
            device=machine.device,
            dtype=machine.dtype,
            remote_code=machine.trust_remote_code,
        )
        model = checkpoint.load(recompute=machine.recompute, weights=machine.weights)
        host, port = bound.getsockname()[:2]
        has_metrics = find_spec("prometheus_client") is not None
        if not has_metrics:
            report("/metrics is not available: pip install prometheus-client")
        hosts, origins = allowed_hosts(address, host), address.allow_origin
        served = create_application(model, serving, machine, api_keys, hosts, origins, report, has_metrics)
        warm_up(served.worker, served.verifiers, serving)
        if not api_keys and not ipaddress.ip_address(host).is_loopback:
            report(f"every client that can reach {host} has access: use --api-key KEY to require a key")
        report(f"serving {serving.model_name} at http://{_in_url(host)}:{port}/v1")
        create_server(served.app, address.grace).run(sockets=[bound])


def allowed_hosts(address: Address, host: str) -> tuple[str, ...]:
    """Return the host names that requests may use in the header `Host`.

    Names are restricted if the server listens on a loopback address, or if names are configured. The names of the
    loopback address, the address of the server and the configured names are then allowed. Otherwise all names are
    allowed. Without this check, a web page could resolve its own domain to this machine, and the browser would let it
    read responses (DNS rebinding).

    Args:
        address: Options on the network address.
        host: Numeric address on which the server listens.
    """
    loopback = ("localhost", "127.0.0.1", "[::1]")
    if ipaddress.ip_address(host).is_loopback or address.allowed_host:
        return *loopback, _in_url(host), _in_url(address.host), *address.allowed_host
    return ("*",)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def create_server(app: Any, grace: float) -> uvicorn.Server:
    """Create an HTTP server for an ASGI application.

    Args:
        app: ASGI application.
        grace: Time in seconds that running requests get to finish when the server stops.
    """
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


def open_socket(address: Address) -> socket.socket:
    """Open a socket that listens on an address.

    Args:
        address: Host and port.

    Raises:
        InputError: If the address cannot be used.
    """
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((address.host, address.port), family=family, backlog=512)
    except socket.gaierror as error:
        raise InputError("host", address.host, f"use a valid address: {error.strerror}") from None
    except OSError as error:
        hint = f"use another port: cannot listen on {address.host} ({error.strerror or error})"
        raise InputError("port", address.port, hint) from None
