"""Verifiers as the command line names them: a kind of `KINDS`, a colon, and what the kind is given."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from trialogue.errors import InputError, one_of, positive_number
from trialogue.generation.values import Graded
from trialogue.inference.verifiers import (
    GrammarVerifier,
    ProbeVerifier,
    Threshold,
    python_verifier,
)
from trialogue.inference.verifiers.stop_strings import JudgesText
from trialogue.models.pretrained import PretrainedOracle
from trialogue.oracles import Verifier

Scope = Literal["completion", "sequence"]
Reads = Literal["text", "tokens"]


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
            one_of(f"verifier_{field}", getattr(self, field), choices, f"use {' or '.join(choices)}")
        if self.timeout is not None:
            mend = "use a positive number of seconds, or 0 for as long as it likes"
            positive_number("verifier_timeout", self.timeout, mend)
        if not any(_split(spec)[0].is_function for spec in self.specs):
            for field, default in (("scope", "completion"), ("reads", "text"), ("whole", False)):
                if getattr(self, field) != default:
                    mend = "leave it out: it is for functions, and no verifier is one"
                    raise InputError(f"verifier_{field}", getattr(self, field), mend)
        for spec in self.specs:
            path = _path(spec)
            if path is not None:
                _read(spec, path)

    def sampling(self) -> dict[str, Any]:
        """What decides verdicts, as JSON values: the specs, the sha256 of their files, and what functions are given."""
        files = {}
        for spec in self.specs:
            path = _path(spec)
            if path is not None:
                files[f"content of {path}"] = hashlib.sha256(_read(spec, path)).hexdigest()
        functions = {"verifier_scope": self.scope, "verifier_reads": self.reads, "verifier_whole": self.whole}
        return {"verifier": list(self.specs), **files, **functions}

    def build(
        self, oracle: PretrainedOracle, *, verdicts: bool, ranks: bool = False, stop: Sequence[str] = ()
    ) -> list["Built"]:
        """The verifier of each spec, for `oracle`; with `verdicts` those that give probabilities say 0 or 1.

        Where a walk only `ranks` by values, they are what they are; a threshold decides about the one that is chosen.

        Verifiers of text judge what comes before the first of the strings `stop`. Raises `InputError` for what does not
        compile, load, or fit the model.
        """
        parts = []
        for spec in self.specs:
            kind, content = _split(spec)
            part = kind.build(Wanted(spec, content, self, oracle, verdicts))
            if stop and isinstance(part, JudgesText):
                part = part.up_to(stop)
            graded = part if isinstance(part, Graded) else Graded(part) if kind.graded else None
            threshold = None if graded is None else graded.threshold
            if graded is None or threshold is None:
                parts.append(Built(kind, graded or part, graded, None))
            elif verdicts or (graded.written and not ranks):
                parts.append(Built(kind, Threshold(graded, threshold), graded, None))
            else:
                parts.append(Built(kind, graded, graded, threshold if ranks else None))
        return parts


class Wanted(NamedTuple):
    """A verifier to be built: its `spec`, what that says behind the colon, and what it is built for.

    With `verdicts` the walk asks for 0 or 1.
    """

    spec: str
    content: str
    settings: VerifierSpec
    oracle: PretrainedOracle
    verdicts: bool


class Built(NamedTuple):
    """A verifier as a walk is given it; `graded` remembers its values, which `threshold` cuts in the end."""

    kind: "Kind"
    verifier: Verifier
    graded: Graded | None
    threshold: float | None


@dataclass(frozen=True)
class Kind:
    """A kind of verifier.

    `form` shows what it is given, `said` explains that in a line. `path` is the file that a content names, if it names
    one, and raises `ValueError` for a content of another form. A kind that does not judge prompts has nothing to say
    about a prompt without a completion. Values of a `graded` kind are degrees, which records show.
    One that `is_function` is what the options on functions are for.
    """

    form: str
    said: str
    build: Callable[[Wanted], Verifier]
    path: Callable[[str], Path | None] = Path
    judges_prompts: bool = True
    graded: bool = False
    is_function: bool = False


def _split(spec: str) -> tuple[Kind, str]:
    name, colon, content = spec.partition(":")
    if not colon or name not in KINDS:
        *others, last = (f"{name}:{kind.form}" for name, kind in KINDS.items())
        raise InputError("verifier", spec, f"write it as {', '.join(others)} or {last}")
    return KINDS[name], content


def _path(spec: str) -> Path | None:
    kind, content = _split(spec)
    try:
        return kind.path(content)
    except ValueError:
        raise InputError("verifier", spec, f"write it as {spec.partition(':')[0]}:{kind.form}") from None


def _is_inline(content: str) -> bool:
    """Whether a schema is given itself, and not the name of its file."""
    return content.lstrip().startswith("{")


def _file_of_function(content: str) -> Path:
    file, _, function = content.rpartition(":")
    if not file or not function:
        raise ValueError
    return Path(file)


def _file_of_probe(content: str) -> Path:
    return Path(content if _threshold(content) is None else content.rpartition("@")[0])


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


def _regex(wanted: Wanted) -> Verifier:
    return GrammarVerifier.regex(wanted.content, wanted.oracle.tokenization)


def _lark(wanted: Wanted) -> Verifier:
    return GrammarVerifier.lark(_text(wanted.spec, Path(wanted.content)), wanted.oracle.tokenization)


def _json_schema(wanted: Wanted) -> Verifier:
    spec, content = wanted.spec, wanted.content
    try:
        schema = json.loads(content if _is_inline(content) else _text(spec, Path(content)))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("verifier", spec, f"the schema is not JSON: {error}") from None
    if not isinstance(schema, dict | bool):
        raise InputError("verifier", spec, "a schema is a JSON object, true or false")
    return GrammarVerifier.json_schema(schema, wanted.oracle.tokenization)


def _python(wanted: Wanted) -> Verifier:
    settings = wanted.settings
    return python_verifier(
        _file_of_function(wanted.content),
        wanted.content.rpartition(":")[2],
        scope=settings.scope,
        whole=settings.whole,
        timeout=settings.timeout,
        tokenization=wanted.oracle.tokenization if settings.reads == "text" else None,
    )


def _probe(wanted: Wanted) -> Verifier:
    from trialogue.training.probe_files import load_probe

    saved, threshold = load_probe(_file_of_probe(wanted.content)), _threshold(wanted.content)
    saved.check(wanted.oracle)
    written = threshold is not None
    return Graded(
        ProbeVerifier(saved.probe, saved.layer),
        saved.threshold if threshold is None else threshold,
        written=written,
    )


KINDS = {
    "regex": Kind("PATTERN", "texts that the regular expression matches", _regex, path=lambda _: None),
    "json-schema": Kind(
        "FILE",
        "JSON that the schema in a file allows; the schema itself may stand there",
        _json_schema,
        path=lambda content: None if _is_inline(content) else Path(content),
    ),
    "lark": Kind("FILE", "texts of the Lark grammar in a file", _lark),
    "python": Kind(
        "FILE.py:FUNCTION",
        "what a function answers: whether it accepts, or a value",
        _python,
        path=_file_of_function,
        graded=True,
        is_function=True,
    ),
    "probe": Kind(
        "FILE[@THRESHOLD]",
        "what a trained probe reads off the hidden states: accepted is what reaches its threshold, or the one written. "
        "Walks that rank go by the values themselves, walks that weigh by them too unless a threshold is written",
        _probe,
        path=_file_of_probe,
        # It judges the token that was appended last.
        judges_prompts=False,
        graded=True,
    ),
}
"""Every kind of verifier by its name."""
