"""Kinds of verifiers by name, and how each is built from the text after the colon.

Importing this module imports neither torch nor a verifier, so that `--help` is fast.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from tyro.conf import arg

from trialogue.errors import InputError
from trialogue.generation.verifiers.contents import (
    file_of_function,
    file_of_probe,
    file_unless_inline,
    is_inline,
    text_of,
    threshold_of,
)
from trialogue.registry import Registry
from trialogue.validation import NonNegative, validated

if TYPE_CHECKING:
    from trialogue.models.hub.opening import TextModel
    from trialogue.models.tokenization import Tokenization
    from trialogue.oracles import Verifier


@validated
@dataclass(frozen=True, kw_only=True)
class VerifierOptions:
    """Options that apply to every verifier of a run."""

    verifier_scope: Literal["completion", "sequence"] = "completion"
    """Pass functions the completion only, or the prompt and the completion."""
    verifier_reads: Literal["text", "tokens"] = "text"
    """Pass functions a text or a list of token ids."""
    verifier_whole: bool = False
    """Call functions on complete texts only, and accept every prefix."""
    verifier_timeout: Annotated[NonNegative, arg(metavar="SECONDS")] = 10.0
    """Stop a call of a function or of a pydantic validator after this many seconds. 0 means no limit."""
    on_error: Literal["raise", "reject"] = "raise"
    """If a verifier raises or takes too long, end the run (raise) or reject the text (reject). The output of a
    rejected sample names the error."""
    json_whitespace: Literal["compact", "flexible"] = "compact"
    """Allow no white space between the tokens of JSON (compact), or all that JSON allows (flexible)."""


class Wanted(NamedTuple):
    """A verifier to build: its `spec`, the text after the colon (`content`), and the options on verifiers (`rule`).

    With `verdicts` the sampler calls for 0 or 1. Functions added to `fits` are called once the model is loaded; they
    raise `InputError` if the verifier is for another model.
    """

    spec: str
    content: str
    rule: "VerifierOptions"
    tokenization: "Tokenization"
    verdicts: bool
    fits: list[Callable[["TextModel"], None]]


@dataclass(frozen=True)
class VerifierKind:
    """A kind of verifier.

    Args:
        form: The form of the content, as messages show it; empty for a kind without content.
        said: The explanation in the help, one line.
        build: Function that builds the verifier. It raises `ValueError` for a content of another form.
        path: Function from a content to the file that it names, or None. It raises `ValueError` like `build`.
        judges_prompts: Whether the verifier can judge a prompt without a completion.
        graded: Whether values are degrees, which records show.
        is_function: Whether the options on functions apply.
        is_json: Whether the option on white space applies.
        has_mask: Whether the verifier knows all accepted tokens at once. Masked decoding is then the default sampler.
    """

    form: str
    said: str
    build: Callable[[Wanted], "Verifier"]
    path: Callable[[str], Path | None] = Path
    judges_prompts: bool = True
    graded: bool = False
    is_function: bool = False
    is_json: bool = False
    has_mask: bool = False

    def written(self, name: str) -> str:
        """Return the form of a spec of this kind, which is registered as `name`."""
        return f"{name}:{self.form}" if self.form else name


def _regex(wanted: Wanted) -> "Verifier":
    from trialogue.verifiers import GrammarVerifier

    return GrammarVerifier.regex(wanted.content, wanted.tokenization)


def _choice(wanted: Wanted) -> "Verifier":
    from trialogue.verifiers import GrammarVerifier

    return GrammarVerifier.choice(wanted.content, wanted.tokenization)


def _lark(wanted: Wanted) -> "Verifier":
    from trialogue.verifiers import GrammarVerifier

    text = text_of(wanted.spec, Path(wanted.content))
    try:
        return GrammarVerifier.lark(text, wanted.tokenization)
    except InputError as error:
        raise InputError("verifier", wanted.spec, error.hint) from error


def _json_schema(wanted: Wanted) -> "Verifier":
    from trialogue.verifiers import GrammarVerifier

    whitespace = wanted.rule.json_whitespace
    return GrammarVerifier.json_schema(_json(wanted), wanted.tokenization, whitespace=whitespace)


def _tools(wanted: Wanted) -> "Verifier":
    from trialogue.verifiers import GrammarVerifier

    return GrammarVerifier.tools(_json(wanted), wanted.tokenization, whitespace=wanted.rule.json_whitespace)


def _json(wanted: Wanted) -> Any:
    content = wanted.content
    text = content if is_inline(content) else text_of(wanted.spec, Path(content))
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("verifier", wanted.spec, f"it is not JSON: {error}") from None


def _pydantic(wanted: Wanted) -> "Verifier":
    from trialogue.verifiers import pydantic_verifier

    return pydantic_verifier(
        file_of_function(wanted.content),
        wanted.content.rpartition(":")[2],
        wanted.tokenization,
        whitespace=wanted.rule.json_whitespace,
        timeout=wanted.rule.verifier_timeout or None,
    )


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
    from trialogue.generation.verifiers.graded import Graded
    from trialogue.training.probes.probe_files import load_probe
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
            "PATTERN",
            "texts that the regular expression matches",
            _regex,
            path=lambda _: None,
            has_mask=True,
        ),
        "choice": VerifierKind(
            '["TEXT", ...]', "one of the texts of a JSON list", _choice, path=lambda _: None, has_mask=True
        ),
        "json-schema": VerifierKind(
            "FILE",
            "JSON that the schema in a file allows; the schema itself may stand there",
            _json_schema,
            path=file_unless_inline,
            is_json=True,
            has_mask=True,
        ),
        "pydantic": VerifierKind(
            "FILE.py:CLASS",
            "JSON that the pydantic model allows",
            _pydantic,
            path=file_of_function,
            is_json=True,
            has_mask=True,
        ),
        "tools": VerifierKind(
            "FILE",
            "a call of one of the tools whose definitions a file lists, as the model's chat template writes it",
            _tools,
            path=file_unless_inline,
            is_json=True,
            has_mask=True,
        ),
        "lark": VerifierKind("FILE", "texts of the Lark grammar in a file", _lark, has_mask=True),
        "python": VerifierKind(
            "FILE.py:FUNCTION",
            "texts that a function accepts, or values that it returns",
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
