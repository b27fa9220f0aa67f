"""Verifiers as the command line names them: by an option of their own, or by a kind of `KINDS` and its content.

Importing this module imports neither torch nor a verifier, so that `--help` is fast.
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
from trialogue.generation.prompts import Prompt, located
from trialogue.generation.verifiers.contents import content_of
from trialogue.generation.verifiers.kinds import KINDS, VerifierKind, VerifierOptions, Wanted
from trialogue.validation import validated

if TYPE_CHECKING:
    from trialogue.generation.verifiers.graded import Graded
    from trialogue.models.hub.opening import TextModel
    from trialogue.models.tokenization import Tokenization
    from trialogue.oracles import Verifier

Result = TypeVar("Result")

SHORTHANDS = {"json_schema": "json-schema", "regex": "regex", "grammar": "lark", "pydantic": "pydantic"}
"""The kinds of verifiers that have an option of their own, by its field; `choice` has one too."""
_NO_OPTIONS: dict[str, Any] = dict.fromkeys((*SHORTHANDS, "choice"), ())


@validated
@dataclass(frozen=True)
class Rule(VerifierOptions):
    """Constraints on the output. A text is accepted if all verifiers accept it."""

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
            with_option(self, spec, partial(_read_file, spec))

    @property
    def specs(self) -> tuple[str, ...]:
        """The specs KIND:CONTENT of all verifiers, those that have an option of their own first."""
        return (*self._options, *self.verifier)

    @property
    def _options(self) -> dict[str, tuple[str, object]]:
        """By the spec that each option stands for, the option and its value."""
        options: dict[str, tuple[str, object]] = {
            f"{kind}:{value}": (field, value)
            for field, kind in SHORTHANDS.items()
            for value in getattr(self, field)
        }
        if self.choice:
            options[f"choice:{json.dumps(self.choice)}"] = "choice", self.choice
        return options

    def require_used(self, others: Iterable[str] = ()) -> None:
        """Raise `InputError` for an option on verifiers of which there are none, here or among the specs `others`."""
        kinds = [_split(spec)[0] for spec in (*self.specs, *others)]
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

    def joined(self, prompt: Prompt) -> "Rule":
        """The rule with that of `prompt` as well; raises `InputError` where this names no verifier."""
        return replace(self, verifier=(*self.verifier, *_found(prompt))) if prompt.rule else self

    @property
    def _writes_json(self) -> bool:
        return any(_split(spec)[0].is_json for spec in self.specs)

    def identity(self, written: Sequence[str] = ()) -> dict[str, Any]:
        """What decides verdicts, as JSON values: the specs, the sha256 of their files, and what functions are given.

        The last specs are called as they were `written`: from which folder files are found decides nothing.
        """
        files: dict[str, str] = {}
        named = (*self.specs[: len(self.specs) - len(written)], *written)
        for spec, name in zip(self.specs, named, strict=True):
            path = _path(spec)
            if path is not None:
                content, key = hashlib.sha256(content_of(spec, path)).hexdigest(), f"content of {_path(name)}"
                # Two folders may each have a file of one name.
                files[key if files.get(key, content) == content else f"own {key}"] = content
        functions = {
            name: getattr(self, name) for name in ("verifier_scope", "verifier_reads", "verifier_whole")
        }
        spaces = {"json_whitespace": self.json_whitespace} if self._writes_json else {}
        errors = {} if self.on_error == "raise" else {"on_error": self.on_error}
        return {"verifier": list(named), **files, **functions, **errors, **spaces}

    def build(
        self, tokenization: "Tokenization", *, verdicts: bool, ranks: bool = False, stop: Sequence[str] = ()
    ) -> list["Built"]:
        """The verifier of each spec, for models of a `tokenization`; with `verdicts` probabilities are cut to 0 or 1.

        Where a sampler only `ranks` by values, they are what they are; a threshold decides about the one that is
        chosen.

        Verifiers of text judge what comes before the first of the strings `stop`. Raises `InputError` for what does not
        compile or load; whether it fits the model is what `Built.require_fit` asks once that is there.
        """
        loaded = self.load(tokenization, verdicts=verdicts)
        return [one.built(verdicts=verdicts, ranks=ranks, stop=stop) for one in loaded]

    def load(self, tokenization: "Tokenization", *, verdicts: bool) -> list["Loaded"]:
        """What of `build` is the same for all strings to stop at, and takes the most of its time."""
        from trialogue.verifiers import as_verifier

        loaded = []
        for spec in self.specs:
            kind, content = _split(spec)
            wanted = Wanted(spec, content, self, tokenization, verdicts, [])
            verifier = with_option(self, spec, partial(_build, kind, wanted))
            loaded.append(Loaded(kind, as_verifier(verifier), tuple(wanted.fits)))
        return loaded


class Loaded(NamedTuple):
    """The verifier of a spec, which may be used by several samplers, up to several strings to stop at."""

    kind: "VerifierKind"
    verifier: "Verifier"
    fits: tuple[Callable[["TextModel"], None], ...]

    def built(self, *, verdicts: bool, ranks: bool, stop: Sequence[str]) -> "Built":
        """The verifier as a sampler is given it: arguments are those of `Rule.build`."""
        from trialogue.generation.verifiers.graded import Graded
        from trialogue.verifiers import Threshold

        verifier = self.verifier.up_to(stop) if stop else self.verifier
        graded = verifier if isinstance(verifier, Graded) else Graded(verifier) if self.kind.graded else None
        threshold = None if graded is None else graded.threshold
        if graded is None or threshold is None:
            judge, cut = graded or verifier, None
        elif verdicts or (graded.written and not ranks):
            judge, cut = Threshold(graded, threshold), None
        else:
            judge, cut = graded, threshold if ranks else None
        return Built(self.kind, judge, graded, cut, self.fits)


class Built(NamedTuple):
    """A verifier as a sampler is given it; `graded` remembers its values, which `threshold` cuts in the end."""

    kind: "VerifierKind"
    verifier: "Verifier"
    graded: "Graded | None"
    threshold: float | None
    fits: tuple[Callable[["TextModel"], None], ...]

    def require_fit(self, oracle: "TextModel") -> None:
        """Raise `InputError` where the verifier is for another model than `oracle`."""
        for fit in self.fits:
            fit(oracle)


def built_of_prompts(
    rule: Rule, prompts: Sequence[Prompt], tokenization: "Tokenization", **settings: Any
) -> list[list[Built]]:
    """The verifiers of each of `prompts`: those of the `rule`, which all share, and its own.

    Prompts with the same rule share verifiers. Arguments and errors are those of `Rule.build`; an error in a prompt's
    own names its line.
    """
    shared, own = rule.build(tokenization, **settings), dict[tuple[str, ...], list[Built]]()
    specs = [_found(prompt) for prompt in prompts]
    for prompt, found in zip(prompts, specs, strict=True):
        if found not in own:
            alone = replace(rule, verifier=found, **_NO_OPTIONS)
            own[found] = located(prompt.where, partial(alone.build, tokenization, **settings))
    return [shared + own[found] for found in specs]


def distinct(built: Iterable[Sequence[Built]]) -> list[Built]:
    """The verifiers of all prompts, each once."""
    return list({id(one): one for of_prompt in built for one in of_prompt}.values())


def rule_of(built: Sequence[Built]) -> "Verifier | None":
    """The product of the verifiers of a prompt, None where it has none."""
    from trialogue.verifiers import Product

    verifiers = [one.verifier for one in built]
    return Product(*verifiers) if len(verifiers) > 1 else next(iter(verifiers), None)


def has_mask(spec: str) -> bool:
    """Return whether the verifier of a spec knows all accepted tokens at once; False for a kind that does not exist."""
    name = spec.partition(":")[0]
    return name in KINDS and KINDS[name].has_mask


def with_option(rule: Rule, spec: str, call: Callable[[], Result]) -> Result:
    """Return the result of `call`; an `InputError` about `spec` names the option that the user wrote."""
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
        *others, last = (kind.written(name) for name, kind in KINDS.loadable())
        raise InputError("verifier", spec, f"write it as {', '.join(others)} or {last}")
    kind = KINDS[name]
    if bool(content) != bool(kind.form) or (colon and not content):
        what = "nothing stands behind the colon" if kind.form else "it has no content"
        raise InputError("verifier", spec, f"{what}: write it as {kind.written(name)}")
    return kind, content


def _build(kind: VerifierKind, wanted: Wanted) -> "Verifier":
    try:
        return kind.build(wanted)
    except InputError:
        raise
    except ValueError as error:
        form = kind.written(wanted.spec.partition(":")[0])
        raise InputError("verifier", wanted.spec, f"write it as {form}: {error}") from error


def _found(prompt: Prompt) -> tuple[str, ...]:
    """The specs of the rule of `prompt`, with the files that they name where they are found."""
    specs = []
    for spec in prompt.rule:
        path = _path(spec)
        kind, _, content = spec.partition(":")
        # Every form begins with its file.
        own = path is not None and not path.is_absolute() and prompt.folder != Path()
        specs.append(f"{kind}:{prompt.folder / content}" if own else spec)
    return tuple(specs)


def _read_file(spec: str) -> bytes | None:
    """Return the content of the file that `spec` names, if it names one."""
    path = _path(spec)
    return None if path is None else content_of(spec, path)


def _path(spec: str) -> Path | None:
    kind, content = _split(spec)
    try:
        return kind.path(content) if content else None
    except InputError:
        raise
    except ValueError:
        form = kind.written(spec.partition(":")[0])
        raise InputError("verifier", spec, f"write it as {form}") from None
