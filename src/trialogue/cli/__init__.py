"""The command line.

Every module adds its commands to one parser. Bad input prints one line to standard error and exits with code 2; Ctrl-C
exits with code 130. Modules import heavy packages only when a command runs, so that `--help` is fast. Other packages
add commands through entry points of the group `trialogue.commands`, each a function `add(commands)`.
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
    """Return the parser of all commands."""
    whole = Parser(
        prog="trialogue",
        usage="trialogue [-h] [--version] COMMAND ...",
        formatter_class=GroupedHelp,
    )
    whole.add_argument("--version", action="version", version=f"trialogue {__version__}")
    commands = Commands(whole)
    for name in COMMANDS:
        try:
            COMMANDS[name](commands)
        except InputError as error:  # A broken package must not break other commands.
            print(f"trialogue: {error}", file=sys.stderr)
    about = "Sample from language models under constraints, exactly, and inspect what they have learned."
    whole.description = (
        f"{about}\n\n{commands.summary()}\n\nRun `trialogue COMMAND --help` for the options of a command."
    )
    return whole


def main(tokens: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: by default 0, 2 for bad input, 130 for Ctrl-C."""
    try:
        _require_laboratory(sys.argv[1:] if tokens is None else tokens)
        arguments, rest = parser().parse_known_args(tokens)
        if rest and not arguments.fields:
            arguments.parser.error(f"unrecognized arguments: {' '.join(rest)}")
        arguments.overrides = rest
        code: int = arguments.function(arguments) or 0
        if sys.stdout is not None:  # as it is where it was closed
            sys.stdout.flush()
    except InputError as error:
        print(f"trialogue: error: {' '.join(str(error).split())}", file=sys.stderr)
        _flush_what_goes()
        return 2
    except KeyboardInterrupt as error:
        print(f"\ntrialogue: {str(error) or 'interrupted'}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _abandon_output()
        return 1
    except OSError as error:
        # Files that commands write name themselves (`trialogue.storage`): this one is standard output.
        if error.filename is not None or error.errno not in _UNWRITABLE:
            raise
        print(f"trialogue: error: standard output cannot be written: {error.strerror}", file=sys.stderr)
        _flush_what_goes()
        return 2
    return code


def _require_laboratory(tokens: Sequence[str]) -> None:
    """Raise `InputError` for a command of the laboratory if the laboratory is not installed."""
    if tokens and tokens[0] in LABORATORY and "studies" not in COMMANDS:
        raise InputError("command", tokens[0], "it belongs to the laboratory: pip install trialogue-lab")


def _flush_what_goes() -> None:
    """Write what standard output still takes, and nothing more where it takes nothing."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        _abandon_output()


def _abandon_output() -> None:
    """Let nothing that is still in the buffer of standard output raise again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
