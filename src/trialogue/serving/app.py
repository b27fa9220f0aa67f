"""ASGI application with the endpoints of the OpenAI API."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trialogue.errors import InputError, describe_error
from trialogue.generation.prompts import json_value
from trialogue.serving.body import IGNORED_HEADER, Kind, ignored_parameters
from trialogue.serving.errors import RequestError
from trialogue.serving.jobs import Event, FailedRequest, FinishedChoice, Job, PartialChoice
from trialogue.serving.requests import read_request
from trialogue.serving.responses import CompletionResponse
from trialogue.serving.settings import Serving
from trialogue.serving.streams import Events, Stream
from trialogue.serving.verifiers import RequestVerifiers, VerifierCache
from trialogue.serving.worker import Worker

Value = TypeVar("Value")

_RETRY_AFTER = "1"
_MAX_PARSING = 4
"""Maximum number of request bodies parsed concurrently."""


class _SubmittedRequest(NamedTuple):
    """A submitted request, its events and the builder of its response."""

    job: Job
    events: Events
    response: CompletionResponse


class Application:
    """HTTP server application with endpoints of the OpenAI API.

    Args:
        worker: Worker that generates the samples.
        verifiers: Cache of verifiers, which also holds the named verifiers of the server.
        serving: Name of the model and limits of requests.
        api_key: Key that clients must send, or None.
        hosts: Host names that requests may use in the header `Host`. "*" allows all.

    Attributes:
        app: The ASGI application.
        worker: The worker.
        verifiers: The cache of verifiers.
    """

    def __init__(
        self,
        worker: Worker,
        verifiers: VerifierCache,
        serving: Serving,
        api_key: str | None = None,
        hosts: Sequence[str] = ("*",),
    ) -> None:
        self.worker, self.verifiers, self._serving, self._key = worker, verifiers, serving, api_key
        self._created = int(time.time())
        self._reading = CapacityLimiter(_MAX_PARSING)
        response = self._respond
        self.app = Starlette(
            routes=[
                Route("/health", self._protected(self._health, open_=True)),
                Route("/v1/models", self._protected(self._models)),
                Route("/v1/models/{name:path}", self._protected(self._model)),
                Route("/v1/completions", self._protected(partial(response, "completion")), methods=["POST"]),
                Route("/v1/chat/completions", self._protected(partial(response, "chat")), methods=["POST"]),
            ],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)],
            exception_handlers={HTTPException: _http_error},
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        del app
        self.worker.start()
        try:
            yield
        finally:
            self.verifiers.close()
            await run_in_threadpool(self.worker.close)

    def _protected(
        self, handle: Callable[[Request], Awaitable[Response]], open_: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """Wrap `handle` to check the API key, unless `open_`, and to convert exceptions to responses."""

        async def protected(request: Request) -> Response:
            try:
                if not open_:
                    self._require_key(request)
                return await handle(request)
            except RequestError as refused:
                return _error_response(refused)
            except InputError as error:
                return _error_response(RequestError.from_input_error(error))
            except ClientDisconnect:
                return Response(status_code=499)
            except Exception as error:
                return _error_response(RequestError(500, describe_error(error), code="internal_error"))

        return protected

    def _require_key(self, request: Request) -> None:
        given = request.headers.get("authorization", "").encode("latin-1")
        if self._key is not None and not secrets.compare_digest(given, f"Bearer {self._key}".encode()):
            message = "send the server's key as Authorization: Bearer KEY"
            raise RequestError(401, message, code="invalid_api_key")

    async def _health(self, request: Request) -> Response:
        del request
        alive = self.worker.alive and not self.worker.closing
        status = {"status": "ok" if alive else "stopping", "requests": self.worker.unfinished}
        return JSONResponse(status, 200 if alive else 503)

    def _model_info(self) -> dict[str, Any]:
        return {
            "id": self._serving.model_name,
            "object": "model",
            "created": self._created,
            "owned_by": "trialogue",
            "context": self.worker.context,
        }

    async def _models(self, request: Request) -> Response:
        del request
        return JSONResponse({"object": "list", "data": [self._model_info()]})

    async def _model(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name != self._serving.model_name:
            message = f"model={name!r}: use {self._serving.model_name!r}, the model of this server"
            raise RequestError(404, message, "model", "model_not_found")
        return JSONResponse(self._model_info())

    async def _respond(self, kind: Kind, request: Request) -> Response:
        body = await self._body(request)
        ignored = ignored_parameters(body)
        headers = {IGNORED_HEADER: ", ".join(ignored)} if ignored else {}
        submitted = await self._submit(kind, body, request)
        try:
            if not submitted.job.request.body.stream:
                response = await self._complete_response(request, submitted)
                response.headers.update(headers)
                return response
            # An error before the first event determines the HTTP status.
            first = await self._unless_disconnected(request, submitted.events.get())
            if isinstance(first, FailedRequest):
                raise first.refused
        except BaseException:
            self.worker.withdraw(submitted.job)
            raise
        ended = partial(self.worker.withdraw, submitted.job)
        return Stream(self._stream_events(submitted, first), ended, headers)

    async def _body(self, request: Request) -> Any:
        """Return the JSON body of a request. Raises `RequestError` if it is too large or invalid."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            # Browsers send other content types to any site without a preflight request.
            raise RequestError(415, "send the content type application/json", code="unsupported_media_type")
        too_large = RequestError(413, f"send at most {self._serving.body} bytes", code="body_too_large")
        stated = request.headers.get("content-length", "")
        if stated.isdecimal() and int(stated) > self._serving.body:
            raise too_large
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > self._serving.body:
                raise too_large
            parts.append(part)
        try:
            return json_value(b"".join(parts))
        except (ValueError, RecursionError) as error:
            raise RequestError(400, f"the body is not JSON: {error}", "body", "invalid_json") from None

    async def _submit(self, kind: Kind, body: Any, request: Request) -> _SubmittedRequest:
        loop, events = asyncio.get_running_loop(), Events()

        def notify(event: Event) -> None:
            # The event loop may be closed during shutdown.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(events.put, event)

        worker, verifiers = self.worker, self.verifiers
        # A full queue is reported before the verifiers are compiled.
        worker.reserve()
        try:
            reading = partial(
                read_request, kind, body, worker.model, verifiers, self._serving, worker.context
            )
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
                parse = partial(_parse_calls, call.verifier.parser)
            name, tokenization = self._serving.model_name, worker.model.tokenization
            response = CompletionResponse(completion, judging, name, tokenization, parse)
            job = Job(completion, judging, notify)
            worker.submit(job)
        except BaseException:
            worker.release()
            raise
        return _SubmittedRequest(job, events, response)

    async def _complete_response(self, request: Request, submitted: _SubmittedRequest) -> Response:
        finished: list[FinishedChoice] = []
        while len(finished) < submitted.job.request.choices:
            event = await self._unless_disconnected(request, submitted.events.get())
            if isinstance(event, FailedRequest):
                raise event.refused
            if isinstance(event, FinishedChoice):
                finished.append(event)
        # Parsing tool calls matches the patterns of their schemas, which can be slow.
        return JSONResponse(await run_in_threadpool(submitted.response.complete, finished))

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

    async def _stream_events(self, submitted: _SubmittedRequest, event: Event) -> AsyncIterator[str]:
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
        yield "data: [DONE]\n\n"


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
    return f"data: {json.dumps(value)}\n\n"


def _error_response(refused: RequestError) -> Response:
    headers = {"Retry-After": _RETRY_AFTER} if refused.status in (429, 503) else {}
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(refused.body(), refused.status, headers)


async def _http_error(request: Request, error: Exception) -> Response:
    """Return the response for an unknown path or method."""
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path}: {error.detail}"
    response = _error_response(RequestError(error.status_code, message, code="not_found"))
    response.headers.update(error.headers or {})
    return response
