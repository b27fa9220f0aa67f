"""Kinds of verifiers (regular expressions, grammars, functions, ...) and how each is built from text.

This module imports neither torch nor a verifier, so that `--help` is fast.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from tyro.conf import arg

from trialogue.errors import InputError
from trialogue.generation.verifiers.contents import (
    is_inline,
    parse_function_path,
    parse_json_path,
    parse_probe_path,
    parse_threshold,
    read_text,
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


class VerifierRequest(NamedTuple):
    """Arguments of a function that builds a verifier from text.

    Attributes:
        spec: The complete spec KIND:CONTENT, for example "regex:[0-9]+".
        content: The part after the colon.
        rule: Options that apply to every verifier.
        tokenization: Tokenization of the model.
        verdicts: Whether the sampler needs verdicts, which are values of 0 or 1.
        model_checks: List to which the function can append checks. A check is called with the loaded model and raises
            `InputError` if the verifier was made for another model.
    """

    spec: str
    content: str
    rule: "VerifierOptions"
    tokenization: "Tokenization"
    verdicts: bool
    model_checks: list[Callable[["TextModel"], None]]


@dataclass(frozen=True)
class VerifierKind:
    """A kind of verifier, for example regular expressions.

    A verifier is specified by a text KIND:CONTENT, for example "regex:[0-9]+".

    Args:
        form: Form of the content in help texts, for example "FILE". Empty for a kind without content.
        description: One-line description for the help.
        build: Function that builds the verifier. It raises `ValueError` if the content has another form.
        path: Function that returns the path of the file that the content names, or None. It raises
            `ValueError` if the content has another form.
        judges_prompts: Whether the verifier can evaluate a prompt without a completion.
        graded: Whether values can differ from 0 and 1. Output records then contain the values.
        is_function: Whether the options on Python functions apply, for example `verifier_scope`.
        is_json: Whether the option `json_whitespace` applies.
        has_mask: Whether the verifier can compute the set of all accepted next tokens. Masked decoding is
            then the default sampler.
    """

    form: str
    description: str
    build: Callable[[VerifierRequest], "Verifier"]
    path: Callable[[str], Path | None] = Path
    judges_prompts: bool = True
    graded: bool = False
    is_function: bool = False
    is_json: bool = False
    has_mask: bool = False

    def spec_form(self, name: str) -> str:
        """Return the form in which users write specs of this kind, for example "json-schema:FILE".

        Args:
            name: Name under which this kind is registered.
        """
        return f"{name}:{self.form}" if self.form else name


def _regex(request: VerifierRequest) -> "Verifier":
    from trialogue.verifiers import GrammarVerifier

    return GrammarVerifier.regex(request.content, request.tokenization)


def _choice(request: VerifierRequest) -> "Verifier":
    from trialogue.verifiers import GrammarVerifier

    return GrammarVerifier.choice(request.content, request.tokenization)


def _lark(request: VerifierRequest) -> "Verifier":
    from trialogue.verifiers import GrammarVerifier

    text = read_text(request.spec, Path(request.content))
    try:
        return GrammarVerifier.lark(text, request.tokenization)
    except InputError as error:
        raise InputError("verifier", request.spec, error.hint) from error


def _json_schema(request: VerifierRequest) -> "Verifier":
    from trialogue.verifiers import GrammarVerifier

    whitespace = request.rule.json_whitespace
    return GrammarVerifier.json_schema(_json(request), request.tokenization, whitespace=whitespace)


def _tools(request: VerifierRequest) -> "Verifier":
    from trialogue.verifiers import GrammarVerifier

    return GrammarVerifier.tools(
        _json(request), request.tokenization, whitespace=request.rule.json_whitespace
    )


def _json(request: VerifierRequest) -> Any:
    content = request.content
    text = content if is_inline(content) else read_text(request.spec, Path(content))
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("verifier", request.spec, f"it is not JSON: {error}") from None


def _pydantic(request: VerifierRequest) -> "Verifier":
    from trialogue.verifiers import pydantic_verifier

    return pydantic_verifier(
        parse_function_path(request.content),
        request.content.rpartition(":")[2],
        request.tokenization,
        whitespace=request.rule.json_whitespace,
        timeout=request.rule.verifier_timeout or None,
    )


def _python(request: VerifierRequest) -> "Verifier":
    from trialogue.verifiers import python_verifier

    rule = request.rule
    return python_verifier(
        parse_function_path(request.content),
        request.content.rpartition(":")[2],
        scope=rule.verifier_scope,
        whole=rule.verifier_whole,
        timeout=rule.verifier_timeout or None,
        tokenization=request.tokenization if rule.verifier_reads == "text" else None,
    )


def _probe(request: VerifierRequest) -> "Verifier":
    from trialogue.generation.verifiers.graded import CachedGradedVerifier
    from trialogue.training.probes.probe_files import load_probe
    from trialogue.verifiers import ProbeVerifier

    saved, threshold = load_probe(parse_probe_path(request.content)), parse_threshold(request.content)
    request.model_checks.append(saved.check)
    return CachedGradedVerifier(
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
            "JSON that is valid under the schema in a file; the schema itself may be given instead",
            _json_schema,
            path=parse_json_path,
            is_json=True,
            has_mask=True,
        ),
        "pydantic": VerifierKind(
            "FILE.py:CLASS",
            "JSON that the pydantic model allows",
            _pydantic,
            path=parse_function_path,
            is_json=True,
            has_mask=True,
        ),
        "tools": VerifierKind(
            "FILE",
            "a call of one of the tools defined in a file, in the format of the model's chat template",
            _tools,
            path=parse_json_path,
            is_json=True,
            has_mask=True,
        ),
        "lark": VerifierKind("FILE", "texts of the Lark grammar in a file", _lark, has_mask=True),
        "python": VerifierKind(
            "FILE.py:FUNCTION",
            "texts that a function accepts, or values that it returns",
            _python,
            path=parse_function_path,
            graded=True,
            is_function=True,
        ),
        "probe": VerifierKind(
            "FILE[@THRESHOLD]",
            "texts whose value, predicted by a trained probe from the hidden states, reaches THRESHOLD (default: the "
            "threshold stored with the probe). Ranking samplers use the values themselves, and so do weighting "
            "samplers if THRESHOLD is left out",
            _probe,
            path=parse_probe_path,
            # The probe evaluates the last token of the completion.
            judges_prompts=False,
            graded=True,
        ),
    },
    of=VerifierKind,
)
"""Kinds of verifiers by name. A package adds one by an entry point whose value is a `VerifierKind`."""
