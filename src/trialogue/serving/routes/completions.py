"""Routes that generate text: /v1/completions, /v1/chat/completions and /v1/responses."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from trialogue.serving.body import IGNORED_HEADER, Kind, ignored_parameters
from trialogue.serving.jobs import Event, FailedRequest, FinishedChoice, Job, PartialChoice
from trialogue.serving.metrics import Metrics
from trialogue.serving.requests import CompletionRequest, read_request
from trialogue.serving.responses import CompletionResponse
from trialogue.serving.responses_api import ResponsesResponse, chat_body
from trialogue.serving.routes.bodies import read_json
from trialogue.serving.settings import Serving
from trialogue.serving.streams import Events, Stream
from trialogue.serving.verifiers import RequestVerifiers, VerifierCache
from trialogue.serving.worker import Worker

Value = TypeVar("Value")
RouteKind = Kind | Literal["response"]

_MAX_PARSING = 4
"""Maximum number of request bodies parsed concurrently."""


class _SubmittedRequest(NamedTuple):
    """A submitted request, its events and the builder of its response."""

    job: Job
    events: Events
    response: CompletionResponse


class Completions:
    """Handler of requests for generated text.

    Args:
        worker: Worker that generates the samples.
        verifiers: Cache of verifiers.
        serving: Name of the model and limits of requests.
        metrics: Metrics to update, or None.
    """

    def __init__(
        self, worker: Worker, verifiers: VerifierCache, serving: Serving, metrics: Metrics | None
    ) -> None:
        self._worker, self._verifiers, self._serving, self._metrics = worker, verifiers, serving, metrics
        self._reading = CapacityLimiter(_MAX_PARSING)

    async def respond(self, kind: RouteKind, request: Request) -> Response:
        """Return the response to a request.

        Args:
            kind: "completion", "chat" or "response".
            request: The request.
        """
        started = time.perf_counter()
        body = await read_json(request, self._serving.body)
        ignored = ignored_parameters(body)
        headers = {IGNORED_HEADER: ", ".join(ignored)} if ignored else {}
        submitted = await self._submit(kind, body, request)
        try:
            if not submitted.job.request.body.stream:
                response = await self._complete_response(request, submitted, started)
                response.headers.update(headers)
                return response
            # An error before the first event determines the HTTP status.
            first = await self._unless_disconnected(request, submitted.events.get())
            if isinstance(first, FailedRequest):
                raise first.refused
        except BaseException:
            self._worker.withdraw(submitted.job)
            raise
        ended = partial(self._worker.withdraw, submitted.job)
        if self._metrics is not None:
            self._metrics.observe_first_token(time.perf_counter() - started)
        return Stream(self._stream_events(submitted, first, started), ended, headers)

    async def _submit(self, kind: RouteKind, body: Any, request: Request) -> _SubmittedRequest:
        loop, events = asyncio.get_running_loop(), Events()

        def notify(event: Event) -> None:
            # The event loop may be closed during shutdown.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(events.put, event)

        worker, verifiers = self._worker, self._verifiers
        # A full queue is reported before the verifiers are compiled.
        worker.reserve()
        try:
            reading = partial(_read, kind, body, worker, verifiers, self._serving)
            completion = await to_thread.run_sync(reading, limiter=self._reading)
            pending = _await_verifiers(
                verifiers.get(
                    completion.requested_verifiers, completion.sampler, completion.body.stop_strings
                )
            )
            judging = await self._unless_disconnected(request, pending)
            parse = None
            if completion.calls is not None:
                pending = _await_verifiers(verifiers.get((completion.calls,), completion.sampler, ()))
                [call] = (await self._unless_disconnected(request, pending)).built
                assert call.verifier.parser is not None
                parse = partial(_parse_calls, call.verifier.parser)
            name, tokenization = self._serving.model_name, worker.model.tokenization
            form = ResponsesResponse if kind == "response" else CompletionResponse
            response = form(completion, judging, name, tokenization, parse)
            job = Job(completion, judging, notify)
            worker.submit(job)
        except BaseException:
            worker.release()
            raise
        return _SubmittedRequest(job, events, response)

    async def _complete_response(
        self, request: Request, submitted: _SubmittedRequest, started: float
    ) -> Response:
        finished: list[FinishedChoice] = []
        while len(finished) < submitted.job.request.choices:
            event = await self._unless_disconnected(request, submitted.events.get())
            if isinstance(event, FailedRequest):
                raise event.refused
            if isinstance(event, FinishedChoice):
                finished.append(event)
        self._observe(submitted, finished, started)
        # Parsing tool calls matches the patterns of their schemas, which can be slow.
        return JSONResponse(await run_in_threadpool(submitted.response.complete, finished))

    def _observe(self, submitted: _SubmittedRequest, finished: list[FinishedChoice], started: float) -> None:
        if self._metrics is not None:
            self._metrics.observe_request(submitted.job, finished, time.perf_counter() - started)

    async def _unless_disconnected(self, request: Request, awaited: Awaitable[Value]) -> Value:
        """Await a result. Raises `ClientDisconnect` if the client disconnects first."""
        waiting = asyncio.ensure_future(awaited)
        going = asyncio.ensure_future(_wait_for_disconnect(request))
        try:
            await asyncio.wait((waiting, going), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                return waiting.result()
            raise ClientDisconnect
        finally:
            waiting.cancel()
            going.cancel()

    async def _stream_events(
        self, submitted: _SubmittedRequest, event: Event, started: float
    ) -> AsyncIterator[str]:
        """Yield the server-sent events of a stream that begins with `event`."""
        response, finished = submitted.response, list[FinishedChoice]()
        while True:
            if isinstance(event, FailedRequest):
                yield _server_sent_event(event.refused.body())
                return
            if isinstance(event, PartialChoice):
                pieces = response.growth_chunks(*event)
            else:
                finished.append(event)
                pieces = await run_in_threadpool(response.final_chunks, finished)
            for piece in pieces:
                yield _server_sent_event(piece)
            if len(finished) == submitted.job.request.choices:
                break
            event = await submitted.events.get()
        self._observe(submitted, finished, started)
        if not isinstance(response, ResponsesResponse):
            yield "data: [DONE]\n\n"


def _read(
    kind: RouteKind, body: Any, worker: Worker, verifiers: VerifierCache, serving: Serving
) -> CompletionRequest:
    """Validate the body of a request."""
    if kind == "response":
        kind, body = "chat", chat_body(body)
    return read_request(kind, body, worker.model, verifiers, serving, worker.context)


def _parse_calls(parser: Callable[[str], Any], text: str) -> list[dict[str, Any]]:
    """Return the tool calls of a text. Raises `ValueError` if it does not consist of calls."""
    calls = parser(text)
    return calls if isinstance(calls, list) else [calls]


async def _await_verifiers(judging: Future[RequestVerifiers]) -> RequestVerifiers:
    """Await verifiers without cancelling their construction, because other requests may share them."""
    return await asyncio.shield(asyncio.wrap_future(judging))


async def _wait_for_disconnect(request: Request) -> None:
    """Wait until the client disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _server_sent_event(value: dict[str, Any]) -> str:
    # Events of the Responses API have a type.
    name = f"event: {value['type']}\n" if "type" in value else ""
    return f"{name}data: {json.dumps(value)}\n\n"
