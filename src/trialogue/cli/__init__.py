"""Command line of trialogue.

Each module adds its commands to one parser. Invalid input prints one line to standard error and exits with
code 2, and Ctrl-C exits with code 130. Modules import large packages only when a command runs, so that
`--help` is fast. Other packages can add commands by entry points in the group `trialogue.commands`, each a
function `add(commands)`.
"""

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence

from trialogue import __version__
from trialogue.cli.parsing.commands import Commands, GroupedHelp, Parser
from trialogue.errors import InputError
from trialogue.registry import Registry

COMMANDS: Registry[Callable[[Commands], None]] = Registry(
    "trialogue.commands",
    "command",
    {
        name: f"trialogue.cli.{name}:add"
        for name in (
            "compare",
            "generate",
            "serve",
            "distribution",
            "score",
            "simulate",
            "clone",
            "interaction_order",
            "topics",
            "inspect",
            "translation",
            "probe",
            "models",
            "completion",
        )
    },
)
"""Functions that add commands to the parser, by name."""

LABORATORY = frozenset({"run", "list", "ledger", "report", "pilot", "fill", "gallery", "memorize", "balance"})
"""Commands of the package trialogue-lab."""

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def parser() -> argparse.ArgumentParser:
    """Create the parser of `trialogue` with all commands."""
    root = Parser(
        prog="trialogue",
        usage="trialogue [-h] [--version] COMMAND ...",
        formatter_class=GroupedHelp,
    )
    root.add_argument("--version", action="version", version=f"trialogue {__version__}")
    commands = Commands(root)
    for name in COMMANDS:
        try:
            COMMANDS[name](commands)
        except InputError as error:  # A broken package must not break other commands.
            print(f"trialogue: {error}", file=sys.stderr)
    about = "Sample from language models under constraints, and inspect what they learned."
    root.description = (
        f"{about}\n\n{commands.summary()}\n\nRun `trialogue COMMAND --help` for the options of a command."
    )
    return root


def main(tokens: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        tokens: Arguments of the command line. By default `sys.argv[1:]`.

    Returns:
        Exit code: 0 by default, 2 for invalid input, 130 for Ctrl-C.
    """
    try:
        _require_laboratory(sys.argv[1:] if tokens is None else tokens)
        arguments, rest = parser().parse_known_args(tokens)
        if rest and not arguments.fields:
            arguments.parser.error(f"unrecognized arguments: {' '.join(rest)}")
        arguments.overrides = rest
        code: int = arguments.function(arguments) or 0
        if sys.stdout is not None:  # It is None if the stream was closed.
            sys.stdout.flush()
    except InputError as error:
        print(f"trialogue: error: {' '.join(str(error).split())}", file=sys.stderr)
        _flush_output()
        return 2
    except KeyboardInterrupt as error:
        print(f"\ntrialogue: {str(error) or 'interrupted'}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _discard_output()
        return 1
    except OSError as error:
        # Errors of other files have a file name, so an error without one concerns standard output.
        if error.filename is not None or error.errno not in _UNWRITABLE:
            raise
        print(f"trialogue: error: standard output cannot be written: {error.strerror}", file=sys.stderr)
        _flush_output()
        return 2
    return code


def _require_laboratory(tokens: Sequence[str]) -> None:
    """Raise `InputError` for a command of the laboratory if the laboratory is not installed."""
    if tokens and tokens[0] in LABORATORY and "studies" not in COMMANDS:
        raise InputError("command", tokens[0], "run `pip install trialogue-lab`, which provides this command")


def _flush_output() -> None:
    """Flush standard output, and discard the rest if it cannot be written."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        _discard_output()


def _discard_output() -> None:
    """Redirect standard output to the null device, so that buffered data does not raise at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
