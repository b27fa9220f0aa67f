"""The application: what clients send as requests to the worker, and what it tells as answers."""

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

from trialogue.errors import InputError, reason
from trialogue.generation.prompts import json_value
from trialogue.serving.body import Kind
from trialogue.serving.errors import Refused
from trialogue.serving.jobs import Event, Failed, FinishedChoice, Job, PartialChoice
from trialogue.serving.requests import read
from trialogue.serving.responses import CompletionResponse
from trialogue.serving.settings import Serving
from trialogue.serving.streams import Events, Stream
from trialogue.serving.verifiers import RequestVerifiers, VerifierCache
from trialogue.serving.worker import Worker

Value = TypeVar("Value")

_RETRY_AFTER = "1"
_READING = 4
"""Requests that are read at once, so that threads are left for the others"""


class _Begun(NamedTuple):
    """A request that waits or is under way: its events come in `events`, `answer` writes them."""

    job: Job
    events: Events
    answer: CompletionResponse


class Application:
    """The endpoints of OpenAI's interface on a `worker` and its `verifiers`; `app` is the ASGI application.

    Clients have to know the `api_key`, if there is one, and to call the server by one of `hosts`.
    """

    def __init__(
        self,
        worker: Worker,
        verifiers: VerifierCache,
        serving: Serving,
        api_key: str | None = None,
        hosts: Sequence[str] = ("*",),
    ) -> None:
        self.worker, self._verifiers, self._serving, self._key = worker, verifiers, serving, api_key
        self._created = int(time.time())
        self._reading = CapacityLimiter(_READING)
        answer = self._answer
        self.app = Starlette(
            routes=[
                Route("/health", self._guarded(self._health, open_=True)),
                Route("/v1/models", self._guarded(self._models)),
                Route("/v1/models/{name:path}", self._guarded(self._model)),
                Route("/v1/completions", self._guarded(partial(answer, "completion")), methods=["POST"]),
                Route("/v1/chat/completions", self._guarded(partial(answer, "chat")), methods=["POST"]),
            ],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)],
            exception_handlers={HTTPException: _missing},
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        del app
        self.worker.start()
        try:
            yield
        finally:
            self._verifiers.close()
            await run_in_threadpool(self.worker.close)

    def _guarded(
        self, handle: Callable[[Request], Awaitable[Response]], open_: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """`handle`, for clients that know the key unless it is `open_`; what it raises as an answer."""

        async def guarded(request: Request) -> Response:
            try:
                if not open_:
                    self._require_key(request)
                return await handle(request)
            except Refused as refused:
                return _refusal(refused)
            except InputError as error:
                return _refusal(Refused.of(error))
            except ClientDisconnect:
                return Response(status_code=499)
            except Exception as error:
                return _refusal(Refused(500, reason(error), code="internal_error"))

        return guarded

    def _require_key(self, request: Request) -> None:
        given = request.headers.get("authorization", "").encode("latin-1")
        if self._key is not None and not secrets.compare_digest(given, f"Bearer {self._key}".encode()):
            message = "send the server's key as Authorization: Bearer KEY"
            raise Refused(401, message, code="invalid_api_key")

    async def _health(self, request: Request) -> Response:
        del request
        alive = self.worker.alive and not self.worker.closing
        told = {"status": "ok" if alive else "stopping", "requests": self.worker.unfinished}
        return JSONResponse(told, 200 if alive else 503)

    def _told(self) -> dict[str, Any]:
        return {
            "id": self._serving.called,
            "object": "model",
            "created": self._created,
            "owned_by": "trialogue",
            "context": self.worker.context,
        }

    async def _models(self, request: Request) -> Response:
        del request
        return JSONResponse({"object": "list", "data": [self._told()]})

    async def _model(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name != self._serving.called:
            message = f"model={name!r}: the model here is {self._serving.called!r}"
            raise Refused(404, message, "model", "model_not_found")
        return JSONResponse(self._told())

    async def _answer(self, kind: Kind, request: Request) -> Response:
        body = await self._body(request)
        begun = await self._begin(kind, body, request)
        try:
            if not begun.job.request.body.stream:
                return await self._whole(request, begun)
            # What fails before the first sign of an answer has a status of its own.
            first = await self._unless_gone(request, begun.events.get())
            if isinstance(first, Failed):
                raise first.refused
        except BaseException:
            self.worker.withdraw(begun.job)
            raise
        return Stream(self._pieces(begun, first), partial(self.worker.withdraw, begun.job))

    async def _body(self, request: Request) -> Any:
        """The JSON value that a client sends; raises `Refused` for one that is too large, or none."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            # A page in a browser can send other kinds anywhere without asking.
            raise Refused(415, "send the content type application/json", code="unsupported_media_type")
        too_large = Refused(413, f"send at most {self._serving.body} bytes", code="body_too_large")
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
            raise Refused(400, f"the body is not JSON: {error}", "body", "invalid_json") from None

    async def _begin(self, kind: Kind, body: Any, request: Request) -> _Begun:
        loop, events = asyncio.get_running_loop(), Events()

        def tell(event: Event) -> None:
            # A loop that is closed has nobody left to tell.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(events.put, event)

        worker, verifiers = self.worker, self._verifiers
        # A client that finds no place is told so at once, not after its rule is compiled.
        worker.reserve()
        try:
            reading = partial(read, kind, body, worker.model, verifiers, self._serving, worker.context)
            asked = await to_thread.run_sync(reading, limiter=self._reading)
            made = _made(verifiers.judging(asked.wishes, asked.sampler, asked.body.stops))
            judging = await self._unless_gone(request, made)
            parse = None
            if asked.calls is not None:
                made = _made(verifiers.judging((asked.calls,), asked.sampler, ()))
                [call] = (await self._unless_gone(request, made)).built
                parse = call.verifier.parser
            name, tokenization = self._serving.called, worker.model.tokenization
            answer = CompletionResponse(asked, judging, name, tokenization, parse)
            job = Job(asked, judging, tell)
            worker.submit(job)
        except BaseException:
            worker.release()
            raise
        return _Begun(job, events, answer)

    async def _whole(self, request: Request, begun: _Begun) -> Response:
        finished: list[FinishedChoice] = []
        while len(finished) < begun.job.request.choices:
            event = await self._unless_gone(request, begun.events.get())
            if isinstance(event, Failed):
                raise event.refused
            if isinstance(event, FinishedChoice):
                finished.append(event)
        # Reading calls runs the patterns of their schemas.
        return JSONResponse(await run_in_threadpool(begun.answer.whole, finished))

    async def _unless_gone(self, request: Request, awaited: Awaitable[Value]) -> Value:
        """What is `awaited`; raises `ClientDisconnect` where the client goes before that."""
        waiting = asyncio.ensure_future(awaited)
        going = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait((waiting, going), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                return waiting.result()
            raise ClientDisconnect
        finally:
            waiting.cancel()
            going.cancel()

    async def _pieces(self, begun: _Begun, event: Event) -> AsyncIterator[str]:
        """The events of a stream, the first of which is `event`."""
        answer, finished = begun.answer, list[FinishedChoice]()
        while True:
            if isinstance(event, Failed):
                yield _line(event.refused.body())
                return
            if isinstance(event, PartialChoice):
                pieces = answer.part(*event)
            else:
                finished.append(event)
                pieces = await run_in_threadpool(answer.last, finished)
            for piece in pieces:
                yield _line(piece)
            if len(finished) == begun.job.request.choices:
                break
            event = await begun.events.get()
        yield "data: [DONE]\n\n"


async def _made(judging: Future[RequestVerifiers]) -> RequestVerifiers:
    """What `judging` will be: others may wait for it too, whoever goes."""
    return await asyncio.shield(asyncio.wrap_future(judging))


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _line(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"


def _refusal(refused: Refused) -> Response:
    headers = {"Retry-After": _RETRY_AFTER} if refused.status in (429, 503) else {}
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(refused.body(), refused.status, headers)


async def _missing(request: Request, error: Exception) -> Response:
    """What answers for paths and methods that there are none of."""
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path}: {error.detail}"
    response = _refusal(Refused(error.status_code, message, code="not_found"))
    response.headers.update(error.headers or {})
    return response
