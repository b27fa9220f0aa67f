"""Verifiers given on the command line, as a separate option or as a specification KIND:CONTENT.

This module imports neither torch nor a verifier, so that `--help` is fast.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from tyro.conf import arg

from trialogue.errors import InputError
from trialogue.generation.prompts import Prompt, with_location
from trialogue.generation.verifiers.contents import read_bytes
from trialogue.generation.verifiers.kinds import KINDS, VerifierKind, VerifierOptions, VerifierRequest
from trialogue.validation import validated

if TYPE_CHECKING:
    from trialogue.generation.verifiers.graded import CachedGradedVerifier
    from trialogue.models.hub.opening import TextModel
    from trialogue.models.tokenization import Tokenization
    from trialogue.oracles import Verifier

Result = TypeVar("Result")

SHORTHANDS = {"json_schema": "json-schema", "regex": "regex", "grammar": "lark", "pydantic": "pydantic"}
"""Kinds of verifiers with a separate option, by the field of the option. `choice` is handled separately."""
_NO_OPTIONS: dict[str, Any] = dict.fromkeys((*SHORTHANDS, "choice"), ())


@validated
@dataclass(frozen=True)
class ConstraintSettings(VerifierOptions):
    """Constraints on the output. If several are given, a text must satisfy all of them."""

    json_schema: Annotated[tuple[str, ...], arg(metavar="FILE")] = ()
    """Accept JSON that is valid under the JSON schema in FILE. The schema itself may be given instead of FILE."""
    regex: Annotated[tuple[str, ...], arg(metavar="PATTERN")] = ()
    """Accept texts that match this regular expression from beginning to end."""
    choice: Annotated[tuple[str, ...], arg(metavar="TEXT")] = ()
    """Accept one of these texts, as in --choice A B C."""
    grammar: Annotated[tuple[str, ...], arg(metavar="FILE")] = ()
    """Accept texts of the Lark grammar in FILE."""
    pydantic: Annotated[tuple[str, ...], arg(metavar="FILE:CLASS")] = ()
    """Accept JSON that this pydantic model validates. The Python file is executed."""
    verifier: Annotated[tuple[str, ...], arg(metavar="SPEC")] = ()
    """Accept texts that this verifier accepts; the kinds of verifiers are listed below. Repeat the options of this
    group to combine verifiers."""

    def __post_init__(self) -> None:
        for spec in self.specs:
            _call_with_option(self, spec, partial(_read_file, spec))

    @property
    def specs(self) -> tuple[str, ...]:
        """Specs of all verifiers, in the form KIND:CONTENT.

        Options such as `regex` are converted to specs and come before those of the option `verifier`.
        """
        return (*self._options, *self.verifier)

    @property
    def _options(self) -> dict[str, tuple[str, object]]:
        """Name and value of the separate options, by the equivalent spec."""
        options: dict[str, tuple[str, object]] = {
            f"{kind}:{value}": (field, value)
            for field, kind in SHORTHANDS.items()
            for value in getattr(self, field)
        }
        if self.choice:
            options[f"choice:{json.dumps(self.choice)}"] = "choice", self.choice
        return options

    def require_used(self, others: Iterable[str] = ()) -> None:
        """Check that every option on verifiers applies to at least one verifier.

        Args:
            others: Specs KIND:CONTENT of verifiers that are given elsewhere, for example with a prompt.

        Raises:
            InputError: If an option differs from its default and applies to no verifier.
        """
        kinds = [_split(spec)[0] for spec in (*self.specs, *others)]
        functions = any(kind.is_function for kind in kinds), "functions"
        json = any(kind.is_json for kind in kinds), "JSON verifiers"
        for field, default, (is_used, applies_to) in (
            ("verifier_scope", "completion", functions),
            ("verifier_reads", "text", functions),
            ("verifier_whole", False, functions),
            ("json_whitespace", "compact", json),
        ):
            if getattr(self, field) != default and not is_used:
                hint = f"leave it out: it applies only to {applies_to}"
                raise InputError(field, getattr(self, field), hint)

    def find_json(self) -> int:
        """Return the index in `specs` of the only JSON verifier, for the option `confidence`.

        Raises:
            InputError: If there is not exactly one JSON verifier.
        """
        places = [place for place, spec in enumerate(self.specs) if _split(spec)[0].is_json]
        if len(places) != 1:
            hint = f"use it with one JSON verifier, such as --json-schema FILE; there are {len(places)}"
            raise InputError("confidence", True, hint)
        return places[0]

    def combined(self, prompt: Prompt) -> "ConstraintSettings":
        """Return these verifiers together with the additional verifiers of a prompt.

        Args:
            prompt: Prompt, whose field `rule` has specs KIND:CONTENT.

        Raises:
            InputError: If a spec is invalid.
        """
        return replace(self, verifier=(*self.verifier, *_resolve_specs(prompt))) if prompt.rule else self

    @property
    def _writes_json(self) -> bool:
        return any(_split(spec)[0].is_json for spec in self.specs)

    def identity(self, written: Sequence[str] = ()) -> dict[str, Any]:
        """Return the settings that determine which texts are accepted, for comparison with an earlier run.

        Args:
            written: The last specs as the user wrote them, with relative paths. In the result they replace the specs
                with resolved paths.

        Returns:
            The specs, the SHA-256 hashes of the files that they name, and the options on verifiers.
        """
        files: dict[str, str] = {}
        named = (*self.specs[: len(self.specs) - len(written)], *written)
        for spec, name in zip(self.specs, named, strict=True):
            path = _path(spec)
            if path is not None:
                content, key = hashlib.sha256(read_bytes(spec, path)).hexdigest(), f"content of {_path(name)}"
                # Files in different folders may have the same name.
                files[key if files.get(key, content) == content else f"own {key}"] = content
        functions = {
            name: getattr(self, name) for name in ("verifier_scope", "verifier_reads", "verifier_whole")
        }
        spaces = {"json_whitespace": self.json_whitespace} if self._writes_json else {}
        errors = {} if self.on_error == "raise" else {"on_error": self.on_error}
        return {"verifier": list(named), **files, **functions, **errors, **spaces}

    def build(
        self,
        tokenization: "Tokenization",
        *,
        verdicts: bool,
        ranks: bool = False,
        stop: Sequence[str] = (),
        within_limit: bool = False,
    ) -> list["BuiltVerifier"]:
        """Build the verifiers for a sampler.

        Args:
            tokenization: Tokenization of the model.
            verdicts: Whether the sampler needs verdicts, which are values of 0 or 1. Other values are then
                compared with their threshold.
            ranks: Whether the sampler ranks several samples by their values. The threshold is then applied
                only to the selected sample.
            stop: Stop strings. Verifiers of text evaluate the text before the first stop string.
            within_limit: Whether the masks of formal languages complete the text before the length limit.

        Returns:
            One verifier per spec.

        Raises:
            InputError: If a verifier does not compile or load. Whether it was made for this model is checked
                separately, by `BuiltVerifier.require_fit`.
        """
        from trialogue.verifiers.languages.language_verifier import LanguageVerifier

        loaded = self.load(tokenization, verdicts=verdicts)
        if within_limit:
            loaded = [
                one._replace(verifier=_call_with_option(self, spec, one.verifier.within_limit))
                if isinstance(one.verifier, LanguageVerifier)
                else one
                for spec, one in zip(self.specs, loaded, strict=True)
            ]
        return [one.for_sampler(verdicts=verdicts, ranks=ranks, stop=stop) for one in loaded]

    def load(self, tokenization: "Tokenization", *, verdicts: bool) -> list["LoadedVerifier"]:
        """Load the verifiers without stop strings and thresholds.

        This part of `build` takes the most time, and its result can be shared by several samplers.

        Args:
            tokenization: Tokenization of the model.
            verdicts: Whether the sampler needs verdicts, which are values of 0 or 1.

        Returns:
            One verifier per spec.

        Raises:
            InputError: If a verifier does not compile or load.
        """
        from trialogue.verifiers import as_verifier

        loaded = []
        for spec in self.specs:
            kind, content = _split(spec)
            request = VerifierRequest(spec, content, self, tokenization, verdicts, [])
            verifier = _call_with_option(self, spec, partial(_build, kind, request))
            loaded.append(LoadedVerifier(kind, as_verifier(verifier), tuple(request.model_checks)))
        return loaded


class LoadedVerifier(NamedTuple):
    """A verifier without stop strings and threshold, which several samplers can share.

    Attributes:
        kind: Kind of the verifier.
        verifier: The verifier without stop strings and threshold.
        model_checks: Functions that are called with the model, and raise `InputError` if the verifier was made for
            another model.
    """

    kind: "VerifierKind"
    verifier: "Verifier"
    model_checks: tuple[Callable[["TextModel"], None], ...]

    def for_sampler(self, *, verdicts: bool, ranks: bool, stop: Sequence[str]) -> "BuiltVerifier":
        """Add the stop strings and the threshold with which a sampler uses the verifier.

        Args:
            verdicts: Whether the sampler needs verdicts, which are values of 0 or 1. Other values are then
                compared with their threshold.
            ranks: Whether the sampler ranks several samples by their values. The threshold is then applied
                only to the selected sample.
            stop: Stop strings. Verifiers of text evaluate the text before the first stop string.
        """
        from trialogue.generation.verifiers.graded import CachedGradedVerifier
        from trialogue.verifiers import Threshold

        verifier = self.verifier.up_to(stop) if stop else self.verifier
        graded = (
            verifier
            if isinstance(verifier, CachedGradedVerifier)
            else CachedGradedVerifier(verifier)
            if self.kind.graded
            else None
        )
        threshold = None if graded is None else graded.threshold
        if graded is None or threshold is None:
            judge, cut = graded or verifier, None
        elif verdicts or (graded.written and not ranks):
            judge, cut = Threshold(graded, threshold), None
        else:
            judge, cut = graded, threshold if ranks else None
        return BuiltVerifier(self.kind, judge, graded, cut, self.model_checks)


class BuiltVerifier(NamedTuple):
    """A verifier in the form in which a sampler uses it.

    Attributes:
        kind: Kind of the verifier.
        verifier: The verifier to evaluate.
        graded: Wrapper that caches values, or None if all values are 0 or 1.
        threshold: Threshold to apply to the values of finished samples, or None.
        model_checks: Functions that are called with the model, and raise `InputError` if the verifier was
            made for another model.
    """

    kind: "VerifierKind"
    verifier: "Verifier"
    graded: "CachedGradedVerifier | None"
    threshold: float | None
    model_checks: tuple[Callable[["TextModel"], None], ...]

    def require_fit(self, oracle: "TextModel") -> None:
        """Check that the verifier was made for this model. A probe fits only the model that it was trained on.

        Args:
            oracle: The loaded model.

        Raises:
            InputError: If the verifier was made for another model.
        """
        for fit in self.model_checks:
            fit(oracle)


def build_for_prompts(
    rule: ConstraintSettings, prompts: Sequence[Prompt], tokenization: "Tokenization", **settings: Any
) -> list[list[BuiltVerifier]]:
    """Build the verifiers of each prompt. Prompts with equal specs share verifiers.

    Args:
        rule: Verifiers that apply to all prompts.
        prompts: Prompts with their additional verifiers.
        tokenization: Tokenization of the model.
        **settings: Further arguments of `Rule.build`.

    Returns:
        For each prompt, its verifiers, starting with those that apply to all prompts.

    Raises:
        InputError: As in `Rule.build`. An error in the verifier of a prompt names its line in the prompt
            file.
    """
    shared, by_specs = rule.build(tokenization, **settings), dict[tuple[str, ...], list[BuiltVerifier]]()
    specs = [_resolve_specs(prompt) for prompt in prompts]
    for prompt, found in zip(prompts, specs, strict=True):
        if found not in by_specs:
            alone = replace(rule, verifier=found, **_NO_OPTIONS)
            by_specs[found] = with_location(prompt.where, partial(alone.build, tokenization, **settings))
    return [shared + by_specs[found] for found in specs]


def distinct_verifiers(built: Iterable[Sequence[BuiltVerifier]]) -> list[BuiltVerifier]:
    """Return the verifiers of all prompts without duplicates.

    Args:
        built: Verifiers of each prompt.
    """
    return list({id(one): one for of_prompt in built for one in of_prompt}.values())


def combine_verifiers(built: Sequence[BuiltVerifier]) -> "Verifier | None":
    """Combine the verifiers of a prompt into one, whose value is the product of their values.

    Args:
        built: Verifiers of the prompt.

    Returns:
        The combined verifier, or None if there are no verifiers.
    """
    from trialogue.verifiers import Product

    verifiers = [one.verifier for one in built]
    return Product(*verifiers) if len(verifiers) > 1 else next(iter(verifiers), None)


def has_mask(spec: str) -> bool:
    """Return whether a verifier can compute the set of all accepted next tokens.

    Args:
        spec: Spec KIND:CONTENT. The result is False for an unknown kind.
    """
    name = spec.partition(":")[0]
    return name in KINDS and KINDS[name].has_mask


def _call_with_option(rule: ConstraintSettings, spec: str, call: Callable[[], Result]) -> Result:
    """Return the result of `call`. An `InputError` about a spec is changed to name the option that the user gave."""
    try:
        return call()
    except InputError as error:
        if spec not in rule._options:
            raise
        option, value = rule._options[spec]
        raise InputError(option, value, error.hint) from error


def _split(spec: str) -> tuple[VerifierKind, str]:
    name, colon, content = spec.partition(":")
    if name not in KINDS:
        *others, last = (kind.spec_form(name) for name, kind in KINDS.loadable())
        raise InputError("verifier", spec, f"write it as {', '.join(others)} or {last}")
    kind = KINDS[name]
    if bool(content) != bool(kind.form) or (colon and not content):
        problem = "the content after the colon is missing" if kind.form else "this kind has no content"
        raise InputError("verifier", spec, f"write it as {kind.spec_form(name)}: {problem}")
    return kind, content


def _build(kind: VerifierKind, request: VerifierRequest) -> "Verifier":
    try:
        return kind.build(request)
    except InputError:
        raise
    except ValueError as error:
        form = kind.spec_form(request.spec.partition(":")[0])
        raise InputError("verifier", request.spec, f"write it as {form}: {error}") from error


def _resolve_specs(prompt: Prompt) -> tuple[str, ...]:
    """Return the specs of the rule of `prompt`, with file paths relative to the folder of the prompt file."""
    specs = []
    for spec in prompt.rule:
        path = _path(spec)
        kind, _, content = spec.partition(":")
        # Every form of content begins with the path of the file.
        is_relative = path is not None and not path.is_absolute() and prompt.folder != Path()
        specs.append(f"{kind}:{prompt.folder / content}" if is_relative else spec)
    return tuple(specs)


def _read_file(spec: str) -> bytes | None:
    """Return the content of the file named by `spec`, or None if it names no file."""
    path = _path(spec)
    return None if path is None else read_bytes(spec, path)


def _path(spec: str) -> Path | None:
    kind, content = _split(spec)
    try:
        return kind.path(content) if content else None
    except InputError:
        raise
    except ValueError:
        form = kind.spec_form(spec.partition(":")[0])
        raise InputError("verifier", spec, f"write it as {form}") from None
