"""Conversion of dataclasses to command line options."""

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

from trialogue.cli.parsing.words import find_option_value, join_values, option_name
from trialogue.errors import InputError

Instance = TypeVar("Instance")

_SIMILAR = 0.75
"""Similarity above which a known option is suggested instead of an unknown one (1: equal)."""
_SHOWN_VALUES = 12
"""Length above which the help shortens a list of default values."""
_NUMBERS = {int: "a whole number", float: "a number"}


def override_fields(
    default: Instance, tokens: Sequence[str], *, name: str, prog: str, description: str
) -> Instance:
    """Return a copy of a dataclass instance with fields changed by command-line options.

    Args:
        default: Instance with the default values.
        tokens: Words of the command line.
        name: Description of the instance for error messages.
        prog: Program name in the help.
        description: Description in the help.

    Returns:
        A copy of the instance with the fields set on the command line.

    Raises:
        InputError: If a field is unknown, or its value has the wrong type or is rejected by the class.
    """
    given: Any = default
    values = _values(given)
    unchecked = _without_checks(type(given))
    if not {"-h", "--help"}.isdisjoint(tokens):
        unchecked = _with_short_defaults(unchecked)
    parsed, unknown, complaint = _parse_with_tyro(
        unchecked, tokens, prog, description, default=unchecked(**values)
    )
    if complaint:
        raise InputError("fields", " ".join(tokens), complaint)
    if unknown:
        close = difflib.get_close_matches(unknown[0].lstrip("-").replace("-", "_"), values, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"the fields are {', '.join(values)}"
        raise InputError("field", unknown[0], f"{name} has no such field: {hint}")
    return dataclasses.replace(given, **{field: getattr(parsed, field) for field in values})


class Group(NamedTuple):
    """A group of options of a command, one for each field of a dataclass.

    Attributes:
        options: The dataclass, or an instance whose values are the defaults.
        description: Description in the help.
        terse: If True, boolean options have no negative form, None cannot be given, and an option is repeated
            for several values. If False, options are parsed as in `override_fields`, but None can be given only
            if it is not the default.
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
    shown: Collection[str] | None = None,
) -> dict[str, Any]:
    """Parse a command line into one dataclass instance per group of options.

    An option has the name of its field. If two groups have a field of the same name, the option belongs to
    the first group.

    Args:
        groups: Groups of options by title.
        tokens: Words of the command line.
        prog: Program name in the help.
        description: Description in the help.
        unknown: Message for an unknown option.
        elsewhere: Function that returns the options of other commands, with the name of the command of each.
            They appear in the hint for an unknown option.
        shown: Fields that can be given and are in the help, each with the first sentence of its text. None (default)
            for all fields with the whole text.

    Returns:
        An instance of the dataclass of each group, by title.

    Raises:
        InputError: If an option is unknown, or its value has the wrong type or is rejected by the class.
    """
    from tyro.conf import DisallowNone, FlagCreatePairsOff, OmitArgPrefixes, UseAppendAction, arg

    members: dict[str, tuple[str, Any, Any]] = {}
    types_of: dict[str, Any] = {}
    needs_help = not {"-h", "--help"}.isdisjoint(tokens)
    for title, group in groups.items():
        unlisted = set() if shown is None else _types(group).keys() - set(shown)
        section = _tyro_class(
            group, hidden=types_of.keys() | unlisted, needs_help=needs_help, is_short=shown is not None
        )
        markers = (DisallowNone, FlagCreatePairsOff, UseAppendAction) if group.terse else ()
        box = arg(name=title, help=group.description)
        kind = Annotated[(section, box, OmitArgPrefixes, *markers)]  # type: ignore[valid-type]
        members[title] = (f"group_{len(members)}", kind, section())
        types_of = _types(group) | types_of
    words = join_option_values(groups, tokens)
    command = dataclasses.make_dataclass("Command", members.values(), frozen=True)
    parsed, unknown_words, complaint = _parse_with_tyro(command, words, prog, description)
    if complaint:
        placeholders = {
            name: form for group in groups.values() for name, form in _placeholders(group).items()
        }
        raise _tyro_error(complaint, words, types_of, placeholders)
    if unknown_words:
        raise _unknown_word_error(
            unknown_words[0], [option_name(name) for name in types_of], elsewhere(), unknown, prog
        )
    instances = {}
    for title, group in groups.items():
        section = getattr(parsed, members[title][0])
        values = {name: getattr(section, name) for name in _values(group.options)}
        is_class = isinstance(group.options, type)
        instances[title] = (
            group.options(**values) if is_class else dataclasses.replace(group.options, **values)
        )
    return instances


def join_option_values(groups: Mapping[str, Group], tokens: Sequence[str]) -> list[str]:
    """Join options and their values into single words, for example `--stop a` into `--stop=a`.

    Args:
        groups: Groups of options by title.
        tokens: Words of the command line.

    Returns:
        The words of the command line with joined options.
    """
    options: set[str] = set()
    spelling: dict[str, str] = {}
    for group in groups.values():
        for name, kind in _types(group).items():
            spelling[f"--{name}"] = option_name(name)
            if kind is bool or (_is_sequence(kind) and not group.terse):
                continue
            options.add(option_name(name))
    return join_values([spelling.get(word, word) for word in tokens], options)


def _values(options: Any) -> dict[str, Any]:
    """Return the values of an instance by field, or the defaults of a class."""
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


def _options_class(options: Any) -> Any:
    return options if isinstance(options, type) else type(options)


def _types(group: Group) -> dict[str, Any]:
    """Return the type of each field, without None."""
    hints = typing.get_type_hints(_options_class(group.options))
    field_types = {}
    for name in _values(group.options):
        members = [kind for kind in typing.get_args(hints[name]) if kind is not types.NoneType]
        union = isinstance(hints[name], types.UnionType) or typing.get_origin(hints[name]) is typing.Union
        field_types[name] = members[0] if union and len(members) == 1 else hints[name]
    return field_types


def _placeholders(group: Group) -> dict[str, str]:
    """Return the placeholder that the help shows for the values of each field, if it is specified."""
    hints = typing.get_type_hints(_options_class(group.options), include_extras=True)
    return {
        name: form
        for name, hint in hints.items()
        for metadata in getattr(hint, "__metadata__", ())
        if (form := getattr(metadata, "metavar", None)) is not None
    }


def _is_sequence(kind: Any) -> bool:
    """Return whether a field can have several values."""
    several = (tuple, list, Sequence)
    return any(typing.get_origin(member) in several for member in (kind, *typing.get_args(kind)))


def _without_checks(kind: Any) -> Any:
    """Return a subclass without `__post_init__`, to create instances whose fields are still incomplete."""
    return type(kind.__name__, (kind,), {"__post_init__": lambda _: None})


def _with_short_defaults(kind: Any) -> Any:
    """Return a subclass for the help, which shows only the ends of long lists of default values."""
    from tyro.conf import arg

    hints = typing.get_type_hints(kind, include_extras=True)
    texts = _help_texts(kind)
    fields = [
        (
            field.name,
            Annotated[hints[field.name], arg(help=texts.get(field.name), help_behavior_hint=_short_default)],
        )
        for field in dataclasses.fields(kind)
    ]
    return dataclasses.make_dataclass(kind.__name__, fields, bases=(kind,), frozen=True, kw_only=True)


def _short_default(value: str) -> str:
    """Return the text about a default value in the help, with the first two and the last value of a long list."""
    words = value.split()
    if len(words) <= _SHOWN_VALUES:
        return f"(default: {value})"
    return f"(default: {words[0]} {words[1]} ... {words[-1]}, which are {len(words)} values)"


def _tyro_class(group: Group, hidden: Collection[str], *, needs_help: bool, is_short: bool = False) -> Any:
    """Return the class of a group for tyro, without checks and without the options in `hidden`.

    If `is_short`, the help of an option is only the first sentence.
    """
    from tyro.conf import DisallowNone, Suppress, arg

    kind = _options_class(group.options)
    hints = typing.get_type_hints(kind, include_extras=True)
    # The docstring of a sampler contains the defaults of its fields.
    has_defaults = not group.terse and "(default: " in (kind.__doc__ or "")
    hint = "" if has_defaults else _default
    texts = _help_texts(kind) if needs_help else {}
    if is_short:
        texts = {name: re.split(r"(?<=\.) ", text)[0] for name, text in texts.items()}
    fields = [
        (
            name,
            Annotated[
                (
                    hints[name],
                    arg(
                        # Without a text, tyro would search for it in the source code.
                        help=texts.get(name) if needs_help else "",
                        help_behavior_hint="" if "(default: " in texts.get(name, "") else hint,
                    ),
                    *((Suppress,) if name in hidden else ()),
                    # The default needs no value, so the help shows only the other ones.
                    *((DisallowNone,) if value is None else ()),
                )
            ],
            value,
        )
        for name, value in _values(group.options).items()
    ]
    checked = dataclasses.make_dataclass(kind.__name__, fields, bases=(kind,), frozen=True, kw_only=True)
    return _without_checks(checked)


def _help_texts(kind: Any) -> dict[str, str]:
    """Return the help of each field on one line, because tyro keeps the line breaks of indented docstrings."""
    import docstring_parser

    return {
        field.arg_name: " ".join(field.description.split())
        for base in reversed(kind.__mro__[:-1])
        for field in docstring_parser.parse_from_object(base).params
        if field.description
    }


def _default(value: str) -> str:
    """Return the text about a default value in the help. It is empty if the option is absent by default."""
    return "" if value in ("None", "False", "()", "") else f"({value})"


def _parse_with_tyro(
    kind: Any, words: Sequence[str], prog: str, description: str, **settings: Any
) -> tuple[Any, list[str], str]:
    """Return the instance parsed by tyro, the unknown words, and the error message."""
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
        unreadable = r"Error parsing (--\S+): Could not find valid parse for arguments: \[(.*)\]"
        return None, [], re.sub(unreadable, r"\1: wrong type of value: \2", _first_paragraph(box.getvalue()))
    return parsed, unknown, ""


def _tyro_error(
    complaint: str, words: Sequence[str], field_types: Mapping[str, Any], placeholders: Mapping[str, str]
) -> InputError:
    """Convert an error of tyro into an `InputError` that names the option and the expected type."""
    named = re.search(r"--[\w-]+", complaint)
    name = "" if named is None else named[0][2:].replace("-", "_")
    if named is None or name not in field_types:
        return InputError("options", " ".join(words), complaint)
    value, kind = _given_value(named[0], words), field_types[name]
    if value is None:
        return InputError(name, value, f"{named[0]}: add a value")
    if typing.get_origin(kind) is Literal:
        wanted = f"use {' or '.join(map(str, typing.get_args(kind)))}"
    elif kind in _NUMBERS:
        wanted = f"use {_NUMBERS[kind]}"
    else:
        wanted = f"use {placeholders[name]}" if name in placeholders else complaint
    return InputError(name, value, f"{named[0]}: invalid: {wanted}")


def _given_value(option: str, words: Sequence[str]) -> str | None:
    """Return the value after `option`, or None."""
    if option not in words:
        return find_option_value(option, words)
    behind = itertools.takewhile(lambda word: not word.startswith("--"), words[words.index(option) + 1 :])
    return " ".join(behind) or None


def _unknown_word_error(
    word: str, known: Sequence[str], elsewhere: Mapping[str, str], unknown: str, prog: str
) -> InputError:
    """Return the error for an unknown word, with a suggestion if a known option is similar."""
    if not word.startswith("-"):
        hint = "quote texts of several words, and write an option before each value"
        return InputError("word", word, f"{hint} (see `{prog} --help`)")
    option = word.partition("=")[0]
    close = difflib.get_close_matches(option, [*known, *elsewhere], n=1, cutoff=_SIMILAR)
    if not close:
        hint = f"see `{prog} --help`"
    elif close[0] in known:
        hint = f"did you mean {close[0]}?"
    elif close[0] == option:
        hint = f"it belongs to {elsewhere[option]}"
    else:
        hint = f"did you mean {close[0]}, which belongs to {elsewhere[close[0]]}?"
    return InputError("option", word, f"{unknown}: {hint}")


def _first_paragraph(box: str) -> str:
    """Return the first paragraph of an error message of tyro on one line.

    The message is in a box, or between lines of hyphens if the terminal does not support box characters.
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
