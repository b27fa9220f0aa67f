"""Preparation of the server before the first request: the length of the context, and a warm-up."""

from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import torch

from trialogue.errors import InputError
from trialogue.models.hub.memory import free_memory
from trialogue.models.hub.opening import TextModel
from trialogue.serving.jobs import Event, Job
from trialogue.serving.requests import read_request
from trialogue.serving.settings import Serving
from trialogue.serving.verifiers import VerifierCache
from trialogue.serving.worker import Worker

_UNKNOWN_CONTEXT = 4096
"""Context of models without a maximum length."""
_SHORTEST_CONTEXT = 256
_WARM_UP: tuple[dict[str, Any], ...] = (
    {"prompt": [0, 0], "max_tokens": 2, "seed": 0},
    {"prompt": [0, 0], "max_tokens": 4, "seed": 0, "response_format": {"type": "json_object"}},
)


def choose_context(
    model: TextModel, context: int | None, rows: int, report: Callable[[str], None] = lambda _: None
) -> int:
    """Return the maximum length of a sequence in tokens.

    Args:
        model: Model of the server.
        context: Length that was requested, or None for the context of the model. It is then reduced if keys and values
            would need more than half of the free memory.
        rows: Maximum number of sequences per run.
        report: Function called with a message if the context of the model is reduced.
    """
    own = [length for length in (model.max_length, getattr(model, "window", None)) if length is not None]
    if context is not None:
        return min([context, *own])
    longest = min(own, default=_UNKNOWN_CONTEXT)
    needed, free = rows * _position_bytes(model), _free_memory(model)
    if not needed or free is None or needed * longest <= free // 2:
        return longest
    fitting = max(_SHORTEST_CONTEXT, free // 2 // needed // 256 * 256)
    if fitting >= longest:
        return longest
    report(
        f"the context is limited to {fitting} of {longest} tokens, because keys and values of {rows} sequences would "
        "need more than half of the free memory: use --context or a smaller --batch-size"
    )
    return fitting


def _position_bytes(model: TextModel) -> int:
    """Return the number of bytes of keys and values per token of a sequence, or 0 if it is unknown."""
    with torch.inference_mode():
        context, one = model.open(1, 2), torch.ones(1, dtype=torch.int64)
        context.features(torch.zeros(1, 2, dtype=torch.int64), one - 1, one, one - 1)
    return int(getattr(context, "position_bytes", 0))


def _free_memory(model: TextModel) -> int | None:
    device = getattr(model, "device", None)
    if isinstance(device, torch.device) and device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return free_memory()


def warm_up(worker: Worker, verifiers: VerifierCache, serving: Serving) -> None:
    """Process a short request without a constraint and one with a JSON schema, so that later requests are not slower.

    Args:
        worker: Worker of the server, which is started.
        verifiers: Cache of verifiers of the server.
        serving: Limits of requests.
    """
    worker.start()
    for content in _WARM_UP:
        # If a model or its tokenization does not support a request, clients see the error when they send it.
        with suppress(InputError):
            request = read_request("completion", content, worker.model, verifiers, serving, worker.context)
            judging = verifiers.get(request.requested_verifiers, request.sampler, ()).result()
            events = SimpleQueue[Event]()
            worker.reserve()
            worker.submit(Job(request, judging, events.put))
            events.get()
