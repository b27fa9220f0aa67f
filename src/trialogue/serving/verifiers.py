"""The verifiers that requests are judged by: built once for all that ask for the same."""

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, Literal

from trialogue.errors import InputError
from trialogue.generation.verifiers.kinds import KINDS
from trialogue.generation.verifiers.specs import Built, Loaded, Rule, combine_verifiers
from trialogue.models.hub.opening import TextModel
from trialogue.oracles import Verifier
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.serving.errors import Refused
from trialogue.serving.settings import Serving
from trialogue.verifiers import GrammarVerifier

Field = Literal["rule", "response_format", "tools"]

KEPT = 64
"""VerifierCache that are kept for those who ask again"""
_MASKS = 1024
"""Prefixes of which each of them remembers what may follow: a bit for every token"""
_OPTIONS = Rule()
_COMPILING = 4
"""VerifierCache that are compiled at once"""
LONGEST = 1 << 16
"""Characters of what a client describes: compiling takes more than linear time"""
_OF_TEXTS = {
    "regex": GrammarVerifier.regex,
    "choice": GrammarVerifier.choice,
    "lark": GrammarVerifier.lark,
    "json-schema": GrammarVerifier.json_schema,
    "tools": GrammarVerifier.tools,
}
"""What clients may describe themselves: languages, by what they hold and not by files."""


@dataclass(frozen=True)
class RequestedVerifier:
    """A verifier that a request asks for in `field`: one of `kind`, with its `content`, or the server's rule `name`."""

    field: Field
    kind: str
    content: str
    name: str | None = None

    def __post_init__(self) -> None:
        if self.name is None and len(self.content) > LONGEST:
            raise InputError(self.field, len(self.content), f"use at most {LONGEST} characters")

    @property
    def said(self) -> Any:
        """What an answer repeats of it."""
        return self.name if self.name is not None else {self.kind: self.content}


@dataclass(frozen=True, eq=False)
class RequestVerifiers:
    """What judges the samples of a request: `verifier` is what a sampler is given, of which `built` are the parts."""

    verifier: Verifier | None
    built: tuple[Built, ...]

    @property
    def notes(self) -> list[str]:
        """What a user should know of them."""
        return [note for one in self.built for note in one.verifier.notes]


class VerifierCache:
    """Verifiers for a `model`, and the `named` rules of the server, which are loaded once; the latest others are kept.

    They are made by threads of their own: nothing else waits for one that takes long, and at most `most` are under way
    or wait, those among them that nobody wants any more. The functions of named rules are asked as `options` say.
    Raises `InputError` for a named rule that cannot be built.
    """

    def __init__(
        self,
        model: TextModel,
        named: Mapping[str, str],
        options: Rule = _OPTIONS,
        most: int = Serving.requests,
    ) -> None:
        self._most, self._unfinished = most, 0
        self._model, self._named, self._options, self._lock = model, dict(named), options, Lock()
        self._kept: OrderedDict[object, Future[RequestVerifiers]] = OrderedDict()
        self._compilers = ThreadPoolExecutor(_COMPILING, thread_name_prefix="compiler")
        self._loading, self._loaded = Lock(), dict[tuple[str, bool], list[Loaded]]()
        layers = dict[int, None]()
        for name in self._named:
            for one in self._of_name(name, verdicts=True):
                built = one.for_sampler(verdicts=True, ranks=False, stop=())
                built.require_fit(model)
                layers |= dict.fromkeys(built.verifier.layers)
            if name in KINDS:
                raise InputError("rule", name, "it is the name of a kind of verifier: choose another")
        self.layers = tuple(layers)
        """The blocks whose hidden states named rules read"""

    def close(self) -> None:
        """Compile nothing more."""
        self._compilers.shutdown(wait=False, cancel_futures=True)

    def wishes(self, value: object) -> list[RequestedVerifier]:
        """What the field "rule" asks for: a name of the server's, KIND:CONTENT, {KIND: CONTENT}, or a list of these."""
        return [self._wish(one) for one in (value if isinstance(value, list) else [value])]

    def _wish(self, value: object) -> RequestedVerifier:
        names = ", ".join(self._named) or "the server has none"
        hint = f"give {{KIND: CONTENT}} with a kind of {', '.join(_OF_TEXTS)}, or a name of the server's ({names})"
        if isinstance(value, str) and value in self._named:
            kind, _, content = self._named[value].partition(":")
            return RequestedVerifier("rule", kind, content, value)
        if isinstance(value, str) and ":" in value:
            kind, content = value.split(":", 1)
            value = {kind: content}
        if not isinstance(value, dict) or len(value) != 1:
            raise InputError("rule", value, hint)
        [(kind, content)] = value.items()
        if kind in KINDS and kind not in _OF_TEXTS:
            hint = f"{kind} reads a file of the server's: only the server's own rules do ({names})"
            raise InputError("rule", value, hint)
        if kind not in _OF_TEXTS:
            raise InputError("rule", value, hint)
        if not isinstance(content, str):
            content = json.dumps(content)
        if not content:
            raise InputError("rule", value, "its content is empty")
        return RequestedVerifier("rule", kind, content)

    def judging(
        self, wishes: Sequence[RequestedVerifier], sampler: Sampler[Any], stop: Sequence[str]
    ) -> Future[RequestVerifiers]:
        """What will judge texts up to the strings `stop` by all of `wishes`, for samples of `sampler`.

        The result raises `InputError` for a wish that cannot be built. Raises `Refused` where too many are being made.
        """
        if not wishes:
            nothing = Future[RequestVerifiers]()
            nothing.set_result(RequestVerifiers(None, ()))
            return nothing
        uses = sampler.uses == "verdicts", sampler.uses in ("nothing", "ranks")
        key = tuple(wishes), uses, tuple(stop)
        with self._lock:
            # Samples under equal terms share what is known only where these hold the same verifier.
            first = key not in self._kept
            if first:
                if self._unfinished >= self._most:
                    message = f"{self._most} rules are compiled or wait for it: try again later"
                    raise Refused(429, message, code="rate_limit_exceeded")
                self._kept[key] = self._compilers.submit(self._judging, *key)
                self._unfinished += 1
            judging = self._kept[key]
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        if first:
            judging.add_done_callback(partial(self._made, key))
        return judging

    def _made(self, key: object, judging: Future[RequestVerifiers]) -> None:
        """Count one less that is being made, and forget one that failed."""
        failed = judging.cancelled() or judging.exception() is not None
        with self._lock:
            self._unfinished -= 1
            if failed and self._kept.get(key) is judging:
                del self._kept[key]

    def _judging(
        self, wishes: tuple[RequestedVerifier, ...], uses: tuple[bool, bool], stop: tuple[str, ...]
    ) -> RequestVerifiers:
        built = [one for wish in wishes for one in self._built(wish, uses, stop)]
        return RequestVerifiers(combine_verifiers(built), tuple(built))

    def _built(self, wish: RequestedVerifier, uses: tuple[bool, bool], stop: Sequence[str]) -> list[Built]:
        verdicts, ranks = uses
        try:
            if wish.name is not None:
                loaded = self._of_name(wish.name, verdicts)
                return [one.for_sampler(verdicts=verdicts, ranks=ranks, stop=stop) for one in loaded]
            verifier = _OF_TEXTS[wish.kind](wish.content, self._model.tokenization, memory=_MASKS)
        except InputError as error:
            raise InputError(wish.field, error.value, error.hint) from error
        verifier = (verifier.up_to(stop) if stop else verifier).prepared()
        return [Built(KINDS[wish.kind], verifier, None, None, ())]

    def _of_name(self, name: str, verdicts: bool) -> list[Loaded]:
        with self._loading:
            if (name, verdicts) not in self._loaded:
                rule = replace(self._options, verifier=(self._named[name],))
                self._loaded[name, verdicts] = rule.load(self._model.tokenization, verdicts=verdicts)
            return self._loaded[name, verdicts]
