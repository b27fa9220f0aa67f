"""Kinds of verifiers by name, and how each is built from what is written behind the colon.

What is known of a kind without building one imports neither torch nor a verifier: `--help` waits for neither.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from trialogue.errors import InputError
from trialogue.generation.json_verifiers import Whitespace, json_schema, pydantic_model, tools
from trialogue.generation.verifier_contents import (
    file_of_function,
    file_of_probe,
    file_unless_inline,
    text_of,
    threshold_of,
)
from trialogue.registry import Registry

if TYPE_CHECKING:
    from trialogue.models.opening import TextModel
    from trialogue.models.tokenization import Tokenization
    from trialogue.oracles import Verifier


class Options(Protocol):
    """What a user says of functions and of JSON: see `trialogue.generation.verifier_specs.Rule`."""

    @property
    def verifier_scope(self) -> Any:
        """What a function is given."""
        ...

    @property
    def verifier_reads(self) -> str:
        """As text or as token ids."""
        ...

    @property
    def verifier_whole(self) -> bool:
        """Whether it judges complete texts only."""
        ...

    @property
    def verifier_timeout(self) -> float:
        """Seconds that an answer may take, 0 for as many as it likes."""
        ...

    @property
    def json_whitespace(self) -> Whitespace:
        """White space between the tokens of JSON."""
        ...


class Wanted(NamedTuple):
    """A verifier to be built: its `spec`, what that says behind the colon, and what it is built for.

    With `verdicts` the sampler asks for 0 or 1. What has to be asked of the model itself is put among `fits`: functions
    that are called once it is there, and raise `InputError` where it is another than the verifier is for.
    """

    spec: str
    content: str
    rule: Options
    tokenization: "Tokenization"
    verdicts: bool
    fits: list[Callable[["TextModel"], None]]


@dataclass(frozen=True)
class VerifierKind:
    """A kind of verifier.

    `form` shows what it is given, `said` explains that in a line. `path` is the file that a content names, if it names
    one; both it and `build` raise `ValueError` for a content of another form. A kind that does not judge prompts has
    nothing to say about a prompt without a completion. Values of a `graded` kind are degrees, which records show. One
    that `is_function` is what the options on functions are for, one that `is_json` what that on white space is for.
    """

    form: str
    said: str
    build: Callable[[Wanted], "Verifier"]
    path: Callable[[str], Path | None] = Path
    judges_prompts: bool = True
    graded: bool = False
    is_function: bool = False
    is_json: bool = False


def _regex(wanted: Wanted) -> "Verifier":
    from trialogue.verifiers import GrammarVerifier

    return GrammarVerifier.regex(wanted.content, wanted.tokenization)


def _lark(wanted: Wanted) -> "Verifier":
    from trialogue.verifiers import GrammarVerifier

    text = text_of(wanted.spec, Path(wanted.content))
    try:
        return GrammarVerifier.lark(text, wanted.tokenization)
    except InputError as error:
        raise InputError("verifier", wanted.spec, error.hint) from error


def _pydantic(wanted: Wanted) -> "Verifier":
    rule = wanted.rule
    timeout = rule.verifier_timeout or None
    return pydantic_model(wanted.content, wanted.tokenization, rule.json_whitespace, timeout)


def _python(wanted: Wanted) -> "Verifier":
    from trialogue.verifiers import python_verifier

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
    from trialogue.training.probe_files import load_probe
    from trialogue.verifiers import ProbeVerifier

    saved, threshold = load_probe(file_of_probe(wanted.content)), threshold_of(wanted.content)
    wanted.fits.append(saved.check)
    return Graded(
        ProbeVerifier(saved.probe, saved.layer),
        saved.threshold if threshold is None else threshold,
        written=threshold is not None,
    )


KINDS: Registry[VerifierKind] = Registry(
    "trialogue.verifiers",
    "kind of verifier",
    {
        "regex": VerifierKind(
            "PATTERN", "texts that the regular expression matches", _regex, path=lambda _: None
        ),
        "json-schema": VerifierKind(
            "FILE",
            "JSON that the schema in a file allows; the schema itself may stand there",
            lambda wanted: json_schema(
                wanted.spec, wanted.content, wanted.tokenization, wanted.rule.json_whitespace
            ),
            path=file_unless_inline,
            is_json=True,
        ),
        "pydantic": VerifierKind(
            "FILE.py:CLASS",
            "JSON that the pydantic model allows",
            _pydantic,
            path=file_of_function,
            is_json=True,
        ),
        "tools": VerifierKind(
            "FILE",
            "a call of one of the tools whose definitions a file lists, as the model's chat template writes it",
            lambda wanted: tools(
                wanted.spec, wanted.content, wanted.tokenization, wanted.rule.json_whitespace
            ),
            path=file_unless_inline,
            is_json=True,
        ),
        "lark": VerifierKind("FILE", "texts of the Lark grammar in a file", _lark),
        "python": VerifierKind(
            "FILE.py:FUNCTION",
            "what a function answers: whether it accepts, or a value",
            _python,
            path=file_of_function,
            graded=True,
            is_function=True,
        ),
        "probe": VerifierKind(
            "FILE[@THRESHOLD]",
            "what a trained probe reads off the hidden states: accepted is what reaches its threshold, or the one "
            "written. Samplers that rank go by the values themselves, samplers that weigh by them too unless a "
            "threshold is "
            "written",
            _probe,
            path=file_of_probe,
            # It judges the token that was appended last.
            judges_prompts=False,
            graded=True,
        ),
    },
    of=VerifierKind,
)
"""Every kind of verifier by its name; a package adds one by an entry point, whose value is its `VerifierKind`."""
