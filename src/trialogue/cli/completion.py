"""The command `trialogue completion`."""

import argparse
import contextlib
import io
import os
import re
from collections.abc import Iterator

from trialogue.cli.parsing.commands import Commands

SHELLS = ("bash", "zsh", "tcsh")

_OPTION = re.compile(r"^ {0,3}(?P<option>--[a-z][\w-]*)(?: \{(?P<choices>[^}\s]+)\})?", re.MULTILINE)
"""An option and its choices at the beginning of a line of a help text."""

_WIDTH = "80"
"""Width of the parsed help texts. Wider help texts have several columns."""


def completion(arguments: argparse.Namespace) -> None:
    """Print a shell script that completes commands, options and names of studies.

    For bash, add `eval "$(trialogue completion bash)"` to ~/.bashrc. Print the script again after an update.
    """
    from trialogue.cli import parser
    from trialogue.extras import from_extra

    shtab = from_extra("shtab", "completion")
    whole = parser()
    for command in _commands(whole):
        if command.get_default("fields"):
            _add_fields(command)
        for action in command._actions:
            if hasattr(action, "completions"):  # Some values are expensive to list.
                action.choices = list(action.completions())
    print(shtab.complete(whole, arguments.shell))


def add(commands: Commands) -> None:
    """Add the command `trialogue completion` to a parser.

    Args:
        commands: Commands of the parser.
    """
    commands.add("completion", completion, group="Setup").add_argument(
        "shell", choices=SHELLS, help="Name of the shell."
    )


def _commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers of all commands of `parser`, including commands of groups."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command
                yield from _commands(command)


def _add_fields(command: argparse.ArgumentParser) -> None:
    """Add the options of the settings class of `command`, which its help text lists."""
    page = io.StringIO()
    overrides = [command.get_default("help_option") or "--help"]
    arguments = argparse.Namespace(study=None, help=True, parser=command, overrides=overrides)
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _WIDTH
    try:
        with contextlib.redirect_stdout(page), contextlib.suppress(SystemExit):
            command.get_default("function")(arguments)
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before
    known = set(command._option_string_actions)
    for found in _OPTION.finditer(page.getvalue()):
        if found["option"] not in known:
            known.add(found["option"])
            choices = found["choices"].split(",") if found["choices"] else None
            command.add_argument(found["option"], choices=choices)
