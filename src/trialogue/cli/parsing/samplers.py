"""Options and help texts of samplers and verifiers."""

import dataclasses
import inspect
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from trialogue.cli.parsing.fields import Group, join_option_values, parse
from trialogue.cli.parsing.words import find_option_value, option_name

HELP_ALL = "--help-all"
"""Option that shows the help of all options, also of those that are seldom needed."""

_OFTEN_USED = {
    "masked-decoding": "valid outputs at the lowest cost",
    "exact": "valid outputs with the model's own probabilities",
    "weighted-rejection": "a constraint that is a Python function",
    "smc": "a score for unfinished texts",
    "unmasking:ORDER": "masked positions of a model such as BERT, for example unmasking:confidence",
}
"""Purposes of the samplers that most users need."""

_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\r": "\r", r"\\": "\\"}


def parse_with_sampler(
    command: str,
    about: str,
    options: Mapping[str, type],
    tokens: Sequence[str],
    common: Collection[str] | None = None,
) -> dict[str, Any]:
    """Parse the command line of a command whose options depend on the sampler.

    The options of the sampler named by `--sampler` are added to the options of the command. Without `--sampler`, the
    sampler is masked decoding if a verifier can compute the set of accepted next tokens, and ancestral sampling
    otherwise. `--help` prints the help of the command and of the named sampler.

    Args:
        command: Name of the command.
        about: Description of the command for its help.
        options: Dataclass of each group of options, by title.
        tokens: Words of the command line.
        common: Fields that `--help` shows next to those of the named sampler. `--help-all` shows all. None (default) if
            `--help` shows all.

    Returns:
        The instance of each group by title. The key "sampler" has the sampler, and the key "sampler named" is True if
        `--sampler` was given.

    Raises:
        InputError: If an option is unknown, or its value has the wrong type or is rejected by the class.
        SystemExit: After the help is printed.
    """
    groups = {title: Group(kind, inspect.getdoc(kind) or "") for title, kind in options.items()}
    is_short = common is not None and HELP_ALL not in tokens and not {"-h", "--help"}.isdisjoint(tokens)
    tokens = ["--help" if token == HELP_ALL else token for token in tokens]
    words = join_option_values(groups, repeat_option("--choice", tokens))
    named = find_option_value("--sampler", words)
    name = named or ("masked-decoding" if _has_mask(words) else "ancestral")
    prog = f"trialogue {command}"
    if named is not None:
        prog += f" --sampler {name}"
    else:
        words = [f"--sampler={name}", *words]
    if named is not None or not {"-h", "--help"} & set(words):
        kind = sampler_class(name)
        groups["sampler"] = Group(kind(), describe_sampler(kind), terse=False)
    shown = {*common, *_fields_of(groups.get("sampler"))} if common is not None and is_short else None
    unknown = f"neither the command nor the sampler {name} has it"
    parsed = parse(
        groups, words, prog=prog, description=about, unknown=unknown, elsewhere=sampler_options, shown=shown
    )
    return {**parsed, "sampler": replace_escapes(parsed["sampler"]), "sampler named": named is not None}


def _fields_of(group: Group | None) -> set[str]:
    return set() if group is None else {field.name for field in dataclasses.fields(group.options)}


def repeat_option(option: str, tokens: Sequence[str]) -> list[str]:
    """Repeat an option before each of its values, for example `--choice=a --choice=b` for `--choice a b`.

    Args:
        option: The option.
        tokens: Words of the command line.

    Returns:
        The changed words of the command line.
    """
    words, inside = list[str](), False
    for token, following in zip_longest(tokens, tokens[1:], fillvalue="--"):
        if token == option and not following.startswith("--"):
            inside = True
        elif inside and not token.startswith("--"):
            words.append(f"{option}={token}")
        else:
            inside = False
            words.append(token)
    return words


def _has_mask(words: Sequence[str]) -> bool:
    """Return whether options in `words` name a verifier with a token mask."""
    from trialogue.generation.verifiers.specs import SHORTHANDS, has_mask

    of_masks = {option_name(field) for field in (*SHORTHANDS, "choice")}
    given = [word.partition("=") for word in words]
    return any(
        option in of_masks or (option == "--verifier" and has_mask(value)) for option, _, value in given
    )


def sampler_class(name: str) -> Any:
    """Return the class of a sampler.

    Args:
        name: Name of the sampler on the command line.

    Raises:
        InputError: If there is no such sampler.
    """
    from trialogue.samplers import SAMPLERS

    return SAMPLERS.find(name)


def sampler_options() -> dict[str, str]:
    """Return the options of all samplers, each with the names of the samplers that have it.

    Returns:
        For each option, a text with the names of the samplers that have it, for example "the sampler best-of-n".
    """
    from trialogue.samplers import SAMPLERS

    owners: dict[str, list[str]] = {}
    samplers: Iterable[tuple[str, Any]] = SAMPLERS.loadable()
    for name, sampler in samplers:
        for field in dataclasses.fields(sampler):
            owners.setdefault(option_name(field.name), []).append(name)
            if isinstance(field.default, bool):
                owners.setdefault(option_name(f"no_{field.name}"), []).append(name)
    return {
        option: f"the sampler{'s' * (len(names) > 1)} {' and '.join(names)}"
        for option, names in owners.items()
    }


def describe_sampler(sampler: Any) -> str:
    """Return the description of a sampler for the help, from its docstring.

    Python names are replaced or left out.

    Args:
        sampler: Class of the sampler.
    """
    # The help of each option contains its entry of the section `Args`.
    text = _by_name((inspect.getdoc(sampler) or "").partition("\n\nArgs:")[0])
    # Omit sentences on other Python objects and on unsupported fields.
    others = re.compile(r"`([A-Z]\w*|erase_prompt)`")
    paragraphs = [re.split(r"(?<=[.:])\s+(?=[A-Z`])", paragraph) for paragraph in text.split("\n\n")]
    return "\n\n".join(
        " ".join(sentence for sentence in sentences if not others.search(sentence))
        for sentences in paragraphs
    )


def _by_name(text: str) -> str:
    """Replace class names of samplers by their command line names."""
    from trialogue.samplers import SAMPLERS

    for name, registered in SAMPLERS.loadable():
        text = text.replace(f"`{registered.__name__}`", name)
    return text


def replace_escapes(sampler: Any) -> Any:
    r"""Replace escape sequences in all text fields of a sampler, for example \n by a line break.

    Args:
        sampler: Instance of a sampler.

    Returns:
        The changed copy.
    """
    values = {field.name: getattr(sampler, field.name) for field in dataclasses.fields(sampler)}
    texts = {name: unescape(value) for name, value in values.items() if isinstance(value, str)}
    return dataclasses.replace(sampler, **texts)


def unescape(text: str) -> str:
    r"""Replace the escape sequences \n, \t, \r and \\ by the characters that they represent.

    Args:
        text: Text with escape sequences.
    """
    return re.sub(r"\\[ntr\\]", lambda match: _ESCAPES[match[0]], text)


def print_more_help(command: str) -> None:
    """Print the purposes of the most used samplers, and how to get the help on all samplers and options.

    Args:
        command: Name of the command.
    """
    _print_box("choose --sampler for", _OFTEN_USED)
    help_on = {
        f"trialogue {command} {HELP_ALL}": "all options, samplers and verifiers",
        f"trialogue {command} --sampler NAME --help": "the options of one sampler",
    }
    _print_box("more help", help_on)


def print_samplers_and_verifiers() -> None:
    """Print the names and descriptions of all samplers and kinds of verifiers."""
    from trialogue.samplers import SAMPLERS

    _print_box(
        "samplers",
        {name: _by_name((sampler.__doc__ or "").partition("\n")[0]) for name, sampler in SAMPLERS.loadable()},
    )
    print_verifiers()


def print_verifiers() -> None:
    """Print the names and descriptions of all kinds of verifiers."""
    from trialogue.generation.verifiers.kinds import KINDS

    _print_box("verifiers", {kind.spec_form(name): kind.description for name, kind in KINDS.loadable()})


def _print_box(title: str, listed: Mapping[str, str]) -> None:
    """Print names and descriptions in the format of the help."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.table import Table

    rows = Table.grid(padding=(0, 2))
    for name, meaning in listed.items():
        rows.add_row(name, meaning)
    Console(highlight=False, markup=False).print(Panel(rows, title=title, title_align="left"))
