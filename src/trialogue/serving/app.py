"""ASGI application with the endpoints of the OpenAI API."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trialogue.errors import InputError, describe_error
from trialogue.serving.body import IGNORED_HEADER
from trialogue.serving.errors import RequestError
from trialogue.serving.metrics import Metrics
from trialogue.serving.routes import texts
from trialogue.serving.routes.bodies import read_json
from trialogue.serving.routes.completions import Completions
from trialogue.serving.settings import Serving
from trialogue.serving.verifiers import VerifierCache
from trialogue.serving.worker import Worker

Handler = Callable[[Request], Awaitable[Response]]

_RETRY_AFTER = "1"


class Application:
    """HTTP server application with endpoints of the OpenAI API.

    Args:
        worker: Worker that generates the samples.
        verifiers: Cache of verifiers, which also holds the named verifiers of the server.
        serving: Name of the model and limits of requests.
        api_keys: Keys, of which clients must send one (default: none is required).
        hosts: Host names that requests may use in the header `Host`. "*" allows all.
        origins: Origins of web pages that may send requests. "*" allows all.
        metrics: Metrics of the server, or None.

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
        api_keys: Sequence[str] = (),
        hosts: Sequence[str] = ("*",),
        origins: Sequence[str] = (),
        metrics: Metrics | None = None,
    ) -> None:
        self.worker, self.verifiers, self._serving, self._metrics = worker, verifiers, serving, metrics
        self._keys = [f"Bearer {key}".encode() for key in api_keys]
        self._created = int(time.time())
        respond = Completions(worker, verifiers, serving, metrics).respond
        get: dict[str, Handler] = {
            "/v1/models": self._models,
            "/v1/models/{name:path}": self._model,
            "/tokenizer_info": self._tokenizer_info,
        }
        post: dict[str, Handler] = {
            "/v1/completions": partial(respond, "completion"),
            "/v1/chat/completions": partial(respond, "chat"),
            "/v1/responses": partial(respond, "response"),
            "/v1/embeddings": self._embeddings,
            "/tokenize": self._tokenize,
            "/detokenize": self._detokenize,
        }
        if metrics is not None:
            get["/metrics"] = self._metrics_text
        cors = Middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=[IGNORED_HEADER],
        )
        self.app = Starlette(
            routes=[
                Route("/health", self._protected("/health", self._health, open_=True)),
                *(Route(path, self._protected(path, handle)) for path, handle in get.items()),
                *(
                    Route(path, self._protected(path, handle), methods=["POST"])
                    for path, handle in post.items()
                ),
            ],
            middleware=[
                *([cors] if origins else []),
                Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False),
            ],
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

    def _protected(self, path: str, handle: Handler, open_: bool = False) -> Handler:
        """Wrap `handle` to check the API key, unless `open_`, and to convert exceptions to responses."""

        async def protected(request: Request) -> Response:
            response = await self._response(handle, request, open_)
            if self._metrics is not None:
                self._metrics.count_response(path, response.status_code)
            return response

        return protected

    async def _response(self, handle: Handler, request: Request, open_: bool) -> Response:
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

    def _require_key(self, request: Request) -> None:
        given = request.headers.get("authorization", "").encode("latin-1")
        # All keys are compared, so that the time does not depend on the key.
        if self._keys and not sum(secrets.compare_digest(given, key) for key in self._keys):
            message = "send a key of the server as Authorization: Bearer KEY"
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

    async def _metrics_text(self, request: Request) -> Response:
        del request
        assert self._metrics is not None
        content, kind = self._metrics.text()
        return Response(content, headers={"Content-Type": kind})

    async def _tokenizer_info(self, request: Request) -> Response:
        del request
        return JSONResponse(texts.tokenizer_info(self.worker.model))

    async def _tokenize(self, request: Request) -> Response:
        body = await read_json(request, self._serving.body)
        worker = self.worker
        return JSONResponse(await run_in_threadpool(texts.tokenize, body, worker.model, worker.context))

    async def _detokenize(self, request: Request) -> Response:
        body = await read_json(request, self._serving.body)
        return JSONResponse(await run_in_threadpool(texts.detokenize, body, self.worker.model))

    async def _embeddings(self, request: Request) -> Response:
        body, worker, serving = await read_json(request, self._serving.body), self.worker, self._serving
        worker.reserve()
        try:
            prompts, as_base64 = await run_in_threadpool(
                texts.read_embeddings, body, worker.model, worker.context, serving.samples
            )
            pending = worker.evaluate(texts.embed(prompts, worker.model, worker.rows))
            vectors = await asyncio.wrap_future(pending)
        finally:
            worker.release()
        name = serving.model_name
        return JSONResponse(
            await run_in_threadpool(texts.embeddings_response, vectors, prompts, name, as_base64)
        )


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
