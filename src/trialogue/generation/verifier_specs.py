"""Verifiers as the command line names them: `regex:…`, `json-schema:FILE`, `lark:FILE`, `python:FILE.py:function`,
`probe:FILE[@THRESHOLD]`.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from trialogue.errors import InputError
from trialogue.inference.verifiers import (
    GrammarVerifier,
    ProbeVerifier,
    TextVerifier,
    Threshold,
    python_verifier,
)
from trialogue.models.pretrained import PretrainedOracle
from trialogue.oracles import Verifier

Scope = Literal["completion", "sequence"]
Reads = Literal["text", "tokens"]
FORMS = "regex:PATTERN, json-schema:FILE, lark:FILE, python:FILE.py:FUNCTION or probe:FILE[@THRESHOLD]"


@dataclass(frozen=True)
class VerifierSpec:
    """The verifiers that `specs` name: what is accepted, all of them accept.

    The other fields concern functions: `scope` says whether one is given the completion or prompt and completion,
    `reads` whether that is text or a tuple of token ids, `whole` that it judges complete sequences only, and
    `timeout` is the longest that one answer may take, in seconds (None: as long as it likes).
    """

    specs: tuple[str, ...] = ()
    scope: Scope = "completion"
    reads: Reads = "text"
    whole: bool = False
    timeout: float | None = 10.0

    def __post_init__(self) -> None:
        for field, choices in (("scope", get_args(Scope)), ("reads", get_args(Reads))):
            if getattr(self, field) not in choices:
                raise InputError(f"verifier_{field}", getattr(self, field), f"use {' or '.join(choices)}")
        if self.timeout is not None and not self.timeout > 0:
            raise InputError("verifier_timeout", self.timeout, "use a positive number of seconds")
        for spec in self.specs:
            kind, content = _split(spec)
            if kind != "regex" and not _is_inline(content):
                _read(spec, _file(kind, content))

    def sampling(self) -> dict[str, Any]:
        """What decides verdicts, as JSON values: the specs, the sha256 of their files, and what functions are given."""
        files = {}
        for spec in self.specs:
            kind, content = _split(spec)
            if kind != "regex" and not _is_inline(content):
                path = _file(kind, content)
                files[f"content of {path}"] = hashlib.sha256(_read(spec, path)).hexdigest()
        functions = {"verifier_scope": self.scope, "verifier_reads": self.reads, "verifier_whole": self.whole}
        return {"verifier": list(self.specs), **files, **functions}

    def build(
        self, oracle: PretrainedOracle, *, verdicts: bool, stop: Sequence[str] = ()
    ) -> list[tuple[str, Verifier]]:
        """Kind ("regex", ...) and verifier of each spec, for `oracle`; with `verdicts` a probe says 0 or 1.

        Verifiers of text judge what comes before the first of the strings `stop`. Raises `InputError` for what does not
        compile, load, or fit the model.
        """
        parts = [(_split(spec)[0], self._part(spec, oracle, verdicts)) for spec in self.specs]
        return [
            (kind, part.up_to(stop) if stop and isinstance(part, GrammarVerifier | TextVerifier) else part)
            for kind, part in parts
        ]

    def _part(self, spec: str, oracle: PretrainedOracle, verdicts: bool) -> Verifier:
        kind, content = _split(spec)
        tokenization = oracle.tokenization
        if kind == "regex":
            return GrammarVerifier.regex(content, tokenization)
        path = _file(kind, content)
        if kind == "lark":
            return GrammarVerifier.lark(_text(spec, path), tokenization)
        if kind == "json-schema":
            return GrammarVerifier.json_schema(_schema(spec, content), tokenization)
        if kind == "python":
            return python_verifier(
                path,
                content.rpartition(":")[2],
                scope=self.scope,
                whole=self.whole,
                timeout=self.timeout,
                tokenization=tokenization if self.reads == "text" else None,
            )
        return _probe(path, _threshold(content), oracle, verdicts)


def _split(spec: str) -> tuple[str, str]:
    kind, colon, content = spec.partition(":")
    if not colon or kind not in ("regex", "json-schema", "lark", "python", "probe"):
        raise InputError("verifier", spec, f"write it as {FORMS}")
    if kind == "python" and not all(content.rpartition(":")):
        raise InputError("verifier", spec, "write it as python:FILE.py:FUNCTION")
    return kind, content


def _is_inline(content: str) -> bool:
    """Whether a schema is given itself, and not the name of its file."""
    return content.lstrip().startswith("{")


def _file(kind: str, content: str) -> Path:
    if kind == "python":
        return Path(content.rpartition(":")[0])
    if kind == "probe" and _threshold(content) is not None:
        return Path(content.rpartition("@")[0])
    return Path(content)


def _threshold(content: str) -> float | None:
    """The number behind the last @, if it is one: a file's name may hold an @ as well."""
    try:
        return float(content.rpartition("@")[2]) if "@" in content else None
    except ValueError:
        return None


def _read(spec: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            "verifier", spec, f"the file {path} cannot be read: {error.strerror or error}"
        ) from None


def _text(spec: str, path: Path) -> str:
    try:
        return _read(spec, path).decode()
    except UnicodeDecodeError:
        raise InputError("verifier", spec, f"the file {path} is not UTF-8 text") from None


def _schema(spec: str, content: str) -> dict[str, Any] | bool:
    try:
        schema = json.loads(content if _is_inline(content) else _text(spec, Path(content)))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("verifier", spec, f"the schema is not JSON: {error}") from None
    if not isinstance(schema, dict | bool):
        raise InputError("verifier", spec, "a schema is a JSON object, true or false")
    return schema


def _probe(path: Path, threshold: float | None, oracle: PretrainedOracle, verdicts: bool) -> Verifier:
    from trialogue.training.probe_files import load_probe

    saved = load_probe(path)
    saved.check(oracle)
    values = ProbeVerifier(saved.probe, saved.layer)
    if threshold is None and not verdicts:
        return values
    return Threshold(values, saved.threshold if threshold is None else threshold)
