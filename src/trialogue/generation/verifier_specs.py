"""Verifiers as the command line names them: a kind of `KINDS`, a colon, and what the kind is given.

What is known of a kind without building one imports neither torch nor a verifier: `--help` waits for neither.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

from tyro.conf import arg

from trialogue.errors import InputError, non_negative_number, one_of
from trialogue.generation.json_verifiers import Whitespace, json_schema, pydantic_model, tools
from trialogue.generation.verifier_contents import (
    content_of,
    file_of_function,
    file_of_probe,
    file_unless_inline,
    text_of,
    threshold_of,
)
from trialogue.registry import Registry

if TYPE_CHECKING:
    from trialogue.generation.values import Graded
    from trialogue.models.opening import TextModel
    from trialogue.models.tokenization import Tokenization
    from trialogue.oracles import Verifier

Scope = Literal["completion", "sequence"]
Reads = Literal["text", "tokens"]


@dataclass(frozen=True)
class Rule:
    """What is accepted: what every one of the verifiers accepts."""

    verifier: Annotated[tuple[str, ...], arg(metavar="SPEC")] = ()
    """What accepts a text, a KIND:CONTENT of those below; may come again, and then all must accept."""
    verifier_scope: Scope = "completion"
    """What a function is given: the completion, or prompt and completion."""
    verifier_reads: Reads = "text"
    """As text or as token ids."""
    verifier_whole: bool = False
    """A function judges complete texts only, prefixes are accepted."""
    verifier_timeout: Annotated[float, arg(metavar="SECONDS")] = 10.0
    """The longest that one answer of a function or a model's validators may take; 0: as long as it likes."""
    json_whitespace: Whitespace = "compact"
    """White space between the tokens of JSON: none, or wherever JSON allows it."""

    def __post_init__(self) -> None:
        for field, choices in (
            ("verifier_scope", get_args(Scope)),
            ("verifier_reads", get_args(Reads)),
            ("json_whitespace", get_args(Whitespace)),
        ):
            one_of(field, getattr(self, field), choices, f"use {' or '.join(choices)}")
        mend = "use a positive number of seconds, or 0 for as long as it likes"
        non_negative_number("verifier_timeout", self.verifier_timeout, mend)
        kinds = [_split(spec)[0] for spec in self.verifier]
        functions = any(kind.is_function for kind in kinds), "functions, and no verifier is one"
        json = any(kind.is_json for kind in kinds), "JSON, and no verifier is one of that"
        for field, default, (there, what) in (
            ("verifier_scope", "completion", functions),
            ("verifier_reads", "text", functions),
            ("verifier_whole", False, functions),
            ("json_whitespace", "compact", json),
        ):
            if getattr(self, field) != default and not there:
                raise InputError(field, getattr(self, field), f"leave it out: it is for {what}")
        for spec in self.verifier:
            path = _path(spec)
            if path is not None:
                content_of(spec, path)

    @property
    def _writes_json(self) -> bool:
        return any(_split(spec)[0].is_json for spec in self.verifier)

    def identity(self) -> dict[str, Any]:
        """What decides verdicts, as JSON values: the specs, the sha256 of their files, and what functions are given."""
        files = {}
        for spec in self.verifier:
            path = _path(spec)
            if path is not None:
                files[f"content of {path}"] = hashlib.sha256(content_of(spec, path)).hexdigest()
        functions = {
            name: getattr(self, name) for name in ("verifier_scope", "verifier_reads", "verifier_whole")
        }
        spaces = {"json_whitespace": self.json_whitespace} if self._writes_json else {}
        return {"verifier": list(self.verifier), **files, **functions, **spaces}

    def build(
        self, tokenization: "Tokenization", *, verdicts: bool, ranks: bool = False, stop: Sequence[str] = ()
    ) -> list["Built"]:
        """The verifier of each spec, for models of a `tokenization`; with `verdicts` probabilities are cut to 0 or 1.

        Where a walk only `ranks` by values, they are what they are; a threshold decides about the one that is chosen.

        Verifiers of text judge what comes before the first of the strings `stop`. Raises `InputError` for what does not
        compile or load; whether it fits the model is what `Built.require_fit` asks once that is there.
        """
        from trialogue.generation.values import Graded
        from trialogue.inference.verifiers import Threshold, as_verifier

        built = []
        for spec in self.verifier:
            kind, content = _split(spec)
            wanted = Wanted(spec, content, self, tokenization, verdicts, [])
            verifier = as_verifier(kind.build(wanted))
            if stop:
                verifier = verifier.up_to(stop)
            graded = verifier if isinstance(verifier, Graded) else Graded(verifier) if kind.graded else None
            threshold = None if graded is None else graded.threshold
            if graded is None or threshold is None:
                judge, cut = graded or verifier, None
            elif verdicts or (graded.written and not ranks):
                judge, cut = Threshold(graded, threshold), None
            else:
                judge, cut = graded, threshold if ranks else None
            built.append(Built(kind, judge, graded, cut, tuple(wanted.fits)))
        return built


class Wanted(NamedTuple):
    """A verifier to be built: its `spec`, what that says behind the colon, and what it is built for.

    With `verdicts` the walk asks for 0 or 1. What has to be asked of the model itself is put among `fits`: functions
    that are called once it is there, and raise `InputError` where it is another than the verifier is for.
    """

    spec: str
    content: str
    rule: Rule
    tokenization: "Tokenization"
    verdicts: bool
    fits: list[Callable[["TextModel"], None]]


class Built(NamedTuple):
    """A verifier as a walk is given it; `graded` remembers its values, which `threshold` cuts in the end."""

    kind: "Kind"
    verifier: "Verifier"
    graded: "Graded | None"
    threshold: float | None
    fits: tuple[Callable[["TextModel"], None], ...]

    def require_fit(self, oracle: "TextModel") -> None:
        """Raise `InputError` where the verifier is for another model than `oracle`."""
        for fit in self.fits:
            fit(oracle)


@dataclass(frozen=True)
class Kind:
    """A kind of verifier.

    `form` shows what it is given, `said` explains that in a line. `path` is the file that a content names, if it names
    one, and raises `ValueError` for a content of another form. A kind that does not judge prompts has nothing to say
    about a prompt without a completion. Values of a `graded` kind are degrees, which records show.
    One that `is_function` is what the options on functions are for, one that `is_json` what that on white space is for.
    """

    form: str
    said: str
    build: Callable[[Wanted], "Verifier"]
    path: Callable[[str], Path | None] = Path
    judges_prompts: bool = True
    graded: bool = False
    is_function: bool = False
    is_json: bool = False


def _split(spec: str) -> tuple[Kind, str]:
    name, colon, content = spec.partition(":")
    if not colon or name not in KINDS:
        *others, last = (f"{name}:{kind.form}" for name, kind in KINDS.loadable())
        raise InputError("verifier", spec, f"write it as {', '.join(others)} or {last}")
    if not content:
        mend = f"nothing stands behind the colon: write it as {name}:{KINDS[name].form}"
        raise InputError("verifier", spec, mend)
    return KINDS[name], content


def _path(spec: str) -> Path | None:
    kind, content = _split(spec)
    try:
        return kind.path(content)
    except InputError:
        raise
    except ValueError:
        raise InputError("verifier", spec, f"write it as {spec.partition(':')[0]}:{kind.form}") from None


def _regex(wanted: Wanted) -> "Verifier":
    from trialogue.inference.verifiers import GrammarVerifier

    return GrammarVerifier.regex(wanted.content, wanted.tokenization)


def _lark(wanted: Wanted) -> "Verifier":
    from trialogue.inference.verifiers import GrammarVerifier

    text = text_of(wanted.spec, Path(wanted.content))
    try:
        return GrammarVerifier.lark(text, wanted.tokenization)
    except InputError as error:
        raise InputError("verifier", wanted.spec, error.mend) from error


def _pydantic(wanted: Wanted) -> "Verifier":
    rule = wanted.rule
    timeout = rule.verifier_timeout or None
    return pydantic_model(wanted.content, wanted.tokenization, rule.json_whitespace, timeout)


def _python(wanted: Wanted) -> "Verifier":
    from trialogue.inference.verifiers import python_verifier

    rule = wanted.rule
    return python_verifier(
        file_of_function(wanted.content),
        wanted.content.rpartition(":")[2],
        scope=rule.verifier_scope,
        whole=rule.verifier_whole,
        timeout=rule.verifier_timeout or None,
        tokenization=wanted.tokenization if rule.verifier_reads == "text" else None,
    )


def _probe(wanted: Wanted) -> "Verifier":
    from trialogue.generation.values import Graded
    from trialogue.inference.verifiers import ProbeVerifier
    from trialogue.training.probe_files import load_probe

    saved, threshold = load_probe(file_of_probe(wanted.content)), threshold_of(wanted.content)
    wanted.fits.append(saved.check)
    return Graded(
        ProbeVerifier(saved.probe, saved.layer),
        saved.threshold if threshold is None else threshold,
        written=threshold is not None,
    )


KINDS: Registry[Kind] = Registry(
    "trialogue.verifiers",
    "kind of verifier",
    {
        "regex": Kind("PATTERN", "texts that the regular expression matches", _regex, path=lambda _: None),
        "json-schema": Kind(
            "FILE",
            "JSON that the schema in a file allows; the schema itself may stand there",
            lambda wanted: json_schema(
                wanted.spec, wanted.content, wanted.tokenization, wanted.rule.json_whitespace
            ),
            path=file_unless_inline,
            is_json=True,
        ),
        "pydantic": Kind(
            "FILE.py:CLASS",
            "JSON that the pydantic model allows",
            _pydantic,
            path=file_of_function,
            is_json=True,
        ),
        "tools": Kind(
            "FILE",
            "a call of one of the tools whose definitions a file lists, as the model's chat template writes it",
            lambda wanted: tools(
                wanted.spec, wanted.content, wanted.tokenization, wanted.rule.json_whitespace
            ),
            path=file_unless_inline,
            is_json=True,
        ),
        "lark": Kind("FILE", "texts of the Lark grammar in a file", _lark),
        "python": Kind(
            "FILE.py:FUNCTION",
            "what a function answers: whether it accepts, or a value",
            _python,
            path=file_of_function,
            graded=True,
            is_function=True,
        ),
        "probe": Kind(
            "FILE[@THRESHOLD]",
            "what a trained probe reads off the hidden states: accepted is what reaches its threshold, or the one "
            "written. Walks that rank go by the values themselves, walks that weigh by them too unless a threshold is "
            "written",
            _probe,
            path=file_of_probe,
            # It judges the token that was appended last.
            judges_prompts=False,
            graded=True,
        ),
    },
)
"""Every kind of verifier by its name; a package adds one by an entry point, whose value is its `Kind`."""
