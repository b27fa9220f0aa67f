"""Walks as commands name them: their options, what their help says, and the lists of walks and verifiers."""

import dataclasses
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trialogue.cli.fields import Group, attach, parse
from trialogue.cli.words import option_of, value_of
from trialogue.errors import InputError

_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\r": "\r", r"\\": "\\"}


def parsed_with_walk(
    command: str, about: str, options: Mapping[str, type], walk: str, tokens: Sequence[str]
) -> dict[str, Any]:
    """The `options` of a command, by title, with what `tokens` set, and as "walk" the walk that they name, or `walk`.

    Where they ask for help, it is printed with what the command is `about`, and with the options of a walk that is
    named: `SystemExit`. Raises `InputError` as `fields.parse` does.
    """
    groups = {title: Group(kind, inspect.getdoc(kind) or "") for title, kind in options.items()}
    words = attach(groups, tokens)
    named = value_of("--walk", words)
    name = walk if named is None else named
    prog = f"trialogue {command}"
    if named is not None:
        prog += f" --walk {name}"
    if named is not None or not {"-h", "--help"} & set(words):
        kind = walk_of(name)
        groups["walk"] = Group(kind(), description_of(kind), terse=False)
    unknown = f"neither the command nor the walk {name} has it"
    parsed = parse(groups, words, prog=prog, description=about, unknown=unknown, elsewhere=options_of_walks)
    return {**parsed, "walk": with_escapes(parsed["walk"])}


def walk_of(name: str) -> Any:
    """The class of the walk `name`; raises `InputError` where there is none."""
    from trialogue.samplers import WALKS

    if name not in WALKS:
        raise InputError("walk", name, f"the walks are {', '.join(WALKS)}")
    return WALKS[name]


def options_of_walks() -> dict[str, str]:
    """The options that some walk has, with the walks that have it."""
    from trialogue.samplers import WALKS

    owners: dict[str, list[str]] = {}
    walks: Iterable[tuple[str, Any]] = WALKS.loadable()
    for name, walk in walks:
        for field in dataclasses.fields(walk):
            owners.setdefault(option_of(field.name), []).append(name)
            if isinstance(field.default, bool):
                owners.setdefault(option_of(f"no_{field.name}"), []).append(name)
    return {
        option: f"the walk{'s' * (len(names) > 1)} {' and '.join(names)}" for option, names in owners.items()
    }


def description_of(walk: Any) -> str:
    """What the docstring of a walk says to one who types: its walks by their names, and nothing of other objects."""
    said = _by_name(inspect.getdoc(walk) or "")
    # Sentences on other objects of Python, and on fields that are refused here.
    others = re.compile(r"`([A-Z]\w*|erase_prompt)`")
    paragraphs = [re.split(r"(?<=[.:])\s+(?=[A-Z`])", paragraph) for paragraph in said.split("\n\n")]
    return "\n\n".join(
        " ".join(sentence for sentence in sentences if not others.search(sentence))
        for sentences in paragraphs
    )


def _by_name(said: str) -> str:
    """What is said of walks, with the names that they have in commands."""
    from trialogue.samplers import WALKS

    for name, registered in WALKS.loadable():
        said = said.replace(f"`{registered.__name__}`", name)
    return said


def with_escapes(walk: Any) -> Any:
    """The walk with its texts as they are meant."""
    values = {field.name: getattr(walk, field.name) for field in dataclasses.fields(walk)}
    texts = {name: unescaped(value) for name, value in values.items() if isinstance(value, str)}
    return dataclasses.replace(walk, **texts)


def unescaped(text: str) -> str:
    r"""`text` with \n, \t, \r and \\ as what they stand for."""
    return re.sub(r"\\[ntr\\]", lambda match: _ESCAPES[match[0]], text)


def print_listed() -> None:
    """Print every walk and every kind of verifier that there is."""
    from trialogue.generation.verifier_kinds import KINDS
    from trialogue.samplers import WALKS

    walks = {name: _by_name((walk.__doc__ or "").partition("\n")[0]) for name, walk in WALKS.loadable()}
    verifiers = {f"{name}:{kind.form}": kind.said for name, kind in KINDS.loadable()}
    for title, listed in (("walks", walks), ("verifiers", verifiers)):
        _print_box(title, listed)


def _print_box(title: str, listed: Mapping[str, str]) -> None:
    """Print names with what they mean, as the help shows options."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.table import Table

    rows = Table.grid(padding=(0, 2))
    for name, meaning in listed.items():
        rows.add_row(name, meaning)
    Console(highlight=False, markup=False).print(Panel(rows, title=title, title_align="left"))
