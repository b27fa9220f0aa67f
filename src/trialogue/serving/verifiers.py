"""Cache of the verifiers that requests need. Each verifier is compiled once."""

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

from trialogue.errors import InputError
from trialogue.generation.verifiers.kinds import KINDS
from trialogue.generation.verifiers.specs import (
    BuiltVerifier,
    ConstraintSettings,
    LoadedVerifier,
    combine_verifiers,
)
from trialogue.models.hub.opening import TextModel
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Verifier
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.serving.errors import RequestError
from trialogue.serving.settings import Serving
from trialogue.verifiers import GrammarVerifier

CACHE_SIZE = 64
"""Maximum number of cached verifiers."""
_CACHED_MASKS = 1024
"""Number of prefixes whose token masks each verifier caches."""
_OPTIONS = ConstraintSettings()
_COMPILING = 4
"""Maximum number of concurrent compilations."""
MAX_SPEC_LENGTH = 1 << 16
"""Maximum length of a spec in characters, since the compilation time grows more than linearly."""


def _tools(content: str, tokenization: Tokenization, *, memory: int) -> GrammarVerifier:
    """Return a verifier of tool calls for definitions of tools, or for the arguments of `GrammarVerifier.tools`."""
    options = json.loads(content) if content.startswith('{"tools":') else {"tools": content}
    return GrammarVerifier.tools(options.pop("tools"), tokenization, memory=memory, **options)


_CLIENT_KINDS: dict[str, Callable[..., GrammarVerifier]] = {
    "regex": GrammarVerifier.regex,
    "choice": GrammarVerifier.choice,
    "lark": GrammarVerifier.lark,
    "json-schema": GrammarVerifier.json_schema,
    "tools": _tools,
}
"""Kinds of verifiers that clients may specify. None of them reads a file."""


@dataclass(frozen=True)
class RequestedVerifier:
    """A verifier in a request, before it is compiled.

    Args:
        field: Field of the request that contains it.
        kind: Kind of the verifier, for example "regex".
        content: Content for this kind, for example a regular expression.
        name: Name of a verifier of the server. None if the client gave kind and content.
    """

    field: str
    kind: str
    content: str
    name: str | None = None

    def __post_init__(self) -> None:
        if self.name is None and len(self.content) > MAX_SPEC_LENGTH:
            raise InputError(self.field, len(self.content), f"use at most {MAX_SPEC_LENGTH} characters")

    @property
    def value(self) -> Any:
        """JSON value that describes the verifier in the response.

        It is the name, or an object with kind and content.
        """
        return self.name if self.name is not None else {self.kind: self.content}


@dataclass(frozen=True, eq=False)
class RequestVerifiers:
    """The compiled verifiers of one request.

    Args:
        verifier: Product of all verifiers, which the sampler uses. None if there are none.
        built: The single verifiers.
    """

    verifier: Verifier | None
    built: tuple[BuiltVerifier, ...]

    @property
    def notes(self) -> list[str]:
        """Messages of the verifiers for the user."""
        return [note for one in self.built for note in one.verifier.notes]


class VerifierCache:
    """Compiles the verifiers of requests in separate threads, and caches the most recent ones.

    Named verifiers of the server are loaded once, when the cache is created.

    Args:
        model: Model of the server.
        named: Specs KIND:CONTENT of the named verifiers, by name.
        options: Options on verifiers that are Python functions.
        most: Maximum number of verifiers that are being compiled or wait for compilation.

    Raises:
        InputError: If a named verifier cannot be built.
    """

    def __init__(
        self,
        model: TextModel,
        named: Mapping[str, str],
        options: ConstraintSettings = _OPTIONS,
        most: int = Serving.requests,
    ) -> None:
        self._most, self._unfinished = most, 0
        self._model, self._named, self._options, self._lock = model, dict(named), options, Lock()
        self._cache: OrderedDict[object, Future[RequestVerifiers]] = OrderedDict()
        self._compilers = ThreadPoolExecutor(_COMPILING, thread_name_prefix="compiler")
        self._loading, self._loaded = Lock(), dict[tuple[str, bool], list[LoadedVerifier]]()
        layers = dict[int, None]()
        for name in self._named:
            for one in self._load_named(name, verdicts=True):
                built = one.for_sampler(verdicts=True, ranks=False, stop=())
                built.require_fit(model)
                layers |= dict.fromkeys(built.verifier.layers)
            if name in KINDS:
                raise InputError("rule", name, "use another name: this is a kind of verifier")
        self.layers = tuple(layers)
        """Layers whose hidden states the named verifiers read."""

    def close(self) -> None:
        """Stop compiling verifiers. Requests that wait for one fail."""
        self._compilers.shutdown(wait=False, cancel_futures=True)

    def read_rule(self, value: object) -> list[RequestedVerifier]:
        """Convert the field "rule" of a request to verifiers.

        Args:
            value: Name of a verifier of the server, text KIND:CONTENT, object {KIND: CONTENT}, or a list of these.

        Returns:
            The verifiers that the field specifies, which are not compiled yet.

        Raises:
            InputError: If the value is invalid or refers to a file.
        """
        return [self._read_verifier(one) for one in (value if isinstance(value, list) else [value])]

    def _read_verifier(self, value: object) -> RequestedVerifier:
        names = ", ".join(self._named) or "there are none"
        hint = f"use {{KIND: CONTENT}} with a kind of {', '.join(_CLIENT_KINDS)}, or a verifier of the server ({names})"
        if isinstance(value, str) and value in self._named:
            kind, _, content = self._named[value].partition(":")
            return RequestedVerifier("rule", kind, content, value)
        if isinstance(value, str) and ":" in value:
            kind, content = value.split(":", 1)
            value = {kind: content}
        if not isinstance(value, dict) or len(value) != 1:
            raise InputError("rule", value, hint)
        [(kind, content)] = value.items()
        if kind in KINDS and kind not in _CLIENT_KINDS:
            hint = f"use a verifier of the server ({names}): requests cannot read files with {kind}"
            raise InputError("rule", value, hint)
        if kind not in _CLIENT_KINDS:
            raise InputError("rule", value, hint)
        if not isinstance(content, str):
            content = json.dumps(content)
        if not content:
            raise InputError("rule", value, "use a content that is not empty")
        return RequestedVerifier("rule", kind, content)

    def get(
        self, requested: Sequence[RequestedVerifier], sampler: Sampler[Any], stop: Sequence[str]
    ) -> Future[RequestVerifiers]:
        """Compile the verifiers of a request in another thread, or take them from the cache.

        Args:
            requested: Verifiers of the request.
            sampler: Sampler of the request.
            stop: Stop strings. Verifiers of text evaluate the text before the first stop string.

        Returns:
            Future of the compiled verifiers. Its result raises `InputError` if a verifier cannot be built.

        Raises:
            Refused: If too many verifiers are waiting for compilation.
        """
        if not requested:
            empty = Future[RequestVerifiers]()
            empty.set_result(RequestVerifiers(None, ()))
            return empty
        uses = sampler.uses == "verdicts", sampler.uses in ("nothing", "ranks")
        key = tuple(requested), uses, tuple(stop)
        with self._lock:
            # Samples share cached values only if they use the same verifier object.
            is_new = key not in self._cache
            if is_new:
                if self._unfinished >= self._most:
                    message = f"{self._most} verifiers are waiting for compilation: try again later"
                    raise RequestError(429, message, code="rate_limit_exceeded")
                self._cache[key] = self._compilers.submit(self._compile, *key)
                self._unfinished += 1
            get = self._cache[key]
            self._cache.move_to_end(key)
            while len(self._cache) > CACHE_SIZE:
                self._cache.popitem(last=False)
        if is_new:
            get.add_done_callback(partial(self._finish_compilation, key))
        return get

    def _finish_compilation(self, key: object, get: Future[RequestVerifiers]) -> None:
        """Update the number of unfinished compilations, and remove a failed one from the cache."""
        failed = get.cancelled() or get.exception() is not None
        with self._lock:
            self._unfinished -= 1
            if failed and self._cache.get(key) is get:
                del self._cache[key]

    def _compile(
        self, requested: tuple[RequestedVerifier, ...], uses: tuple[bool, bool], stop: tuple[str, ...]
    ) -> RequestVerifiers:
        built = [one for verifier in requested for one in self._build(verifier, uses, stop)]
        return RequestVerifiers(combine_verifiers(built), tuple(built))

    def _build(
        self, requested: RequestedVerifier, uses: tuple[bool, bool], stop: Sequence[str]
    ) -> list[BuiltVerifier]:
        verdicts, ranks = uses
        try:
            if requested.name is not None:
                loaded = self._load_named(requested.name, verdicts)
                return [one.for_sampler(verdicts=verdicts, ranks=ranks, stop=stop) for one in loaded]
            verifier = _CLIENT_KINDS[requested.kind](
                requested.content, self._model.tokenization, memory=_CACHED_MASKS
            )
        except InputError as error:
            raise InputError(requested.field, error.value, error.hint) from error
        verifier = (verifier.up_to(stop) if stop else verifier).prepared()
        return [BuiltVerifier(KINDS[requested.kind], verifier, None, None, ())]

    def _load_named(self, name: str, verdicts: bool) -> list[LoadedVerifier]:
        with self._loading:
            if (name, verdicts) not in self._loaded:
                rule = replace(self._options, verifier=(self._named[name],))
                self._loaded[name, verdicts] = rule.load(self._model.tokenization, verdicts=verdicts)
            return self._loaded[name, verdicts]
