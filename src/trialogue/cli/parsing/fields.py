"""Dataclasses as the one place where options are stated: a command line sets their fields, typed by their classes."""

import contextlib
import dataclasses
import difflib
import io
import itertools
import re
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from trialogue.cli.parsing.words import attached, option_of, value_of
from trialogue.errors import InputError

Instance = TypeVar("Instance")

_NUMBERS = {int: "a whole number", float: "a number"}


def override(default: Instance, tokens: Sequence[str], *, name: str, prog: str, description: str) -> Instance:
    """`default`, an instance of a dataclass, with the fields that the command line's `tokens` set.

    `name` is what the fields belong to, `prog` and `description` head the help that `--help` among the tokens
    prints. Raises `InputError` for an unknown field, a value of the wrong type, or one that the class refuses.
    """
    given: Any = default
    values = _values(given)
    unchecked = _unchecked(type(given))
    parsed, unknown, complaint = _parsed(unchecked, tokens, prog, description, default=unchecked(**values))
    if complaint:
        raise InputError("fields", " ".join(tokens), complaint)
    if unknown:
        close = difflib.get_close_matches(unknown[0].lstrip("-").replace("-", "_"), values, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"the fields are {', '.join(values)}"
        raise InputError("field", unknown[0], f"{name} has no such field: {hint}")
    return dataclasses.replace(given, **{field: getattr(parsed, field) for field in values})


class Group(NamedTuple):
    """Fields of a dataclass as options of a command: `options` is the class, or an instance that holds the defaults.

    The options of a command itself are `terse`: a flag is off until it is given, None cannot be written, and an option
    of several values takes one each time that it comes. The others are as `override` has them. `description` heads
    them in the help.
    """

    options: Any
    description: str = ""
    terse: bool = True


def parse(
    groups: Mapping[str, Group],
    tokens: Sequence[str],
    *,
    prog: str,
    description: str,
    unknown: str,
    elsewhere: Callable[[], Mapping[str, str]] = dict,
) -> dict[str, Any]:
    """An instance for each of `groups`, by its title, with the fields that the command line's `tokens` set.

    An option is the name of its field; where two groups have one of the same name, the first group's it is. The
    error for an option that no group has says `unknown`, and whose it is where that is known `elsewhere`: options of
    other commands, with what has them. Raises `InputError`, as `override` does.
    """
    from tyro.conf import DisallowNone, FlagCreatePairsOff, OmitArgPrefixes, UseAppendAction, arg

    members: dict[str, tuple[str, Any, Any]] = {}
    types_of: dict[str, Any] = {}
    for title, group in groups.items():
        shown = _shown(group, hidden=types_of)
        markers = (DisallowNone, FlagCreatePairsOff, UseAppendAction) if group.terse else ()
        kind = Annotated[(shown, arg(name=title), OmitArgPrefixes, *markers)]  # type: ignore[valid-type]
        members[title] = (f"group_{len(members)}", kind, shown())
        types_of = _types(group) | types_of
    words = attach(groups, tokens)
    command = dataclasses.make_dataclass("Command", members.values(), frozen=True)
    parsed, strange, complaint = _parsed(command, words, prog, description)
    if complaint:
        forms = {name: form for group in groups.values() for name, form in _forms(group).items()}
        raise _refused(complaint, words, types_of, forms)
    if strange:
        raise _strange(strange[0], [option_of(name) for name in types_of], elsewhere(), unknown, prog)
    instances = {}
    for title, group in groups.items():
        section = getattr(parsed, members[title][0])
        values = {name: getattr(section, name) for name in _values(group.options)}
        is_class = isinstance(group.options, type)
        instances[title] = (
            group.options(**values) if is_class else dataclasses.replace(group.options, **values)
        )
    return instances


def attach(groups: Mapping[str, Group], tokens: Sequence[str]) -> list[str]:
    """The command line's `tokens` as `parse` reads them: with the values attached to the options that take them."""
    options: set[str] = set()
    spelling: dict[str, str] = {}
    for group in groups.values():
        for name, kind in _types(group).items():
            spelling[f"--{name}"] = option_of(name)
            if kind is bool or (_is_sequence(kind) and not group.terse):
                continue
            options.add(option_of(name))
    return attached([spelling.get(word, word) for word in tokens], options)


def _values(options: Any) -> dict[str, Any]:
    """The values of an instance by field, or the defaults of a class."""
    values = {}
    for field in dataclasses.fields(options):
        if not field.init:
            continue
        if not isinstance(options, type):
            values[field.name] = getattr(options, field.name)
        elif field.default_factory is not dataclasses.MISSING:
            values[field.name] = field.default_factory()
        else:
            values[field.name] = field.default
    return values


def _class_of(options: Any) -> Any:
    return options if isinstance(options, type) else type(options)


def _types(group: Group) -> dict[str, Any]:
    """The type of each field, without None."""
    hints = typing.get_type_hints(_class_of(group.options))
    kinds = {}
    for name in _values(group.options):
        members = [kind for kind in typing.get_args(hints[name]) if kind is not types.NoneType]
        union = isinstance(hints[name], types.UnionType) or typing.get_origin(hints[name]) is typing.Union
        kinds[name] = members[0] if union and len(members) == 1 else hints[name]
    return kinds


def _forms(group: Group) -> dict[str, str]:
    """What the help shows for the values of each field that says it itself."""
    hints = typing.get_type_hints(_class_of(group.options), include_extras=True)
    return {
        name: form
        for name, hint in hints.items()
        for said in getattr(hint, "__metadata__", ())
        if (form := getattr(said, "metavar", None)) is not None
    }


def _is_sequence(kind: Any) -> bool:
    """Whether a field takes several values, or may."""
    several = (tuple, list, Sequence)
    return any(typing.get_origin(member) in several for member in (kind, *typing.get_args(kind)))


def _unchecked(kind: Any, **namespace: Any) -> Any:
    """A dataclass without its own checks: they run on the whole instance, where their errors keep their words."""
    return type(kind.__name__, (kind,), {"__post_init__": lambda _: None, **namespace})


def _shown(group: Group, hidden: Collection[str]) -> Any:
    """The class of a group as tyro is to show it: unchecked, with its defaults, and without the fields of `hidden`."""
    from tyro.conf import Suppress, arg

    kind = _class_of(group.options)
    hints = typing.get_type_hints(kind, include_extras=True)
    # The docstring of a sampler tells the defaults of its fields.
    told = not group.terse and "(default: " in (kind.__doc__ or "")
    hint = arg(help_behavior_hint="" if told else _default)
    fields = [
        (name, Annotated[(hints[name], hint, *((Suppress,) if name in hidden else ()))], value)
        for name, value in _values(group.options).items()
    ]
    checked = dataclasses.make_dataclass(kind.__name__, fields, bases=(kind,), frozen=True, kw_only=True)
    return _unchecked(checked, __doc__=group.description)


def _default(value: str) -> str:
    """What the help says of a default: nothing where the option is not given at all."""
    return "" if value in ("None", "False", "()", "") else f"({value})"


def _parsed(
    kind: Any, words: Sequence[str], prog: str, description: str, **settings: Any
) -> tuple[Any, list[str], str]:
    """What tyro makes of `words`: an instance of `kind`, the words that it does not know, and its complaint."""
    import tyro

    box = io.StringIO()
    try:
        with contextlib.redirect_stderr(box):
            parsed, unknown = tyro.cli(
                kind,
                prog=prog,
                description=description,
                args=list(words),
                return_unknown_args=True,
                **settings,
            )
    except SystemExit as error:
        if not error.code:
            raise
        return None, [], _first_words(box.getvalue())
    return parsed, unknown, ""


def _refused(
    complaint: str, words: Sequence[str], kinds: Mapping[str, Any], forms: Mapping[str, str]
) -> InputError:
    """The error for what tyro complains of: it names the option, and the hint follows from the field's type."""
    named = re.search(r"--[\w-]+", complaint)
    name = "" if named is None else named[0][2:].replace("-", "_")
    if named is None or name not in kinds:
        return InputError("options", " ".join(words), complaint)
    value, kind = _given(named[0], words), kinds[name]
    if value is None:
        return InputError(name, value, f"{named[0]}: give it a value")
    if typing.get_origin(kind) is Literal:
        wanted = f"use {' or '.join(map(str, typing.get_args(kind)))}"
    elif kind in _NUMBERS:
        wanted = f"use {_NUMBERS[kind]}"
    else:
        wanted = f"use {forms[name]}" if name in forms else complaint
    return InputError(name, value, f"{named[0]}: invalid: {wanted}")


def _given(option: str, words: Sequence[str]) -> str | None:
    """What stands behind `option`, None where nothing does."""
    if option not in words:
        return value_of(option, words)
    behind = itertools.takewhile(lambda word: not word.startswith("--"), words[words.index(option) + 1 :])
    return " ".join(behind) or None


def _strange(
    word: str, known: Sequence[str], elsewhere: Mapping[str, str], unknown: str, prog: str
) -> InputError:
    """The error for a `word` that is none of the options `known`, and perhaps one of those that others have."""
    if not word.startswith("-"):
        hint = "no option takes it: put a text of several words into quotation marks, and an option before each value"
        return InputError("word", word, f"{hint} (`{prog} --help` lists the options)")
    option = word.partition("=")[0]
    close = difflib.get_close_matches(option, [*known, *elsewhere], n=1)
    if not close:
        hint = f"`{prog} --help` lists what there is"
    elif close[0] in known:
        hint = f"did you mean {close[0]}?"
    elif close[0] == option:
        hint = f"it belongs to {elsewhere[option]}"
    else:
        hint = f"did you mean {close[0]}, which belongs to {elsewhere[close[0]]}?"
    return InputError("option", word, f"{unknown}: {hint}")


def _first_words(box: str) -> str:
    """The first paragraph inside the box that tyro draws around an error, on one line.

    Where its letters cannot be written, the box is a title between rules of hyphens.
    """
    lines = [line.strip("│ ") for line in box.splitlines() if line.startswith("│")]
    if not lines:
        plain = [line.strip() for line in box.splitlines()]
        lines = plain[next((at + 1 for at, line in enumerate(plain) if set(line) == {"-"}), 0) :]
    paragraph: list[str] = []
    for line in lines:
        if set(line) in ({"─"}, {"-"}):
            break
        paragraph.append(line)
    return " ".join(paragraph) or " ".join(box.split())
