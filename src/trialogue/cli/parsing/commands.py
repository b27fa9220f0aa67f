"""Registration of commands, and a parser whose errors are one line."""

import argparse
import inspect
import shutil
import textwrap
from collections.abc import Callable
from typing import Any, NoReturn

from trialogue.errors import InputError


class Parser(argparse.ArgumentParser):
    """Argument parser that reports invalid input as one line on standard error and exits with code 2."""

    def error(self, message: str) -> NoReturn:
        """Print the message on standard error and exit with code 2.

        Args:
            message: Description of the invalid input.
        """
        self.exit(2, f"trialogue: error: {message} (see `{self.prog} --help`)\n")


_THREADS = "Use this many PyTorch threads (default: 1)."


def add_model_options(parser: argparse.ArgumentParser, *, threads: str = _THREADS) -> None:
    """Add the options for the device, the dtype of the weights and the number of threads.

    Args:
        parser: Parser to which the options are added.
        threads: Help text of the option `--threads`.
    """
    devices = "Compute on this device: cpu, cuda, cuda:1 or mps (default: the GPU if there is one)."
    parser.add_argument("--device", metavar="DEVICE", help=devices)
    types = "Load the weights in this type (default: float32)."
    parser.add_argument("--dtype", default="float32", metavar="TYPE", help=types)
    parser.add_argument("--threads", type=int, default=1, metavar="N", help=threads)


class GroupedHelp(argparse.RawDescriptionHelpFormatter):
    """Help formatter for parsers whose description already lists the commands."""

    def add_argument(self, action: argparse.Action) -> None:
        """Add an argument to the help. The argument that stands for all commands is left out.

        Args:
            action: Argument of the parser.
        """
        if not isinstance(action, argparse._SubParsersAction):
            super().add_argument(action)


GROUPS = ("Generate", "Inspect", "Train", "Setup", "Laboratory", "Other")
"""Titles of the groups of commands in the order of the help."""


class Commands:
    """Commands of a parser, to which the function `add(commands)` of each command module adds one.

    Args:
        parser: Parser to which the commands are added.
    """

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parsers = parser.add_subparsers(metavar="COMMAND", required=True, prog=parser.prog)
        self._summaries: dict[str, dict[str, str]] = {}

    def add(
        self,
        name: str,
        function: Callable[[argparse.Namespace], int | None],
        *,
        group: str = "Other",
        fields: bool = False,
        **settings: Any,
    ) -> argparse.ArgumentParser:
        """Add a command to the parser.

        Args:
            name: Name of the command.
            function: Function that runs the command. It receives the parsed arguments, which hold the parser itself as
                `parser`, and may return an exit code. The first line of its docstring is the summary in the list of
                commands.
            group: Title of the group in the list of commands, one of `GROUPS`.
            fields: If True, arguments that the parser does not define are passed to the function as the attribute
                `overrides`, a list of words.
            **settings: Further arguments of `argparse.ArgumentParser`.

        Returns:
            The parser of the command, to which arguments can be added.

        Raises:
            InputError: If a command of this name exists.
        """
        about = inspect.getdoc(function) or ""
        parser = self._add(name, about, group, **settings)
        parser.set_defaults(function=function, parser=parser, fields=fields)
        return parser

    def group(self, name: str, about: str, *, group: str = "Other") -> "Commands":
        """Add a command that has subcommands, such as `trialogue models`.

        Args:
            name: Name of the command.
            about: Description for the help.
            group: Title of the group in the list of commands, one of `GROUPS`.

        Returns:
            An object to which the subcommands are added.
        """
        return Commands(self._add(name, about, group))

    def summary(self) -> str:
        """Return the list of commands by group, with summaries wrapped to the width of the terminal."""
        lines, width = [], shutil.get_terminal_size().columns
        for title in GROUPS:
            commands = self._summaries.get(title, {})
            lines += [
                f"{title}:",
                *(_wrap(f"  {name:<18} {about}", width) for name, about in commands.items()),
                "",
            ]
            if not commands:
                del lines[-2:]
        return "\n".join(lines).rstrip()

    def _add(self, name: str, about: str, group: str, **settings: Any) -> argparse.ArgumentParser:
        if name in self._parsers.choices:
            raise InputError("command", name, "use another name: this command already exists")
        self._summaries.setdefault(group, {})[name] = about.partition("\n")[0]
        summary = self._summaries[group][name]
        return self._parsers.add_parser(name, help=summary, description=about, allow_abbrev=False, **settings)


def _wrap(line: str, width: int) -> str:
    return textwrap.fill(line, max(40, width), subsequent_indent=" " * 21, break_on_hyphens=False)
