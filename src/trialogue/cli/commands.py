"""How commands are declared: a parser whose errors are one line, and the table that a command adds itself to."""

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from trialogue.errors import InputError


class Parser(argparse.ArgumentParser):
    """An argument parser that reports bad input as one line on standard error, with exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Exit with the message."""
        self.exit(2, f"trialogue: error: {message} (see `{self.prog} --help`)\n")


def add_model_options(parser: argparse.ArgumentParser, *, threads: str = "threads of torch (1)") -> None:
    """Add the options that say where and in which precision a command runs a model."""
    devices = "cpu, cuda, cuda:1, mps (the GPU, where there is one)"
    parser.add_argument("--device", metavar="DEVICE", help=devices)
    types = "type of a model's weights (float32)"
    parser.add_argument("--dtype", default="float32", metavar="TYPE", help=types)
    parser.add_argument("--threads", type=int, default=1, metavar="N", help=threads)


class Commands:
    """The commands of a parser. A module of commands has a function `add(commands)` that adds its own."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parsers = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(
        self,
        name: str,
        function: Callable[[argparse.Namespace], int | None],
        *,
        fields: bool = False,
        **settings: Any,
    ) -> argparse.ArgumentParser:
        """Add the command `name`, explained by the docstring of `function`, and return its parser.

        `function` is called with the parsed arguments, which name the parser itself as `parser`, and may return an exit
        code; with `fields`, what the parser does not know is not refused but handed on as `overrides`, a list of words.
        """
        said = function.__doc__
        self._require_free(name)
        added = self._parsers.add_parser(name, help=said, description=said, allow_abbrev=False, **settings)
        added.set_defaults(function=function, parser=added, fields=fields)
        return added

    def group(self, name: str, said: str) -> "Commands":
        """Add `name` as a command with commands of its own."""
        self._require_free(name)
        return Commands(self._parsers.add_parser(name, help=said, description=said, allow_abbrev=False))

    def _require_free(self, name: str) -> None:
        if name in self._parsers.choices:
            raise InputError("command", name, "there is one of that name already: choose another")
